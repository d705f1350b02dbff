//! The result of a subcommand: tables of times, targets, and remarks.
#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

use serde_json::{Value, json};

use crate::comparison::Timings;
use crate::target::Target;

/// The result of one subcommand.
#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    /// The times of candidates, one table for each comparison.
    pub tables: Vec<Timings>,
    /// Targets with their measured numbers.
    pub targets: Vec<Target>,
    /// Further results, one line each.
    pub remarks: Vec<String>,
}

/// Options for the output of a report.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub(crate) struct OutputOptions {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Fail when a target is missed
    #[arg(long)]
    pub check: bool,
}

/// Prints a report. With `--check`, a missed target is an error.
pub(crate) fn print_report(report: &Report, output: OutputOptions) -> anyhow::Result<()> {
    if output.json {
        println!("{:#}", report.to_json());
    } else {
        report.print();
    }
    anyhow::ensure!(!output.check || report.is_met(), "a target was missed");
    Ok(())
}

impl Report {
    /// Appends the contents of another report.
    pub(crate) fn append(&mut self, other: Self) {
        self.tables.extend(other.tables);
        self.targets.extend(other.targets);
        self.remarks.extend(other.remarks);
    }

    /// Whether every target that could be measured is met.
    pub(crate) fn is_met(&self) -> bool {
        self.targets.iter().all(Target::is_met)
    }

    /// Prints the report as text.
    pub(crate) fn print(&self) {
        for table in &self.tables {
            table.print();
        }
        if !self.remarks.is_empty() {
            println!();
        }
        for remark in &self.remarks {
            println!("{remark}");
        }
        println!();
        for target in &self.targets {
            println!("{}", target.to_line());
        }
    }

    /// The report as JSON.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "tables": self.tables.iter().map(Timings::to_json).collect::<Vec<_>>(),
            "claims": self.targets.iter().map(Target::to_json).collect::<Vec<_>>(),
            "remarks": self.remarks,
            "met": self.is_met(),
        })
    }
}
