//! Things in a skill that a reviewer should look at, because they are easy to overlook.

use serde::Serialize;

/// A longer line can hide text beyond the edge of an editor.
const MAX_LINE_CHARS: usize = 1_000;
/// More findings are counted.
const MAX_PER_FILE: usize = 5;

/// One thing to look at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Oddity {
    /// The file.
    pub path: String,
    /// The line, counted from one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// What it is.
    pub what: String,
}

/// Odd things about a file's name.
pub fn find_in_name(path: &str) -> Vec<Oddity> {
    let mut found = Vec::new();
    if path.split('/').any(|component| component.starts_with('.')) {
        found.push("hidden file".to_owned());
    }
    if let Some(name) = path.chars().find_map(deceptive_char) {
        found.push(format!("its name contains {name}"));
    } else if !path.is_ascii() {
        found.push("its name has letters outside ASCII, which can look like others".to_owned());
    }
    let to_oddity = |what| Oddity {
        path: path.to_owned(),
        line: None,
        what,
    };
    found.into_iter().map(to_oddity).collect()
}

/// Odd things in a file's content.
pub fn find_in_content(path: &str, content: &[u8], is_script: bool) -> Vec<Oddity> {
    let oddity = |line, what| Oddity {
        path: path.to_owned(),
        line,
        what,
    };
    let Ok(text) = std::str::from_utf8(content) else {
        return match is_script {
            true => vec![oddity(None, "a program that is not text".to_owned())],
            false => Vec::new(),
        };
    };
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let number = Some(index + 1);
        // A byte order mark is usual at the start of a file.
        let chars = line
            .trim_start_matches(if index == 0 { "\u{feff}" } else { "" })
            .chars();
        if let Some(name) = chars.clone().find_map(deceptive_char) {
            found.push(oddity(number, format!("contains {name}")));
        }
        let length = chars.count();
        if length > MAX_LINE_CHARS {
            found.push(oddity(number, format!("a line of {length} characters")));
        }
    }
    if found.len() > MAX_PER_FILE {
        let more = found.len() - MAX_PER_FILE;
        found.truncate(MAX_PER_FILE);
        found.push(oddity(None, format!("{more} more of these")));
    }
    found
}

/// The name of a character that a reviewer does not see, or that changes the order of what they see.
fn deceptive_char(c: char) -> Option<String> {
    let kind = match c {
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{061c}' => {
            "a bidirectional control character"
        }
        '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{00ad}' | '\u{180e}' | '\u{3164}' => {
            "an invisible character"
        }
        '\u{e0000}'..='\u{e007f}' => "an invisible tag character",
        '\t' | '\n' | '\r' => return None,
        c if c.is_control() => "a control character",
        _ => return None,
    };
    Some(format!("{kind} (U+{:04X})", u32::from(c)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, content: &str, expected: &[&str]) {
        let found: Vec<String> = find_in_name(path)
            .into_iter()
            .chain(find_in_content(path, content.as_bytes(), true))
            .map(|oddity| oddity.what)
            .collect();
        assert_eq!(found, expected, "{path}");
    }

    #[test]
    fn what_a_reviewer_cannot_see_is_found() {
        check("scripts/run.sh", "\u{feff}#!/bin/sh\n\techo ok\r\n", &[]);
        check(
            "run.sh",
            "a\nif x\u{202e}y\n",
            &["contains a bidirectional control character (U+202E)"],
        );
        check("run.sh", "a\u{200b}b\n", &["contains an invisible character (U+200B)"]);
        check("run.sh", "a\u{1b}[2Jb\n", &["contains a control character (U+001B)"]);
        check("scripts/.hidden", "x", &["hidden file"]);
        check(
            "scrіpts/run.sh",
            "x",
            &["its name has letters outside ASCII, which can look like others"],
        );
        check("run.sh", &"x".repeat(1_001), &["a line of 1001 characters"]);
        assert_eq!(find_in_content("x.bin", &[0xff, 0xfe], false), []);
        assert_eq!(find_in_content("x", &[0xff], true).len(), 1);
    }

    #[test]
    fn many_findings_of_a_file_are_counted() {
        let text = "\u{200b}\n".repeat(100);
        let found = find_in_content("x", text.as_bytes(), false);
        assert_eq!(found.len(), MAX_PER_FILE + 1);
        assert_eq!(found.last().unwrap().what, "95 more of these");
    }
}
