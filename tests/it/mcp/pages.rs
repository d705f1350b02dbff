//! The snippets of `docs/clients`, run as they are printed, by the clients that they are written for.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::world::{DEADLINE, Listening, Peer, SKILLBOX, World, client, python_with, shipped};
use crate::lab::{finish, program, run_to_end, start};
use crate::workspace::root;

/// Where the pages say that a server listens.
const ADDRESS: &str = "127.0.0.1:8485";

/// One snippet of a page.
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

/// A reader's directory: a table to report on, `skillbox` on the path, and nothing else of this machine.
struct Desk {
    world: World,
}

impl Desk {
    fn new() -> Self {
        let world = World::new();
        for name in ["home", "desk", "desk/data", "desk/skills"] {
            fs::create_dir(world.path(name)).unwrap();
        }
        let skill = world.path("desk/skills/csv-report");
        std::os::unix::fs::symlink(shipped().join("csv-report"), skill).unwrap();
        let table = "date,region,revenue\n2024-01-01,north,10\n2024-02-01,south,20\n2024-03-01,north,15\n";
        fs::write(world.path("desk/sales.csv"), table).unwrap();
        Self { world }
    }

    fn prepare<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let programs = Path::new(SKILLBOX).parent().unwrap().display();
        command
            .env_clear()
            .env("PATH", format!("{programs}:/usr/local/bin:/usr/bin:/bin"))
            .env("HOME", self.world.path("home"))
            .env("LANG", "C.UTF-8")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("PYTHONPATH", root().join("tests/mcp"))
            .current_dir(self.world.path("desk"))
    }

    /// A server for the snippets that need one which runs already.
    fn serve(&self) -> Listening {
        Listening::start_as(&self.world, self.prepare(&mut program(SKILLBOX)))
    }

    /// What a program prints that has to succeed.
    #[track_caller]
    fn run(&self, command: &mut Command, input: &str) -> String {
        let ended = run_to_end(self.prepare(command), input.as_bytes(), DEADLINE);
        let told = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{told}");
        String::from_utf8(ended.stdout).unwrap()
    }

    /// Runs the Python snippets of a page, and holds each against what the page says that it prints.
    fn follow(&self, page: &str, python: &OsString, server: Option<&Listening>) -> Vec<String> {
        let mut printed: Vec<String> = Vec::new();
        for block in blocks(page) {
            match block.language.as_str() {
                "python" => printed.push(self.run(client(python).arg("-c").arg(filled_in(&block.text, server)), "")),
                "text" => assert_eq!(printed.last(), Some(&block.text), "{page}"),
                _ => {}
            }
        }
        let sessions = self.world.path("home/.local/state/skillbox/sessions");
        assert_eq!(fs::read_dir(sessions).into_iter().flatten().count(), 0, "{page}");
        printed
    }
}

/// A snippet with what depends on the machine: the server's address, and a model that needs no network.
fn filled_in(snippet: &str, server: Option<&Listening>) -> String {
    let mut lines = Vec::new();
    for line in snippet.lines() {
        lines.push(match server {
            _ if line.starts_with("model = ") => "from scripted_model import model".to_owned(),
            Some(server) => line.replace(ADDRESS, server.place()),
            None => line.to_owned(),
        });
    }
    lines.join("\n")
}

#[test]
fn the_page_for_the_python_sdk_holds() {
    let Some(python) = python_with(Peer::Sdk) else { return };
    let desk = Desk::new();
    let server = desk.serve();
    let printed = desk.follow("python.md", &python, Some(&server));
    assert_eq!(printed.len(), 3);
    server.stop(&desk.world);
    let chart = fs::read_to_string(desk.world.path("desk/chart.svg")).unwrap();
    assert!(
        chart.starts_with("<svg") && chart.trim_end().ends_with("</svg>"),
        "{chart}"
    );
}

#[test]
fn the_page_for_langchain_and_deepagents_holds() {
    let Some(python) = python_with(Peer::Agents) else {
        return;
    };
    let desk = Desk::new();
    let server = desk.serve();
    let printed = desk.follow("langchain.md", &python, Some(&server));
    assert_eq!(printed.len(), 3);
    assert_eq!(
        printed[2], "It is 7778742049.\n",
        "what the agent found out with the skill"
    );

    // "Only the connection differs": the first snippet does the same with the connection of the second.
    let page = blocks("langchain.md");
    let mut snippets = page.iter().filter(|block| block.language == "python");
    let (first, second) = (snippets.next().unwrap(), snippets.next().unwrap());
    let connection = |block: &Block| {
        let found = block.text.lines().find(|line| line.starts_with("SERVERS = "));
        found.unwrap().to_owned()
    };
    let mixed = first.text.replace(&connection(first), &connection(second));
    let again = desk.run(client(&python).arg("-c").arg(filled_in(&mixed, Some(&server))), "");
    assert_eq!(again, printed[0]);
    server.stop(&desk.world);
}

#[test]
fn the_page_for_function_calling_holds() {
    let Some(python) = python_with(Peer::Agents) else {
        return;
    };
    let desk = Desk::new();
    let commands = blocks("function-calling.md");
    let commands = commands.iter().find(|block| block.language == "sh").unwrap();
    let printed = desk.run(program("bash").args(["-eu", "-c", &commands.text]), "");
    assert!(
        printed.contains(r#""stdout": "0\n1\n1\n2\n3\n5\n8\n13\n21\n34\n""#),
        "{printed}"
    );

    let mut provider = client(&python);
    provider
        .arg(root().join("tests/mcp/scripted_provider.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut provider = start(&mut provider);
    let mut address = String::new();
    BufReader::new(provider.stdout.take().unwrap())
        .read_line(&mut address)
        .unwrap();
    let snippet = blocks("function-calling.md");
    let snippet = snippet.iter().find(|block| block.language == "python").unwrap();
    // Without a server of ours the desk's own surroundings are enough, with the provider named as the page says.
    let told = format!(
        "import os\nos.environ.update(OPENAI_BASE_URL={:?}, OPENAI_API_KEY='none')\n{}",
        address.trim(),
        snippet.text
    );
    assert_eq!(desk.run(client(&python).arg("-c").arg(told), ""), "It is 7778742049.\n");
    drop(provider.stdin.take());
    assert!(finish(&mut provider, std::time::Instant::now(), DEADLINE).is_some());
}

#[test]
fn the_page_for_hosts_with_a_configuration_holds() {
    let Some(python) = python_with(Peer::Sdk) else { return };
    let desk = Desk::new();
    let mut server = None;
    let mut found = Vec::new();
    for block in blocks("claude.md") {
        match block.language.as_str() {
            // The server that the page starts, on a port that is free.
            "sh" => {
                let words = format!("exec {}", block.text.trim().replace(ADDRESS, "127.0.0.1:0"));
                server = Some(Listening::wait_for(desk.prepare(program("bash").args(["-c", &words]))));
            }
            "json" => {
                let config = filled_in(&block.text, server.as_ref());
                let told = desk.run(client(&python).arg(root().join("tests/mcp/configured.py")), &config);
                found.push(serde_json::from_str::<Value>(&told).unwrap());
            }
            other => panic!("a snippet of {other:?} that nobody tries"),
        }
    }
    assert_eq!(found.len(), 3);
    for found in &found {
        assert_eq!(found["tools"][0], "skill_list");
        assert_eq!(found["stdout"], "it runs\n");
    }
    assert_eq!(
        found[1]["prompts"],
        json!(["csv-report"]),
        "the named skills, and no others"
    );
    server.unwrap().stop(&desk.world);
}
