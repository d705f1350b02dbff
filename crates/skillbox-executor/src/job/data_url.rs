//! `data:[TYPE][;base64],CONTENT`: an input whose content is part of the request (RFC 2397).

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use percent_encoding::percent_decode_str;

use super::RequestError;

const SCHEME: &str = "data:";
const BASE64: &str = ";base64";
/// The maximum size of the content. The whole request is held in memory, so larger files must come from `host://` or
/// `artifact://`.
const MAX_CONTENT_BYTES: usize = 8 << 20;
/// A report contains at most this many characters of the media type.
const MAX_REPORTED_TYPE_CHARS: usize = 80;

/// Content that is part of a request.
#[derive(Clone, PartialEq, Eq)]
pub struct DataUrl {
    /// The text between `data:` and the comma, including `;base64`, shortened.
    media_type: String,
    /// The content.
    pub bytes: Vec<u8>,
}

impl DataUrl {
    /// Parses a text that starts with `data:`; none for other references. Errors never contain the content.
    pub(super) fn parse(text: &str, field: &str) -> Option<Result<Self, RequestError>> {
        let scheme = text.get(..SCHEME.len())?;
        if !scheme.eq_ignore_ascii_case(SCHEME) {
            return None;
        }
        Some(Self::parse_content(&text[SCHEME.len()..]).map_err(|message| RequestError::invalid(field, message)))
    }

    fn parse_content(text: &str) -> Result<Self, String> {
        let (media_type, content) = text
            .split_once(',')
            .ok_or("a data: input has no comma between its type and its content")?;
        let is_base64 = media_type
            .get(media_type.len().saturating_sub(BASE64.len())..)
            .is_some_and(|end| end.eq_ignore_ascii_case(BASE64));
        let plain: Vec<u8> = percent_decode_str(content).collect();
        let bytes = if is_base64 {
            STANDARD
                .decode(&plain)
                .or_else(|_| URL_SAFE.decode(&plain))
                .map_err(|error| format!("the content of a data: input is not base64: {error}"))?
        } else {
            plain
        };
        if bytes.len() > MAX_CONTENT_BYTES {
            return Err(format!(
                "a data: input has {} bytes; at most {MAX_CONTENT_BYTES} are allowed",
                bytes.len()
            ));
        }
        Ok(Self {
            media_type: media_type.chars().take(MAX_REPORTED_TYPE_CHARS).collect(),
            bytes,
        })
    }
}

/// The reference as reports show it, without the content.
impl fmt::Display for DataUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{},[{} bytes]", self.media_type, self.bytes.len())
    }
}

impl fmt::Debug for DataUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DataUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<DataUrl, RequestError> {
        DataUrl::parse(text, "inputs[1].from").expect("a data: input")
    }

    #[test]
    fn content_is_base64_or_text() {
        for (text, bytes) in [
            ("data:text/csv;base64,YSxiCg==", &b"a,b\n"[..]),
            ("data:;base64,//4=", b"\xff\xfe"),
            ("data:;base64,__4=", b"\xff\xfe"),
            ("DATA:text/plain;charset=utf-8,a%2Cb%0A1,2", b"a,b\n1,2"),
            ("data:,", b""),
        ] {
            assert_eq!(parse(text).unwrap().bytes, bytes, "{text}");
        }
        assert!(DataUrl::parse("workspace://data:,x", "f").is_none());
    }

    #[test]
    fn errors_do_not_contain_the_content() {
        for text in ["data:secret", "data:;base64,secret!", "data:;base64,s"] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.field, "inputs[1].from");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
        let large = format!("data:,{}", "x".repeat(MAX_CONTENT_BYTES + 1));
        assert!(parse(&large).unwrap_err().to_string().contains("at most 8388608"));
        let named = parse("data:text/csv;base64,YSxiCg==").unwrap().to_string();
        assert_eq!(named, "data:text/csv;base64,[4 bytes]");
    }
}
