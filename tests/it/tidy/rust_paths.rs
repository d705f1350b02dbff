//! What a Rust source file names: its identifiers, the module paths it uses, and the names it re-exports.
//!
//! Items under `#[cfg(test)]` are left out of the paths: tests may look at everything.

use syn::visit::{self, Visit};

/// The module paths of one file, each as written, with `use` groups expanded.
#[derive(Default)]
pub struct FilePaths {
    /// Paths in `use` items, expressions, types and macro-free code.
    pub used: Vec<Vec<String>>,
    /// `pub use` items: the visible name and the path it stands for.
    pub reexported: Vec<(String, Vec<String>)>,
}

/// The paths that a source text names outside its tests.
pub fn paths_of(source: &str) -> FilePaths {
    let mut collector = PathCollector(FilePaths::default());
    collector.visit_file(&parse(source));
    collector.0
}

/// Every identifier that a source text declares or uses.
pub fn identifiers_of(source: &str) -> Vec<String> {
    let mut collector = IdentCollector(Vec::new());
    collector.visit_file(&parse(source));
    collector.0
}

fn parse(source: &str) -> syn::File {
    syn::parse_file(source).expect("source files parse")
}

struct PathCollector(FilePaths);

impl<'ast> Visit<'ast> for PathCollector {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !attributes(item).iter().any(is_test_only) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let mut paths = Vec::new();
        expand(&item.tree, &mut Vec::new(), &mut paths);
        if !matches!(item.vis, syn::Visibility::Inherited) {
            self.0.reexported.extend(paths.iter().cloned());
        }
        self.0.used.extend(paths.into_iter().map(|(_, path)| path));
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if segments.len() > 1 {
            self.0.used.push(segments);
        }
        visit::visit_path(self, path);
    }
}

/// Flattens a `use` tree into pairs of the imported name and its full path.
fn expand(tree: &syn::UseTree, prefix: &mut Vec<String>, paths: &mut Vec<(String, Vec<String>)>) {
    match tree {
        syn::UseTree::Path(path) => {
            prefix.push(path.ident.to_string());
            expand(&path.tree, prefix, paths);
            prefix.pop();
        }
        syn::UseTree::Group(group) => group.items.iter().for_each(|item| expand(item, prefix, paths)),
        syn::UseTree::Name(name) => push(&name.ident, &name.ident, prefix, paths),
        syn::UseTree::Rename(rename) => push(&rename.rename, &rename.ident, prefix, paths),
        syn::UseTree::Glob(_) => paths.push(("*".to_owned(), prefix.clone())),
    }
}

fn push(visible: &syn::Ident, name: &syn::Ident, prefix: &[String], paths: &mut Vec<(String, Vec<String>)>) {
    let mut path = prefix.to_vec();
    if name != "self" {
        path.push(name.to_string());
    }
    paths.push((visible.to_string(), path));
}

fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn is_test_only(attribute: &syn::Attribute) -> bool {
    attribute.path().is_ident("cfg")
        && attribute
            .parse_args::<syn::Path>()
            .is_ok_and(|argument| argument.is_ident("test"))
}

struct IdentCollector(Vec<String>);

impl<'ast> Visit<'ast> for IdentCollector {
    fn visit_ident(&mut self, ident: &'ast proc_macro2::Ident) {
        self.0.push(ident.to_string());
    }
}
