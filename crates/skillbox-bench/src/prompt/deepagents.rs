//! The prompt renderer of deepagents, in its own interpreter.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::bail;

use super::sessions::description;

/// Renders the list for a number of skills, several times, and prints the version and the median in seconds.
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

/// The result of deepagents.
pub(crate) enum PeerTime {
    /// The time of the rendering.
    Took {
        /// The measured version.
        version: String,
        /// The median of its rounds.
        median: Duration,
    },
    /// Python or the package is not installed.
    Missing(String),
}

/// Renders with the deepagents of the interpreter `python`.
#[expect(
    clippy::disallowed_methods,
    reason = "the comparison is with another program, not a skill"
)]
pub(crate) fn render(python: &Path, skills: usize) -> anyhow::Result<PeerTime> {
    let started = Command::new(python)
        .args(["-c", PYTHON, &skills.to_string(), &description(0)])
        .output();
    let output = match started {
        Ok(output) => output,
        Err(error) => return Ok(PeerTime::Missing(format!("{}: {error}", python.display()))),
    };
    let stdout = String::from_utf8_lossy(&output.stdout);
    if let Some(reason) = stdout.trim().strip_prefix("missing ") {
        return Ok(PeerTime::Missing(reason.to_owned()));
    }
    let read = stdout
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
