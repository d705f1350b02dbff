//! A staged job: everything that an executor needs to start the command.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;

use skillbox_model::{RelPath, SkillName};
use skillbox_sandbox::SkillDirAccess;

use crate::NetworkAccess;
use crate::job::{JobSpec, RequestError};
use crate::layout::{self, SKILL_LINKS};
use crate::snapshot::Snapshot;
use crate::workspace::{StagedLink, Workspace, open_directory};

/// A job whose skills and inputs are in place.
#[derive(Debug)]
pub struct StagedJob {
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// The complete environment.
    pub env: BTreeMap<OsString, OsString>,
    /// The working directory: an absolute path inside the sandbox.
    pub cwd: String,
    /// A directory with one mount point for each skill, mounted read-only at `/workspace/skills`.
    pub mount_points: Option<OwnedFd>,
    /// The skills to mount.
    pub skills: Vec<(SkillName, Arc<Snapshot>)>,
    /// Sources to mount read-only into the workspace.
    pub links: Vec<StagedLink>,
    /// The hosts that the command may reach.
    pub network: NetworkAccess,
    /// Whether the command may change the directory of the skill that runs. The changes are in the workspace, in the
    /// directory of the skill.
    pub skill_dir: SkillDirAccess,
}

impl StagedJob {
    /// A command that does nothing, without skills and inputs.
    pub(crate) fn empty() -> Self {
        Self {
            argv: vec!["true".into()],
            env: BTreeMap::new(),
            cwd: "/".to_owned(),
            mount_points: None,
            skills: Vec::new(),
            links: Vec::new(),
            network: NetworkAccess::default(),
            skill_dir: SkillDirAccess::ReadOnly,
        }
    }

    /// Sets whether the command may change a private view of its skill's directory.
    pub fn with_skill_dir(mut self, skill_dir: SkillDirAccess) -> Self {
        self.skill_dir = skill_dir;
        self
    }

    /// Lets the command reach these hosts, and tells programs about the proxy and the certificate authorities.
    pub fn with_network(mut self, network: NetworkAccess) -> Self {
        network.add_proxy_variables(&mut self.env);
        network.add_certificate_variables(&mut self.env);
        self.network = network;
        self
    }

    /// Resolves what depends on the staged files: the interpreter and the working directory.
    ///
    /// The first of `skills` is the one that runs. Variables of the request override `profile_env`.
    pub fn resolve(
        spec: &JobSpec,
        mount_points: OwnedFd,
        skills: Vec<(SkillName, Arc<Snapshot>)>,
        links: Vec<StagedLink>,
        workspace: &Workspace,
        profile_env: Vec<(OsString, OsString)>,
    ) -> Result<Self, RequestError> {
        let head = match (&spec.invocation, skills.first()) {
            (crate::job::Invocation::Script { path, .. }, Some((name, snapshot))) => {
                snapshot.read_head(path).map_err(|error| {
                    RequestError::invalid("script", format!("the skill {name} has no script {path}: {error}"))
                })?
            }
            _ => Vec::new(),
        };
        let argv = spec.invocation.to_argv(&spec.skill, &head)?;
        check_cwd(spec.cwd.as_ref(), &skills, workspace)?;
        let mut env: BTreeMap<OsString, OsString> = crate::job::base_environment(&spec.skill, &spec.run_id)
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        env.extend(profile_env);
        env.extend(spec.env.iter().map(|(name, value)| (name.into(), value.into())));
        Ok(Self {
            argv: argv.into_iter().map(OsString::from_vec).collect(),
            env,
            cwd: match &spec.cwd {
                Some(path) => format!("{}/{path}", layout::ROOT),
                None => layout::ROOT.to_owned(),
            },
            mount_points: Some(mount_points),
            skills,
            links,
            network: NetworkAccess::default(),
            skill_dir: SkillDirAccess::ReadOnly,
        })
    }
}

/// Rejects a working directory that does not exist, before anything runs.
fn check_cwd(
    cwd: Option<&RelPath>,
    skills: &[(SkillName, Arc<Snapshot>)],
    workspace: &Workspace,
) -> Result<(), RequestError> {
    let Some(path) = cwd else { return Ok(()) };
    let missing = |error: &dyn std::fmt::Display| {
        RequestError::invalid("cwd", format!("{path:?} is not a directory of the run: {error}"))
    };
    let parts: Vec<&[u8]> = path.components().collect();
    let [b"skills", name, below @ ..] = parts.as_slice() else {
        return open_directory(workspace.root(), path)
            .map(drop)
            .map_err(|error| missing(&error));
    };
    let Some((_, snapshot)) = skills.iter().find(|(skill, _)| skill.as_str().as_bytes() == *name) else {
        return Err(missing(&"no such skill is mounted"));
    };
    let below = below.join(&b'/');
    if below.is_empty() {
        return Ok(());
    }
    let below = RelPath::parse(below).map_err(|error| RequestError::invalid_path("cwd", &error))?;
    // The links to the workspace point out of the snapshot, and always to a directory.
    let first = below.components().next().unwrap_or_default();
    if let Some((link, _)) = SKILL_LINKS.iter().find(|(link, _)| link.as_bytes() == first) {
        let target = if *link == "inputs" { layout::INPUTS } else { link };
        let rest = below.as_bytes()[first.len()..].to_vec();
        let real = RelPath::parse([target.as_bytes(), &rest].concat())
            .map_err(|error| RequestError::invalid_path("cwd", &error))?;
        return open_directory(workspace.root(), &real)
            .map(drop)
            .map_err(|error| missing(&error));
    }
    snapshot
        .open_directory(&below)
        .map(drop)
        .map_err(|error| missing(&error))
}
