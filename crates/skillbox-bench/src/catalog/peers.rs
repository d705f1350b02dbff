//! The programs to compare with: `cat`, and the parsers of other projects.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};

/// Reads the list of files on stdin, parses each in process, and prints the seconds that took.
const PYTHON: &str = r#"
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

/// Writes the paths of the SKILL.md files, separated by NUL, for `xargs -0`.
pub(crate) fn write_list(list: &Path, files: &[PathBuf]) -> anyhow::Result<()> {
    let paths: Vec<&str> = files.iter().filter_map(|path| path.to_str()).collect();
    Ok(fs::write(list, paths.join("\0"))?)
}

/// Reads the listed files with `cat`, in their order, many per process.
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
        .context("xargs did not start")?;
    if !status.success() {
        bail!("xargs cat failed: {status}");
    }
    Ok(())
}

/// The result of a Python parser.
pub(crate) enum PythonTime {
    /// The time for the listed files.
    Took(Duration),
    /// Python or the package is not installed.
    Missing(String),
}

/// Parses the listed files with the package `which`, in the interpreter `python`.
#[expect(
    clippy::disallowed_methods,
    reason = "the comparison is with another program, not a skill"
)]
pub(crate) fn parse_with_python(python: &Path, which: &str, list: &Path) -> anyhow::Result<PythonTime> {
    let started = Command::new(python)
        .args(["-c", PYTHON, which])
        .stdin(File::open(list)?)
        .output();
    let output = match started {
        Ok(output) => output,
        Err(error) => return Ok(PythonTime::Missing(format!("{}: {error}", python.display()))),
    };
    let stdout = String::from_utf8_lossy(&output.stdout);
    if let Some(reason) = stdout.trim().strip_prefix("missing ") {
        return Ok(PythonTime::Missing(reason.to_owned()));
    }
    let seconds = stdout.split_whitespace().next().and_then(|word| word.parse().ok());
    match seconds {
        Some(seconds) if output.status.success() => Ok(PythonTime::Took(Duration::from_secs_f64(seconds))),
        _ => bail!("{which} failed: {}", String::from_utf8_lossy(&output.stderr).trim()),
    }
}
