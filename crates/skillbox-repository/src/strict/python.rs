//! Texts as Python writes them: `strip`, `str`, `repr`, `json.dumps`, `html.escape`.

use std::fmt::Write as _;

use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

use super::value::Value;

/// `str.strip`: Unicode white space and the four ASCII separators, which Rust does not count as white space.
pub(crate) fn strip(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '\x1c'..='\x1f'))
}

/// `str.isalnum` of one character: a letter or a number by general category, and nothing else.
pub(crate) fn is_alphanumeric(c: char) -> bool {
    use GeneralCategory as G;
    matches!(
        c.general_category(),
        G::UppercaseLetter
            | G::LowercaseLetter
            | G::TitlecaseLetter
            | G::ModifierLetter
            | G::OtherLetter
            | G::DecimalNumber
            | G::LetterNumber
            | G::OtherNumber
    )
}

/// `str(value)`.
pub(super) fn text_of(value: &Value) -> String {
    match value {
        Value::Text(text) | Value::Odd(text) => text.clone(),
        Value::List(_) | Value::Map(_) => {
            let mut out = String::new();
            repr(value, &mut out);
            out
        }
    }
}

fn repr(value: &Value, out: &mut String) {
    match value {
        Value::Text(text) | Value::Odd(text) => repr_text(text, out),
        Value::List(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { ", " });
                repr(item, out);
            }
            out.push(']');
        }
        Value::Map(pairs) => {
            out.push('{');
            for (at, (key, item)) in pairs.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { ", " });
                repr_text(key, out);
                out.push_str(": ");
                repr(item, out);
            }
            out.push('}');
        }
    }
}

fn repr_text(text: &str, out: &mut String) {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    out.push(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => out.extend(['\\', c]),
            c if is_printable(c) => out.push(c),
            c => {
                let code = u32::from(c);
                // Writing to a string cannot fail.
                let _ = match code {
                    0..=0xFF => write!(out, "\\x{code:02x}"),
                    0x100..=0xFFFF => write!(out, "\\u{code:04x}"),
                    _ => write!(out, "\\U{code:08x}"),
                };
            }
        }
    }
    out.push(quote);
}

/// `str.isprintable` of one character.
fn is_printable(c: char) -> bool {
    use GeneralCategory as G;
    c == ' '
        || !matches!(
            c.general_category(),
            G::Control
                | G::Format
                | G::Surrogate
                | G::PrivateUse
                | G::Unassigned
                | G::LineSeparator
                | G::ParagraphSeparator
                | G::SpaceSeparator
        )
}

/// `json.dumps(value, indent=2)`, ASCII only.
pub(super) fn json(value: &Value) -> String {
    let mut out = String::new();
    write_json(value, 0, &mut out);
    out
}

fn write_json(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Text(text) | Value::Odd(text) => json_text(text, out),
        Value::List(items) => {
            for (at, item) in items.iter().enumerate() {
                out.push(if at == 0 { '[' } else { ',' });
                json_line(depth + 1, out);
                write_json(item, depth + 1, out);
            }
            if items.is_empty() {
                out.push('[');
            } else {
                json_line(depth, out);
            }
            out.push(']');
        }
        Value::Map(pairs) => {
            for (at, (key, item)) in pairs.iter().enumerate() {
                out.push(if at == 0 { '{' } else { ',' });
                json_line(depth + 1, out);
                json_text(key, out);
                out.push_str(": ");
                write_json(item, depth + 1, out);
            }
            if pairs.is_empty() {
                out.push('{');
            } else {
                json_line(depth, out);
            }
            out.push('}');
        }
    }
}

fn json_line(depth: usize, out: &mut String) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

fn json_text(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            ' '..='~' => out.push(c),
            c => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push('"');
}

/// `html.escape`.
pub(super) fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#x27;"),
            c => out.push(c),
        }
    }
    out
}

/// Removes the terminal sequences that the reference's command line removes from all it prints.
pub fn without_escapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("\x1b[") {
        out.push_str(&rest[..at]);
        let sequence = &rest[at..];
        let parameters = sequence[2..].bytes().take_while(|b| matches!(b, b'0'..=b'?')).count();
        let intermediate = sequence[2 + parameters..]
            .bytes()
            .take_while(|b| matches!(b, b' '..=b'/'))
            .count();
        let last = 2 + parameters + intermediate;
        let length = match sequence.as_bytes().get(last) {
            Some(b'@'..=b'~') => last + 1,
            _ => {
                // Not a whole sequence: the escape character stays.
                out.push('\x1b');
                1
            }
        };
        rest = &sequence[length..];
    }
    out.push_str(rest);
    out
}
