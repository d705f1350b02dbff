//! The snippets of `docs/clients`, run as printed by the clients that they describe.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::fixture::{
    McpFixture, McpHttpServer, Peer, SCENARIO_DEADLINE, SKILLBOX, client, python_for, shipped_skills,
};
use crate::harness::{program, run_to_completion, spawn_tracked, wait_with_deadline};
use crate::workspace::root;

/// The server address in the pages.
const ADDRESS: &str = "127.0.0.1:8485";

/// One code block of a page.
struct Block {
    language: String,
    text: String,
}

fn blocks(page: &str) -> Vec<Block> {
    let text = fs::read_to_string(root().join("docs/clients").join(page)).unwrap();
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for line in text.lines() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(language), None) => {
                open = Some(Block {
                    language: language.to_owned(),
                    text: String::new(),
                });
            }
            (None, Some(block)) => block.text.extend([line, "\n"]),
            (None, None) => {}
        }
    }
    assert!(open.is_none() && !blocks.is_empty(), "{page}");
    blocks
}

/// The directory of a reader: a table to report on, `skillbox` on the path, and nothing else of this machine.
struct ReaderFixture {
    mcp: McpFixture,
}

impl ReaderFixture {
    fn new() -> Self {
        let fixture = McpFixture::new();
        for name in ["home", "work", "work/data", "work/skills"] {
            fs::create_dir(fixture.path(name)).unwrap();
        }
        let skill = fixture.path("work/skills/csv-report");
        std::os::unix::fs::symlink(shipped_skills().join("csv-report"), skill).unwrap();
        let table = "date,region,revenue\n2024-01-01,north,10\n2024-02-01,south,20\n2024-03-01,north,15\n";
        fs::write(fixture.path("work/sales.csv"), table).unwrap();
        Self { mcp: fixture }
    }

    fn prepare<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let programs = Path::new(SKILLBOX).parent().unwrap().display();
        command
            .env_clear()
            .env("PATH", format!("{programs}:/usr/local/bin:/usr/bin:/bin"))
            .env("HOME", self.mcp.path("home"))
            .env("LANG", "C.UTF-8")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("PYTHONPATH", root().join("tests/mcp"))
            .current_dir(self.mcp.path("work"))
    }

    /// Starts a server for the snippets that need a running one.
    fn serve(&self) -> McpHttpServer {
        McpHttpServer::start_as(&self.mcp, self.prepare(&mut program(SKILLBOX)))
    }

    /// Runs a program that has to succeed and returns what it prints.
    #[track_caller]
    fn run(&self, command: &mut Command, input: &str) -> String {
        let ended = run_to_completion(self.prepare(command), input.as_bytes(), SCENARIO_DEADLINE);
        let stderr = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{stderr}");
        String::from_utf8(ended.stdout).unwrap()
    }

    /// Runs the Python snippets of a page and compares their output with the page.
    fn run_page(&self, page: &str, python: &OsString, server: Option<&McpHttpServer>) -> Vec<String> {
        let mut printed: Vec<String> = Vec::new();
        for block in blocks(page) {
            match block.language.as_str() {
                "python" => {
                    printed.push(self.run(client(python).arg("-c").arg(adapt_snippet(&block.text, server)), ""))
                }
                "text" => assert_eq!(printed.last(), Some(&block.text), "{page}"),
                _ => {}
            }
        }
        let sessions = self.mcp.path("home/.local/state/skillbox/sessions");
        assert_eq!(fs::read_dir(sessions).into_iter().flatten().count(), 0, "{page}");
        printed
    }
}

/// Replaces what depends on the machine in a snippet: the address of the server, and the model by one without network.
fn adapt_snippet(snippet: &str, server: Option<&McpHttpServer>) -> String {
    let mut lines = Vec::new();
    for line in snippet.lines() {
        lines.push(match server {
            _ if line.starts_with("model = ") => "from scripted_model import model".to_owned(),
            Some(server) => line.replace(ADDRESS, server.host_and_port()),
            None => line.to_owned(),
        });
    }
    lines.join("\n")
}

#[test]
fn the_python_sdk_page_works_as_printed() {
    let Some(python) = python_for(Peer::Sdk) else { return };
    let fixture = ReaderFixture::new();
    let server = fixture.serve();
    let printed = fixture.run_page("python.md", &python, Some(&server));
    assert_eq!(printed.len(), 3);
    server.stop(&fixture.mcp);
    let chart = fs::read_to_string(fixture.mcp.path("work/chart.svg")).unwrap();
    assert!(
        chart.starts_with("<svg") && chart.trim_end().ends_with("</svg>"),
        "{chart}"
    );
}

#[test]
fn the_langchain_and_deepagents_page_works_as_printed() {
    let Some(python) = python_for(Peer::Agents) else {
        return;
    };
    let fixture = ReaderFixture::new();
    let server = fixture.serve();
    let printed = fixture.run_page("langchain.md", &python, Some(&server));
    assert_eq!(printed.len(), 3);
    assert_eq!(
        printed[2], "It is 7778742049.\n",
        "the answer that the agent computed with the skill"
    );

    // As the page states, the first snippet works with the connection of the second.
    let page = blocks("langchain.md");
    let mut snippets = page.iter().filter(|block| block.language == "python");
    let (first, second) = (snippets.next().unwrap(), snippets.next().unwrap());
    let connection = |block: &Block| {
        let found = block.text.lines().find(|line| line.starts_with("SERVERS = "));
        found.unwrap().to_owned()
    };
    let mixed = first.text.replace(&connection(first), &connection(second));
    let again = fixture.run(client(&python).arg("-c").arg(adapt_snippet(&mixed, Some(&server))), "");
    assert_eq!(again, printed[0]);
    server.stop(&fixture.mcp);
}

