//! Which files count as resources.

use serde_json::{Value, json};
use skillbox_loader::Dialect;

use crate::library::Library;

/// The resources that loading finds, as `type path`.
fn find_resources(library: &Library, skill: &str) -> Vec<String> {
    let host = library.host(Dialect::Skillbox);
    let result = host.ok("skill_load", json!({"skill": skill})).result;
    let kinds = result["resources"].as_object().unwrap();
    let entries = kinds.iter().flat_map(|(kind, paths)| {
        let paths = paths.as_array().unwrap().iter();
        paths.map(move |path| format!("{kind} {}", path.as_str().unwrap()))
    });
    entries.collect()
}

#[test]
fn discover_resources_standard_dirs() {
    let library = Library::new();
    library.skill("s", "description: d", "body");
    library
        .file("s/scripts/run.py", "")
        .file("s/references/guide.md", "")
        .file("s/assets/logo.png", [0xff]);
    assert_eq!(
        find_resources(&library, "s"),
        [
            "asset assets/logo.png",
            "reference references/guide.md",
            "script scripts/run.py"
        ]
    );
}

#[test]
fn discover_resources_empty_skill() {
    let library = Library::new();
    library.skill("s", "description: d", "body");
    assert_eq!(find_resources(&library, "s"), Vec::<String>::new());
    let host = library.host(Dialect::Deepagents);
    let text = host.ok("load_skill", json!({"skill_name": "s"})).text;
    assert!(!text.contains("Skill Resources"), "{text}");
}

/// A directory that cannot be listed hides its resources, but the skill still loads.
#[test]
fn discover_resources_backend_error() {
    let library = Library::new();
    library
        .skill("s", "description: d", "body")
        .file("s/scripts/run.py", "")
        .file("s/extra.csv", "");
    let scripts = library.path().join("s/scripts");
    let loaded = std::thread::scope(|scope| {
        scope
            .spawn(|| {
                drop_file_capabilities();
                let mode = |mode| std::os::unix::fs::PermissionsExt::from_mode(mode);
                std::fs::set_permissions(&scripts, mode(0o000)).unwrap();
                assert!(
                    std::fs::read_dir(&scripts).is_err(),
                    "control: the directory cannot be listed"
                );
                let found = find_resources(&library, "s");
                std::fs::set_permissions(&scripts, mode(0o755)).unwrap();
                found
            })
            .join()
            .unwrap()
    });
    assert_eq!(loaded, ["other extra.csv"]);
}

/// Drops the capabilities that let root read every file, for the calling thread only.
fn drop_file_capabilities() {
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
    let mut sets = capabilities(None).unwrap();
    let readers = CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH;
    sets.effective.remove(readers);
    set_capabilities(None, sets).unwrap();
}

#[test]
fn discover_resources_non_standard_dirs_ignored() {
    let library = Library::new();
    library.skill("s", "description: d", "body");
    library
        .file("s/temp/x.py", "")
        .file("s/scripts/deep/helper.py", "")
        .file("s/scripts/top.py", "");
    assert_eq!(find_resources(&library, "s"), ["script scripts/top.py"]);
}

#[test]
fn discover_resources_root_level_files() {
    let library = Library::new();
    library
        .skill("s", "description: d", "body")
        .file("s/template.md", "")
        .file("s/LICENSE.txt", "");
    assert_eq!(
        find_resources(&library, "s"),
        ["other LICENSE.txt", "other template.md"]
    );
    let host = library.host(Dialect::Deepagents);
    host.ok("load_skill", json!({"skill_name": "s"}));
    let keys = skillbox_loader::render_state(Dialect::Deepagents, &host.state(), &host.agent);
    let directory = library.path().join("s");
    let expected: Value = json!([
        {"path": directory.join("LICENSE.txt"), "type": "other", "skill_name": "s"},
        {"path": directory.join("template.md"), "type": "other", "skill_name": "s"},
    ]);
    assert_eq!(keys["skill_resources"]["s"], expected);
}
