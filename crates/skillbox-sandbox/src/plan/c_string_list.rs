//! Serialises lists of C strings: as text in JSON, as bytes in binary formats.

use std::ffi::CString;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(super) fn serialize<S: Serializer>(list: &[CString], serializer: S) -> Result<S::Ok, S::Error> {
    if serializer.is_human_readable() {
        let texts: Vec<String> = list.iter().map(|text| text.to_string_lossy().into_owned()).collect();
        texts.serialize(serializer)
    } else {
        let bytes: Vec<&[u8]> = list.iter().map(|text| text.as_bytes()).collect();
        bytes.serialize(serializer)
    }
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<CString>, D::Error> {
    let list: Vec<Vec<u8>> = if deserializer.is_human_readable() {
        let texts = Vec::<String>::deserialize(deserializer)?;
        texts.into_iter().map(String::into_bytes).collect()
    } else {
        Vec::<Vec<u8>>::deserialize(deserializer)?
    };
    list.into_iter()
        .map(|bytes| CString::new(bytes).map_err(D::Error::custom))
        .collect()
}
