//! Strict deserialization of JSON objects.
//!
//! The code that serde derives also accepts an array with the values in field order, and a map with duplicate keys. This
//! module refuses both.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserializer, Error, MapAccess, Visitor};

/// Implements serde's traits for types that derive them with `remote = "Self"`, so that they accept objects only.
macro_rules! objects_only {
    ($($type:ident),*) => {$(
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Fields;

                impl<'de> serde::de::Visitor<'de> for Fields {
                    type Value = $type;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("an object")
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<$type, A::Error> {
                        $type::deserialize(serde::de::value::MapAccessDeserializer::new(map))
                    }
                }

                deserializer.deserialize_map(Fields)
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                Self::serialize(self, serializer)
            }
        }
    )*};
}

pub(crate) use objects_only;

/// Deserializes a map of strings in which no name occurs twice.
pub(crate) fn deserialize_unique_names<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    struct UniqueNames;

    impl<'de> Visitor<'de> for UniqueNames {
        type Value = BTreeMap<String, String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object of strings")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut entries = BTreeMap::new();
            while let Some((name, value)) = map.next_entry::<String, String>()? {
                if entries.insert(name.clone(), value).is_some() {
                    return Err(A::Error::custom(format!("duplicate name {name:?}")));
                }
            }
            Ok(entries)
        }
    }

    deserializer.deserialize_map(UniqueNames)
}

/// Deserializes an unsigned integer, which JSON may also write as `3.0`: JSON does not distinguish `3.0` from `3`.
pub(crate) fn deserialize_integer<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    struct Integer;

    impl Visitor<'_> for Integer {
        type Value = u64;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a non-negative integer")
        }

        fn visit_u64<E: Error>(self, value: u64) -> Result<u64, E> {
            Ok(value)
        }

        fn visit_i64<E: Error>(self, value: i64) -> Result<u64, E> {
            u64::try_from(value).map_err(|_| E::invalid_value(serde::de::Unexpected::Signed(value), &self))
        }

        fn visit_f64<E: Error>(self, value: f64) -> Result<u64, E> {
            /// 2^53: up to this value, floats represent every integer exactly.
            const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;
            if value.fract() == 0.0 && (0.0..=MAX_EXACT_INTEGER).contains(&value) {
                return Ok(value as u64);
            }
            Err(E::invalid_value(serde::de::Unexpected::Float(value), &self))
        }
    }

    deserializer.deserialize_u64(Integer)
}
