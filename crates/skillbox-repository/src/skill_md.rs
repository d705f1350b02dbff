//! Placeholder until the parsing half arrives.
#![allow(missing_docs)]
use std::path::Path;

use skillbox_model::{Diagnostic, Severity, SkillName};

#[derive(Clone, Debug, PartialEq)]
pub struct SkillMeta {
    pub name: SkillName,
    pub description: Box<str>,
    pub license: Option<Box<str>>,
    pub compatibility: Option<Box<str>>,
    pub metadata: Vec<(Box<str>, Box<str>)>,
    pub allowed_tools: Option<Vec<Box<str>>>,
    pub steering: Option<Box<()>>,
    pub extra: Option<Box<serde_json::Map<String, serde_json::Value>>>,
}

pub struct Parsed {
    pub meta: Option<SkillMeta>,
    pub diagnostics: Vec<Diagnostic>,
    pub body_offset: usize,
}

pub enum Head {
    Complete { end: usize },
    NeedMore,
    NoFrontmatter,
}

pub fn frontmatter_end(bytes: &[u8]) -> Head {
    if bytes.len() < 4 {
        return Head::NeedMore;
    }
    if !bytes.starts_with(b"---") {
        return Head::NoFrontmatter;
    }
    match bytes.windows(5).position(|w| w == b"\n---\n") {
        Some(at) => Head::Complete { end: at + 5 },
        None => Head::NeedMore,
    }
}

pub fn split_body(text: &str) -> (&str, &str) {
    match frontmatter_end(text.as_bytes()) {
        Head::Complete { end } => text.split_at(end),
        _ => ("", text),
    }
}

pub fn parse_lenient(path: &Path, _dir_name: &str, text: &[u8]) -> Parsed {
    let fail = |message: &str| Parsed {
        meta: None,
        diagnostics: vec![Diagnostic {
            code: "placeholder",
            severity: Severity::Error,
            path: path.to_owned(),
            line: None,
            column: None,
            message: message.into(),
            hint: None,
        }],
        body_offset: 0,
    };
    let Ok(text) = std::str::from_utf8(text) else {
        return fail("not utf-8");
    };
    let Head::Complete { end } = frontmatter_end(text.as_bytes()) else {
        return fail("no frontmatter");
    };
    let get = |key: &str| {
        text[..end]
            .lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix(": "))
            .map(str::trim)
    };
    let (Some(name), Some(description)) = (get("name"), get("description")) else {
        return fail("name or description missing");
    };
    let Ok(name) = SkillName::parse(name) else {
        return fail("bad name");
    };
    Parsed {
        meta: Some(SkillMeta {
            name,
            description: description.into(),
            license: None,
            compatibility: None,
            metadata: Vec::new(),
            allowed_tools: None,
            steering: None,
            extra: None,
        }),
        diagnostics: Vec::new(),
        body_offset: end,
    }
}
