//! `stdout`: the growth of a server while a script writes one GiB.

use std::time::Instant;

use crate::bench_runtime::{BenchRuntime, RunSpec, Slots};
use crate::claim::{Bound, Claim};
use crate::report::{OutputOptions, Report};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub output: OutputOptions,
}

pub(crate) fn measure() -> anyhow::Result<Report> {
    let runtime = BenchRuntime::new(Slots::Parked)?;
    // The first run allocates buffers that stay.
    runtime.run("head -c 1000000 /dev/zero")?;
    let before = peak_kib()?;
    let begin = Instant::now();
    let spec = RunSpec {
        command: "head -c 1073741824 /dev/zero",
        ..RunSpec::default()
    };
    let report = runtime.run_spec(spec)?;
    let seconds = begin.elapsed().as_secs_f64();
    anyhow::ensure!(report.stdout_bytes == 1 << 30, "{} bytes arrived", report.stdout_bytes);
    let grown = peak_kib()?.saturating_sub(before);
    Ok(Report {
        remarks: vec![format!("1 GiB of stdout took {seconds:.2} s")],
        claims: vec![Claim {
            what: "growth by 1 GiB of stdout".to_owned(),
            against: "the server before".to_owned(),
            measured: Some(grown as f64 / 1024.0),
            bound: Bound::MebibytesAtMost(4.0),
        }],
        tables: Vec::new(),
    })
}

/// The peak resident memory of this process.
fn peak_kib() -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let digits: String = line.unwrap_or_default().chars().filter(char::is_ascii_digit).collect();
    Ok(digits.parse()?)
}
