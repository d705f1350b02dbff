//! Measures the prompt renderer of deepagents, in a Python interpreter.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::bail;

use super::sessions::description;

/// Renders the prompt for a number of skills several times, and prints the version and the median in seconds.
const PYTHON_SCRIPT: &str = r#"
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

/// The outcome of a measurement of deepagents.
pub(crate) enum PeerOutcome {
    /// The prompt was rendered.
    Measured {
        /// The measured version.
        version: String,
        /// The median of its rounds.
        median: Duration,
    },
    /// Python or the package is not installed, for this reason.
    Missing(String),
}

/// Measures how long deepagents takes to render the prompt for a number of skills, in the interpreter `python`.
#[expect(
    clippy::disallowed_methods,
    reason = "the comparison is with another program, not a skill"
)]
pub(crate) fn measure_rendering(python: &Path, skills: usize) -> anyhow::Result<PeerOutcome> {
    let result = Command::new(python)
        .args(["-c", PYTHON_SCRIPT, &skills.to_string(), &description(0)])
        .output();
    let output = match result {
        Ok(output) => output,
        Err(error) => return Ok(PeerOutcome::Missing(format!("{}: {error}", python.display()))),
    };
    let stdout = String::from_utf8_lossy(&output.stdout);
    if let Some(reason) = stdout.trim().strip_prefix("missing ") {
        return Ok(PeerOutcome::Missing(reason.to_owned()));
    }
    let parsed = stdout
        .trim()
        .split_once(' ')
        .and_then(|(version, seconds)| Some((version, seconds.parse().ok()?)));
    match parsed {
        Some((version, seconds)) if output.status.success() => Ok(PeerOutcome::Measured {
            version: version.to_owned(),
            median: Duration::from_secs_f64(seconds),
        }),
        _ => bail!("deepagents failed: {}", String::from_utf8_lossy(&output.stderr).trim()),
    }
}
