//! Bringing 64 MiB in 100 files back, digests included.
#![expect(clippy::disallowed_methods, reason = "a measuring program starts things")]

use std::process::{Command, Stdio};

use anyhow::ensure;

use super::Ready;
use crate::contest::Contest;

const WRITE: &str = "for i in $(seq 100); do head -c 671089 /dev/zero > out/$i.bin; done";

/// Against `cp -r` and `sha256sum` of the same files on one core. A run also writes the files first: what collecting
/// costs is the difference to the same run with nothing collected.
pub(crate) fn measure(ready: &Ready, rounds: usize) -> anyhow::Result<Contest<'_>> {
    let mut contest = Contest::new("100 files, 64 MiB: written by a run, and brought back with digests");
    let directory = tempfile::tempdir()?;
    let from = directory.path().join("from");
    std::fs::create_dir(&from)?;
    for index in 0..100 {
        std::fs::write(from.join(format!("{index}.bin")), vec![0; 671_089])?;
    }
    contest.way("a run, everything collected", || {
        let files = ready.report("small", WRITE, &["out/*.bin"])?.output_files.len();
        ensure!(files == 100, "{files} files came back");
        Ok(())
    });
    contest.way("the same run, nothing collected", || {
        ready.report("small", WRITE, &["out/none"]).map(drop)
    });
    contest.way("cp -r and sha256sum, one core", move || {
        let to = directory.path().join("to");
        let script = format!(
            "taskset -c 0 sh -c 'rm -rf {0} && cp -r {1} {0} && sha256sum {0}/* > /dev/null'",
            to.display(),
            from.display()
        );
        ensure!(
            Command::new("sh")
                .args(["-c", &script])
                .stdin(Stdio::null())
                .status()?
                .success(),
            "cp failed"
        );
        Ok(())
    });
    contest.hold(rounds)?;
    contest.difference(
        "a run, everything collected",
        "the same run, nothing collected",
        "cp -r and sha256sum, one core",
        1.0,
    );
    Ok(contest)
}
