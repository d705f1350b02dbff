//! The metadata and diagnostics of valid, odd and broken frontmatter. Cases A1 to A36 come from the tests of other
//! tools.

use std::path::Path;

use serde_json::{Value, json};
use skillbox_repository::{ParsedSkillMd, parse_lenient};

fn parse(directory: &str, text: &str) -> ParsedSkillMd {
    parse_lenient(Path::new("skills/s/SKILL.md"), directory, text.as_bytes())
}

/// The metadata as JSON, and the codes of the diagnostics.
fn meta_and_codes(parsed: &ParsedSkillMd) -> (Value, Vec<&'static str>) {
    let codes = parsed.diagnostics.iter().map(|diagnostic| diagnostic.code).collect();
    (serde_json::to_value(&parsed.meta).unwrap(), codes)
}

/// A case: lines after a valid name and description, what they add to the JSON, and the codes of the diagnostics.
type AddedLines = (&'static str, &'static str, Value, &'static [&'static str]);

#[test]
fn lines_added_to_valid_frontmatter() {
    let long_note = format!("compatibility: {}", "c".repeat(600));
    let cut_note = "c".repeat(500);
    let cases: Vec<AddedLines> = vec![
        ("A1", "", json!({}), &[]),
        (
            "A2",
            "license: MIT\ncompatibility: Linux\nmetadata:\n  author: me\nallowed-tools: read_file write_file",
            json!({"license": "MIT", "compatibility": "Linux", "metadata": {"author": "me"},
                   "allowed_tools": ["read_file", "write_file"]}),
            &[],
        ),
        (
            "A9",
            long_note.leak(),
            json!({"compatibility": cut_note}),
            &["compatibility_too_long"],
        ),
        ("A10", "license: ''\ncompatibility: \"\"", json!({}), &[]),
        ("A11", "license: true", json!({"license": "true"}), &[]),
        ("A12 text", "metadata: x", json!({}), &["metadata_not_a_mapping"]),
        ("A12 list", "metadata: [x]", json!({}), &["metadata_not_a_mapping"]),
        (
            "A13",
            "metadata: {count: 42, active: true, v: 1.10, n: ~, e: }",
            json!({"metadata": {"count": "42", "active": "true", "v": "1.10", "n": "~", "e": ""}}),
            &[],
        ),
        (
            "A14",
            "allowed-tools: Bash  Read   Write",
            json!({"allowed_tools": ["Bash", "Read", "Write"]}),
            &[],
        ),
        (
            "A15",
            "allowed-tools: Bash,Read,Write",
            json!({"allowed_tools": ["Bash", "Read", "Write"]}),
            &[],
        ),
        (
            "A16",
            "allowed-tools:\n  - Bash\n  - Read\n  - Write",
            json!({"allowed_tools": ["Bash", "Read", "Write"]}),
            &[],
        ),
        (
            "A17",
            "allowed-tools: [a, 123, true, null, ' ', b]",
            json!({"allowed_tools": ["a", "b"]}),
            &["allowed_tools"; 4],
        ),
        (
            "A18",
            "allowed-tools: [' a ', 'b ']",
            json!({"allowed_tools": ["a", "b"]}),
            &[],
        ),
        ("A19 empty", "allowed-tools: []", json!({"allowed_tools": []}), &[]),
        (
            "A19 number",
            "allowed-tools: 42",
            json!({"allowed_tools": []}),
            &["allowed_tools"],
        ),
        (
            "A20",
            "allowed_tools: []\nallowedTools: [x]",
            json!({"allowed_tools": [], "extra": {"allowedTools": ["x"]}}),
            &["allowed_tools"],
        ),
        (
            "A21",
            "allowed_tools: [a, b]",
            json!({"allowed_tools": ["a", "b"]}),
            &[],
        ),
        (
            "A21 camel",
            "allowedTools: a b",
            json!({"allowed_tools": ["a", "b"]}),
            &[],
        ),
        (
            "A22",
            "allowed-tools: Bash(git add *), Read",
            json!({"allowed_tools": ["Bash(git add *)", "Read"]}),
            &[],
        ),
        (
            "steering",
            "disable-model-invocation: true\nuser-invocable: no\nargument-hint: [file]\nmodel: m\ncontext: fork\n\
             hooks:\n  Stop:\n    - command: x",
            json!({"disable_model_invocation": true, "user_invocable": false, "argument_hint": "[file]", "model": "m",
                   "context": "fork", "hooks": {"Stop": [{"command": "x"}]}}),
            &[],
        ),
        (
            "unknown keys",
            "version: 1.0\ntags: [a, b]\nrequires: {bins: [curl]}\nempty:\nX: 'true'",
            json!({"extra": {"version": 1.0, "tags": ["a", "b"], "requires": {"bins": ["curl"]}, "empty": null,
                   "X": "true"}}),
            &[],
        ),
        (
            "nested metadata",
            "metadata:\n  openclaw: {\"requires\": {\"bins\": [\"jq\"]}}\n  list:\n    - 1.0\n    - x",
            json!({"metadata": {"openclaw": "{\"requires\":{\"bins\":[\"jq\"]}}", "list": "[1.0,\"x\"]"}}),
            &[],
        ),
        (
            "merge",
            "metadata: &m {a: b}\nmore:\n  <<: *m\n  c: d",
            json!({"metadata": {"a": "b"}, "extra": {"more": {"c": "d", "a": "b"}}}),
            &[],
        ),
        (
            "duplicate",
            "license: A\nlicense: B",
            json!({"license": "B"}),
            &["duplicate_key"],
        ),
        (
            "not text",
            "license: {name: MIT}",
            json!({"license": "{name: MIT}"}),
            &["not_text"],
        ),
        ("not boolean", "user-invocable: perhaps", json!({}), &["not_a_boolean"]),
        (
            "colon in metadata",
            "metadata:\n  note: use when: x",
            json!({"metadata": {"note": "use when: x"}}),
            &["unquoted_value"],
        ),
        ("document end", "license: MIT\n...", json!({"license": "MIT"}), &[]),
    ];
    for (name, lines, added, expected_codes) in cases {
        let mut expected = json!({"name": "s", "description": "Does things."});
        expected
            .as_object_mut()
            .unwrap()
            .extend(added.as_object().unwrap().clone());
        let text = format!("---\nname: s\ndescription: Does things.\n{lines}\n---\n# Body\n");
        let (meta, codes) = meta_and_codes(&parse("s", &text));
        assert_eq!((meta, codes.as_slice()), (expected, expected_codes), "{name}");
        // CR LF line breaks must not change the metadata.
        let (crlf, _) = meta_and_codes(&parse("s", &text.replace('\n', "\r\n")));
        let (meta, _) = meta_and_codes(&parse("s", &text));
        assert_eq!(crlf, meta, "{name} with CR LF");
    }
}

