//! The command blocks of README.md and docs/, run as they are printed.
//!
//! Each document is one shell session in an empty directory with an empty home and `skillbox` on the path. In a block
//! marked `console`, a line that starts with `$ ` is a command; it continues over lines that end in `\` or `|`, and over
//! lines that start with `> `. The lines below a command are output: each must occur, in order, with `…` standing for
//! anything. A command must succeed, unless its comment says `# exits N`. A block is not run only when the
//! line before it is a comment `<!-- not run: REASON -->`; `<!-- needs docker -->` runs it where a daemon is available.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::harness::{Docker, need, need_docker, program, run_to_completion};
use crate::workspace::{files_below, root};

/// The address that the documents use for servers, replaced by a free one.
const PRINTED_ADDRESS: &str = "127.0.0.1:8484";
const DOCUMENT_TIMEOUT: Duration = Duration::from_secs(110);
/// Separates the records that the generated script prints.
const MARK: char = '\u{1e}';

#[derive(Debug, PartialEq)]
struct DocumentedCommand {
    line: usize,
    text: String,
    expected_output: Vec<String>,
    exit_code: i32,
    needs_docker: bool,
}

/// The commands of a document; what cannot be understood is an error that names the line.
fn documented_commands(markdown: &str) -> Vec<DocumentedCommand> {
    let mut commands: Vec<DocumentedCommand> = Vec::new();
    let mut previous = "";
    let mut in_block: Option<bool> = None;
    let mut is_open = false;
    for (index, line) in markdown.lines().enumerate() {
        if line.starts_with("```") {
            in_block = match in_block {
                Some(_) => None,
                None => {
                    let is_run = !previous.starts_with("<!-- not run: ");
                    Some(line == "```console" && is_run)
                }
            };
            is_open = false;
        } else if in_block == Some(true) {
            if let Some(text) = line.strip_prefix("$ ") {
                commands.push(DocumentedCommand {
                    line: index + 1,
                    text: text.to_owned(),
                    expected_output: Vec::new(),
                    exit_code: exit_code_in_comment(text),
                    needs_docker: false,
                });
                is_open = continues(text);
            } else {
                let last = commands.last_mut().expect("a console block starts with a command");
                if let Some(more) = line.strip_prefix("> ").or_else(|| is_open.then_some(line)) {
                    last.text.push('\n');
                    last.text.push_str(more);
                    last.exit_code = last.exit_code.max(exit_code_in_comment(more));
                    is_open = continues(more);
                } else {
                    last.expected_output.push(line.to_owned());
                }
            }
        }
        if !line.trim().is_empty() {
            previous = line;
        }
    }
    if markdown.contains("<!-- needs docker -->") {
        for command in &mut commands {
            command.needs_docker = true;
        }
    }
    commands
}

fn continues(line: &str) -> bool {
    ["\\", "|", "&&"].iter().any(|end| line.trim_end().ends_with(end))
}

fn exit_code_in_comment(line: &str) -> i32 {
    let comment = line.rsplit_once("# exits ").map_or("", |(_, comment)| comment);
    let digits: String = comment.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}

#[test]
fn blocks_are_read_as_documented() {
    let text = "```console\n$ a \\\n  b\nout\n$ c   # exits 3\n```\n<!-- not run: long -->\n```console\n$ d\n```\n```sh\n$ e\n```\n";
    let commands = documented_commands(text);
    let texts: Vec<_> = commands.iter().map(|command| command.text.as_str()).collect();
    assert_eq!(texts, ["a \\\n  b", "c   # exits 3"]);
    assert_eq!(commands[0].expected_output, ["out"]);
    assert_eq!((commands[0].exit_code, commands[1].exit_code), (0, 3));
    assert!(missing_line(&["a…z".to_owned(), "b".to_owned()], "a to z\nb\n").is_none());
    assert_eq!(
        missing_line(&["b".to_owned(), "a".to_owned()], "a\nb\n").as_deref(),
        Some("a")
    );
}

/// The first expected line that the output does not have, in order.
fn missing_line(expected: &[String], output: &str) -> Option<String> {
    let mut lines = output.lines();
    expected
        .iter()
        .filter(|line| !line.trim().is_empty())
        .find(|line| !lines.any(|printed| matches(line, printed)))
        .cloned()
}

fn matches(expected: &str, printed: &str) -> bool {
    let mut rest = printed.trim_end();
    let parts: Vec<&str> = expected.trim_end().split('…').collect();
    for (index, part) in parts.iter().enumerate() {
        let Some(at) = rest.find(part) else { return false };
        if index == 0 && at != 0 {
            return false;
        }
        rest = &rest[at + part.len()..];
    }
    rest.is_empty() || parts.len() > 1 && parts.last() == Some(&"")
}

