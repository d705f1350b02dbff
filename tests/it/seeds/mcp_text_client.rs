//! An MCP client that reads only the text of results, as many clients do: no structured content, no prompts.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::harness::{kill_and_reap, program, spawn_tracked};

/// A client with a server of its own on standard input and output.
pub struct McpTextClient {
    server: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    last_id: u64,
    /// The overview that the server sends when the client connects.
    pub instructions: String,
    /// The methods of the notifications so far.
    pub notifications: Vec<String>,
    /// The messages of the progress notifications so far.
    pub progress: Vec<String>,
}

/// The text of a result, and whether it is an error.
#[derive(Debug)]
pub struct TextResult {
    pub text: String,
    pub is_error: bool,
}

impl McpTextClient {
    /// Starts a server on these skills and connects to it.
    pub fn connect(skills: &Path, state: &Path, arguments: &[&str]) -> Self {
        let mut command = program(env!("CARGO_BIN_EXE_skillbox"));
        command
            .args(["mcp", "--skills"])
            .arg(skills)
            .arg("--state-dir")
            .arg(state)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut server = spawn_tracked(&mut command);
        let input = server.stdin.take().unwrap();
        let output = BufReader::new(server.stdout.take().unwrap());
        let mut client = Self {
            server,
            input,
            output,
            last_id: 0,
            instructions: String::new(),
            notifications: Vec::new(),
            progress: Vec::new(),
        };
        let initialized = client.request(
            "initialize",
            json!({
                "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "text", "version": "1"},
            }),
        );
        initialized["instructions"]
            .as_str()
            .unwrap_or_default()
            .clone_into(&mut client.instructions);
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input, "{message}").unwrap();
        self.input.flush().unwrap();
    }

    /// Sends a request and returns its result, or its error object under the key `error`.
    #[track_caller]
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the server has ended");
            let mut message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                return match message.get("error") {
                    Some(error) => json!({"error": error}),
                    None => message["result"].take(),
                };
            }
            if let Some(text) = message["params"]["message"].as_str() {
                self.progress.push(text.to_owned());
            }
            self.notifications
                .push(message["method"].as_str().unwrap_or_default().to_owned());
        }
    }

    /// Calls a tool and returns the text of its result.
    #[track_caller]
    pub fn call(&mut self, tool: &str, arguments: Value) -> TextResult {
        let result = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        let blocks = result["content"]
            .as_array()
            .unwrap_or_else(|| panic!("{tool}: {result}"));
        let texts = blocks.iter().filter(|block| block["type"] == "text");
        TextResult {
            text: texts.map(|block| block["text"].as_str().unwrap()).collect(),
            is_error: result["isError"] == true,
        }
    }

    /// The text of a call that must succeed.
    #[track_caller]
    pub fn call_ok(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments);
        assert!(!result.is_error, "{tool}: {}", result.text);
        result.text
    }

    /// The text of a call that must be refused.
    #[track_caller]
    pub fn call_refused(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments);
        assert!(result.is_error, "{tool}: {}", result.text);
        result.text
    }

    /// The names of the tools.
    #[track_caller]
    pub fn tool_names(&mut self) -> Vec<String> {
        let listed = self.request("tools/list", json!({}));
        let tools = listed["tools"].as_array().unwrap_or_else(|| panic!("{listed}"));
        tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    }
}

impl Drop for McpTextClient {
    fn drop(&mut self) {
        kill_and_reap(&mut self.server);
    }
}
