//! The network of a profile file: a word, or a mapping with a list of allowed hosts.

use std::fmt;

use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use skillbox_model::{DEFAULT_PORT, HostPattern, HostPort};

use super::diagnostics::Diagnostics;
use super::policy::{AllowedHost, NetworkPolicy};
use super::yaml::{self, Located};

/// `network: none`, or `network: {mode: allow_list, allow: […]}`.
#[derive(Debug)]
pub(super) struct NetworkSection {
    pub mode: NetworkPolicy,
    pub allow: Vec<Located<AllowedHostEntry>>,
}

/// The mapping form.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct NetworkMapping {
    mode: NetworkPolicy,
    #[serde(default)]
    allow: Vec<Located<AllowedHostEntry>>,
}

/// One entry of the list of allowed hosts.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AllowedHostEntry {
    pub host: String,
    #[serde(default)]
    pub ports: Vec<u16>,
    /// Not enforced yet, so a profile with it is refused.
    #[serde(default)]
    pub methods: Vec<String>,
    /// Not enforced yet, so a profile with it is refused.
    #[serde(default)]
    pub paths: Vec<String>,
    pub reason: Option<String>,
}

impl<'de> Deserialize<'de> for NetworkSection {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WordOrMapping;

        impl<'de> Visitor<'de> for WordOrMapping {
            type Value = NetworkSection;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a network policy, or a mapping with `mode` and `allow`")
            }

            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<Self::Value, E> {
                Ok(NetworkSection {
                    mode: NetworkPolicy::deserialize(StrDeserializer::new(word))?,
                    allow: Vec::new(),
                })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let NetworkMapping { mode, allow } = NetworkMapping::deserialize(MapAccessDeserializer::new(map))?;
                Ok(NetworkSection { mode, allow })
            }
        }

        deserializer.deserialize_any(WordOrMapping)
    }
}

/// The hosts of a profile: those of the parent, and those that the document adds.
pub(super) fn merge_allowed_hosts(
    section: Option<&NetworkSection>,
    inherited: &[AllowedHost],
    diagnostics: &mut Diagnostics,
) -> Vec<AllowedHost> {
    let Some(section) = section else {
        return inherited.to_vec();
    };
    if section.mode != NetworkPolicy::AllowList {
        if let Some(entry) = section.allow.first() {
            let message = "`allow` is a list for the mode `allow_list`".to_owned();
            diagnostics.add(yaml::location(entry), "profile_contradiction", message);
        }
        return Vec::new();
    }
    let mut hosts = inherited.to_vec();
    for entry in &section.allow {
        let location = yaml::location(entry);
        let AllowedHostEntry {
            host,
            ports,
            methods,
            paths,
            reason,
        } = &entry.value;
        let reason = diagnostics.require_reason(reason.as_ref(), location, host);
        if !methods.is_empty() || !paths.is_empty() {
            let message = format!("{host}: skillbox cannot restrict methods and paths yet");
            let hint = "remove `methods` and `paths`, which allows every request to the host".to_owned();
            diagnostics.add_with_hint(location, "profile_network", message, hint);
        }
        let pattern = match HostPattern::parse(host) {
            Ok(pattern) => pattern,
            Err(error) => {
                diagnostics.add(location, "profile_network", error.to_string());
                continue;
            }
        };
        let default_ports = [DEFAULT_PORT];
        let ports = if ports.is_empty() { &default_ports[..] } else { ports };
        for port in ports {
            if *port == 0 {
                diagnostics.add(
                    location,
                    "profile_network",
                    format!("{host}: a port is a number from 1 to 65535"),
                );
                continue;
            }
            let host = HostPort {
                host: pattern.clone(),
                port: *port,
            };
            hosts.retain(|old| old.host != host);
            hosts.push(AllowedHost {
                host,
                reason: reason.clone(),
            });
        }
    }
    hosts
}
