//! Lists the sources of skills in a prompt.

use std::fmt::Write as _;

use crate::sanitize::sanitize_markdown_line;
use crate::source_view::SourceView;

/// Renders one line per source. The last source has the highest priority.
pub(crate) fn render_locations(sources: &[SourceView]) -> String {
    let mut text = String::new();
    for (index, source) in sources.iter().enumerate() {
        let is_last = index + 1 == sources.len();
        let (mark, end) = if is_last {
            (" (higher priority)", "")
        } else {
            ("", "\n")
        };
        let (label, path) = (
            sanitize_markdown_line(&source.label),
            sanitize_markdown_line(&source.path),
        );
        let _ = write!(text, "**{label} Skills**: `{path}`{mark}{end}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_one_source_has_priority() {
        let text = render_locations(&["/a/x", "/b/y", "/c/z"].map(SourceView::from_path));
        assert_eq!(
            text,
            "**X Skills**: `/a/x`\n**Y Skills**: `/b/y`\n**Z Skills**: `/c/z` (higher priority)"
        );
        assert_eq!(render_locations(&[]), "");
    }
}
