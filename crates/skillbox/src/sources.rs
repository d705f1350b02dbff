//! Determines the sources of skills from the settings, lowest precedence first.

use std::path::{Path, PathBuf};

use skillbox_repository::{BUILT_IN_SKILLS, Scope, Source};

use crate::settings::{Environment, GlobalSettings};

/// The configured sources, or by default the built-in skills, the default directories and `SKILLS_ROOT`.
pub fn skill_sources(settings: &GlobalSettings, environment: &Environment) -> Vec<Source> {
    if !settings.skills.is_empty() {
        return settings
            .skills
            .iter()
            .map(|path| project_directory(path.clone()))
            .collect();
    }
    let user = environment
        .home()
        .into_iter()
        .flat_map(|home| [home.join(".agents/skills"), home.join(".claude/skills")]);
    let project = ["./.claude/skills", "./.agents/skills", "./skills"].map(PathBuf::from);
    let mut directories: Vec<_> = user.map(|path| (path, Scope::User)).collect();
    for path in project {
        // In the home directory, some project directories are user directories, which are already listed.
        let is_listed =
            |(known, _): &(PathBuf, Scope)| *known == environment.working_dir().join(without_leading_dot(&path));
        if !directories.iter().any(is_listed) {
            directories.push((path, Scope::Project));
        }
    }
    let default_sources = directories
        .into_iter()
        .map(|(path, scope)| Source::OptionalDirectory { path, scope });
    let roots = skills_root_directories(environment).into_iter();
    std::iter::once(Source::Embedded(&BUILT_IN_SKILLS))
        .chain(default_sources)
        .chain(roots.map(project_directory))
        .collect()
}

/// A skill that a command line names, which need not be in a configured source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamedSkill {
    /// The skill in this directory, whatever the sources contain.
    At(PathBuf),
    /// The skill in this directory, unless a source has a skill of its name.
    Otherwise(PathBuf),
}

/// The sources with the skill that the command line names.
pub fn with_named_skill(mut sources: Vec<Source>, named: Option<&NamedSkill>) -> Vec<Source> {
    match named {
        Some(NamedSkill::At(path)) => sources.push(project_directory(path.clone())),
        Some(NamedSkill::Otherwise(path)) => sources.insert(0, project_directory(path.clone())),
        None => {}
    }
    sources
}

/// The directories of the path list `SKILLS_ROOT`.
pub fn skills_root_directories(environment: &Environment) -> Vec<PathBuf> {
    let roots = environment.get("SKILLS_ROOT").map(std::env::split_paths);
    let roots = roots.into_iter().flatten();
    roots.filter(|path| !path.as_os_str().is_empty()).collect()
}

fn project_directory(path: PathBuf) -> Source {
    Source::Directory {
        path,
        scope: Scope::Project,
    }
}

fn without_leading_dot(path: &Path) -> &Path {
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
            max_skill_files: 1,
            max_skill_bytes: 1,
            max_skill_file_bytes: 1,
            max_directories: 1,
            metadata_fallback: false,
            log: Default::default(),
        };
        let variables = variables
            .iter()
            .map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let environment = Environment::new(variables, working_dir.into());
        skill_sources(&settings, &environment)
            .iter()
            .map(|source| format!("{} {}", source.scope(), source.label()))
            .collect()
    }

    #[test]
    fn default_sources_are_in_order_of_precedence() {
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
    fn configured_sources_replace_the_default_ones() {
        let variables = [("HOME", "/home/u"), ("SKILLS_ROOT", "/a")];
        assert_eq!(labels(&["x", "y"], &variables, "/project"), ["project x", "project y"]);
    }

    #[test]
    fn in_the_home_directory_no_source_is_listed_twice() {
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
