//! The value types of server settings: addresses and tokens.

use std::ffi::OsString;
use std::path::Path;

use skillbox_http::{ListenAddress, TokenHash};

use super::value::SettingValue;

impl SettingValue for ListenAddress {
    fn type_name() -> String {
        "address with port, or unix:PATH".to_owned()
    }

    fn parse(words: Vec<OsString>, base: &Path) -> Result<Self, String> {
        let text = String::parse(words, base)?;
        if let Some(path) = text.strip_prefix("unix:") {
            return Ok(Self::Unix(base.join(path)));
        }
        let invalid =
            |_| format!("{text:?} is neither an IP address with a port, such as 127.0.0.1:8484, nor unix:PATH");
        text.parse().map(Self::Tcp).map_err(invalid)
    }

    fn display_text(&self) -> String {
        self.to_string()
    }
}

impl SettingValue for Vec<TokenHash> {
    const SEPARATOR: Option<char> = Some(',');

    fn type_name() -> String {
        "list of tokens".to_owned()
    }

    fn parse(words: Vec<OsString>, base: &Path) -> Result<Self, String> {
        let entries = words.into_iter().map(|word| {
            let text = String::parse(vec![word], base)?;
            TokenHash::parse(&text).map_err(|error| error.to_string())
        });
        entries.collect()
    }

    /// Only the tenants: hashes mean nothing to people.
    fn display_text(&self) -> String {
        if self.is_empty() {
            return "(none)".to_owned();
        }
        let tenants: Vec<&str> = self.iter().map(|entry| entry.tenant.as_str()).collect();
        format!("for {}", tenants.join(", "))
    }
}