/// A case: a whole file, its name and description if it loads, and the codes of the diagnostics.
type WholeFile<'a> = (&'a str, &'a str, Option<(&'a str, &'a str)>, &'a [&'a str]);

#[test]
fn whole_files() {
    let long = format!("---\nname: s\ndescription: {}\n---\n", "d".repeat(1124));
    let fitting = format!("---\nname: s\ndescription: '{} '\n---\n", "é".repeat(1024));
    let (cut, whole) = ("d".repeat(1024), "é".repeat(1024));
    let cases: Vec<WholeFile<'_>> = vec![
        ("A3", "# Title\n", None, &["no_frontmatter"]),
        ("A3 empty", "", None, &["no_frontmatter"]),
        ("A4", "---\nname: s\ndescription: [a, b\n---\n", None, &["invalid_yaml"]),
        ("A5 name", "---\ndescription: d\n---\n", None, &["missing_name"]),
        ("A5 description", "---\nname: s\n---\n", None, &["missing_description"]),
        (
            "A6",
            "---\nname: s\ndescription: '   '\n---\n",
            None,
            &["missing_description"],
        ),
        ("A7", &long, Some(("s", &cut)), &["description_too_long"]),
        ("A8", &fitting, Some(("s", &whole)), &[]),
        (
            "A25",
            "---\nname: other\ndescription: d\n---\n",
            Some(("other", "d")),
            &["name_mismatch"],
        ),
        (
            "A27",
            "---\r\nname: s\r\ndescription: d\r\n---\r\nbody",
            Some(("s", "d")),
            &[],
        ),
        (
            "A27 CR",
            "---\rname: s\rdescription: d\r---\rbody",
            Some(("s", "d")),
            &[],
        ),
        (
            "A28",
            "\u{feff}---\nname: s\ndescription: d\n---\n",
            Some(("s", "d")),
            &["byte_order_mark"],
        ),
        ("A29", "---\nname: s\ndescription: d\n---", Some(("s", "d")), &[]),
        (
            "A30",
            "---\nname: s\ndescription: a --- b\n---\n",
            Some(("s", "a --- b")),
            &[],
        ),
        (
            "A31",
            "---\nname: s\ndescription: use when: foo\n---\n",
            Some(("s", "use when: foo")),
            &["unquoted_value"],
        ),
        ("A32 name", "---\nname:\ndescription: d\n---\n", None, &["missing_name"]),
        (
            "A32 tilde",
            "---\nname: ~\ndescription: d\n---\n",
            None,
            &["missing_name"],
        ),
        (
            "A32 description",
            "---\nname: s\ndescription: null\n---\n",
            None,
            &["missing_description"],
        ),
        (
            "A33",
            "---\nname: s\ndescription: |\n  a\n  # b\n---\n",
            Some(("s", "a\n# b")),
            &[],
        ),
        (
            "A36",
            "---\nname: s\ndescription: !!python/object/apply:os.system [x]\n---\n",
            None,
            &["yaml_tag"],
        ),
        (
            "tag",
            "---\nname: s\ndescription: !important d\n---\n",
            None,
            &["yaml_tag"],
        ),
        (
            "core tag",
            "---\nname: !!str 123\ndescription: d\n---\n",
            Some(("123", "d")),
            &["name_mismatch"],
        ),
        ("flow", "---\n{name: s, description: d}\n---\n", Some(("s", "d")), &[]),
        ("list", "---\n- a\n---\n", None, &["not_a_mapping"]),
        ("scalar", "---\nabc\n---\n", None, &["not_a_mapping"]),
        ("nothing", "---\n---\n", None, &["missing_name", "missing_description"]),
        (
            "unclosed",
            "---\nname: s\ndescription: d\n",
            None,
            &["unclosed_frontmatter"],
        ),
        (
            "unclosed, table",
            "---\nname: s\n\n| a |\n|---|\n",
            None,
            &["unclosed_frontmatter"],
        ),
        (
            "capitals",
            "---\nName: s\nDescription: d\n---\n",
            None,
            &["missing_name", "missing_description"],
        ),
        (
            "blank line first",
            "\n---\nname: s\ndescription: d\n---\n",
            Some(("s", "d")),
            &["odd_delimiter"],
        ),
        (
            "indented end",
            "---\nname: s\ndescription: d\n  ---\nbody\n",
            Some(("s", "d")),
            &["odd_delimiter"],
        ),
        (
            "glued end",
            "---\nname: s\ndescription: d\n---# Title\n",
            Some(("s", "d")),
            &["odd_delimiter"],
        ),
        (
            "mark",
            "---\nname: s\ndescription: >-\n  a\n  b\n---\n",
            Some(("s", "a b")),
            &[],
        ),
        (
            "bracket",
            "---\nname: s\ndescription: [WIP] foo\n---\n",
            Some(("s", "[WIP] foo")),
            &["unquoted_value"],
        ),
        (
            "todo",
            "---\nname: s\ndescription: [TODO: do]\n---\n",
            Some(("s", "[TODO: do]")),
            &["not_text"],
        ),
        (
            "back-tick",
            "---\nname: s\ndescription: `x` y\n---\n",
            Some(("s", "`x` y")),
            &["unquoted_value"],
        ),
        (
            "asterisk",
            "---\nname: s\ndescription: *x* y\n---\n",
            Some(("s", "*x* y")),
            &["unquoted_value"],
        ),
        (
            "inner quotes",
            "---\nname: s\ndescription: \"a \"b\" c\"\n---\n",
            Some(("s", "a \"b\" c")),
            &["unquoted_value"],
        ),
        (
            "next line",
            "---\nname: s\ndescription:\n  Use when: x\n---\n",
            Some(("s", "Use when: x")),
            &["not_text"],
        ),
        (
            "continued",
            "---\nname: s\ndescription: a\n  when: b\n---\n",
            Some(("s", "a when: b")),
            &["unquoted_value"],
        ),
        (
            "two colons",
            "---\nname: s\ndescription: a: b\nlicense: c: d\n---\n",
            Some(("s", "a: b")),
            &["unquoted_value", "unquoted_value"],
        ),
        (
            "reference dialect",
            "---\nname: s\ndescription: 'a\nb'\n---\n",
            Some(("s", "a b")),
            &["loose_yaml"],
        ),
        (
            "tab",
            "---\nname: s\ndescription: d\nmetadata:\n\ta: b\n---\n",
            None,
            &["invalid_yaml"],
        ),
        (
            "second document",
            "---\nname: s\ndescription: d\n...\nx: y\n---\n",
            None,
            &["invalid_yaml"],
        ),
    ];
    for (name, text, expected, expected_codes) in cases {
        let parsed = parse("s", text);
        let codes: Vec<_> = parsed.diagnostics.iter().map(|diagnostic| diagnostic.code).collect();
        let meta = parsed
            .meta
            .as_ref()
            .map(|meta| (meta.name.as_str(), &*meta.description));
        assert_eq!((meta, codes.as_slice()), (expected, expected_codes), "{name}");
        let has_error = parsed
            .diagnostics
            .iter()
            .any(|d| d.severity == skillbox_model::Severity::Error);
        assert_eq!(
            has_error,
            parsed.meta.is_none(),
            "{name}: a skill must load unless there is an error"
        );
    }
}

