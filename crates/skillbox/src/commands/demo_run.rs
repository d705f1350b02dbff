//! The steps of the tour that run something: a skill on a file, and an escape that fails.

use std::path::Path;

use skillbox_executor::{Cancel, EventSink};
use skillbox_model::{ErrorCode, Layer, LayerState, RunReport, RunRequest};
use skillbox_runtime::{RunContext, Runtime};
use skillbox_sandbox::Spawner;

use super::demo::Tour;
use crate::engine;
use crate::failure::Failure;
use crate::render::{Page, Span, Tone, plural};

/// What a hostile script would try first; every line must fail.
const ESCAPE: &str = "\
cat /etc/shadow; ls /root /home
touch /usr/bin/planted
kill -9 1
timeout 2 bash -c 'exec 3<>/dev/tcp/127.0.0.1/22'
unshare --user true
env | grep -c SECRET
true";

impl Tour<'_> {
    /// Runs a built-in skill on a file, then lets a script try to get out.
    pub(super) fn run_sandboxed(&mut self, spawner: Spawner, place: &Path) -> Result<(), Failure> {
        let runtime = engine::of_built_in(Some(spawner), place)?;
        self.report_on_a_file(&runtime, place)?;
        self.fail_to_escape(&runtime)
    }

    fn report_on_a_file(&mut self, runtime: &Runtime, place: &Path) -> Result<(), Failure> {
        let why = "The file is staged, the script runs with nothing of this host but what the profile `default` names, \
                   and what it wrote to out/ comes back with type and digest.";
        let line = "python3 scripts/report.py inputs/sales.csv --json out/report.json --svg out/chart.svg";
        let command = "skillbox run csv-report --input sales.csv --output 'out/*' -- \\\n    \
                       'python3 scripts/report.py inputs/sales.csv \\\n     --json out/report.json --svg out/chart.svg'";
        self.step("Run one, isolated", command, why)?;
        let from = place.join("skills/csv-report/tests/sales.csv");
        let request = request(serde_json::json!({
            "skill": "csv-report",
            "command": line,
            "inputs": [{"from": format!("host://{}", from.display())}],
            "output_files": ["out/*"],
        }))?;
        let report = run(runtime, &request)?;
        expect(
            report.exit_code == Some(0) && report.output_files.len() == 2,
            "the report was not made",
            &report,
        )?;
        self.tell(|page| {
            page.verbatim(2, Tone::Plain, &report.stdout);
            page.gap();
            for file in &report.output_files {
                let text = format!("{}, {} bytes, {}…", file.mime_type, file.size_bytes, &file.sha256[..16]);
                page.beside(2, Span::new(Tone::Name, &file.name), 20, Tone::Plain, &text);
            }
            page.gap();
            enforcement(&report, page);
        })
    }

    fn fail_to_escape(&mut self, runtime: &Runtime) -> Result<(), Failure> {
        let why = "A script that reads your secrets, writes to your system, kills, dials out, makes namespaces of its own. \
                   Each line fails inside, and the run still ends with a plain report.";
        self.step(
            "Watch an escape fail",
            "skillbox run python-math -- 'cat /etc/shadow; …'",
            why,
        )?;
        let request = request(serde_json::json!({"skill": "python-math", "command": ESCAPE}))?;
        let report = run(runtime, &request)?;
        let secrets_seen = report.stdout.trim() != "0";
        expect(
            report.exit_code == Some(0) && !secrets_seen,
            "something got out",
            &report,
        )?;
        self.tell(|page| {
            for line in report.stderr.lines() {
                page.line(&[Span::new(Tone::Bad, "  refused  "), Span::plain(line)]);
            }
        })
    }
}

fn request(value: serde_json::Value) -> Result<RunRequest, Failure> {
    serde_json::from_value(value).map_err(|error| Failure::from_error(ErrorCode::Internal, &error))
}

fn run(runtime: &Runtime, request: &RunRequest) -> Result<RunReport, Failure> {
    let cancel = Cancel::new().map_err(|error| Failure::from_error(ErrorCode::Internal, &error))?;
    let context = RunContext {
        session: None,
        events: EventSink::silent(),
        cancel,
        export: None,
    };
    runtime
        .run(request, context)
        .map_err(|error| Failure::from_body(error.body()))
}

fn expect(is_so: bool, otherwise: &str, report: &RunReport) -> Result<(), Failure> {
    if is_so {
        return Ok(());
    }
    let message = format!("{otherwise}: exit code {:?}, {}", report.exit_code, report.stderr);
    Err(Failure::new(ErrorCode::Internal, message))
}

/// Every layer with its state, two in a line.
fn enforcement(report: &RunReport, page: &mut Page) {
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
            let (tone, word) = super::doctor::state(report.enforcement.layers.get(layer));
            let word = word.split(':').next().unwrap_or_default().to_owned();
            spans.push(Span::plain(format!("    {:<20}", layer.as_str())));
            spans.push(Span::new(tone, format!("{word:<14}")));
        }
        page.line(&spans);
    }
}
