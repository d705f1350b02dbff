//! The steps of the tour that run scripts: a skill on a file, and an escape attempt that fails.

use std::path::Path;

use skillbox_executor::{CancelToken, EventSink};
use skillbox_model::{ErrorCode, Layer, LayerState, RunReport, RunRequest};
use skillbox_runtime::{RunContext, Runtime};
use skillbox_sandbox::Spawner;

use super::tour::Tour;
use crate::commands::doctor::layer_state_text;
use crate::failure::Failure;
use crate::render::{Page, Span, Tone, plural};
use crate::runtime_setup;

/// Typical actions of a hostile script, all of which must fail. The final `true` sets the exit code.
const ESCAPE_ATTEMPT: &str = "\
cat /etc/shadow; ls /root /home
touch /usr/bin/planted
kill -9 1
timeout 2 bash -c 'exec 3<>/dev/tcp/127.0.0.1/22'
unshare --user true
env | grep -c SECRET
true";

impl Tour<'_> {
    /// Runs a built-in skill on a file, then a script that tries to escape.
    pub(super) fn run_in_sandbox(&mut self, spawner: Spawner, directory: &Path) -> Result<(), Failure> {
        let runtime = runtime_setup::open_built_in(Some(spawner), directory)?;
        self.process_file(&runtime, directory)?;
        self.attempt_escape(&runtime)
    }

    fn process_file(&mut self, runtime: &Runtime, directory: &Path) -> Result<(), Failure> {
        let purpose = "The input is copied into the workspace, the script sees only what the profile `default` allows, and \
                   the files it writes to out/ are returned with type and digest.";
        let line = "python3 scripts/report.py inputs/sales.csv --json out/report.json --svg out/chart.svg";
        let command = "skillbox run csv-report --input sales.csv --output 'out/*' -- \\\n    \
                       'python3 scripts/report.py inputs/sales.csv \\\n     --json out/report.json --svg out/chart.svg'";
        self.start_step("Run a skill in the sandbox", command, purpose)?;
        let from = directory.join("skills/csv-report/tests/sales.csv");
        let request = parse_request(serde_json::json!({
            "skill": "csv-report",
            "command": line,
            "inputs": [{"from": format!("host://{}", from.display())}],
            "output_files": ["out/*"],
        }))?;
        let report = run(runtime, &request)?;
        fail_unless(
            report.exit_code == Some(0) && report.output_files.len() == 2,
            "the script did not write its report",
            &report,
        )?;
        self.print(|page| {
            page.verbatim(2, Tone::Plain, &report.stdout);
            page.blank_line();
            for file in &report.output_files {
                let text = format!(
                    "{}, {} bytes, {}…",
                    file.mime_type,
                    file.size_bytes,
                    &file.sha256.to_string()[..16]
                );
                page.labelled(2, Span::new(Tone::Name, &file.name), 20, Tone::Plain, &text);
            }
            page.blank_line();
            render_enforcement(&report, page);
        })
    }

    fn attempt_escape(&mut self, runtime: &Runtime) -> Result<(), Failure> {
        let purpose = "The script tries to read secrets, write to the system, kill processes, open connections and create \
                   namespaces. Every attempt fails, and the run still returns a normal report.";
        self.start_step(
            "Attempt an escape",
            "skillbox run python-math -- 'cat /etc/shadow; …'",
            purpose,
        )?;
        let request = parse_request(serde_json::json!({"skill": "python-math", "command": ESCAPE_ATTEMPT}))?;
        let report = run(runtime, &request)?;
        let has_read_secrets = report.stdout.trim() != "0";
        fail_unless(
            report.exit_code == Some(0) && !has_read_secrets,
            "the script escaped the sandbox",
            &report,
        )?;
        self.print(|page| {
            for line in report.stderr.lines() {
                page.line(&[Span::new(Tone::Bad, "  refused  "), Span::plain(line)]);
            }
        })
    }
}

fn parse_request(value: serde_json::Value) -> Result<RunRequest, Failure> {
    serde_json::from_value(value).map_err(|error| Failure::from_error(ErrorCode::Internal, &error))
}

fn run(runtime: &Runtime, request: &RunRequest) -> Result<RunReport, Failure> {
    let cancel = CancelToken::new().map_err(|error| Failure::from_error(ErrorCode::Internal, &error))?;
    let context = RunContext {
        session: None,
        events: EventSink::silent(),
        cancel,
        export: None,
        origin: Default::default(),
        keep_files: false,
    };
    runtime
        .run(request, context)
        .map_err(|error| Failure::from_body(error.body()))
}

fn fail_unless(condition: bool, message: &str, report: &RunReport) -> Result<(), Failure> {
    if condition {
        return Ok(());
    }
    let message = format!("{message}: exit code {:?}, {}", report.exit_code, report.stderr);
    Err(Failure::new(ErrorCode::Internal, message))
}

/// Every layer with its state, two on a line.
fn render_enforcement(report: &RunReport, page: &mut Page) {
    let total = report.enforcement.layers.len();
    let enforced = report
        .enforcement
        .layers
        .values()
        .filter(|state| **state == LayerState::Enforced)
        .count();
    page.paragraph(
        2,
        Tone::Plain,
        &format!(
            "{enforced} of {} enforced, tier {:?}:",
            plural(total, "layer"),
            report.enforcement.tier
        ),
    );
    for pair in Layer::ALL.chunks(2) {
        let mut spans = Vec::new();
        for layer in pair {
            let (tone, word) = layer_state_text(report.enforcement.layers.get(layer));
            let word = word.split(':').next().unwrap_or_default().to_owned();
            spans.push(Span::plain(format!("    {:<20}", layer.as_str())));
            spans.push(Span::new(tone, format!("{word:<14}")));
        }
        page.line(&spans);
    }
}
