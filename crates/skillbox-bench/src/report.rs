//! The result of a measurement: tables of times, claims about them, and remarks.
#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

use serde_json::{Value, json};

use crate::claim::Claim;
use crate::comparison::Timings;

/// The result of one subcommand.
#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    /// Candidates with their times.
    pub tables: Vec<Timings>,
    /// Claims about the times.
    pub claims: Vec<Claim>,
    /// Further results, one line each.
    pub remarks: Vec<String>,
}

/// The options for the output.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub(crate) struct OutputOptions {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Fail when a target is missed
    #[arg(long)]
    pub check: bool,
}

/// Prints a result; with `--check`, a missed target is an error.
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
    /// Adds another result to this one.
    pub(crate) fn append(&mut self, other: Self) {
        self.tables.extend(other.tables);
        self.claims.extend(other.claims);
        self.remarks.extend(other.remarks);
    }

    /// Whether every claim that could be measured is met.
    pub(crate) fn is_met(&self) -> bool {
        self.claims.iter().all(Claim::is_met)
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
        for claim in &self.claims {
            println!("{}", claim.to_line());
        }
    }

    /// The report as JSON.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "tables": self.tables.iter().map(Timings::to_json).collect::<Vec<_>>(),
            "claims": self.claims.iter().map(Claim::to_json).collect::<Vec<_>>(),
            "remarks": self.remarks,
            "met": self.is_met(),
        })
    }
}
