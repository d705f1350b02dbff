//! Parses any text as a host. What is accepted has one spelling, and is the same host for the parser of the crate `url`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skillbox_model::{Host, HostName, HostPort};

fuzz_target!(|text: &str| {
    if let Ok(name) = HostName::parse(text) {
        assert_eq!(HostName::parse(name.as_str()).as_ref(), Ok(&name));
        assert!(name.as_str().is_ascii() && name.as_str().len() <= 253);
        assert!(Host::parse_server_name(name.as_str()).as_ref() == Ok(&name));
    }
    if let Ok(rule) = HostPort::parse(text) {
        assert_eq!(HostPort::parse(&rule.to_string()).as_ref(), Ok(&rule));
    }
    if let Ok((host, port)) = Host::parse_authority(text) {
        assert_eq!(Host::parse(&host.to_string()).as_ref(), Ok(&host));
        let url = url::Url::parse(&format!("http://{text}/")).expect("an accepted authority is one for everyone");
        assert_eq!(url.host_str().map(|host| host.trim_end_matches('.')), Some(host.to_string().as_str()));
        assert_eq!(url.port_or_known_default(), Some(port.unwrap_or(80)));
    }
});
