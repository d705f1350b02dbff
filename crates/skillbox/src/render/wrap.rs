//! Wraps and truncates text by its width on a terminal.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The number of columns that a text takes.
pub fn display_width(text: &str) -> usize {
    text.width()
}

/// Wraps a text into lines of at most `width` columns, at blanks if possible.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(2);
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut used = 0;
    for word in text.split_whitespace() {
        let mut word = word;
        if used > 0 && used + 1 + word.width() <= width {
            line.push(' ');
            line.push_str(word);
            used += 1 + word.width();
            continue;
        }
        if used > 0 {
            lines.push(std::mem::take(&mut line));
        }
        // A word wider than a line (a path, or text in a script without blanks) is split anywhere.
        while word.width() > width {
            let (head, tail) = word.split_at(fitting_prefix_len(word, width));
            lines.push(head.to_owned());
            word = tail;
        }
        line.push_str(word);
        used = word.width();
    }
    if used > 0 {
        lines.push(line);
    }
    lines
}

/// Truncates a text after the last word that fits, or within the first word if that does not fit, and adds an ellipsis.
pub fn truncate_words(text: &str, width: usize) -> String {
    let mut head = text;
    while head.width() + 2 > width {
        match head.rsplit_once(' ') {
            Some((shorter, _)) => head = shorter,
            None => return format!("{}…", &head[..fitting_prefix_len(head, width.saturating_sub(1))]),
        }
    }
    format!("{head} …")
}

/// The length in bytes of the longest prefix that takes at most `width` columns, but at least one character.
fn fitting_prefix_len(text: &str, width: usize) -> usize {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > width && at > 0 {
            return at;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_wrapped_at_blanks_and_within_the_width() {
        assert_eq!(wrap("one two  three", 8), ["one two", "three"]);
        assert_eq!(wrap("", 8), Vec::<String>::new());
        assert_eq!(wrap("abcdefghij kl", 4), ["abcd", "efgh", "ij", "kl"]);
        assert_eq!(wrap("表格数据汇总", 4), ["表格", "数据", "汇总"]);
    }

    #[test]
    fn truncation_keeps_whole_words_if_possible() {
        assert_eq!(truncate_words("two words", 20), "two words …");
        assert_eq!(truncate_words("two words", 9), "two …");
        assert_eq!(truncate_words("unbreakable", 6), "unbre…");
        assert_eq!(truncate_words("表格数据", 5), "表格…");
    }
}
