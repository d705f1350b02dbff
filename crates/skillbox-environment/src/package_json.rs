//! Reads `package.json` and its lock. Only packages of a registry are allowed: no paths, URLs or repositories.

use serde_json::{Map, Value};

use crate::declaration_error::DeclarationError;

/// What npm installs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePackages {
    /// `package.json` with the dependencies alone.
    pub manifest: Value,
    /// `package-lock.json` without the addresses of packages: npm gets them from the registry of the host.
    pub lock: Option<Value>,
}

/// The most entries of one lock file.
const MAX_LOCKED: usize = 5000;

const TABLES: [&str; 2] = ["dependencies", "optionalDependencies"];
/// npm compares these with the lock, and does not install them.
const LOCKED_TABLES: [&str; 3] = ["dependencies", "optionalDependencies", "devDependencies"];

/// Reads a manifest and its lock; none if it declares no dependencies.
pub fn parse_package_json(
    file: &str,
    text: &str,
    lock: Option<(&str, &str)>,
) -> Result<Option<NodePackages>, DeclarationError> {
    let manifest = parse_object(file, text)?;
    let has_dependencies = TABLES.iter().any(|table| {
        manifest
            .get(*table)
            .and_then(Value::as_object)
            .is_some_and(|table| !table.is_empty())
    });
    if !has_dependencies {
        return Ok(None);
    }
    if manifest.contains_key("workspaces") {
        return Err(DeclarationError::new(file, "workspaces are not supported").of_package("workspaces"));
    }
    let mut kept = Map::new();
    for key in ["name", "version"] {
        if let Some(value) = manifest.get(key).filter(|value| value.is_string()) {
            kept.insert(key.to_owned(), value.clone());
        }
    }
    let tables: &[&str] = if lock.is_some() { &LOCKED_TABLES } else { &TABLES };
    for table in tables {
        if let Some(value) = manifest.get(*table) {
            kept.insert((*table).to_owned(), check_table(file, text, table, value)?);
        }
    }
    if let Some(overrides) = manifest.get("overrides") {
        check_overrides(file, text, overrides)?;
        kept.insert("overrides".to_owned(), overrides.clone());
    }
    let lock = lock.map(|(file, text)| check_lock(file, text)).transpose()?;
    Ok(Some(NodePackages {
        manifest: Value::Object(kept),
        lock,
    }))
}

fn parse_object(file: &str, text: &str) -> Result<Map<String, Value>, DeclarationError> {
    let value = serde_json::from_str(text.trim_start_matches('\u{feff}'))
        .map_err(|error| DeclarationError::new(file, format!("not valid JSON: {error}")).at_line(error.line()))?;
    match value {
        Value::Object(object) => Ok(object),
        _ => Err(DeclarationError::new(file, "not a JSON object")),
    }
}

fn check_table(file: &str, text: &str, table: &str, value: &Value) -> Result<Value, DeclarationError> {
    let Some(entries) = value.as_object() else {
        return Err(DeclarationError::new(file, format!("`{table}` is not an object")));
    };
    for (name, range) in entries {
        check_name(file, text, name)?;
        check_range(file, text, name, range)?;
    }
    Ok(value.clone())
}

fn check_overrides(file: &str, text: &str, value: &Value) -> Result<(), DeclarationError> {
    let Some(entries) = value.as_object() else {
        return Err(DeclarationError::new(file, "`overrides` is not an object"));
    };
    for (name, range) in entries {
        match range {
            Value::Object(_) => check_overrides(file, text, range)?,
            range => check_range(file, text, name, range)?,
        }
    }
    Ok(())
}

fn check_name(file: &str, text: &str, name: &str) -> Result<(), DeclarationError> {
    if is_package_name(name) {
        return Ok(());
    }
    Err(DeclarationError::new(file, "not the name of a package")
        .of_package(name)
        .at_line(line_of(text, name)))
}

/// Whether npm accepts the name.
pub(crate) fn is_package_name(name: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty()
            && !part.starts_with(['.', '_'])
            && part
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '~'))
    };
    let is_name = match name.strip_prefix('@') {
        Some(scoped) => scoped
            .split_once('/')
            .is_some_and(|(scope, name)| is_part(scope) && is_part(name)),
        None => is_part(name),
    };
    name.len() <= 214 && is_name && name != "node_modules"
}

fn check_range(file: &str, text: &str, name: &str, range: &Value) -> Result<(), DeclarationError> {
    let refusal = |reason: &str| {
        DeclarationError::new(file, reason)
            .of_package(name)
            .at_line(line_of(text, name))
            .with_hint("name a version of a package of a registry")
    };
    let Some(range) = range.as_str() else {
        return Err(refusal("its version is not a text"));
    };
    let range = match range.strip_prefix("npm:") {
        Some(alias) => {
            let at = alias.rfind('@').filter(|at| *at > 0).unwrap_or(alias.len());
            let (target, version) = alias.split_at(at);
            if !is_package_name(target) {
                return Err(refusal("not an alias of a package"));
            }
            version.trim_start_matches('@')
        }
        None => range.strip_prefix('$').unwrap_or(range),
    };
    if range.contains([':', '/', '\\']) || range.starts_with('~') && range[1..].starts_with('/') {
        return Err(refusal(
            "a URL, a path or a repository; only packages of a registry are allowed",
        ));
    }
    if range.len() > 256
        || !range
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || " .-+^~<>=|*_".contains(c))
    {
        return Err(refusal("not a range of versions"));
    }
    Ok(())
}

