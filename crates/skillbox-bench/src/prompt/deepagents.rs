//! The renderer of deepagents, in its own interpreter.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::bail;

use super::library::description;

/// Renders the list for so many skills, several times, and prints its version and the median in seconds.
const PYTHON: &str = r#"
import sys, time
from importlib.metadata import version
count, description = int(sys.argv[1]), sys.argv[2]
try:
    from deepagents.middleware.skills import SkillsMiddleware
    from deepagents.backends import StateBackend
except ImportError as error:
    print(f"missing {error}")
    sys.exit(0)
middleware = SkillsMiddleware(backend=StateBackend(), sources=["/srv/skills"])
skills = [
    {"name": f"skill-{n:05}", "description": description, "path": f"/srv/skills/skill-{n:05}/SKILL.md", "license": None,
     "compatibility": None, "metadata": {}, "allowed_tools": []}
    for n in range(count)
]
times = []
for _ in range(21):
    start = time.perf_counter()
    locations = middleware._format_skills_locations()
    text = middleware.system_prompt_template.format(
        skills_locations=locations, skills_load_warnings="", skills_list=middleware._format_skills_list(skills))
    times.append(time.perf_counter() - start)
    assert len(text) > count * len(description)
print(version("deepagents"), sorted(times)[len(times) // 2])
"#;

/// What deepagents had to say.
pub(crate) enum PeerTime {
    /// It rendered in this time.
    Took {
        /// Of which version this is true.
        version: String,
        /// The median of its rounds.
        median: Duration,
    },
    /// It is not installed, or Python is not.
    Missing(String),
}

/// Renders with the deepagents of the interpreter `python`.
#[expect(clippy::disallowed_methods, reason = "the yardstick is another program, not a skill")]
pub(crate) fn render(python: &Path, skills: usize) -> anyhow::Result<PeerTime> {
    let started = Command::new(python)
        .args(["-c", PYTHON, &skills.to_string(), &description(0)])
        .output();
    let output = match started {
        Ok(output) => output,
        Err(error) => return Ok(PeerTime::Missing(format!("{}: {error}", python.display()))),
    };
    let said = String::from_utf8_lossy(&output.stdout);
    if let Some(reason) = said.trim().strip_prefix("missing ") {
        return Ok(PeerTime::Missing(reason.to_owned()));
    }
    let read = said
        .trim()
        .split_once(' ')
        .and_then(|(version, seconds)| Some((version, seconds.parse().ok()?)));
    match read {
        Some((version, seconds)) if output.status.success() => Ok(PeerTime::Took {
            version: version.to_owned(),
            median: Duration::from_secs_f64(seconds),
        }),
        _ => bail!("deepagents failed: {}", String::from_utf8_lossy(&output.stderr).trim()),
    }
}
