//! The names inside a workspace, the same on every executor.

use skillbox_model::{RunId, SkillName};

/// Where the workspace is, as scripts and prompts see it.
pub(crate) const ROOT: &str = "/workspace";
/// Read-only trees of the skills.
pub(crate) const SKILLS: &str = "skills";
/// Scratch space that a session keeps.
pub(crate) const WORK: &str = "work";
/// Where inputs go by default.
pub(crate) const INPUTS: &str = "work/inputs";
/// Where outputs are looked for by default.
pub(crate) const OUT: &str = "out";
/// One directory for each run.
pub(crate) const RUNS: &str = "runs";
/// A writable home.
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

/// Names inside a skill's directory that lead to the workspace's, and where they lead.
pub(crate) const SKILL_LINKS: [(&str, &str); 3] = [
    ("out", "../../out"),
    ("work", "../../work"),
    ("inputs", "../../work/inputs"),
];
