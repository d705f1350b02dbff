//! Settings → where skills come from, lowest precedence first.

use std::path::{Path, PathBuf};

use skillbox_repository::{BUILT_IN, Scope, Source};

use crate::settings::{Environment, GlobalSettings};

/// The sources that were named; else the built-in skills, the customary places and `SKILLS_ROOT`.
pub fn sources(settings: &GlobalSettings, environment: &Environment) -> Vec<Source> {
    if !settings.skills.is_empty() {
        return settings.skills.iter().map(|path| named(path.clone())).collect();
    }
    let user = environment
        .home()
        .into_iter()
        .flat_map(|home| [home.join(".agents/skills"), home.join(".claude/skills")]);
    let project = ["./.claude/skills", "./.agents/skills", "./skills"].map(PathBuf::from);
    let mut places: Vec<_> = user.map(|path| (path, Scope::User)).collect();
    for path in project {
        // In the home directory itself the project's places are the user's: one place is one source.
        let same = |(known, _): &(PathBuf, Scope)| *known == environment.working_dir().join(trimmed(&path));
        if !places.iter().any(same) {
            places.push((path, Scope::Project));
        }
    }
    let customary = places
        .into_iter()
        .map(|(path, scope)| Source::OptionalDirectory { path, scope });
    let roots = environment
        .get("SKILLS_ROOT")
        .map(|list| std::env::split_paths(list).collect::<Vec<_>>());
    let roots = roots.into_iter().flatten().filter(|path| !path.as_os_str().is_empty());
    std::iter::once(Source::Embedded(&BUILT_IN))
        .chain(customary)
        .chain(roots.map(named))
        .collect()
}

fn named(path: PathBuf) -> Source {
    Source::Directory {
        path,
        scope: Scope::Project,
    }
}

fn trimmed(path: &Path) -> &Path {
    path.strip_prefix(".").unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    fn labels(skills: &[&str], variables: &[(&str, &str)], working_dir: &str) -> Vec<String> {
        let settings = GlobalSettings {
            skills: skills.iter().map(PathBuf::from).collect(),
            profiles: None,
            state_dir: PathBuf::new(),
            artifacts: None,
            artifacts_endpoint: None,
            artifacts_region: None,
            max_directories: 1,
            log: Default::default(),
        };
        let variables = variables
            .iter()
            .map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let environment = Environment::new(variables, working_dir.into());
        sources(&settings, &environment)
            .iter()
            .map(|source| format!("{} {}", source.scope(), source.label()))
            .collect()
    }

    #[test]
    fn the_customary_places_in_the_order_of_precedence() {
        assert_eq!(
            labels(&[], &[("HOME", "/home/u"), ("SKILLS_ROOT", "/a::/b")], "/project"),
            [
                "built_in built-in",
                "user /home/u/.agents/skills",
                "user /home/u/.claude/skills",
                "project ./.claude/skills",
                "project ./.agents/skills",
                "project ./skills",
                "project /a",
                "project /b",
            ]
        );
    }

    #[test]
    fn named_sources_replace_all_others() {
        let variables = [("HOME", "/home/u"), ("SKILLS_ROOT", "/a")];
        assert_eq!(labels(&["x", "y"], &variables, "/project"), ["project x", "project y"]);
    }

    #[test]
    fn at_home_no_place_is_searched_twice() {
        assert_eq!(
            labels(&[], &[("HOME", "/home/u")], "/home/u"),
            [
                "built_in built-in",
                "user /home/u/.agents/skills",
                "user /home/u/.claude/skills",
                "project ./skills"
            ]
        );
    }
}