#[test]
fn the_pages_of_other_python_clients_work_as_printed() {
    for (page, peer) in [
        ("fastmcp.md", Peer::FastMcp),
        ("pydantic-ai.md", Peer::PydanticAi),
        ("openai-agents.md", Peer::OpenAiAgents),
    ] {
        let Some(python) = python_for(peer) else { continue };
        let fixture = ReaderFixture::new();
        let server = fixture.serve();
        assert_eq!(fixture.run_page(page, &python, Some(&server)).len(), 1, "{page}");
        server.stop(&fixture.mcp);
    }
}

#[test]
fn the_typescript_and_inspector_pages_work_as_printed() {
    let Some(modules) = python_for(Peer::Npm) else { return };
    let fixture = ReaderFixture::new();
    let server = fixture.serve();
    let work = fixture.mcp.path("work");
    std::os::unix::fs::symlink(&modules, work.join("node_modules")).unwrap();
    for page in ["typescript.md", "inspector.md"] {
        let mut printed: Vec<String> = Vec::new();
        for block in blocks(page) {
            let snippet = adapt_snippet(&block.text, Some(&server));
            let programs = "PATH=$PWD/node_modules/.bin:$PATH";
            match block.language.as_str() {
                "js" => {
                    fs::write(work.join("snippet.mjs"), snippet).unwrap();
                    let words = format!("{programs} exec node snippet.mjs");
                    printed.push(fixture.run(program("bash").args(["-c", &words]), ""));
                }
                "sh" => {
                    // `npx` would ask the registry for a program that is installed already.
                    let words = format!("export {programs}\n{}", snippet.replace("npx ", ""));
                    printed.push(fixture.run(program("bash").args(["-eu", "-c", &words]), ""));
                }
                "text" => assert_eq!(printed.last(), Some(&block.text), "{page}"),
                _ => {}
            }
        }
        assert!(!printed.is_empty(), "{page}");
    }
    server.stop(&fixture.mcp);
}

#[test]
fn the_function_calling_page_works_as_printed() {
    let Some(python) = python_for(Peer::Agents) else {
        return;
    };
    let fixture = ReaderFixture::new();
    let commands = blocks("function-calling.md");
    let commands = commands.iter().find(|block| block.language == "sh").unwrap();
    let printed = fixture.run(program("bash").args(["-eu", "-c", &commands.text]), "");
    assert!(
        printed.contains(r#""stdout": "0\n1\n1\n2\n3\n5\n8\n13\n21\n34\n""#),
        "{printed}"
    );

    let mut provider = client(&python);
    provider
        .arg(root().join("tests/mcp/scripted_provider.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut provider = spawn_tracked(&mut provider);
    let mut address = String::new();
    BufReader::new(provider.stdout.take().unwrap())
        .read_line(&mut address)
        .unwrap();
    let snippet = blocks("function-calling.md");
    let snippet = snippet.iter().find(|block| block.language == "python").unwrap();
    // The provider is set as the page describes; no server is needed.
    let program_text = format!(
        "import os\nos.environ.update(OPENAI_BASE_URL={:?}, OPENAI_API_KEY='none')\n{}",
        address.trim(),
        snippet.text
    );
    assert_eq!(
        fixture.run(client(&python).arg("-c").arg(program_text), ""),
        "It is 7778742049.\n"
    );
    drop(provider.stdin.take());
    assert!(wait_with_deadline(&mut provider, std::time::Instant::now(), SCENARIO_DEADLINE).is_some());
}

#[test]
fn the_claude_page_works_as_printed() {
    let Some(python) = python_for(Peer::Sdk) else { return };
    let fixture = ReaderFixture::new();
    let mut server = None;
    let mut found = Vec::new();
    for block in blocks("claude.md") {
        match block.language.as_str() {
            // The server that the page starts, on a free port.
            "sh" => {
                let words = format!("exec {}", block.text.trim().replace(ADDRESS, "127.0.0.1:0"));
                server = Some(McpHttpServer::wait_for(
                    fixture.prepare(program("bash").args(["-c", &words])),
                ));
            }
            "json" => {
                let config = adapt_snippet(&block.text, server.as_ref());
                let printed = fixture.run(client(&python).arg(root().join("tests/mcp/configured.py")), &config);
                found.push(serde_json::from_str::<Value>(&printed).unwrap());
            }
            other => panic!("a snippet in {other:?} that is not tested"),
        }
    }
    assert_eq!(found.len(), 3);
    for found in &found {
        assert_eq!(found["tools"][0], "skill_list");
        assert_eq!(found["stdout"], "it runs\n");
    }
    assert_eq!(found[1]["prompts"], json!(["csv-report"]), "only the named skills");
    server.unwrap().stop(&fixture.mcp);
}
