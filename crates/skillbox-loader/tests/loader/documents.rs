//! Listing, selecting and reading documents.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};
use skillbox_loader::{Dialect, render_state};
use skillbox_model::ErrorCode;

use crate::library::{Host, Library, settings};

fn select(host: &Host, arguments: Value) -> Vec<String> {
    let result = host.ok("skill_select_docs", arguments).result;
    result["selected_docs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|doc| doc.as_str().unwrap().to_owned())
        .collect()
}

fn library() -> Library {
    let library = Library::new();
    library.skill("s", "description: d", "body\n");
    for name in ["a.md", "b.txt", "deep/er/c.md"] {
        library.file(&format!("s/{name}"), format!("<{name}>\n"));
    }
    library.file("s/code.py", "not a document");
    library
}

#[test]
fn documents_are_listed_with_slash_paths() {
    for dialect in [Dialect::Skillbox, Dialect::Trpc] {
        let docs = library()
            .host(dialect)
            .ok("skill_list_docs", json!({"skill": "s"}))
            .result;
        assert_eq!(docs, json!(["a.md", "b.txt", "deep/er/c.md"]));
    }
}

#[test]
fn documents_are_added_replaced_and_cleared() {
    let host = library().host(Dialect::Skillbox);
    host.ok("skill_load", json!({"skill": "s", "docs": ["b.txt"]}));
    assert_eq!(
        select(&host, json!({"skill": "s", "docs": ["a.md", "./b.txt"], "mode": "add"})),
        ["b.txt", "a.md"]
    );
    assert_eq!(
        select(&host, json!({"skill": "s", "docs": ["deep/er/c.md"]})),
        ["deep/er/c.md"]
    );
    let prompt = host.prompt();
    assert!(prompt.contains("deep/er/c.md") && !prompt.contains("a.md"), "{prompt}");
    assert_eq!(
        select(&host, json!({"skill": "s", "include_all_docs": true})),
        ["a.md", "b.txt", "deep/er/c.md"]
    );
    let all = host
        .ok(
            "skill_select_docs",
            json!({"skill": "s", "docs": ["a.md"], "mode": "add"}),
        )
        .result;
    assert_eq!(all["include_all_docs"], true, "adding to all documents changes nothing");
    assert_eq!(
        select(&host, json!({"skill": "s", "mode": "clear"})),
        Vec::<String>::new()
    );
    assert!(!host.prompt().contains("a.md"));
}

#[test]
fn document_selections_have_state_keys() {
    let host = library().host(Dialect::Trpc);
    let keys = || Value::Object(render_state(Dialect::Trpc, &host.state(), &host.agent));
    assert_eq!(keys(), json!({}));
    let loaded = host.ok("skill_load", json!({"skill": "s"})).result;
    assert_eq!(keys(), json!({"temp:skill:loaded:s": "1"}));
    assert_eq!(loaded["state_delta"], keys());
    host.ok("skill_load", json!({"skill": "s", "docs": ["b.txt", "a.md"]}));
    assert_eq!(
        keys(),
        json!({"temp:skill:loaded:s": "1", "temp:skill:docs:s": "[\"b.txt\",\"a.md\"]"})
    );
    host.ok("skill_load", json!({"skill": "s", "docs": ["a.md"]}));
    assert_eq!(
        keys()["temp:skill:docs:s"],
        "[\"a.md\"]",
        "the last list replaces the others"
    );
    host.ok("skill_select_docs", json!({"skill": "s", "include_all_docs": true}));
    assert_eq!(keys()["temp:skill:docs:s"], "*");
    host.ok("skill_select_docs", json!({"skill": "s", "mode": "clear"}));
    assert_eq!(keys()["temp:skill:docs:s"], "[]");
}

#[test]
fn an_unknown_document_error_names_similar_ones() {
    let host = library().host(Dialect::Skillbox);
    for (tool, arguments) in [
        ("skill_load", json!({"skill": "s", "docs": ["a.md", "deep/c.md"]})),
        ("skill_select_docs", json!({"skill": "s", "docs": ["deep/c.md"]})),
        ("skill_read", json!({"skill": "s", "path": "deep/c.md"})),
    ] {
        let error = host.refused(tool, arguments);
        assert_eq!(error.code, ErrorCode::UnknownDoc, "{tool}");
        assert!(error.message.contains("deep/er/c.md"), "{}", error.message);
        assert_eq!(error.hint.as_deref(), Some("list them with `skill_list_docs`"));
    }
    for path in ["../s/a.md", "/etc/passwd", "a/../../x"] {
        assert_eq!(
            host.refused("skill_read", json!({"skill": "s", "path": path})).code,
            ErrorCode::PathEscape
        );
        assert_eq!(
            host.refused("skill_load", json!({"skill": "s", "docs": [path]})).code,
            ErrorCode::PathEscape
        );
    }
    assert_eq!(
        host.refused("skill_read", json!({"skill": "s", "path": ""})).code,
        ErrorCode::InvalidRequest
    );
}

/// A document that is a link out of the skill is treated as missing.
#[test]
fn a_link_out_of_the_skill_is_never_shown() {
    let library = library();
    let secret = library.path().parent().unwrap().join("secret.md");
    fs::write(&secret, "SECRET").unwrap();
    symlink(&secret, library.path().join("s/notes.md")).unwrap();
    symlink("../../secret.md", library.path().join("s/more.md")).unwrap();
    symlink("a.md", library.path().join("s/same.md")).unwrap();
    let host = library.host(Dialect::Skillbox);
    let docs = host.ok("skill_list_docs", json!({"skill": "s"})).result;
    assert_eq!(docs, json!(["a.md", "b.txt", "deep/er/c.md", "same.md"]));
    host.refused("skill_load", json!({"skill": "s", "docs": ["notes.md"]}));
    host.refused("skill_read", json!({"skill": "s", "path": "more.md"}));
    let text = host
        .ok("skill_load", json!({"skill": "s", "include_all_docs": true}))
        .text;
    assert!(!text.contains("SECRET") && !host.prompt().contains("SECRET"));
    // The same applies to a document that becomes such a link after it was selected.
    fs::remove_file(library.path().join("s/a.md")).unwrap();
    symlink(&secret, library.path().join("s/a.md")).unwrap();
    host.start_turn();
    assert!(!host.prompt().contains("SECRET"));
}

#[test]
fn long_documents_are_truncated_with_a_mark() {
    let library = Library::new();
    library.skill("s", "description: d", "body");
    library
        .file("s/long.md", "é".repeat(600))
        .file("s/other.md", "y".repeat(300))
        .file("s/third.md", "z".repeat(50));
    let host = library.host_with(settings(Dialect::Skillbox, |settings| {
        settings.max_bytes_per_doc = 501;
        settings.max_doc_bytes_per_skill = 700;
    }));
    let docs = host
        .ok("skill_load", json!({"skill": "s", "include_all_docs": true}))
        .result["docs"]
        .clone();
    let sizes: Vec<_> = docs
        .as_array()
        .unwrap()
        .iter()
        .map(|doc| (doc["content"].as_str().unwrap().len(), doc["truncated"] == true))
        .collect();
    assert_eq!(sizes, [(500, true), (200, true), (0, true)]);
    assert!(
        host.prompt()
            .contains("[truncated: the first 500 of 1200 bytes are shown]")
    );
}

#[test]
fn files_are_read_in_chunks() {
    let library = library();
    library.file("s/assets/data.bin", [0, 159, 146, 150]);
    let host = library.host(Dialect::Skillbox);
    let read = |arguments: Value| host.ok("skill_read", arguments).result;
    let first = read(json!({"skill": "s", "path": "a.md", "limit": 3}));
    assert_eq!(
        (&first["content"], &first["next_offset"], &first["size_bytes"]),
        (&json!("<a."), &json!(3), &json!(7))
    );
    let rest = read(json!({"skill": "s", "path": "a.md", "offset": 3}));
    assert_eq!((&rest["content"], rest.get("next_offset")), (&json!("md>\n"), None));
    let binary = read(json!({"skill": "s", "path": "assets/data.bin"}));
    assert_eq!(
        (&binary["content"], &binary["encoding"]),
        (&json!("AJ+Slg=="), &json!("base64"))
    );
}

#[test]
fn documents_can_be_selected_before_the_skill_is_loaded() {
    let host = library().host(Dialect::Trpc);
    let result = host
        .ok("skill_select_docs", json!({"skill": "s", "docs": ["a.md"]}))
        .result;
    assert_eq!(result["loaded"], false);
    assert!(!host.prompt().contains("<a.md>"));
    host.ok("skill_load", json!({"skill": "s"}));
    assert!(host.prompt().contains("[Doc] a.md\n\n<a.md>"), "{}", host.prompt());
}
