//! What a measurement gives: tables of times, claims about them, and remarks.
#![expect(clippy::print_stdout, reason = "a measuring program prints what it measured")]

use serde_json::{Value, json};

use crate::claim::Claim;
use crate::contest::Times;

/// The result of one subcommand.
#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    /// Ways with their times.
    pub tables: Vec<Times>,
    /// What they were held against.
    pub claims: Vec<Claim>,
    /// What else is worth knowing, one line each.
    pub remarks: Vec<String>,
}

/// How a result is told.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub(crate) struct How {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Fail when a target is missed
    #[arg(long)]
    pub check: bool,
}

/// Prints a result; with `--check`, a missed target is an error.
pub(crate) fn tell(report: &Report, how: How) -> anyhow::Result<()> {
    if how.json {
        println!("{:#}", report.to_json());
    } else {
        report.print();
    }
    anyhow::ensure!(!how.check || report.is_met(), "a target was missed");
    Ok(())
}

impl Report {
    /// Adds another result to this one.
    pub(crate) fn take(&mut self, other: Self) {
        self.tables.extend(other.tables);
        self.claims.extend(other.claims);
        self.remarks.extend(other.remarks);
    }

    /// Whether everything that could be measured is as it should be.
    pub(crate) fn is_met(&self) -> bool {
        self.claims.iter().all(Claim::is_met)
    }

    /// For people.
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
            println!("{}", claim.line());
        }
    }

    /// For programs.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "tables": self.tables.iter().map(Times::to_json).collect::<Vec<_>>(),
            "claims": self.claims.iter().map(Claim::to_json).collect::<Vec<_>>(),
            "remarks": self.remarks,
            "met": self.is_met(),
        })
    }
}
