//! The directory names inside a workspace, the same for every executor.

use skillbox_model::{RunId, SkillName};
use skillbox_sandbox::WritableSkill;

/// The path of the workspace as scripts and prompts see it.
pub(crate) const ROOT: &str = "/workspace";
/// The trees of the skills.
pub(crate) const SKILLS: &str = "skills";
/// Scratch space that lasts as long as the session.
pub(crate) const WORK: &str = "work";
/// The default destination of inputs.
pub(crate) const INPUTS: &str = "work/inputs";
/// The default directory of outputs.
pub(crate) const OUT: &str = "out";
/// Contains one directory for each run.
pub(crate) const RUNS: &str = "runs";
/// The writable home directory.
pub(crate) const HOME: &str = "home";
/// A writable directory for temporary files.
pub(crate) const TMP: &str = "tmp";

/// The directory of one run.
pub(crate) fn run_directory(run_id: &RunId) -> String {
    format!("{RUNS}/{run_id}")
}

/// The directory of one skill.
pub(crate) fn skill_directory(skill: &SkillName) -> String {
    format!("{SKILLS}/{skill}")
}

/// Directories of the home directory in which agents keep skills. Each contains a link [`AGENT_SKILLS`] to the skills of
/// the run, because many skills name their own files by such a path.
pub(crate) const AGENT_DIRECTORIES: [&str; 4] = [".claude", ".agents", ".codex", ".openclaw"];

/// The name of the link in each of [`AGENT_DIRECTORIES`], and its target.
pub(crate) const AGENT_SKILLS: (&str, &str) = ("skills", "../../skills");

/// Whether a path of the workspace is one of the links to the skills.
pub(crate) fn is_agent_skills_link(path: &[u8]) -> bool {
    let home = path
        .strip_prefix(HOME.as_bytes())
        .and_then(|rest| rest.strip_prefix(b"/"));
    home.is_some_and(|path| {
        AGENT_DIRECTORIES
            .iter()
            .any(|directory| path == format!("{directory}/{}", AGENT_SKILLS.0).as_bytes())
    })
}

/// Whether a path of the workspace is the directory that the kernel uses for the overlay on a skill.
pub(crate) fn is_overlay_work_directory(path: &[u8]) -> bool {
    path.strip_prefix(SKILLS.as_bytes())
        .and_then(|rest| rest.strip_prefix(b"/"))
        .is_some_and(|name| name == WritableSkill::WORK_DIRECTORY.as_bytes())
}

/// Symbolic links in every skill's directory, with their targets in the workspace.
pub(crate) const SKILL_LINKS: [(&str, &str); 3] = [
    ("out", "../../out"),
    ("work", "../../work"),
    ("inputs", "../../work/inputs"),
];
