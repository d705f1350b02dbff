//! Parses the values of `--input`.

use std::fmt::Display;
use std::path::{Component, Path, PathBuf};

use skillbox_model::{InputMode, InputSpec};

use crate::failure::Failure;

/// Parses one value: `FROM[=TO][,link]`, or a JSON object as in the `inputs` of a request. A source without a scheme is a
/// path on this host, and naming it allows it.
pub fn parse(text: &str, index: usize, directories: &mut Vec<PathBuf>) -> Result<InputSpec, Failure> {
    let spec = if text.starts_with('{') {
        serde_json::from_str(text)
            .map_err(|error| Failure::invalid_field(&format!("inputs[{index}]"), error.to_string()))?
    } else {
        parse_short_form(text)
    };
    if spec.from.contains("://") || spec.from.starts_with("data:") {
        return Ok(spec);
    }
    let given = spec.from;
    let invalid =
        |reason: &dyn Display| Failure::invalid_field(&format!("inputs[{index}].from"), format!("{given:?}: {reason}"));
    let path = host_path(Path::new(&given)).map_err(|error| invalid(&error))?;
    directories.push(path.parent().unwrap_or(&path).to_owned());
    let from = path.to_str().ok_or_else(|| invalid(&"the path is not UTF-8"))?;
    Ok(InputSpec {
        from: format!("host://{from}"),
        to: spec.to,
        mode: spec.mode,
        pin: spec.pin,
    })
}

/// Parses `FROM[=TO][,link]`. The last `=` separates the two names. After a backslash, `=`, `,` and `\\` are ordinary
/// characters.
fn parse_short_form(text: &str) -> InputSpec {
    const LINK_SUFFIX: [(char, bool); 5] = [(',', false), ('l', false), ('i', false), ('n', false), ('k', false)];
    let characters = unescape(text);
    let (names, mode) = match characters.strip_suffix(&LINK_SUFFIX) {
        Some(names) if !names.is_empty() => (names, InputMode::Link),
        _ => (characters.as_slice(), InputMode::Copy),
    };
    let text_of = |part: &[(char, bool)]| part.iter().map(|(character, _)| *character).collect::<String>();
    let (from, to) = match names.iter().rposition(|character| *character == ('=', false)) {
        Some(at) => (text_of(&names[..at]), Some(text_of(&names[at + 1..]))),
        None => (text_of(names), None),
    };
    InputSpec {
        from,
        to,
        mode,
        pin: false,
    }
}

/// The characters of a text, each with whether a backslash stood before it.
fn unescape(text: &str) -> Vec<(char, bool)> {
    let mut characters = Vec::new();
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        match rest.peek() {
            Some(next @ ('=' | ',' | '\\')) if character == '\\' => {
                characters.push((*next, true));
                rest.next();
            }
            _ => characters.push((character, false)),
        }
    }
    characters
}

/// Makes a path absolute and removes `..`. The last component may be a symbolic link, which is checked later.
fn host_path(path: &Path) -> std::io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    if !path.components().any(|part| part == Component::ParentDir) {
        return Ok(path);
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => Ok(parent.canonicalize()?.join(name)),
        _ => path.canonicalize(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_form_has_an_escape() {
        let check = |text: &str, from: &str, to: Option<&str>, mode: InputMode| {
            let spec = parse_short_form(text);
            assert_eq!(
                (spec.from.as_str(), spec.to.as_deref(), spec.mode),
                (from, to, mode),
                "{text}"
            );
        };
        check("a.csv", "a.csv", None, InputMode::Copy);
        check("a.csv=b", "a.csv", Some("b"), InputMode::Copy);
        check("a=b=c,link", "a=b", Some("c"), InputMode::Link);
        check(r"a\=b", "a=b", None, InputMode::Copy);
        check(r"a\=b=c", "a=b", Some("c"), InputMode::Copy);
        check(r"a\,link", "a,link", None, InputMode::Copy);
        check(r"a\\=b", r"a\", Some("b"), InputMode::Copy);
        check(r"C:\dir\x", r"C:\dir\x", None, InputMode::Copy);
        check(",link", ",link", None, InputMode::Copy);
    }

    #[test]
    fn the_long_form_is_an_input_of_a_request() {
        let mut directories = Vec::new();
        let spec = parse(
            r#"{"from": "/d/a=b,link", "to": "x=y", "mode": "link"}"#,
            0,
            &mut directories,
        )
        .unwrap();
        assert_eq!(
            (spec.from.as_str(), spec.to.as_deref()),
            ("host:///d/a=b,link", Some("x=y"))
        );
        assert_eq!(directories, [Path::new("/d")]);
        let spec = parse(r#"{"from": "artifact://a", "pin": true}"#, 0, &mut directories).unwrap();
        assert_eq!((spec.from.as_str(), spec.pin), ("artifact://a", true));
        let refused = parse(r#"{"form": "a"}"#, 3, &mut directories).unwrap_err();
        assert!(refused.message().contains("`form`"), "{}", refused.message());
    }
}
