//! `stdout`: the memory growth of a server while a script writes 1 GiB.

use std::time::Instant;

use crate::bench_runtime::{BenchRuntime, RunSpec, SandboxMode};
use crate::report::{OutputOptions, Report};
use crate::target::{Bound, Target};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub output: OutputOptions,
}

pub(crate) fn measure() -> anyhow::Result<Report> {
    let runtime = BenchRuntime::new(SandboxMode::Parked)?;
    // The first run allocates buffers that later runs reuse.
    runtime.run("head -c 1000000 /dev/zero")?;
    let before_kib = peak_resident_kib()?;
    let begin = Instant::now();
    let spec = RunSpec {
        command: "head -c 1073741824 /dev/zero",
        ..RunSpec::default()
    };
    let report = runtime.run_spec(spec)?;
    let seconds = begin.elapsed().as_secs_f64();
    anyhow::ensure!(
        report.stdout_bytes == 1 << 30,
        "the report counts {} bytes of stdout instead of 1 GiB",
        report.stdout_bytes
    );
    let growth_kib = peak_resident_kib()?.saturating_sub(before_kib);
    Ok(Report {
        remarks: vec![format!("1 GiB of stdout took {seconds:.2} s")],
        targets: vec![Target {
            subject: "memory growth while writing 1 GiB".to_owned(),
            reference: "the server before the run".to_owned(),
            measured: Some(growth_kib as f64 / 1024.0),
            bound: Bound::MebibytesAtMost(4.0),
        }],
        tables: Vec::new(),
    })
}

/// The peak resident memory of this process.
fn peak_resident_kib() -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let digits: String = line.unwrap_or_default().chars().filter(char::is_ascii_digit).collect();
    Ok(digits.parse()?)
}
