//! A file with one value as a line of JSON, and a line with its tag by the host key.

use ring::hmac;
use serde::Serialize;
use serde::de::DeserializeOwned;
use skillbox_model::Digest;

/// The content of the file, at least `file_bytes` long: a file of constant size within one page can be overwritten in place.
pub(crate) fn to_tagged_bytes(value: &impl Serialize, key: &hmac::Key, file_bytes: usize) -> Vec<u8> {
    let json = serde_json::to_string(value).expect("strings and numbers serialize");
    let tag = hmac::sign(key, json.as_bytes());
    let hex: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let mut bytes = format!("{json}\n{hex}\n").into_bytes();
    bytes.resize(file_bytes.max(bytes.len()), b' ');
    bytes
}

/// Checks the tag before anything else; `None` if the host key did not make it.
pub(crate) fn from_tagged_bytes<T: DeserializeOwned>(
    bytes: &[u8],
    key: &hmac::Key,
) -> Option<Result<T, serde_json::Error>> {
    let (json, rest) = std::str::from_utf8(bytes).ok()?.split_once('\n')?;
    let tag = Digest::parse(&format!("sha256:{}", rest.trim_end())).ok()?;
    hmac::verify(key, json.as_bytes(), tag.as_bytes()).ok()?;
    Some(serde_json::from_str(json))
}
