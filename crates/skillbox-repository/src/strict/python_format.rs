//! Formats values and texts as Python does: `str`, `repr`, `json.dumps`, `html.escape`.

use std::fmt::Write as _;

use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

use super::value::Value;

/// `str(value)`.
pub(super) fn to_str(value: &Value) -> String {
    match value {
        Value::Text(text) | Value::NonText(text) => text.clone(),
        Value::List(_) | Value::Map(_) => {
            let mut out = String::new();
            write_repr(value, &mut out);
            out
        }
    }
}

fn write_repr(value: &Value, out: &mut String) {
    match value {
        Value::Text(text) | Value::NonText(text) => write_repr_text(text, out),
        Value::List(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { ", " });
                write_repr(item, out);
            }
            out.push(']');
        }
        Value::Map(pairs) => {
            out.push('{');
            for (at, (key, item)) in pairs.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { ", " });
                write_repr_text(key, out);
                out.push_str(": ");
                write_repr(item, out);
            }
            out.push('}');
        }
    }
}

fn write_repr_text(text: &str, out: &mut String) {
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
pub(super) fn to_json(value: &Value) -> String {
    let mut out = String::new();
    write_json(value, 0, &mut out);
    out
}

fn write_json(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Text(text) | Value::NonText(text) => write_json_text(text, out),
        Value::List(items) => {
            for (at, item) in items.iter().enumerate() {
                out.push(if at == 0 { '[' } else { ',' });
                write_json_line(depth + 1, out);
                write_json(item, depth + 1, out);
            }
            if items.is_empty() {
                out.push('[');
            } else {
                write_json_line(depth, out);
            }
            out.push(']');
        }
        Value::Map(pairs) => {
            for (at, (key, item)) in pairs.iter().enumerate() {
                out.push(if at == 0 { '{' } else { ',' });
                write_json_line(depth + 1, out);
                write_json_text(key, out);
                out.push_str(": ");
                write_json(item, depth + 1, out);
            }
            if pairs.is_empty() {
                out.push('{');
            } else {
                write_json_line(depth, out);
            }
            out.push('}');
        }
    }
}

fn write_json_line(depth: usize, out: &mut String) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

fn write_json_text(text: &str, out: &mut String) {
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
pub(super) fn escape_html(text: &str) -> String {
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

/// Removes terminal escape sequences, as the command line of the reference tool does in all its output.
pub fn strip_terminal_escapes(text: &str) -> String {
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
                // The sequence is incomplete, so the escape character stays.
                out.push('\x1b');
                1
            }
        };
        rest = &sequence[length..];
    }
    out.push_str(rest);
    out
}
