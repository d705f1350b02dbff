//! Finds the script of a skill in the command of a run, and the language that it is written in.

use skillbox_environment::ScriptLanguage;
use skillbox_executor::job::{Invocation, JobSpec};
use skillbox_model::RelPath;

/// What the command of a run shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandScript {
    /// The script, as a path in the skill. It need not exist.
    pub path: Option<String>,
    /// Its language.
    pub language: ScriptLanguage,
}

const PYTHON_SUFFIXES: [&str; 1] = [".py"];
const NODE_SUFFIXES: [&str; 4] = [".js", ".mjs", ".cjs", ".ts"];

/// Finds the script of a job.
pub(crate) fn command_script(spec: &JobSpec) -> CommandScript {
    let skill = spec.skill.as_str();
    let cwd = spec.cwd.as_ref().map(ToString::to_string).unwrap_or_default();
    match &spec.invocation {
        Invocation::Script { path, .. } => {
            let path = path.to_string();
            CommandScript {
                language: language_of(std::iter::once(path.as_str())),
                path: Some(path),
            }
        }
        Invocation::Argv(words) => script_of_words(words.iter().map(String::as_str), skill, &cwd),
        Invocation::Shell(line) => script_of_words(shell_words(line), skill, &cwd),
    }
}

/// The words of a command line. Quotes and operators separate words, which is enough to find the names of files.
fn shell_words(line: &str) -> impl Iterator<Item = &str> + Clone {
    line.split(|c: char| c.is_whitespace() || "'\"`;|&()<>=".contains(c))
        .filter(|word| !word.is_empty())
}

fn script_of_words<'a>(words: impl Iterator<Item = &'a str> + Clone, skill: &str, cwd: &str) -> CommandScript {
    let scripts = words
        .clone()
        .filter(|word| has_suffix(word, &PYTHON_SUFFIXES) || has_suffix(word, &NODE_SUFFIXES));
    let path = scripts.filter_map(|word| path_in_skill(word, skill, cwd)).next();
    CommandScript {
        path,
        language: language_of(words),
    }
}

fn language_of<'a>(words: impl Iterator<Item = &'a str>) -> ScriptLanguage {
    let (mut python, mut node) = (false, false);
    for word in words {
        let program = word.rsplit('/').next().unwrap_or(word);
        python |= has_suffix(word, &PYTHON_SUFFIXES) || program.starts_with("python");
        node |= has_suffix(word, &NODE_SUFFIXES) || matches!(program, "node" | "npx" | "npm");
        // A shell script can call anything.
        if program.ends_with(".sh") {
            return ScriptLanguage::Unknown;
        }
    }
    match (python, node) {
        (true, false) => ScriptLanguage::Python,
        (false, true) => ScriptLanguage::Node,
        _ => ScriptLanguage::Unknown,
    }
}

fn has_suffix(word: &str, suffixes: &[&str]) -> bool {
    suffixes.iter().any(|suffix| word.ends_with(suffix))
}

/// The path in the skill of a path in a command.
fn path_in_skill(word: &str, skill: &str, cwd: &str) -> Option<String> {
    let below_skill = format!("skills/{skill}");
    let variables = ["$SKILL_DIR", "${SKILL_DIR}", "$CLAUDE_SKILL_DIR", "${CLAUDE_SKILL_DIR}"];
    let in_workspace = |path: &str| {
        let rest = path.strip_prefix(&below_skill)?.strip_prefix('/')?;
        Some(rest.to_owned())
    };
    let found = if let Some(rest) = variables.iter().find_map(|variable| word.strip_prefix(variable)) {
        rest.trim_start_matches('/').to_owned()
    } else if let Some(rest) = ["$SKILLS_DIR", "${SKILLS_DIR}"]
        .iter()
        .find_map(|variable| word.strip_prefix(variable))
    {
        in_workspace(&format!("skills{rest}"))?
    } else if let Some(rest) = word.strip_prefix("/workspace/") {
        in_workspace(rest)?
    } else {
        let relative = word.trim_start_matches("./");
        in_workspace(&match cwd {
            "" => relative.to_owned(),
            cwd => format!("{cwd}/{relative}"),
        })?
    };
    let path = RelPath::parse_user_input(&found).ok()?;
    Some(path.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_is_found_as_people_write_it() {
        for (line, path, language) in [
            (
                "python3 scripts/a.py --x 1",
                Some("scripts/a.py"),
                ScriptLanguage::Python,
            ),
            (
                "cd /tmp && python ./scripts/a.py",
                Some("scripts/a.py"),
                ScriptLanguage::Python,
            ),
            ("$SKILL_DIR/scripts/a.py", Some("scripts/a.py"), ScriptLanguage::Python),
            (
                "python3 \"${CLAUDE_SKILL_DIR}/a.py\"",
                Some("a.py"),
                ScriptLanguage::Python,
            ),
            ("/workspace/skills/s/b.mjs", Some("b.mjs"), ScriptLanguage::Node),
            ("node -e 'require(\"x\")'", None, ScriptLanguage::Node),
            ("python3 -m scripts.a", None, ScriptLanguage::Python),
            ("/usr/bin/python3.11 x", None, ScriptLanguage::Python),
            ("bash scripts/all.sh a.py", Some("a.py"), ScriptLanguage::Unknown),
            ("python3 a.py | node b.js", Some("a.py"), ScriptLanguage::Unknown),
            ("python3 ../other/a.py", None, ScriptLanguage::Python),
            ("python3 /etc/a.py", None, ScriptLanguage::Python),
            ("cat SKILL.md", None, ScriptLanguage::Unknown),
        ] {
            let found = script_of_words(shell_words(line), "s", "skills/s");
            assert_eq!((found.path.as_deref(), found.language), (path, language), "{line}");
        }
        let from_workspace = script_of_words(shell_words("python3 skills/s/a.py"), "s", "");
        assert_eq!(from_workspace.path.as_deref(), Some("a.py"));
        assert_eq!(script_of_words(shell_words("python3 work/a.py"), "s", "").path, None);
    }
}
