//! `skillbox audit`: the log of all runs, approvals and refusals.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use serde_json::Value;
use skillbox_model::{ErrorCode, ExitCode};
use skillbox_runtime::Trust;
use skillbox_trust::{
    ExportFormat, LogKey, RecordId, VerifyReport, export_records, has_log, read_public_key, verify_log_with,
    visit_records,
};

use super::audit_forward;
use super::output::{CommandOutput, print_output};
use super::points_in_time::{format_time, parse_since};
use crate::context::Context;
use crate::failure::Failure;
use crate::render::{Page, Span, Terminal, Tone, plural};
use crate::settings::TrustFlags;
use crate::trust_setup::{open_trust, trust_failure};

/// Show, verify, forward and export the audit log
#[derive(Args, Debug)]
#[command(after_help = crate::examples!(
    "skillbox audit list --since 1d",
    "skillbox audit show 019b2f                  the records of one run",
    "skillbox audit verify                       exit 1 with the first bad record",
    "skillbox audit forward --follow             send new records to `audit_forward`",
    "skillbox audit verify --trust-dir COPY --key host.pub",
    "skillbox audit export --format csv --since 2026-01-01 > audit.csv",
))]
pub struct AuditArgs {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    pub(super) trust: TrustFlags,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// List records, the newest first
    List {
        /// Only records since this time, or of this duration: 2026-01-31, 7d
        #[arg(long, value_name = "TIME")]
        since: Option<String>,
        /// Maximum number of records
        #[arg(long, value_name = "N", default_value_t = 100)]
        limit: usize,
    },
    /// Show the records of a run, or the record with a sequence number
    Show {
        /// Run id, or sequence number
        #[arg(value_name = "RUN|NUMBER")]
        id: String,
    },
    /// Send undelivered records to the receiver of `audit_forward`
    Forward {
        /// Keep forwarding new records until a signal arrives
        #[arg(long)]
        follow: bool,
    },
    /// Show how far the receiver of `audit_forward` is behind; exit 1 if records cannot be forwarded or are missing
    Status,
    /// Check every record, the chain, the signatures and the end
    Verify {
        /// Verify a copy with its host's public key (`host.pub`); tags and the end are not checked
        #[arg(long, value_name = "FILE")]
        key: Option<PathBuf>,
        /// Require this record, printed by an earlier verification
        #[arg(long, value_name = "SEQ:FINGERPRINT")]
        expect: Option<RecordId>,
    },
    /// Write records to stdout
    Export {
        /// Format
        #[arg(long, value_enum, default_value_t)]
        format: Format,
        /// Only records since this time, or of this duration: 2026-01-31, 7d
        #[arg(long, value_name = "TIME")]
        since: Option<String>,
    },
}

#[derive(ValueEnum, Clone, Copy, Debug, Default)]
enum Format {
    /// The records as they are, one JSON object on each line
    #[default]
    Ocsf,
    /// One line with the most important fields for each record
    Csv,
}

#[derive(Serialize)]
struct RecordList {
    records: Vec<Value>,
}

#[derive(Serialize)]
struct VerifyResult {
    ok: bool,
    #[serde(flatten)]
    report: VerifyReport,
}

pub fn run(args: &AuditArgs, context: &Context<'_>, terminal: &mut Terminal) -> Result<u8, Failure> {
    let trust = open_trust(context)?;
    match &args.verb {
        Verb::List { since, limit } => {
            let since = since.as_deref().map(parse_since).transpose()?.unwrap_or_default();
            let records = newest_records(trust.directory(), since, *limit)?;
            print_output(&RecordList { records }, context, terminal)
        }
        Verb::Show { id } => {
            let records = find_records(trust.directory(), id)?;
            print_output(&RecordDetails { records }, context, terminal)
        }
        Verb::Verify { key, expect } => {
            let report = verify(&trust, key.as_deref(), *expect)?;
            let result = VerifyResult {
                ok: report.bad.is_none(),
                report,
            };
            print_output(&result, context, terminal)
        }
        Verb::Forward { follow: false } => audit_forward::forward_once(context, &trust, terminal),
        Verb::Forward { follow: true } => audit_forward::follow(context, &trust, terminal),
        Verb::Status => {
            let status = audit_forward::find_status(context, &trust)?.ok_or_else(audit_forward::no_receiver)?;
            print_output(&status, context, terminal)
        }
        Verb::Export { format, since } => {
            let since = since.as_deref().map(parse_since).transpose()?.unwrap_or_default();
            export(trust.directory(), *format, since, terminal)
        }
    }
}

fn verify(trust: &Trust, key: Option<&Path>, expect: Option<RecordId>) -> Result<VerifyReport, Failure> {
    let directory = trust.directory();
    if let Some(key) = key {
        let public_key = read_public_key(key).map_err(trust_failure)?;
        return verify_log_with(directory, LogKey::Public(public_key), expect).map_err(trust_failure);
    }
    // A host without a log has nothing to verify, and gets no key for it.
    if !has_log(directory) && expect.is_none() {
        return Ok(VerifyReport::default());
    }
    trust
        .host_key()
        .and_then(|key| verify_log_with(directory, LogKey::Host(&key), expect))
        .map_err(|error| {
            let hint = "compare the log with a copy on another host; `--key host.pub` verifies a copy without the key";
            trust_failure(error).with_hint(hint)
        })
}

fn newest_records(directory: &Path, since: u64, limit: usize) -> Result<Vec<Value>, Failure> {
    let mut newest = std::collections::VecDeque::new();
    let visited = visit_records(directory, since, &mut |record| {
        if newest.len() == limit {
            newest.pop_front();
        }
        newest.push_back(record);
        true
    });
    visited.map_err(trust_failure)?;
    newest.truncate(limit);
    Ok(newest.into_iter().rev().collect())
}

