//! Lists of names, which read best as plain text.

use std::fmt;

use serde::Deserialize;

/// Names, written as a text with blanks between them or as a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Words(pub Vec<String>);

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Words;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("names with blanks between them, or a list of names")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Words, E> {
                Ok(Words(text.split_whitespace().map(str::to_owned).collect()))
            }

            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Words, E> {
                Ok(Words(vec![number.to_string()]))
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut list: A) -> Result<Words, A::Error> {
                let mut words = Vec::new();
                while let Some(word) = list.next_element()? {
                    words.push(word);
                }
                Ok(Words(words))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}
