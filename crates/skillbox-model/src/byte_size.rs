//! Sizes in bytes, in the notation of profiles and settings.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A number of bytes, written as a whole number with an optional unit: `KiB`, `MiB`, `GiB` or `TiB`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
#[schemars(with = "u64")]
pub struct ByteSize(pub u64);

/// The error for a text that is not a size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a size: a whole number, alone or with KiB, MiB, GiB or TiB, is expected")]
pub struct ByteSizeError(pub String);

const UNITS: [(&str, u32); 4] = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40)];

impl ByteSize {
    /// A size in kibibytes.
    pub const fn kib(n: u64) -> Self {
        Self(n << 10)
    }

    /// A size in mebibytes.
    pub const fn mib(n: u64) -> Self {
        Self(n << 20)
    }

    /// A size in gibibytes.
    pub const fn gib(n: u64) -> Self {
        Self(n << 30)
    }

    /// The number of bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

impl FromStr for ByteSize {
    type Err = ByteSizeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || ByteSizeError(text.chars().take(40).collect());
        let (digits, shift) = UNITS
            .iter()
            .find_map(|(unit, shift)| Some((text.strip_suffix(unit)?.trim_end(), *shift)))
            .unwrap_or((text, 0));
        let count: u64 = digits.parse().map_err(|_| invalid())?;
        count.checked_mul(1 << shift).map(Self).ok_or_else(invalid)
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let largest = UNITS.iter().rev().find(|(_, shift)| self.0 >= 1 << shift);
        match largest {
            None => write!(f, "{} B", self.0),
            Some((unit, shift)) if self.0.is_multiple_of(1 << shift) => write!(f, "{} {unit}", self.0 >> shift),
            Some((unit, shift)) => write!(f, "{:.1} {unit}", self.0 as f64 / (1_u64 << shift) as f64),
        }
    }
}

impl Serialize for ByteSize {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = ByteSize;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size such as 4096 or \"64 MiB\"")
            }

            fn visit_u64<E: serde::de::Error>(self, bytes: u64) -> Result<ByteSize, E> {
                Ok(ByteSize(bytes))
            }

            fn visit_i64<E: serde::de::Error>(self, bytes: i64) -> Result<ByteSize, E> {
                u64::try_from(bytes)
                    .map(ByteSize)
                    .map_err(|_| E::custom("a size cannot be negative"))
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<ByteSize, E> {
                text.parse().map_err(E::custom)
            }
        }
        if deserializer.is_human_readable() {
            deserializer.deserialize_any(Visitor)
        } else {
            deserializer.deserialize_u64(Visitor)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_parsed_and_formatted() {
        for (text, bytes, shown) in [
            ("0", 0, "0 B"),
            ("4096", 4096, "4 KiB"),
            ("64 MiB", 64 << 20, "64 MiB"),
            ("1GiB", 1 << 30, "1 GiB"),
            ("1536", 1536, "1.5 KiB"),
        ] {
            let size: ByteSize = text.parse().unwrap();
            assert_eq!((size.bytes(), size.to_string().as_str()), (bytes, shown));
        }
        for text in ["", "MiB", "-1", "1.5 MiB", "1 MB", "99999999999 TiB"] {
            assert!(text.parse::<ByteSize>().is_err(), "{text:?}");
        }
    }
}