/// Runs the commands of a document in one shell and checks each.
fn check_document(name: &str) {
    let commands = documented_commands(&fs::read_to_string(root().join(name)).unwrap());
    assert!(!commands.is_empty(), "{name} has no command block");
    if commands.iter().any(|command| command.needs_docker) && !need_docker() {
        return;
    }
    for tool in ["curl", "jq"] {
        let is_used = commands
            .iter()
            .any(|command| command.text.contains(&format!("{tool} ")));
        let runs = || {
            let version = program(tool).arg("--version").output();
            version.is_ok_and(|output| output.status.success())
        };
        if is_used && !need(runs(), tool) {
            return;
        }
    }
    let dir = tempfile::tempdir().unwrap();
    for part in ["home", "work"] {
        fs::create_dir(dir.path().join(part)).unwrap();
    }
    let address = free_address();
    let script = shell_script(&commands).replace(PRINTED_ADDRESS, &address);
    let programs = Path::new(env!("CARGO_BIN_EXE_skillbox")).parent().unwrap().display();
    let mut bash = program("bash");
    bash.arg("-c")
        .arg(script)
        .env_clear()
        .env("PATH", format!("{programs}:/usr/local/bin:/usr/bin:/bin"))
        .env("HOME", dir.path().join("home"))
        .env("LANG", "C.UTF-8")
        .current_dir(dir.path().join("work"));
    if let Some(docker) = Docker::find() {
        bash.env("DOCKER_HOST", docker.host());
    }
    let ended = run_to_completion(&mut bash, b"", DOCUMENT_TIMEOUT);
    let output = String::from_utf8_lossy(&ended.stdout).replace(&address, PRINTED_ADDRESS);
    let records: Vec<&str> = output.split(MARK).skip(1).collect();
    let mut failures = Vec::new();
    for (index, command) in commands.iter().enumerate() {
        let place = format!("{name}:{}: `{}`", command.line, command.text);
        let (Some(printed), Some(code)) = (records.get(2 * index), records.get(2 * index + 1)) else {
            failures.push(format!(
                "{place}: was not reached; stderr: {}",
                String::from_utf8_lossy(&ended.stderr)
            ));
            break;
        };
        if code.trim() != command.exit_code.to_string() {
            failures.push(format!(
                "{place}: exit code {}, not {}; it printed:\n{printed}",
                code.trim(),
                command.exit_code
            ));
        } else if let Some(line) = missing_line(&command.expected_output, printed) {
            failures.push(format!("{place}: the line `{line}` is not in its output:\n{printed}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// One script for a whole document: each command's output and exit code between marks.
fn shell_script(commands: &[DocumentedCommand]) -> String {
    let mut script = String::from("trap 'kill $(jobs -p) 2>/dev/null' EXIT\n");
    for command in commands {
        let text = &command.text;
        let is_server = text.trim_end().ends_with('&');
        script.push_str(&format!("printf '{MARK}'\n"));
        if is_server {
            // A server prints its address when it is ready; its output is not that of the commands after it.
            let server = text.trim_end().trim_end_matches('&');
            script.push_str(&format!("{server} >server.log 2>&1 &\n"));
            script.push_str("until grep -qs 'http://' server.log; do kill -0 $! || break; sleep 0.02; done; true\n");
        } else {
            script.push_str(&format!("{{ {text}\n}} 2>&1\n"));
        }
        script.push_str(&format!("printf '{MARK}%s\\n' $?\n"));
    }
    script
}

fn free_address() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

/// One test for each document, so that they run side by side and a failure names its document.
macro_rules! documents {
    ($($test:ident: $path:literal,)*) => {
        $(#[test] fn $test() { check_document($path); })*

        #[test]
        fn every_document_with_commands_is_tested() {
            let tested = [$($path),*];
            let top = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "ARCHITECTURE.md"].map(|name| root().join(name));
            let pages = files_below(&root().join("docs"));
            for path in top.into_iter().chain(pages).filter(|path| path.extension().is_some_and(|end| end == "md")) {
                let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
                let has_commands = !documented_commands(&fs::read_to_string(&path).unwrap()).is_empty();
                assert!(!has_commands || tested.contains(&name.as_str()), "{name} has commands and no test");
            }
        }
    };
}

documents! {
    readme: "README.md",
    agents: "docs/agents.md",
    batch: "docs/batch.md",
    cli: "docs/cli.md",
    concepts: "docs/concepts.md",
    docker: "docs/docker.md",
    http_api: "docs/http-api.md",
    network: "docs/network.md",
    operations: "docs/operations.md",
    profiles: "docs/profiles.md",
    security_model: "docs/security-model.md",
    sessions_and_artifacts: "docs/sessions-and-artifacts.md",
    troubleshooting: "docs/troubleshooting.md",
    trust: "docs/trust.md",
}
