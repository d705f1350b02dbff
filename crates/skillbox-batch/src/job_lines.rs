//! Reads a job list: one `skill_run` request for each line, with an optional `id`.

use std::fmt;

use serde::de::value::{MapAccessDeserializer, StringDeserializer};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use serde::{Deserialize, de};
use skillbox_model::{JobId, RunRequest};
use skillbox_runtime::find_invalid_field;

use crate::error::BadLine;

/// One line: a request, and its id.
#[derive(Debug)]
pub(crate) struct JobLine {
    pub id: Option<JobId>,
    pub request: RunRequest,
}

impl JobLine {
    /// Parses one line. The error has the number of the line.
    pub fn parse(text: &[u8], number: usize) -> Result<Self, BadLine> {
        let mut reader = serde_json::Deserializer::from_slice(text);
        let line: Self = serde_path_to_error::deserialize(&mut reader).map_err(|error| BadLine {
            number,
            field: find_invalid_field(&error),
            message: without_position(&error.inner().to_string()),
        })?;
        reader.end().map_err(|_| BadLine {
            number,
            field: None,
            message: "unexpected text after the request".to_owned(),
        })?;
        Ok(line)
    }
}

/// Removes serde_json's position: its line is always 1.
fn without_position(message: &str) -> String {
    match message.rsplit_once(" at line 1 column ") {
        Some((message, column)) if column.bytes().all(|b| b.is_ascii_digit()) => {
            format!("{message} (column {column})")
        }
        _ => message.to_owned(),
    }
}

impl<'de> Deserialize<'de> for JobLine {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Line;

        impl<'de> Visitor<'de> for Line {
            type Value = JobLine;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<JobLine, A::Error> {
                let mut id = None;
                let fields = WithoutId { map, id: &mut id };
                let request = RunRequest::deserialize(MapAccessDeserializer::new(fields))?;
                Ok(JobLine { id, request })
            }
        }

        deserializer.deserialize_map(Line)
    }
}

/// The fields of a request, from a map that may also have an `id`.
struct WithoutId<'a, A> {
    map: A,
    id: &'a mut Option<JobId>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for WithoutId<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        while let Some(name) = self.map.next_key::<String>()? {
            if name != "id" {
                let name: StringDeserializer<A::Error> = de::IntoDeserializer::into_deserializer(name);
                return seed.deserialize(name).map(Some);
            }
            if self.id.replace(self.map.next_value()?).is_some() {
                return Err(A::Error::duplicate_field("id"));
            }
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_request_with_an_id() {
        let line = JobLine::parse(br#"{"id":"a1","skill":"x","command":"true"}"#, 1).unwrap();
        assert_eq!((line.id.unwrap().as_str(), line.request.skill.as_str()), ("a1", "x"));
        let line = JobLine::parse(br#"{"skill":"x","argv":["a"]}"#, 1).unwrap();
        assert!(line.id.is_none() && line.request.argv == ["a"]);
    }

    #[test]
    fn errors_name_the_line_and_the_field() {
        for (text, field, expected) in [
            (r#"{"skill":"a","comand":"x"}"#, Some("comand"), "unknown field"),
            (r#"{"command":"x"}"#, Some("skill"), "missing field"),
            (r#"{"skill":"a","timeout":"x"}"#, Some("timeout"), "invalid type"),
            (
                r#"{"skill":"a","inputs":[{"from":3}]}"#,
                Some("inputs[0].from"),
                "invalid type",
            ),
            (r#"{"id":"../x","skill":"a"}"#, Some("id"), "identifier"),
            (r#"{"id":"a","id":"b","skill":"a"}"#, Some("id"), "duplicate field"),
            (r#"{"skill":"a","skill":"b"}"#, Some("skill"), "duplicate field"),
            (r#"{"skill":"a"} x"#, None, "unexpected text"),
            (r#"["a"]"#, None, "an object"),
            ("{", None, "EOF"),
        ] {
            let error = JobLine::parse(text.as_bytes(), 7).unwrap_err();
            assert_eq!((error.number, error.field.as_deref()), (7, field), "{text}: {error:?}");
            assert!(error.message.contains(expected), "{text}: {error:?}");
            assert!(!error.message.contains("line 1"), "{error:?}");
        }
    }
}
