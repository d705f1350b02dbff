//! Durations in profile files.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;

/// A duration, written as a whole number of seconds or as a whole number with one of the units `s`, `min` and `h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ParsedDuration(pub Duration);

fn parse(text: &str) -> Option<Duration> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    let count: u64 = digits.parse().ok()?;
    let factor = match unit.trim() {
        "" | "s" => 1,
        "min" => 60,
        "h" => 3600,
        _ => return None,
    };
    Some(Duration::from_secs(count.checked_mul(factor)?))
}

impl<'de> Deserialize<'de> for ParsedDuration {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = ParsedDuration;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration such as 300, \"300 s\", \"5 min\" or \"1 h\"")
            }

            fn visit_u64<E: serde::de::Error>(self, seconds: u64) -> Result<ParsedDuration, E> {
                Ok(ParsedDuration(Duration::from_secs(seconds)))
            }

            fn visit_i64<E: serde::de::Error>(self, seconds: i64) -> Result<ParsedDuration, E> {
                u64::try_from(seconds)
                    .map(|seconds| ParsedDuration(Duration::from_secs(seconds)))
                    .map_err(|_| E::custom("a duration cannot be negative"))
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<ParsedDuration, E> {
                parse(text).map(ParsedDuration).ok_or_else(|| {
                    E::custom(format!(
                        "{text:?} is not a duration: expected a whole number, alone or with s, min or h"
                    ))
                })
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed() {
        for (text, seconds) in [("0", 0), ("300", 300), ("300 s", 300), ("5min", 300), ("1 h", 3600)] {
            assert_eq!(parse(text), Some(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "s", "-1", "1.5 s", "1 day", "99999999999999999999 h"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
