//! `collect`: bringing 64 MiB in 100 files back, digests included.
#![expect(clippy::disallowed_methods, reason = "a measuring program starts things")]

use std::process::{Command, Stdio};

use anyhow::ensure;

use crate::claim::{Bound, Claim};
use crate::contest::Contest;
use crate::ready::{Ready, Slots, Wish};
use crate::report::{How, Report};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How many times every way is taken
    #[arg(long, default_value_t = 15, value_name = "N")]
    pub rounds: usize,
    #[command(flatten)]
    pub how: How,
}

const WRITE: &str = "for i in $(seq 100); do head -c 671089 /dev/urandom > out/$i.bin; done";
const COLLECTED: &str = "a run, everything collected";
const LEFT: &str = "the same run, nothing collected";
const COPIED: &str = "cp -r and sha256sum, one core";

/// A run also writes the files first: what collecting costs is the difference to the same run with nothing collected.
pub(crate) fn measure(arguments: &Arguments) -> anyhow::Result<Report> {
    let ready = Ready::new(Slots::Parked)?;
    let directory = tempfile::tempdir()?;
    let (from, to) = (directory.path().join("from"), directory.path().join("to"));
    std::fs::create_dir(&from)?;
    for index in 0..100 {
        std::fs::write(from.join(format!("{index}.bin")), vec![index; 671_089])?;
    }
    let run = |globs| {
        let wish = Wish {
            command: WRITE,
            globs,
            ..Wish::default()
        };
        ready.report(wish)
    };
    let mut contest = Contest::new("100 files, 64 MiB: written by a run, and brought back with digests");
    contest.way(COLLECTED, || {
        let files = run(&["out/*.bin"])?.output_files.len();
        ensure!(files == 100, "{files} files came back");
        Ok(())
    });
    contest.way(LEFT, || run(&["out/none"]).map(drop));
    contest.way(COPIED, || {
        let script = format!(
            "taskset -c 0 sh -c 'rm -rf {0} && cp -r {1} {0} && sha256sum {0}/* > /dev/null'",
            to.display(),
            from.display()
        );
        let status = Command::new("sh").args(["-c", &script]).stdin(Stdio::null()).status()?;
        ensure!(status.success(), "cp failed");
        Ok(())
    });
    let times = contest.hold(arguments.rounds)?;
    let cost = times.ratio(COLLECTED, COPIED).zip(times.ratio(LEFT, COPIED));
    Ok(Report {
        claims: vec![Claim {
            what: "collecting 100 files, 64 MiB".to_owned(),
            against: COPIED.to_owned(),
            measured: cost.map(|(with, without)| with - without),
            bound: Bound::AtMost(1.0),
        }],
        tables: vec![times],
        remarks: Vec::new(),
    })
}
