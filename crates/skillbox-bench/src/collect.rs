//! `collect`: the cost of collecting 100 files of 64 MiB in total, with digests.
#![expect(clippy::disallowed_methods, reason = "a benchmark starts programs")]

use std::process::{Command, Stdio};

use anyhow::ensure;

use crate::bench_runtime::{BenchRuntime, RunSpec, SandboxMode};
use crate::comparison::Comparison;
use crate::report::{OutputOptions, Report};
use crate::target::{Bound, Target};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Number of rounds
    #[arg(long, default_value_t = 15, value_name = "N")]
    pub rounds: usize,
    #[command(flatten)]
    pub output: OutputOptions,
}

/// Writes 100 files of 671,089 bytes, together 64 MiB.
const WRITE_FILES_COMMAND: &str = "for i in $(seq 100); do head -c 671089 /dev/urandom > out/$i.bin; done";
const COLLECTED: &str = "a run, everything collected";
const NOT_COLLECTED: &str = "the same run, nothing collected";
const COPY_AND_HASH: &str = "cp -r and sha256sum, one core";

/// The cost of the collection is the difference between a run that collects its files and the same run that collects
/// none.
pub(crate) fn measure(arguments: &Arguments) -> anyhow::Result<Report> {
    let runtime = BenchRuntime::new(SandboxMode::Parked)?;
    let directory = tempfile::tempdir()?;
    let (source, destination) = (directory.path().join("from"), directory.path().join("to"));
    std::fs::create_dir(&source)?;
    for index in 0..100 {
        std::fs::write(source.join(format!("{index}.bin")), vec![index; 671_089])?;
    }
    let run = |output_globs| {
        let spec = RunSpec {
            command: WRITE_FILES_COMMAND,
            output_globs,
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
    comparison.add(COPY_AND_HASH, || {
        let script = format!(
            "taskset -c 0 sh -c 'rm -rf {0} && cp -r {1} {0} && sha256sum {0}/* > /dev/null'",
            destination.display(),
            source.display()
        );
        let status = Command::new("sh").args(["-c", &script]).stdin(Stdio::null()).status()?;
        ensure!(status.success(), "cp or sha256sum failed");
        Ok(())
    });
    let times = comparison.measure(arguments.rounds)?;
    let cost = times
        .ratio(COLLECTED, COPY_AND_HASH)
        .zip(times.ratio(NOT_COLLECTED, COPY_AND_HASH));
    Ok(Report {
        targets: vec![Target {
            subject: "collecting 100 files, 64 MiB".to_owned(),
            reference: COPY_AND_HASH.to_owned(),
            measured: cost.map(|(with, without)| with - without),
            bound: Bound::RatioAtMost(1.0),
        }],
        tables: vec![times],
        remarks: Vec::new(),
    })
}
