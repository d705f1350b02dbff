//! Minimal clients over a persistent connection.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

/// One connection.
pub(crate) struct HttpClient {
    stream: BufReader<TcpStream>,
    address: String,
}

/// Status, headers as text, body.
struct Response {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl HttpClient {
    pub(crate) fn connect(address: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        Ok(Self {
            stream: BufReader::new(stream),
            address: address.to_owned(),
        })
    }

    /// Runs `true` and waits for the report.
    pub(crate) fn skill_run(&mut self) -> anyhow::Result<()> {
        let answer = self.post("/v1/runs?wait=60", "", &json!({"skill": "small", "command": "true"}))?;
        let report: Value = serde_json::from_slice(&answer.body)?;
        ensure!(answer.status == 200 && report["exit_code"] == 0, "{report}");
        Ok(())
    }

    fn post(&mut self, path: &str, headers: &str, body: &Value) -> anyhow::Result<Response> {
        let body = body.to_string();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        self.read_response()
    }

    fn read_response(&mut self) -> anyhow::Result<Response> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            ensure!(self.stream.read_line(&mut head)? > 0, "the connection ended");
        }
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
        let value = |name: &str| {
            let mut lines = head.lines().filter_map(|line| line.split_once(": "));
            lines
                .find(|(known, _)| known.eq_ignore_ascii_case(name))
                .map(|(_, value)| value)
        };
        let mut body = Vec::new();
        if let Some(length) = value("content-length") {
            body.resize(length.trim().parse()?, 0);
            self.stream.read_exact(&mut body)?;
        } else if value("transfer-encoding").is_some() {
            self.read_chunks(&mut body)?;
        }
        Ok(Response {
            status: status.context("a status")?,
            head,
            body,
        })
    }

    fn read_chunks(&mut self, body: &mut Vec<u8>) -> anyhow::Result<()> {
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line)?;
            let size = usize::from_str_radix(line.trim(), 16)?;
            let mut chunk = vec![0; size + 2];
            self.stream.read_exact(&mut chunk)?;
            if size == 0 {
                return Ok(());
            }
            body.extend_from_slice(&chunk[..size]);
        }
    }
}

/// A client of the Model Context Protocol, with a session.
pub(crate) struct McpClient {
    http: HttpClient,
    headers: String,
    last_id: u64,
}

impl McpClient {
    pub(crate) fn connect(address: &str) -> anyhow::Result<Self> {
        let mut mcp = Self {
            http: HttpClient::connect(address)?,
            headers: "Accept: application/json, text/event-stream\r\n".to_owned(),
            last_id: 0,
        };
        let about = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "skillbox-bench", "version": "1"},
        });
        let answer = mcp.request("initialize", &about)?;
        let lines = answer.head.lines().filter_map(|line| line.split_once(": "));
        let session = lines
            .into_iter()
            .find(|(name, _)| name.eq_ignore_ascii_case("mcp-session-id"))
            .context("a session")?;
        mcp.headers.push_str(&format!(
            "Mcp-Session-Id: {}\r\nMCP-Protocol-Version: 2025-11-25\r\n",
            session.1
        ));
        let runtime = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        mcp.http.post("/mcp", &mcp.headers, &runtime)?;
        Ok(mcp)
    }

    /// Runs `true`.
    pub(crate) fn skill_run(&mut self) -> anyhow::Result<()> {
        let call = json!({"name": "skill_run", "arguments": {"skill": "small", "command": "true"}});
        let answer = self.request("tools/call", &call)?;
        let text = String::from_utf8_lossy(&answer.body);
        let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
        let mut results = data.filter_map(|line| serde_json::from_str::<Value>(line.trim()).ok());
        let result = results
            .find(|message| message["id"] == self.last_id)
            .context("an answer")?;
        let report = &result["result"]["structuredContent"];
        ensure!(report["exit_code"] == 0, "{result}");
        Ok(())
    }

    fn request(&mut self, method: &str, params: &Value) -> anyhow::Result<Response> {
        self.last_id += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params});
        let answer = self.http.post("/mcp", &self.headers, &request)?;
        ensure!(
            answer.status == 200,
            "{method}: {}",
            String::from_utf8_lossy(&answer.body)
        );
        Ok(answer)
    }
}
