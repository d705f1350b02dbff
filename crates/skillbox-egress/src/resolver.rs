//! Resolves allowed names outside the sandbox.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hickory_resolver::TokioResolver;
use hickory_resolver::config::ResolveHosts;
use skillbox_model::{Host, HostError, HostName};

/// A name with more addresses is a mistake or an attack.
const MAX_ADDRESSES: usize = 32;

/// How long the configuration of the host's resolver is used before it is read again.
const CONFIGURATION_LIFETIME: Duration = Duration::from_secs(30);

/// A function that resolves a name, for tests and for embedding programs.
pub type LookupFunction = Arc<dyn Fn(&HostName) -> io::Result<Vec<IpAddr>> + Send + Sync>;

/// Where the addresses of names come from.
#[derive(Clone, Default)]
pub enum AddressSource {
    /// The name servers and the hosts file of this host.
    #[default]
    Host,
    /// A function.
    Function(LookupFunction),
}

impl fmt::Debug for AddressSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Host => "Host",
            Self::Function(_) => "Function",
        })
    }
}

/// A name whose address the operator states, written `NAME=ADDRESS`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixedAddress {
    /// The name.
    pub name: HostName,
    /// Its address.
    pub address: IpAddr,
}

impl fmt::Display for FixedAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.address)
    }
}

/// The error for a text that is not a [`FixedAddress`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FixedAddressError {
    /// The text has no `=`.
    #[error("{0:?} is not `NAME=ADDRESS`")]
    NoSeparator(String),
    /// The name or the address is not valid.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The name is an address, or the address is a name.
    #[error("{0:?} is not `NAME=ADDRESS`: a name and an IP address are expected")]
    Kind(String),
}

impl FixedAddress {
    /// Parses `NAME=ADDRESS`. An IPv6 address may be in brackets.
    pub fn parse(text: &str) -> Result<Self, FixedAddressError> {
        let (name, address) = text
            .split_once('=')
            .ok_or_else(|| FixedAddressError::NoSeparator(text.to_owned()))?;
        let has_bare_ipv6 = address.contains(':') && !address.starts_with('[');
        let address = if has_bare_ipv6 {
            format!("[{address}]")
        } else {
            address.to_owned()
        };
        match (Host::parse(name)?, Host::parse(&address)?) {
            (Host::Name(name), Host::Address(address)) => Ok(Self { name, address }),
            _ => Err(FixedAddressError::Kind(text.to_owned())),
        }
    }
}

/// Resolves names.
#[derive(Debug)]
pub(crate) struct Resolver {
    fixed: BTreeMap<HostName, Vec<IpAddr>>,
    source: AddressSource,
    /// The resolver of the host, and when its configuration was read.
    host: Mutex<Option<(Instant, TokioResolver)>>,
}

impl Resolver {
    pub fn new(fixed: Vec<FixedAddress>, source: AddressSource) -> Self {
        let mut addresses: BTreeMap<HostName, Vec<IpAddr>> = BTreeMap::new();
        for FixedAddress { name, address } in fixed {
            addresses.entry(name).or_default().push(address);
        }
        Self {
            fixed: addresses,
            source,
            host: Mutex::default(),
        }
    }

    /// The addresses of a name, at least one.
    pub async fn resolve(&self, name: &HostName, timeout: Duration) -> io::Result<Vec<IpAddr>> {
        if let Some(addresses) = self.fixed.get(name) {
            return Ok(addresses.clone());
        }
        let addresses = match &self.source {
            AddressSource::Function(lookup) => lookup(name)?,
            AddressSource::Host => match tokio::time::timeout(timeout, self.ask_host(name)).await {
                Ok(addresses) => addresses?,
                Err(_) => {
                    return Err(io::Error::new(
                        io::ErrorKind::TimedOut,
                        "the name servers did not answer in time",
                    ));
                }
            },
        };
        match addresses.len() {
            0 => Err(io::Error::new(io::ErrorKind::NotFound, "it has no address")),
            1..=MAX_ADDRESSES => Ok(addresses),
            count => Err(io::Error::other(format!("it has {count} addresses"))),
        }
    }

    async fn ask_host(&self, name: &HostName) -> io::Result<Vec<IpAddr>> {
        let resolver = self.host_resolver()?;
        // With its final dot the name is complete, and no search domain is appended.
        let found = resolver.lookup_ip(format!("{name}.")).await.map_err(|error| {
            if error.is_no_records_found() {
                io::Error::new(io::ErrorKind::NotFound, "it does not exist")
            } else {
                io::Error::other(error)
            }
        })?;
        Ok(found.iter().map(|address| address.to_canonical()).collect())
    }

    fn host_resolver(&self) -> io::Result<TokioResolver> {
        let mut current = self.host.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((read, resolver)) = current.as_ref()
            && read.elapsed() < CONFIGURATION_LIFETIME
        {
            return Ok(resolver.clone());
        }
        let mut builder = TokioResolver::builder_tokio().map_err(io::Error::other)?;
        builder.options_mut().use_hosts_file = ResolveHosts::Always;
        let resolver = builder.build().map_err(io::Error::other)?;
        *current = Some((Instant::now(), resolver.clone()));
        Ok(resolver)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_address_is_a_name_and_an_address() {
        let parse = |text| FixedAddress::parse(text).map(|fixed| (fixed.name.to_string(), fixed.address.to_string()));
        let pair = |name: &str, address: &str| Ok((name.to_owned(), address.to_owned()));
        assert_eq!(parse("API.example=10.0.0.1"), pair("api.example", "10.0.0.1"));
        assert_eq!(parse("a.example=2001:db8::1"), pair("a.example", "2001:db8::1"));
        assert_eq!(parse("a.example=[::1]"), pair("a.example", "::1"));
        for text in [
            "",
            "a.example",
            "a.example=",
            "a.example=b.example",
            "10.0.0.1=10.0.0.2",
            "*.a.example=10.0.0.1",
            "a=127.1",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
