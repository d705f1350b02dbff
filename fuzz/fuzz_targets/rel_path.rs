//! Parses any bytes as a relative path. An accepted path keeps its bytes and stays below any directory it is joined to.
#![no_main]

use std::path::{Component, Path};

use libfuzzer_sys::fuzz_target;
use skillbox_model::RelPath;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(typed) = std::str::from_utf8(bytes)
        && let Ok(path) = RelPath::parse_user_input(typed)
    {
        check_invariants(&path);
    }
    let Ok(path) = RelPath::parse(bytes) else { return };
    assert_eq!(path.as_bytes(), bytes);
    check_invariants(&path);
});

fn check_invariants(path: &RelPath) {
    let as_path: &Path = path.as_path();
    assert!(
        as_path
            .components()
            .all(|component| matches!(component, Component::Normal(_)))
    );
    assert_eq!(as_path.components().count(), path.components().count());
    assert!(!path.as_bytes().contains(&0));
    // Joined to any directory, the path stays below it.
    assert!(Path::new("/root/of/skill").join(as_path).starts_with("/root/of/skill"));
    assert_eq!(RelPath::parse(path.as_bytes()).as_ref(), Ok(path));
    if let Some(parent) = path.parent() {
        assert!(path.starts_with(&parent));
    }
}
