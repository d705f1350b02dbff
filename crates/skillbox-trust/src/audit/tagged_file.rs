//! A small file of fixed size with one value as JSON, and its tag by the host key.

use ring::hmac;
use serde::Serialize;
use serde::de::DeserializeOwned;
use skillbox_model::Digest;

/// The content of the file. Its size never changes, so it is overwritten in place by one write within one page.
pub(super) fn to_tagged_bytes(value: &impl Serialize, key: &hmac::Key, file_bytes: usize) -> Vec<u8> {
    let json = serde_json::to_string(value).expect("strings and numbers serialize");
    let tag = hmac::sign(key, json.as_bytes());
    let hex: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let mut bytes = format!("{json}\n{hex}\n").into_bytes();
    debug_assert!(bytes.len() <= file_bytes, "{} bytes", bytes.len());
    bytes.resize(file_bytes, b' ');
    bytes
}

/// Checks the tag before anything else; `None` if the host key did not make it.
pub(super) fn from_tagged_bytes<T: DeserializeOwned>(
    bytes: &[u8],
    key: &hmac::Key,
) -> Option<Result<T, serde_json::Error>> {
    let (json, rest) = std::str::from_utf8(bytes).ok()?.split_once('\n')?;
    let tag = Digest::parse(&format!("sha256:{}", rest.trim_end())).ok()?;
    hmac::verify(key, json.as_bytes(), tag.as_bytes()).ok()?;
    Some(serde_json::from_str(json))
}
