//! Reads a YAML document within limits: with the fast reader if its subset suffices, otherwise with the library.

use super::error::{MAX_BYTES, YamlError, YamlErrorKind};
use super::fast_yaml::read_fast;
use super::library_yaml::read_with_library;
use super::node::Document;

/// Reads the only document of a text.
///
/// Time and memory are linear in the text and limited. Of two equal keys, the later one is used. Merge keys (`<<`) and
/// aliases are resolved.
pub(in crate::parse) fn read_yaml(text: &str) -> Result<Document<'_>, YamlError> {
    if text.len() > MAX_BYTES {
        return Err(YamlError {
            offset: 0,
            kind: YamlErrorKind::TooManyBytes,
        });
    }
    if let Some(root) = read_fast(text) {
        return Ok(Document {
            root: Some(root),
            duplicate_keys: Vec::new(),
        });
    }
    read_with_library(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Texts in the subset of the fast reader, and enough others to find its limits.
    fn frontmatter() -> impl Strategy<Value = String> {
        let key = "[a-c]|name|x-y|<<|'q'|\\? e";
        let word = "[a-z]{1,4}|1\\.0|~|null|true|it's|a:b|#c|\\(x\\)|é|技|\\.\\.\\.|-x|- y|@z|\\*a|!t|&b x";
        let value = prop_oneof![
            8 => prop::collection::vec(word, 0..4).prop_map(|words| words.join(" ")),
            1 => "'[a-z ]{0,4}'|\"[a-z\\\\ ]{0,4}\"|\\[[a-z,' ]{0,6}\\]|\\{[a-z:, ]{0,6}\\}",
            1 => "x: y|x:|x #y|x  |[|>][-+1]?",
        ];
        let line = (
            0..8_usize,
            "|- |  |- - ",
            key,
            "(: |:|:  | : )",
            value.clone(),
            "\n{1,2}| \n|\r\n|\n#c\n",
        )
            .prop_map(|(indent, dash, key, colon, value, end)| {
                let indent = [0, 0, 0, 2, 2, 2, 1, 4][indent];
                format!("{}{dash}{key}{colon}{value}{end}", " ".repeat(indent))
            });
        let entry = (prop_oneof![Just(0), Just(2), Just(4)], "- |-|", value, "\n{1,2}")
            .prop_map(|(indent, dash, value, end)| format!("{}{dash}{value}{end}", " ".repeat(indent)));
        let common = ("[a-c]|[d-f]g", "[a-z]{1,3}( [a-z]{1,3})?|\\[[a-z], '[a-z]'\\]|'x y'|[|>]-?(\n  [a-z]{1,3}){1,3}\n?|[|>]-?(\n{1,3} [a-z]){1,3}|\n  [a-z]: x\n  k[a-z]: [a-z]|\n- x\n- y|\n  - x\n  - y|")
            .prop_map(|(key, value)| format!("{key}: {value}\n"));
        prop::collection::vec(prop_oneof![4 => common, 2 => line, 1 => entry], 0..6).prop_map(|lines| lines.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn both_readers_return_the_same_nodes(text in frontmatter()) {
            if let Some(root) = read_fast(&text) {
                let result = read_with_library(&text);
                prop_assert!(result.is_ok(), "{text:?} {result:?}");
                let by_library = result.unwrap();
                prop_assert_eq!(by_library.root.as_ref(), Some(&root), "{:?}", text);
                prop_assert!(by_library.duplicate_keys.is_empty());
            }
        }

        #[test]
        fn any_text_is_handled(text in "(?s).{0,200}") {
            let _ = read_yaml(&text);
        }
    }

    #[test]
    fn common_frontmatter_is_read_by_the_fast_reader() {
        for text in [
            "name: a\ndescription: Does b. Use when c.\n",
            "name: a\ndescription: \"x: y\"\nlicense: MIT\n\nmetadata:\n  author: b\n  version: 1.0\ntags: [a, \"b\"]\n",
            "name: a\ndescription: |\n  b\n  c\nallowed-tools:\n- Read\n- Bash(git *)\nmodel:\n",
            "name: a\ndescription: >-\n  b\n  c\nuser-invocable: true\n",
        ] {
            assert_eq!(read_fast(text), read_with_library(text).unwrap().root, "{text}");
            assert!(read_fast(text).is_some(), "{text}");
        }
    }
}
