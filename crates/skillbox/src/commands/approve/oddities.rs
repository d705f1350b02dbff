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
        '\u{e0000}'..='\u{e007f}' => "an invisible tag character",
        '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => "an invisible variation selector",
        '\u{2028}' | '\u{2029}' => "a separator that some programs read as a new line",
        '\u{2800}' => "a character that looks like a blank",
        c if is_ignorable(c) => "an invisible character",
        '\r' => "a carriage return within a line",
        '\t' | '\n' => return None,
        c if c.is_control() => "a control character",
        _ => return None,
    };
    Some(format!("{kind} (U+{:04X})", u32::from(c)))
}

/// Unicode 16, `Default_Ignorable_Code_Point`: characters that are not shown.
fn is_ignorable(c: char) -> bool {
    matches!(
        c,
        '\u{00ad}'
            | '\u{034f}'
            | '\u{061c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
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
        for (text, what) in [
            ("a\u{fe00}", "an invisible variation selector (U+FE00)"),
            ("a\u{e0101}", "an invisible variation selector (U+E0101)"),
            (
                "a\u{2028}",
                "a separator that some programs read as a new line (U+2028)",
            ),
            ("a\u{115f}", "an invisible character (U+115F)"),
            ("a\u{2800}", "a character that looks like a blank (U+2800)"),
            ("echo good\rrm -rf x", "a carriage return within a line (U+000D)"),
            ("echo good\r", "a carriage return within a line (U+000D)"),
        ] {
            check("run.sh", text, &[&format!("contains {what}")]);
        }
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
