//! The hosts that a run may reach, and what the sandbox needs for them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

use skillbox_egress::AllowList;
use skillbox_model::{GrantedSecret, HostPort, HostRule};
use skillbox_sandbox::ListeningPorts;

/// The first port that is tried for the proxy: the customary one.
const FIRST_PROXY_PORT: u16 = 3128;

/// The most ports of one run. Each has a socket inside the sandbox.
const MAX_PORTS: usize = 32;

/// The directory of the certificate authorities of a run, inside the sandbox.
pub(crate) const CERTIFICATES_DIRECTORY: &str = "/run/skillbox/tls";

/// The file with all authorities, in the PEM format.
pub(crate) const CERTIFICATE_BUNDLE: &str = "ca-bundle.pem";

/// The variables by which programs find the bundle: OpenSSL with Python and Go, requests, curl, Node.js, git, Deno, pip
/// and the programs of AWS.
const BUNDLE_VARIABLES: [&str; 8] = [
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "GIT_SSL_CAINFO",
    "DENO_CERT",
    "PIP_CERT",
    "AWS_CA_BUNDLE",
];

/// The hosts that a run may reach: those of its profile and those that were granted. An empty set is no network.
#[derive(Clone, Debug, Default)]
pub struct NetworkAccess {
    rules: BTreeSet<HostRule>,
    /// The secrets that skillbox adds to requests.
    secrets: Vec<GrantedSecret>,
}

/// Why a run cannot have access to these hosts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkAccessError {
    /// The sandbox uses this port itself.
    #[error("{0}: port {port} is reserved for names inside the sandbox", port = ListeningPorts::DNS)]
    ReservedPort(HostPort),
    /// There are too many ports.
    #[error("the allowed hosts have {0} different ports; a run has at most {MAX_PORTS}")]
    TooManyPorts(usize),
}

impl NetworkAccess {
    /// Access by these rules. A request is allowed if any of them allows it.
    pub fn new(rules: BTreeSet<HostRule>) -> Result<Self, NetworkAccessError> {
        if let Some(reserved) = rules.iter().find(|rule| rule.host.port == ListeningPorts::DNS) {
            return Err(NetworkAccessError::ReservedPort(reserved.host.clone()));
        }
        let access = Self {
            rules,
            secrets: Vec::new(),
        };
        match access.ports().len() {
            0..=MAX_PORTS => Ok(access),
            count => Err(NetworkAccessError::TooManyPorts(count)),
        }
    }

    /// Lets requests to their hosts contain these secrets. Those that the run gets as values are only removed from answers.
    pub fn with_secrets(mut self, secrets: Vec<GrantedSecret>) -> Self {
        self.secrets = secrets;
        self
    }

    /// The secrets.
    pub(crate) fn secrets(&self) -> &[GrantedSecret] {
        &self.secrets
    }

    /// The hosts.
    pub fn hosts(&self) -> BTreeSet<HostPort> {
        self.rules.iter().map(|rule| rule.host.clone()).collect()
    }

    /// Whether the run can reach nothing, and so has no network.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The rules for connections.
    pub(crate) fn allow_list(&self) -> AllowList {
        AllowList::new(self.rules.clone())
    }

    fn ports(&self) -> BTreeSet<u16> {
        self.rules.iter().map(|rule| rule.host.port).collect()
    }

    /// The ports that the sandbox listens on; none without hosts.
    pub fn listening_ports(&self) -> Option<ListeningPorts> {
        let hosts = self.ports();
        if hosts.is_empty() {
            return None;
        }
        let proxy = (FIRST_PROXY_PORT..).find(|port| !hosts.contains(port))?;
        Some(ListeningPorts {
            hosts: hosts.into_iter().collect(),
            proxy,
        })
    }

    /// Whether skillbox reads requests of the run, which then trusts an authority of its own.
    pub(crate) fn needs_certificates(&self) -> bool {
        !self.is_empty() && skillbox_egress::reads_requests(&self.allow_list(), &self.secrets)
    }

    /// Adds the variables by which programs find the certificate authorities, unless the request sets them.
    pub(crate) fn add_certificate_variables(&self, env: &mut BTreeMap<OsString, OsString>) {
        if !self.needs_certificates() {
            return;
        }
        let bundle = format!("{CERTIFICATES_DIRECTORY}/{CERTIFICATE_BUNDLE}");
        for name in BUNDLE_VARIABLES {
            env.entry(name.into()).or_insert_with(|| bundle.clone().into());
        }
    }

    /// Adds the variables by which programs find the proxy, unless the request sets them.
    pub(crate) fn add_proxy_variables(&self, env: &mut BTreeMap<OsString, OsString>) {
        let Some(ports) = self.listening_ports() else { return };
        let proxy = format!("http://127.0.0.1:{}", ports.proxy);
        let variables = [
            ("HTTP_PROXY", proxy.as_str()),
            ("HTTPS_PROXY", &proxy),
            ("NO_PROXY", "localhost,127.0.0.1,::1"),
        ];
        for (name, value) in variables {
            // curl reads only the lower-case name for HTTP: the upper-case one could come from a CGI header.
            for name in [name.to_owned(), name.to_lowercase()] {
                env.entry(name.into()).or_insert_with(|| value.into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(hosts: &[&str]) -> Result<NetworkAccess, NetworkAccessError> {
        let rules = hosts.iter().map(|host| HostPort::parse(host).unwrap().into());
        NetworkAccess::new(rules.collect())
    }

    #[test]
    fn the_proxy_port_is_not_the_port_of_a_host() {
        let ports = access(&["a.example:3128", "b.example:3129", "c.example"])
            .unwrap()
            .listening_ports();
        let expected = ListeningPorts {
            hosts: vec![443, 3128, 3129],
            proxy: 3130,
        };
        assert_eq!(ports, Some(expected));
        assert_eq!(access(&[]).unwrap().listening_ports(), None);
    }

    #[test]
    fn ports_are_bounded_and_that_of_names_is_reserved() {
        assert!(
            access(&["a.example:53"])
                .unwrap_err()
                .to_string()
                .contains("a.example:53")
        );
        let many: Vec<String> = (1000..1033).map(|port| format!("a.example:{port}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(access(&many).unwrap_err(), NetworkAccessError::TooManyPorts(33));
        assert!(access(&many[1..]).is_ok());
    }

    #[test]
    fn variables_of_the_request_are_kept() {
        let mut env = BTreeMap::from([(OsString::from("HTTP_PROXY"), OsString::from("mine"))]);
        access(&["a.example"]).unwrap().add_proxy_variables(&mut env);
        assert_eq!(env[&OsString::from("HTTP_PROXY")], "mine");
        assert_eq!(env[&OsString::from("https_proxy")], "http://127.0.0.1:3128");
        let mut unchanged = BTreeMap::new();
        access(&[]).unwrap().add_proxy_variables(&mut unchanged);
        assert!(unchanged.is_empty());
    }
}