#[test]
fn names_are_checked() {
    let good = [
        "web-research",
        "my-cool-skill",
        "skill-v2",
        &"n".repeat(64),
        "café",
        "über-tool",
        "技能",
        "123",
    ];
    let odd = [
        &"n".repeat(65),
        "My-Skill",
        "-skill",
        "skill-",
        "my--skill",
        "my_skill",
        "Café",
        "a🎉",
        "two words",
    ];
    let unsafe_names = [
        "../x",
        "a/b",
        ".",
        "..",
        "\"a\\0b\"",
        "\"a\\nb\"",
        "\"\\e[31m\"",
        &"n".repeat(256),
    ];
    let codes = |name: &str| {
        let plain = name.trim_matches('"');
        meta_and_codes(&parse(plain, &format!("---\nname: {name}\ndescription: d\n---\n"))).1
    };
    for name in good {
        assert_eq!(codes(name), Vec::<&str>::new(), "{name}");
    }
    for name in odd {
        assert_eq!(codes(name), ["name_breaks_rules"], "{name}");
    }
    for name in unsafe_names {
        assert_eq!(codes(name), ["unsafe_name"], "{name}");
    }
    // Composed and decomposed accents are equal, and surrounding blanks are ignored.
    assert_eq!(
        meta_and_codes(&parse("caf\u{e9}", "---\nname: 'cafe\u{301} '\ndescription: d\n---\n")).1,
        Vec::<&str>::new()
    );
}