/// Checks a lock, and removes the addresses of its packages.
fn check_lock(file: &str, text: &str) -> Result<Value, DeclarationError> {
    let mut lock = parse_object(file, text)?;
    let version = lock.get("lockfileVersion").and_then(Value::as_u64);
    if !matches!(version, Some(2 | 3)) {
        return Err(DeclarationError::new(file, "its `lockfileVersion` is neither 2 nor 3")
            .with_hint("write it again with `npm install --package-lock-only`"));
    }
    // The old form of the same list; npm prefers `packages`.
    lock.remove("dependencies");
    let Some(packages) = lock.get_mut("packages").and_then(Value::as_object_mut) else {
        return Err(DeclarationError::new(file, "it has no `packages`"));
    };
    if packages.len() > MAX_LOCKED {
        return Err(DeclarationError::new(file, format!("more than {MAX_LOCKED} packages")));
    }
    for (path, package) in packages.iter_mut() {
        let refusal = |reason: &str| {
            DeclarationError::new(file, reason)
                .of_package(path)
                .at_line(line_of(text, path))
        };
        let Some(package) = package.as_object_mut() else {
            return Err(refusal("not an object"));
        };
        if path.is_empty() {
            continue;
        }
        let is_installed =
            path.starts_with("node_modules/") && path.split('/').all(|part| !matches!(part, "" | "." | ".."));
        if !is_installed || package.get("link").is_some_and(|link| link != &Value::Bool(false)) {
            return Err(refusal("a path; only packages of a registry are allowed"));
        }
        let resolved = package.get("resolved").and_then(Value::as_str).unwrap_or("https:");
        let is_archive = resolved.starts_with("https:") || resolved.starts_with("http:");
        if !is_archive {
            return Err(refusal(
                "a path or a repository; only packages of a registry are allowed",
            ));
        }
        let has_hash = package.get("integrity").is_some_and(Value::is_string);
        if !has_hash && package.get("inBundle").is_none() {
            return Err(refusal("it has no `integrity`"));
        }
        package.remove("resolved");
    }
    Ok(Value::Object(lock))
}

/// The line of the first mention of a key, from 1.
fn line_of(text: &str, key: &str) -> usize {
    let quoted = format!("\"{key}\"");
    1 + text.lines().position(|line| line.contains(&quoted)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn dependencies_are_kept_and_nothing_else() {
        let text = json!({
            "name": "s", "type": "module", "scripts": {"postinstall": "id"},
            "dependencies": {"left-pad": "^1.3.0", "@a/b": "1 || >=2 <3", "c": "npm:@d/e@~1.0", "f": "latest", "g": ""},
            "devDependencies": {"x": "file:../x"},
        });
        let packages = parse_package_json("package.json", &text.to_string(), None)
            .unwrap()
            .unwrap();
        let keys: Vec<&String> = packages.manifest.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["name", "dependencies"]);
        assert_eq!(
            parse_package_json("package.json", "{\"dependencies\": {}}", None),
            Ok(None)
        );
        assert_eq!(
            parse_package_json("package.json", "{\"type\": \"module\"}", None),
            Ok(None)
        );
    }

    #[test]
    fn paths_urls_and_repositories_name_the_package_and_the_line() {
        for range in [
            "file:../x",
            "../x",
            "./x",
            "/opt/x",
            "~/x",
            "link:x",
            "workspace:*",
            "https://example.org/x.tgz",
            "git+ssh://git@example.org/x",
            "user/repository",
            "github:user/x",
            "npm:../x",
            "npm:x@file:y",
            "$(id)",
        ] {
            let text = format!("{{\n\"dependencies\": {{\n\"bad\": {}}}}}", json!(range));
            let error = parse_package_json("package.json", &text, None).unwrap_err();
            assert_eq!(
                (error.line, error.package.as_deref()),
                (Some(3), Some("bad")),
                "{range}"
            );
        }
        for text in [
            "[]",
            "{",
            "{\"dependencies\": {\"../x\": \"1\"}}",
            "{\"dependencies\": {\"a\": 1}}",
            "{\"dependencies\": {\"a\": \"1\"}, \"workspaces\": [\"x\"]}",
            "{\"dependencies\": {\"a\": \"1\"}, \"overrides\": {\"b\": {\"c\": \"file:x\"}}}",
        ] {
            assert!(parse_package_json("package.json", text, None).is_err(), "{text}");
        }
    }

    #[test]
    fn a_lock_loses_its_addresses_and_refuses_links() {
        let manifest = "{\"dependencies\": {\"a\": \"1\"}}";
        let lock = |entry: Value| {
            let text = json!({"lockfileVersion": 3, "packages": {"": {}, "node_modules/a": entry}}).to_string();
            parse_package_json("package.json", manifest, Some(("package-lock.json", &text)))
        };
        let good = lock(json!({"version": "1.0.0", "resolved": "https://example.org/a.tgz", "integrity": "sha512-x"}));
        assert_eq!(
            good.unwrap().unwrap().lock.unwrap()["packages"]["node_modules/a"],
            json!({"version": "1.0.0", "integrity": "sha512-x"})
        );
        for entry in [
            json!({"link": true, "resolved": "../a"}),
            json!({"resolved": "git+ssh://example.org/a", "integrity": "x"}),
            json!({"resolved": "file:../a.tgz", "integrity": "x"}),
            json!({"version": "1.0.0"}),
        ] {
            assert_eq!(
                lock(entry.clone()).unwrap_err().package.as_deref(),
                Some("node_modules/a"),
                "{entry}"
            );
        }
        let outside = json!({"lockfileVersion": 3, "packages": {"../a": {"integrity": "x"}}}).to_string();
        assert!(parse_package_json("package.json", manifest, Some(("package-lock.json", &outside))).is_err());
        let old = parse_package_json(
            "package.json",
            manifest,
            Some(("package-lock.json", "{\"lockfileVersion\": 1}")),
        );
        assert!(old.unwrap_err().hint.is_some());
    }
}
