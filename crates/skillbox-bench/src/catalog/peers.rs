//! The programs that a scan is compared with: `cat` and the parsers of other projects.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};

/// Reads a list of files from stdin, parses each file in process, and prints the time in seconds and the number of
/// parsed files.
const PYTHON_SCRIPT: &str = r#"
import sys, time
from pathlib import Path
which = sys.argv[1]
files = [Path(line) for line in sys.stdin.read().split("\0") if line]
try:
    if which == "skills-ref":
        from skills_ref import read_properties
        def parse(path):
            return read_properties(path.parent)
    else:
        from deepagents.middleware.skills import _parse_skill_metadata
        def parse(path):
            return _parse_skill_metadata(path.read_text(encoding="utf-8"), str(path), path.parent.name)
except ImportError as error:
    print(f"missing {error}")
    sys.exit(0)
start = time.perf_counter()
found = sum(parse(path) is not None for path in files)
print(f"{time.perf_counter() - start} {found}")
"#;

/// Writes the paths of the SKILL.md files, separated by NUL, as `xargs -0` expects.
pub(crate) fn write_list(list: &Path, files: &[PathBuf]) -> anyhow::Result<()> {
    let paths: Vec<&str> = files.iter().filter_map(|path| path.to_str()).collect();
    Ok(fs::write(list, paths.join("\0"))?)
}

/// Reads the listed files with `cat`, in order, many per process.
#[expect(
    clippy::disallowed_methods,
    reason = "the comparison is with the program `cat`, not a skill"
)]
pub(crate) fn cat(list: &Path) -> anyhow::Result<()> {
    let status = Command::new("xargs")
        .args(["-0", "cat"])
        .stdin(File::open(list)?)
        .stdout(Stdio::null())
        .status()
        .context("cannot start xargs")?;
    if !status.success() {
        bail!("xargs cat failed: {status}");
    }
    Ok(())
}

/// The outcome of a measurement of a Python parser.
pub(crate) enum PythonOutcome {
    /// The time for the listed files.
    Measured(Duration),
    /// Python or the package is not installed, for this reason.
    Missing(String),
}

/// Measures how long `package` takes to parse the listed files, in the interpreter `python`.
#[expect(
    clippy::disallowed_methods,
    reason = "the comparison is with another program, not a skill"
)]
pub(crate) fn parse_with_python(python: &Path, package: &str, list: &Path) -> anyhow::Result<PythonOutcome> {
    let result = Command::new(python)
        .args(["-c", PYTHON_SCRIPT, package])
        .stdin(File::open(list)?)
        .output();
    let output = match result {
        Ok(output) => output,
        Err(error) => return Ok(PythonOutcome::Missing(format!("{}: {error}", python.display()))),
    };
    let stdout = String::from_utf8_lossy(&output.stdout);
    if let Some(reason) = stdout.trim().strip_prefix("missing ") {
        return Ok(PythonOutcome::Missing(reason.to_owned()));
    }
    let seconds = stdout.split_whitespace().next().and_then(|word| word.parse().ok());
    match seconds {
        Some(seconds) if output.status.success() => Ok(PythonOutcome::Measured(Duration::from_secs_f64(seconds))),
        _ => bail!("{package} failed: {}", String::from_utf8_lossy(&output.stderr).trim()),
    }
}