fn find_records(directory: &Path, id: &str) -> Result<Vec<Value>, Failure> {
    let number: Option<u64> = id.parse().ok();
    let mut found = Vec::new();
    let visited = visit_records(directory, 0, &mut |record| {
        let is_run = record["process"]["uid"].as_str() == Some(id);
        let is_number = number.is_some() && record["metadata"]["sequence"].as_u64() == number;
        if is_run || is_number {
            found.push(record);
        }
        true
    });
    visited.map_err(trust_failure)?;
    if found.is_empty() {
        let message = format!("the audit log has no record of {id}");
        return Err(Failure::new(ErrorCode::NotFound, message).with_hint("see `skillbox audit list`"));
    }
    Ok(found)
}

fn export(directory: &Path, format: Format, since: u64, terminal: &mut Terminal) -> Result<u8, Failure> {
    struct Stdout<'t>(&'t mut Terminal);
    impl Write for Stdout<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.write_stdout(bytes)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    if !directory.join("audit").exists() {
        return Ok(ExitCode::OK);
    }
    let format = match format {
        Format::Ocsf => ExportFormat::Ocsf,
        Format::Csv => ExportFormat::Csv,
    };
    let mut output = BufWriter::with_capacity(256 << 10, Stdout(terminal));
    export_records(directory, format, since, &mut output).map_err(trust_failure)?;
    output.flush()?;
    Ok(ExitCode::OK)
}

/// The records of one run, in full.
#[derive(Serialize)]
struct RecordDetails {
    records: Vec<Value>,
}

fn text<'v>(record: &'v Value, pointer: &str) -> &'v str {
    record.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

impl CommandOutput for RecordList {
    fn render(&self, page: &mut Page) {
        if self.records.is_empty() {
            page.line(&[Span::plain("the audit log has no such record")]);
        }
        for record in &self.records {
            let time = format_time(record["time"].as_u64().unwrap_or_default());
            let (tone, what) = summary_of(record);
            page.line(&[
                Span::new(Tone::Dim, time),
                Span::plain("  "),
                Span::new(tone, what),
                Span::plain("  "),
                Span::new(Tone::Dim, text(record, "/actor/user/name")),
            ]);
        }
    }
}

fn summary_of(record: &Value) -> (Tone, String) {
    let run = text(record, "/process/uid");
    match (record["class_uid"].as_u64(), record["activity_id"].as_u64()) {
        (Some(1007), Some(1)) if record["disposition_id"] == 2 => {
            let skill = text(record, "/unmapped/skill");
            (
                Tone::Bad,
                format!("refused  {run} {skill} ({})", text(record, "/status_code")),
            )
        }
        (Some(1007), Some(1)) => {
            let command: String = text(record, "/process/cmd_line").chars().take(60).collect();
            (
                Tone::Name,
                format!("started  {run} {}: {command}", text(record, "/unmapped/skill")),
            )
        }
        (Some(1007), _) => {
            let tone = if record["status_id"] == 1 {
                Tone::Good
            } else {
                Tone::Warning
            };
            let code = record["exit_code"].as_i64().map(|code| format!(", exit code {code}"));
            let how = text(record, "/status_code");
            (tone, format!("ended    {run} ({how}{})", code.unwrap_or_default()))
        }
        _ => {
            let entity = format!("{} {}", text(record, "/entity/type"), text(record, "/entity/name"));
            (
                Tone::Plain,
                format!("{} {entity}", text(record, "/activity_name").to_lowercase()),
            )
        }
    }
}

impl CommandOutput for RecordDetails {
    fn render(&self, page: &mut Page) {
        for record in &self.records {
            page.blank_line();
            let json = serde_json::to_string_pretty(record).unwrap_or_default();
            page.verbatim(0, Tone::Plain, &json);
        }
    }
}

impl CommandOutput for VerifyResult {
    fn render(&self, page: &mut Page) {
        let records = plural(usize::try_from(self.report.records).unwrap_or(usize::MAX), "record");
        match &self.report.bad {
            None => {
                let checkpoints = usize::try_from(self.report.checkpoints).unwrap_or(usize::MAX);
                let text = format!("{records}, {}", plural(checkpoints, "signed checkpoint"));
                page.labelled(0, Span::new(Tone::Good, "intact"), 8, Tone::Plain, &text);
                let Some(last) = self.report.last else { return };
                if !self.report.tags_checked {
                    let text = format!(
                        "without the host key: tags and the end were not checked; {} after the last checkpoint",
                        plural(
                            usize::try_from(self.report.after_checkpoint).unwrap_or(usize::MAX),
                            "record"
                        )
                    );
                    page.labelled(0, Span::plain(""), 8, Tone::Warning, &text);
                }
                let text = format!("for --expect next time: {last}");
                page.labelled(0, Span::plain(""), 8, Tone::Dim, &text);
            }
            Some(bad) => {
                let text = format!("{}:{}: {}", bad.file.display(), bad.line, bad.problem);
                page.labelled(0, Span::new(Tone::Bad, "bad"), 5, Tone::Plain, &text);
                page.labelled(
                    0,
                    Span::plain(""),
                    5,
                    Tone::Dim,
                    &format!("{records} before it are intact"),
                );
            }
        }
    }

    fn exit_code(&self) -> u8 {
        match self.ok {
            true => ExitCode::OK,
            false => ExitCode::FAILURE,
        }
    }
}
