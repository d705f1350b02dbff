//! Takes missing metadata from elsewhere: the name from the directory, the description from the body.

/// Where metadata comes from that the frontmatter lacks.
#[derive(Clone, Copy)]
pub(super) struct MetadataFallback<'a> {
    /// The name of the skill's directory.
    pub directory: &'a str,
    /// The instructions.
    pub body: &'a str,
}

impl MetadataFallback<'_> {
    /// The name of the directory; `None` if it is unknown.
    pub(super) fn name(&self) -> Option<String> {
        let name = self.directory.trim();
        (!name.is_empty()).then(|| name.to_owned())
    }

    /// The first paragraph of the body on one line, or its first heading if there is no paragraph.
    pub(super) fn description(&self) -> Option<String> {
        let mut heading = None;
        let mut lines = self.body.lines().map(str::trim).peekable();
        while let Some(line) = lines.next() {
            if let Some(text) = heading_text(line) {
                heading = heading.or(Some(text));
            } else if has_words(line) {
                let mut paragraph = line.to_owned();
                while let Some(more) = lines.next_if(|line| has_words(line) && heading_text(line).is_none()) {
                    paragraph.push(' ');
                    paragraph.push_str(more);
                }
                return Some(paragraph);
            }
        }
        heading.map(str::to_owned)
    }
}

/// The text of a heading such as `## Title`; `None` for other lines.
fn heading_text(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    let is_heading = line.len() > text.len() && (text.is_empty() || text.starts_with([' ', '\t']));
    is_heading.then(|| text.trim()).filter(|text| !text.is_empty())
}

/// Whether a line contains text, unlike empty lines, rules and the fences of code.
fn has_words(line: &str) -> bool {
    line.chars().any(char::is_alphanumeric) && !line.starts_with("```")
}

/// Finds the name that frontmatter declares, even if it is not valid YAML.
pub(crate) fn find_declared_name(bytes: &[u8]) -> Option<Box<str>> {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.trim_start_matches('\u{feff}').lines();
    lines
        .find(|line| !line.trim().is_empty())
        .filter(|line| line.starts_with("---"))?;
    let mut frontmatter = lines.take_while(|line| line.trim_end() != "---");
    let value = frontmatter.find_map(|line| line.strip_prefix("name:"))?.trim();
    let name = value.trim_matches(['"', '\'']).trim();
    (!name.is_empty() && name.len() <= MAX_NAME_BYTES).then(|| name.into())
}

/// Longer names cannot be names of skills.
const MAX_NAME_BYTES: usize = 255;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_paragraph_is_the_description() {
        for (body, expected) in [
            (
                "\n# Title\n\nDoes this\nand that.\n\nMore.\n",
                Some("Does this and that."),
            ),
            ("Text at once.\n# Title\n", Some("Text at once.")),
            ("# Title\nText below.\n## Next", Some("Text below.")),
            ("***\n\n---\n- One\n- Two\n", Some("- One - Two")),
            ("#tag is text", Some("#tag is text")),
            ("## Only a heading ##\n\n# Another", Some("Only a heading ##")),
            ("```sh\nls\n```", Some("ls")),
            ("", None),
            ("\n \n---\n", None),
        ] {
            let fallback = MetadataFallback { directory: "x", body };
            assert_eq!(fallback.description().as_deref(), expected, "{body:?}");
        }
    }

    #[test]
    fn a_declared_name_is_found_in_broken_frontmatter() {
        for (text, expected) in [
            ("---\nname: a b\nx: [\n---\n", Some("a b")),
            ("\u{feff}---\r\nx: 1\r\nname: 'quoted'\r\n---\r\n", Some("quoted")),
            ("---\nx: 1\n---\nname: in-the-body\n", None),
            ("name: no-delimiter\n", None),
            ("---\nname:\n---\n", None),
            ("", None),
        ] {
            assert_eq!(find_declared_name(text.as_bytes()).as_deref(), expected, "{text:?}");
        }
    }
}
