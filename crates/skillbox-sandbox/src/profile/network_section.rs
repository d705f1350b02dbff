//! The network of a profile file: a word, or a mapping with a list of allowed hosts.

use std::fmt;

use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use skillbox_model::{DEFAULT_PORT, HostPattern, HostPort, PathPattern, RequestMethod, RequestRule, RequestRuleError};

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
    /// The methods of allowed requests; all if there are none.
    #[serde(default)]
    pub methods: Vec<String>,
    /// The paths of allowed requests; all if there are none.
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
    // An entry replaces inherited ones for its host; several entries of one list allow what any of them allows.
    let mut inherited = inherited.to_vec();
    let mut hosts = Vec::new();
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
        let requests = match request_rule(methods, paths) {
            Ok(requests) => requests,
            Err(error) => {
                diagnostics.add(location, "profile_network", format!("{host}: {error}"));
                continue;
            }
        };
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
            inherited.retain(|old| old.host != host);
            hosts.push(AllowedHost {
                host,
                requests: requests.clone(),
                reason: reason.clone(),
            });
        }
    }
    inherited.extend(hosts);
    inherited
}

fn request_rule(methods: &[String], paths: &[String]) -> Result<RequestRule, RequestRuleError> {
    Ok(RequestRule {
        methods: methods
            .iter()
            .map(|text| RequestMethod::parse(text))
            .collect::<Result<_, _>>()?,
        paths: paths
            .iter()
            .map(|text| PathPattern::parse(text))
            .collect::<Result<_, _>>()?,
    })
}
