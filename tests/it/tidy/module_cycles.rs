//! No cycles between the modules of a crate.
//!
//! Compared are siblings: the files and folders of one folder. A folder stands for everything below it, and a re-exported
//! name counts as a use of the module that defines it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::rust_paths::{FilePaths, paths_of};
use super::{assert_tidy, crate_names, read};
use crate::workspace::{files_below, root};

type ModulePath = Vec<String>;

/// A re-export can lead to another one; longer chains do not occur.
const MAX_REEXPORTS: usize = 6;

#[test]
fn modules_do_not_depend_on_each_other_in_a_cycle() {
    let sample = |files: &[(&str, &str)]| {
        let modules = files
            .iter()
            .map(|(path, text)| (module_of(Path::new(path)), paths_of(text)));
        cycles(&modules.collect())
    };
    let there_and_back = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "use crate::b::B;"),
        ("b.rs", "fn f() -> super::a::A { todo() }"),
    ];
    assert_eq!(sample(&there_and_back), ["a, b: a → b, b → a"]);
    let by_reexport = [
        ("x/mod.rs", "mod a; mod b; pub use a::A;"),
        ("x/a.rs", "use super::b::B;"),
        ("x/b.rs", "use crate::x::{A, C};"),
    ];
    assert_eq!(sample(&by_reexport), ["x/a, x/b: x/a → x/b, x/b → x/a"]);
    let forward = [
        ("a.rs", "use crate::b::B; #[cfg(test)] mod tests { use crate::c::C; }"),
        ("b.rs", "use crate::c::C;"),
        ("c.rs", "#[cfg(test)] use crate::a::A;"),
    ];
    assert!(sample(&forward).is_empty());

    let mut complaints = Vec::new();
    for name in crate_names() {
        let src = root().join("crates").join(&name).join("src");
        let files = files_below(&src).into_iter().filter(|path| is_module(path));
        let modules = files.map(|path| (module_of(path.strip_prefix(&src).unwrap()), paths_of(&read(&path))));
        let merged = modules.fold(BTreeMap::new(), merge);
        complaints.extend(cycles(&merged).into_iter().map(|cycle| format!("{name}: {cycle}")));
    }
    assert_tidy(complaints);
}

/// A library and a program in one crate have the same module path: the empty one.
fn merge(
    mut all: BTreeMap<ModulePath, FilePaths>,
    (module, paths): (ModulePath, FilePaths),
) -> BTreeMap<ModulePath, FilePaths> {
    let entry = all.entry(module).or_default();
    entry.used.extend(paths.used);
    entry.reexported.extend(paths.reexported);
    all
}

/// Rust files, except those that are compiled for tests only.
fn is_module(path: &Path) -> bool {
    let is_test = path
        .with_extension("")
        .iter()
        .any(|part| part == "tests" || part == "test_fixture");
    path.extension().is_some_and(|extension| extension == "rs") && !is_test
}

fn module_of(path: &Path) -> ModulePath {
    let mut parts: ModulePath = path
        .with_extension("")
        .iter()
        .map(|part| part.to_str().unwrap().to_owned())
        .collect();
    if parts
        .last()
        .is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str()))
    {
        parts.pop();
    }
    parts
}

/// The groups of sibling modules that reach each other, with the uses that close the circle.
fn cycles(modules: &BTreeMap<ModulePath, FilePaths>) -> Vec<String> {
    let mut uses: BTreeMap<ModulePath, BTreeSet<ModulePath>> = BTreeMap::new();
    for (module, paths) in modules {
        for path in &paths.used {
            let Some(target) = resolve(modules, module, path) else {
                continue;
            };
            let shared = module.iter().zip(&target).take_while(|(a, b)| a == b).count();
            if shared < module.len() && shared < target.len() {
                let sibling = |path: &ModulePath| path[..=shared].to_vec();
                uses.entry(sibling(module)).or_default().insert(sibling(&target));
            }
        }
    }
    let reaches: BTreeMap<&ModulePath, BTreeSet<&ModulePath>> =
        uses.keys().map(|from| (from, reachable(&uses, from))).collect();
    let in_cycle: Vec<&ModulePath> = reaches
        .iter()
        .filter(|(from, to)| to.contains(*from))
        .map(|(from, _)| *from)
        .collect();
    let mut groups: Vec<Vec<&ModulePath>> = Vec::new();
    for module in in_cycle {
        match groups
            .iter_mut()
            .find(|group| reaches[group[0]].contains(module) && reaches[module].contains(group[0]))
        {
            Some(group) => group.push(module),
            None => groups.push(vec![module]),
        }
    }
    groups.iter().map(|group| describe(group, &uses)).collect()
}

fn reachable<'a>(uses: &'a BTreeMap<ModulePath, BTreeSet<ModulePath>>, from: &ModulePath) -> BTreeSet<&'a ModulePath> {
    let mut seen = BTreeSet::new();
    let mut pending: Vec<&ModulePath> = uses[from].iter().collect();
    while let Some(module) = pending.pop() {
        if seen.insert(module) {
            pending.extend(uses.get(module).into_iter().flatten());
        }
    }
    seen
}

fn describe(group: &[&ModulePath], uses: &BTreeMap<ModulePath, BTreeSet<ModulePath>>) -> String {
    let names: Vec<String> = group.iter().map(|module| module.join("/")).collect();
    let edges = group.iter().flat_map(|from| {
        let targets = uses[*from].iter().filter(|to| group.contains(to));
        targets.map(|to| format!("{} → {}", from.join("/"), to.join("/")))
    });
    format!("{}: {}", names.join(", "), edges.collect::<Vec<_>>().join(", "))
}

/// The module that a path in `from` leads to, through re-exports; `None` for paths of other crates.
fn resolve(modules: &BTreeMap<ModulePath, FilePaths>, from: &ModulePath, path: &[String]) -> Option<ModulePath> {
    let mut absolute = absolute(modules, from, path)?;
    for _ in 0..MAX_REEXPORTS {
        let module = longest_module(modules, &absolute);
        let rest = &absolute[module.len()..];
        let reexported = rest.first().and_then(|name| {
            let (_, path) = modules
                .get(&module)?
                .reexported
                .iter()
                .find(|(visible, _)| visible == name)?;
            self::absolute(modules, &module, path)
        });
        match reexported {
            Some(target) if target != absolute => absolute = target,
            _ => return Some(module),
        }
    }
    None
}

fn absolute(modules: &BTreeMap<ModulePath, FilePaths>, from: &ModulePath, path: &[String]) -> Option<ModulePath> {
    let mut base = from.clone();
    let mut rest = path;
    match path.first()?.as_str() {
        "crate" => {
            base.clear();
            rest = &path[1..];
        }
        "self" => rest = &path[1..],
        "super" => {
            while let Some(("super", next)) = rest.split_first().map(|(first, next)| (first.as_str(), next)) {
                base.pop()?;
                rest = next;
            }
        }
        child => {
            base.push(child.to_owned());
            let is_child = modules.contains_key(&base);
            base.pop();
            if !is_child {
                return None;
            }
        }
    }
    base.extend_from_slice(rest);
    Some(base)
}

fn longest_module(modules: &BTreeMap<ModulePath, FilePaths>, path: &ModulePath) -> ModulePath {
    let lengths = (0..=path.len()).rev();
    let prefixes = lengths.map(|length| path[..length].to_vec());
    prefixes
        .into_iter()
        .find(|prefix| prefix.is_empty() || modules.contains_key(prefix))
        .unwrap_or_default()
}
