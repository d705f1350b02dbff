//! `collect`: collecting 64 MiB in 100 files, with digests.
#![expect(clippy::disallowed_methods, reason = "a benchmark starts programs")]

use std::process::{Command, Stdio};

use anyhow::ensure;

use crate::bench_runtime::{BenchRuntime, RunSpec, Slots};
use crate::claim::{Bound, Claim};
use crate::comparison::Comparison;
use crate::report::{OutputOptions, Report};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Number of rounds
    #[arg(long, default_value_t = 15, value_name = "N")]
    pub rounds: usize,
    #[command(flatten)]
    pub output: OutputOptions,
}

const WRITE: &str = "for i in $(seq 100); do head -c 671089 /dev/urandom > out/$i.bin; done";
const COLLECTED: &str = "a run, everything collected";
const NOT_COLLECTED: &str = "the same run, nothing collected";
const COPIED: &str = "cp -r and sha256sum, one core";

/// The cost of the collection is the difference between this run and the same run without a collection.
pub(crate) fn measure(arguments: &Arguments) -> anyhow::Result<Report> {
    let runtime = BenchRuntime::new(Slots::Parked)?;
    let directory = tempfile::tempdir()?;
    let (from, to) = (directory.path().join("from"), directory.path().join("to"));
    std::fs::create_dir(&from)?;
    for index in 0..100 {
        std::fs::write(from.join(format!("{index}.bin")), vec![index; 671_089])?;
    }
    let run = |globs| {
        let spec = RunSpec {
            command: WRITE,
            globs,
            ..RunSpec::default()
        };
        runtime.run_spec(spec)
    };
    let mut comparison = Comparison::new("100 files, 64 MiB: written by a run and collected with digests");
    comparison.add(COLLECTED, || {
        let files = run(&["out/*.bin"])?.output_files.len();
        ensure!(files == 100, "{files} files were collected");
        Ok(())
    });
    comparison.add(NOT_COLLECTED, || run(&["out/none"]).map(drop));
    comparison.add(COPIED, || {
        let script = format!(
            "taskset -c 0 sh -c 'rm -rf {0} && cp -r {1} {0} && sha256sum {0}/* > /dev/null'",
            to.display(),
            from.display()
        );
        let status = Command::new("sh").args(["-c", &script]).stdin(Stdio::null()).status()?;
        ensure!(status.success(), "cp failed");
        Ok(())
    });
    let times = comparison.measure(arguments.rounds)?;
    let cost = times.ratio(COLLECTED, COPIED).zip(times.ratio(NOT_COLLECTED, COPIED));
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
