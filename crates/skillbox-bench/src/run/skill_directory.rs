//! Compares runs that may change the directory of their skill with runs that may only read it.

use skillbox_sandbox::SkillDirAccess;

use crate::bench_runtime::{BenchRuntime, RunSpec, SandboxMode};
use crate::comparison::Comparison;
use crate::report::Report;

const READ_ONLY: &str = "skill directory read-only, 3 files";
const WRITABLE: &str = "skill directory writable, 3 files";
const WRITABLE_LARGE: &str = "skill directory writable, 1,000 files";

/// Measures a parked run of `true` with each kind of skill directory.
pub(super) fn compare(rounds: usize) -> anyhow::Result<Report> {
    let writable = BenchRuntime::new(SandboxMode::Parked)?;
    let read_only = BenchRuntime::with_settings(SandboxMode::Parked, |settings| {
        settings.skill_dir = SkillDirAccess::ReadOnly;
    })?;
    let mut comparison = Comparison::new("one parked run of `true`, by what it may do in the directory of its skill");
    comparison.add(READ_ONLY, || read_only.run("true"));
    comparison.add(WRITABLE, || writable.run("true"));
    comparison.add(WRITABLE_LARGE, || {
        let spec = RunSpec {
            command: "true",
            skill: Some("large"),
            ..RunSpec::default()
        };
        writable.run_spec(spec).map(drop)
    });
    let times = comparison.measure(rounds)?;
    Ok(Report {
        targets: vec![
            times.target(WRITABLE, READ_ONLY, 1.03),
            times.target(WRITABLE_LARGE, WRITABLE, 1.03),
        ],
        tables: vec![times],
        remarks: Vec::new(),
    })
}
