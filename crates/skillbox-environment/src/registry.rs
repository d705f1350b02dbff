//! The registries that packages come from: those that the tools of the host are configured for. No registry is named
//! here; the front end asks the tools.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, ToSocketAddrs};

use serde::Deserialize;
use skillbox_model::HostPort;
use url::{Host, Url};

/// The registry of Python packages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PythonRegistry {
    /// The index.
    pub index: Url,
    /// Further indexes.
    pub extra_indexes: Vec<Url>,
    /// Other hosts that have the files of the index.
    pub file_hosts: Vec<String>,
    /// Hosts whose certificates are not checked.
    pub trusted_hosts: Vec<String>,
    /// Certificates of authorities, if the tool uses others than the host.
    pub certificates: Option<String>,
}

/// The registry of Node packages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRegistry {
    /// The registry.
    pub registry: Url,
    /// The registries of scopes, with their `@`.
    pub scopes: BTreeMap<String, Url>,
    /// Certificates of authorities, if the tool uses others than the host.
    pub certificates: Option<String>,
}

/// Why packages cannot come from a registry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// The tool of the host is missing or fails.
    #[error("{0}")]
    Tool(String),
    /// The configuration of the tool is not usable.
    #[error("the configuration of {tool}, `{key}`: {reason}")]
    Configuration {
        /// The tool.
        tool: &'static str,
        /// The key of its configuration.
        key: String,
        /// Why it is not usable.
        reason: &'static str,
    },
    /// The address of a registry is not known.
    #[error("the registry {host} cannot be resolved: {reason}")]
    Unresolvable {
        /// The host.
        host: String,
        /// The cause.
        reason: String,
    },
}

/// What the front end learned from pip.
#[derive(Debug, Deserialize)]
pub struct PipConfiguration {
    /// The keys and values, with the section in front of the key.
    pub config: BTreeMap<String, String>,
    /// The index that pip uses without a configuration.
    pub index: String,
    /// The host with the files of that index.
    pub files: String,
}

impl PythonRegistry {
    /// The registry of a configuration of pip. `read_file` reads a file that it names.
    pub fn of_pip(
        pip: &PipConfiguration,
        read_file: impl Fn(&str) -> std::io::Result<String>,
    ) -> Result<Self, RegistryError> {
        // As in pip, variables win over a section for `install`, and that over the global one.
        let value = |key: &str| {
            let sections = [":env:.", "install.", "global."];
            let mut values = sections
                .iter()
                .filter_map(|section| pip.config.get(&format!("{section}{key}")));
            values.find(|value| !value.trim().is_empty())
        };
        let refuse = |key: &str, reason| RegistryError::Configuration {
            tool: "pip",
            key: key.to_owned(),
            reason,
        };
        if value("no-index").is_some_and(|value| !matches!(value.as_str(), "0" | "false" | "no")) {
            return Err(refuse("no-index", "there is no index to get packages from"));
        }
        for key in ["proxy", "client-cert"] {
            if value(key).is_some() {
                return Err(refuse(key, "builds in the sandbox do not support it yet"));
            }
        }
        let urls = |key: &str| -> Result<Vec<Url>, RegistryError> {
            let words = value(key).map(|value| value.split_whitespace()).into_iter().flatten();
            words.map(|word| registry_url("pip", key, word)).collect()
        };
        let configured = urls("index-url")?.into_iter().next();
        let (index, file_hosts) = match configured {
            Some(index) => (index, Vec::new()),
            None => (registry_url("pip", "index-url", &pip.index)?, vec![pip.files.clone()]),
        };
        let certificates = match value("cert") {
            Some(path) => Some(read_file(path).map_err(|_| refuse("cert", "the file cannot be read"))?),
            None => None,
        };
        Ok(Self {
            index,
            extra_indexes: urls("extra-index-url")?,
            file_hosts,
            trusted_hosts: value("trusted-host")
                .map(|value| value.split_whitespace().map(str::to_owned).collect())
                .unwrap_or_default(),
            certificates,
        })
    }

    /// The hosts that a build may reach.
    pub fn hosts(&self) -> Result<BTreeSet<HostPort>, RegistryError> {
        let mut hosts = BTreeSet::new();
        for url in std::iter::once(&self.index).chain(&self.extra_indexes) {
            add_host(&mut hosts, url)?;
        }
        for host in &self.file_hosts {
            let mut url = self.index.clone();
            if url.set_host(Some(host)).is_ok() {
                add_host(&mut hosts, &url)?;
            }
        }
        Ok(hosts)
    }
}

impl NodeRegistry {
    /// The registry of a configuration of npm: the output of `npm config list --json`.
    pub fn of_npm(
        config: &BTreeMap<String, serde_json::Value>,
        read_file: impl Fn(&str) -> std::io::Result<String>,
    ) -> Result<Self, RegistryError> {
        let text = |key: &str| {
            config
                .get(key)
                .and_then(serde_json::Value::as_str)
                .filter(|text| !text.is_empty())
        };
        let refuse = |key: &str, reason| RegistryError::Configuration {
            tool: "npm",
            key: key.to_owned(),
            reason,
        };
        for key in ["proxy", "https-proxy"] {
            if text(key).is_some_and(|value| value != "null") {
                return Err(refuse(key, "builds in the sandbox do not support it yet"));
            }
        }
        let registry = text("registry").ok_or_else(|| refuse("registry", "it is not set"))?;
        let mut scopes = BTreeMap::new();
        for (key, value) in config {
            if let (Some(scope), Some(url)) = (key.strip_suffix(":registry"), value.as_str()) {
                scopes.insert(scope.to_owned(), registry_url("npm", key, url)?);
            }
        }
        let certificates = match text("cafile") {
            Some(path) => Some(read_file(path).map_err(|_| refuse("cafile", "the file cannot be read"))?),
            None => None,
        };
        Ok(Self {
            registry: registry_url("npm", "registry", registry)?,
            scopes,
            certificates,
        })
    }

