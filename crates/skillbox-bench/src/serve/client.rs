//! Minimal HTTP and MCP clients with a persistent connection.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

/// A client with one connection.
pub(crate) struct HttpClient {
    stream: BufReader<TcpStream>,
    address: String,
}

/// An HTTP response.
struct Response {
    status: u16,
    /// Status line and headers.
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
    pub(crate) fn run_skill(&mut self) -> anyhow::Result<()> {
        let response = self.post("/v1/runs?wait=60", "", &json!({"skill": "small", "command": "true"}))?;
        let report: Value = serde_json::from_slice(&response.body)?;
        ensure!(response.status == 200 && report["exit_code"] == 0, "{report}");
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
            ensure!(
                self.stream.read_line(&mut head)? > 0,
                "the server closed the connection"
            );
        }
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
        let value = |name: &str| {
            let mut lines = head.lines().filter_map(|line| line.split_once(": "));
            lines
                .find(|(header, _)| header.eq_ignore_ascii_case(name))
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
            status: status.context("the response has no status code")?,
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
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "skillbox-bench", "version": "1"},
        });
        let response = mcp.request("initialize", &params)?;
        let lines = response.head.lines().filter_map(|line| line.split_once(": "));
        let session = lines
            .into_iter()
            .find(|(name, _)| name.eq_ignore_ascii_case("mcp-session-id"))
            .context("the response has no session id")?;
        mcp.headers.push_str(&format!(
            "Mcp-Session-Id: {}\r\nMCP-Protocol-Version: 2025-11-25\r\n",
            session.1
        ));
        let notification = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        mcp.http.post("/mcp", &mcp.headers, &notification)?;
        Ok(mcp)
    }

    /// Runs `true` with the tool `skill_run`.
    pub(crate) fn run_skill(&mut self) -> anyhow::Result<()> {
        let call = json!({"name": "skill_run", "arguments": {"skill": "small", "command": "true"}});
        let response = self.request("tools/call", &call)?;
        let text = String::from_utf8_lossy(&response.body);
        let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
        let mut results = data.filter_map(|line| serde_json::from_str::<Value>(line.trim()).ok());
        let result = results
            .find(|message| message["id"] == self.last_id)
            .context("the response contains no result")?;
        let report = &result["result"]["structuredContent"];
        ensure!(report["exit_code"] == 0, "{result}");
        Ok(())
    }

    fn request(&mut self, method: &str, params: &Value) -> anyhow::Result<Response> {
        self.last_id += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params});
        let response = self.http.post("/mcp", &self.headers, &request)?;
        ensure!(
            response.status == 200,
            "{method}: {}",
            String::from_utf8_lossy(&response.body)
        );
        Ok(response)
    }
}
