//! Lists of names in profile files.

use std::fmt;

use serde::Deserialize;

/// Names, written as one string with spaces between the names or as a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NameList(pub Vec<String>);

impl<'de> Deserialize<'de> for NameList {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = NameList;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("names with spaces between them, or a list of names")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<NameList, E> {
                Ok(NameList(text.split_whitespace().map(str::to_owned).collect()))
            }

            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<NameList, E> {
                Ok(NameList(vec![number.to_string()]))
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut list: A) -> Result<NameList, A::Error> {
                let mut names = Vec::new();
                while let Some(name) = list.next_element()? {
                    names.push(name);
                }
                Ok(NameList(names))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}