    /// The hosts that a build may reach.
    pub fn hosts(&self) -> Result<BTreeSet<HostPort>, RegistryError> {
        let mut hosts = BTreeSet::new();
        for url in std::iter::once(&self.registry).chain(self.scopes.values()) {
            add_host(&mut hosts, url)?;
        }
        Ok(hosts)
    }
}

/// Parses the address of a registry. One with credentials is refused: they would be visible in the sandbox.
fn registry_url(tool: &'static str, key: &str, text: &str) -> Result<Url, RegistryError> {
    let refuse = |reason| RegistryError::Configuration {
        tool,
        key: key.to_owned(),
        reason,
    };
    let url = Url::parse(text).map_err(|_| refuse("not a URL"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(refuse("not an address that starts with https:// or http://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refuse(
            "it has credentials, which would be visible in the sandbox; use a mirror without them",
        ));
    }
    Ok(url)
}

/// Adds the host of a registry, and its addresses if they are not public: without a rule that names it, such an address
/// is refused. The operator's tools are configured for it, so the operator means it.
fn add_host(hosts: &mut BTreeSet<HostPort>, url: &Url) -> Result<(), RegistryError> {
    let port = url.port_or_known_default().unwrap_or(443);
    let host = url.host_str().unwrap_or_default();
    let unresolvable = |reason: String| RegistryError::Unresolvable {
        host: host.to_owned(),
        reason,
    };
    let add = |hosts: &mut BTreeSet<HostPort>, text: &str| {
        let parsed = HostPort::parse(&format!("{text}:{port}")).map_err(|error| unresolvable(error.to_string()))?;
        hosts.insert(parsed);
        Ok(())
    };
    add(hosts, host)?;
    if !matches!(url.host(), Some(Host::Domain(_))) {
        return Ok(());
    }
    let addresses = (host, port)
        .to_socket_addrs()
        .map_err(|error| unresolvable(error.to_string()))?;
    for address in addresses {
        match address.ip() {
            IpAddr::V4(address) => add(hosts, &address.to_string())?,
            IpAddr::V6(address) => add(hosts, &format!("[{address}]"))?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pip(pairs: &[(&str, &str)]) -> Result<PythonRegistry, RegistryError> {
        let config = pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let configuration = PipConfiguration {
            config: config.collect(),
            index: "https://pip.example/simple".to_owned(),
            files: "wheels.example".to_owned(),
        };
        PythonRegistry::of_pip(&configuration, |path| Ok(format!("content of {path}")))
    }

    #[test]
    fn the_configuration_of_pip_decides() {
        let default = pip(&[]).unwrap();
        assert_eq!(default.index.as_str(), "https://pip.example/simple");
        assert_eq!(default.file_hosts, ["wheels.example"]);
        let own = pip(&[
            ("global.index-url", "https://a.example/simple"),
            (":env:.index-url", "http://127.0.0.1:8080/simple"),
            ("global.extra-index-url", "https://b.example/x https://c.example"),
            ("global.cert", "/ca.pem"),
            ("install.trusted-host", "a.example b.example"),
        ])
        .unwrap();
        assert_eq!(own.index.as_str(), "http://127.0.0.1:8080/simple");
        assert!(own.file_hosts.is_empty());
        assert_eq!((own.extra_indexes.len(), own.trusted_hosts.len()), (2, 2));
        assert_eq!(own.certificates.as_deref(), Some("content of /ca.pem"));
        for (key, value) in [
            ("global.no-index", "true"),
            ("global.proxy", "http://p.example"),
            ("global.client-cert", "/x"),
            ("global.index-url", "https://user:password@a.example/simple"),
            ("global.index-url", "file:///srv/simple"),
            ("global.index-url", "/srv/simple"),
        ] {
            let error = pip(&[(key, value)]).unwrap_err().to_string();
            assert!(!error.contains("password"), "{error}");
        }
    }

    #[test]
    fn the_configuration_of_npm_decides() {
        let npm = |json: serde_json::Value| {
            let config = serde_json::from_value(json).unwrap();
            NodeRegistry::of_npm(&config, |path| Ok(format!("content of {path}")))
        };
        let registry = npm(serde_json::json!({
            "registry": "https://npm.example/", "@a:registry": "https://a.example/", "cafile": "/ca.pem",
            "proxy": null, "audit": true,
        }))
        .unwrap();
        assert_eq!(registry.registry.as_str(), "https://npm.example/");
        assert_eq!(registry.scopes["@a"].as_str(), "https://a.example/");
        assert!(registry.certificates.is_some());
        assert!(npm(serde_json::json!({})).is_err());
        assert!(npm(serde_json::json!({"registry": "https://x:y@npm.example/"})).is_err());
        assert!(npm(serde_json::json!({"registry": "https://npm.example/", "https-proxy": "http://p"})).is_err());
    }

    #[test]
    fn addresses_of_registries_are_allowed_with_their_ports() {
        let texts = |registry: &PythonRegistry| {
            registry
                .hosts()
                .unwrap()
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
        };
        let local = pip(&[("global.index-url", "http://127.0.0.1:8080/simple")]).unwrap();
        assert_eq!(texts(&local), ["127.0.0.1:8080"]);
        let named = pip(&[("global.index-url", "http://localhost:8080/simple")]).unwrap();
        assert!(texts(&named).contains(&"localhost:8080".to_owned()));
        assert!(
            texts(&named)
                .iter()
                .any(|host| host == "127.0.0.1:8080" || host == "[::1]:8080")
        );
    }
}