#[test]
fn diagnostics_have_positions() {
    let text = "---\r\nname: s\r\nmetadata:\r\n  é: ü: x\r\ndescription: d\r\n---\r\n";
    let parsed = parse("s", text);
    let diagnostic = &parsed.diagnostics[0];
    assert_eq!(
        (diagnostic.code, diagnostic.line, diagnostic.column),
        ("unquoted_value", Some(4), Some(6))
    );
    assert_eq!(diagnostic.hint.as_deref(), Some("write é: 'ü: x'"));

    let long = format!("---\nname: s\ndescription: {}\n---\n", "d".repeat(1124));
    let diagnostic = &parse("s", &long).diagnostics[0];
    assert!(
        diagnostic.message.contains("1124") && diagnostic.message.contains("1024"),
        "{diagnostic:?}"
    );
    assert!(diagnostic.message.contains("description"), "{diagnostic:?}");
    assert_eq!((diagnostic.line, diagnostic.column), (Some(3), Some(14)));
}

#[test]
fn long_bodies_are_reported() {
    let head = "---\nname: s\ndescription: d\n---\n";
    let codes = |body: String| meta_and_codes(&parse("s", &format!("{head}{body}"))).1;
    assert_eq!(codes("line\n".repeat(500)), Vec::<&str>::new());
    assert_eq!(codes("line\n".repeat(501)), ["long_body"]);
    assert_eq!(codes("word ".repeat(3_900)), Vec::<&str>::new());
    assert_eq!(codes("word ".repeat(4_100)), ["long_body"]);
}
