//! What `skillbox doctor` reports about the daemon.

use bollard::models::SystemInfo;
use serde::Serialize;

use super::enforcement::maps_ids;

/// The properties of the daemon that matter for runs.
#[derive(Clone, Debug, Serialize)]
pub struct DaemonFindings {
    /// The address of the daemon.
    pub host: String,
    /// The version of the engine.
    pub version: String,
    /// The negotiated API version.
    pub api: String,
    /// The version of control groups.
    pub cgroup_version: String,
    /// Whether it supports system call filters.
    pub seccomp: bool,
    /// Whether it runs as an ordinary user.
    pub rootless: bool,
    /// Whether it maps user ids (`userns-remap` or rootless).
    pub maps_ids: bool,
    /// Whether it limits memory.
    pub memory_limit: bool,
    /// Whether it limits swap.
    pub swap_limit: bool,
    /// Whether it limits processes.
    pub pids_limit: bool,
    /// The image for runs.
    pub image: ImageFindings,
}

/// The image for runs.
#[derive(Clone, Debug, Serialize)]
pub struct ImageFindings {
    /// Its name.
    pub name: String,
    /// Its id; none if the image is missing.
    pub id: Option<String>,
}

impl DaemonFindings {
    pub(super) fn new(host: &str, api: &str, info: &SystemInfo, image: ImageFindings) -> Self {
        let has_option = |name: &str| {
            let options = info.security_options.iter().flatten();
            options
                .into_iter()
                .any(|option| option.contains(&format!("name={name}")))
        };
        Self {
            host: host.to_owned(),
            version: info.server_version.clone().unwrap_or_default(),
            api: api.to_owned(),
            cgroup_version: info
                .cgroup_version
                .map_or_else(|| "1".to_owned(), |version| version.to_string()),
            seccomp: has_option("seccomp"),
            rootless: has_option("rootless"),
            maps_ids: maps_ids(info),
            memory_limit: info.memory_limit == Some(true),
            swap_limit: info.swap_limit == Some(true),
            pids_limit: info.pids_limit == Some(true),
            image,
        }
    }
}
