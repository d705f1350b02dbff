"""A proxy between the conformance suite and the server. The suite calls tools, prompts and resources by fixed names; the
proxy replaces each by the name of an equivalent of skillbox. It changes nothing else of a request, and nothing of a
response.

usage: renaming_proxy.py ADDRESS     prints its own address, and ends at the end of its standard input
"""

import http.client
import json
import os
import sys
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HOP_BY_HOP = {"connection", "content-length", "host", "keep-alive", "transfer-encoding"}


def run(command: str) -> tuple[str, dict[str, Any]]:
    return "skill_run", {"skill": "conformance", "command": command}


# For each tool of the suite, the equivalent call of skillbox.
TOOLS = {
    "greet": lambda given: run(f"echo Hello, {given.get('name')}!"),
    "slow_compute": lambda given: run(f"sleep {float(given['seconds'])}"),
    # The suite only checks how the server handles an unsolicited answer.
    "confirm_delete": lambda given: run("sleep 1"),
    # The call is refused after a second, where the skill is loaded.
    "failing_job": lambda given: run("true"),
    "test_simple_text": lambda given: ("skill_list", {}),
    "test_error_handling": lambda given: ("skill_load", {"skill": "no-such-skill"}),
    "test_tool_with_progress": lambda given: run("echo 0; sleep 0.1; echo 50; sleep 0.1; echo 100"),
    "test_logging_tool": lambda given: run("echo this is output and no log"),
}
RESOURCES = {
    "test://static-text": "skill://conformance/SKILL.md",
    "test://static-binary": "skill://conformance/assets/dot.png",
    "test://template/123/data": "skill://conformance/references/item-123.md",
}
PROMPTS = {"test_simple_prompt": "conformance", "test_prompt_with_arguments": "conformance"}


def rename_subject(message: dict[str, Any]) -> str | None:
    """Renames the subject of a request and returns the new name."""
    params = message.get("params") or {}
    match message.get("method"):
        case "tools/call" if params.get("name") in TOOLS:
            params["name"], params["arguments"] = TOOLS[params["name"]](params.get("arguments") or {})
            return params["name"]
        case "resources/read" if params.get("uri") in RESOURCES:
            params["uri"] = RESOURCES[params["uri"]]
            return params["uri"]
        case "prompts/get" if params.get("name") in PROMPTS:
            params["name"] = PROMPTS[params["name"]]
            if "arguments" in params:
                params["arguments"] = {"arguments": " ".join(params["arguments"].values())}
            return params["name"]
    return None


class Proxy(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def create_session_with_skill(self, message: dict[str, Any], headers: dict[str, str]) -> str:
        """Creates a session in which the skill is loaded, with its hook that refuses every run."""
        load = {"name": "skill_load", "arguments": {"skill": "conformance"}, "_meta": message["params"]["_meta"]}
        body = json.dumps({**message, "params": load}).encode()
        server = http.client.HTTPConnection(SERVER.hostname, SERVER.port)
        server.request("POST", SERVER.path, body, {**headers, "Mcp-Name": "skill_load"})
        response = server.getresponse().read().decode()
        answers = [line.removeprefix("data:") for line in response.splitlines() if '"jsonrpc"' in line]
        server.close()
        return json.loads(answers[-1])["result"]["_meta"]["skillbox/session"]

    def forward(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP_BY_HOP}
        try:
            message = json.loads(body)
        except ValueError:
            message = None
        if isinstance(message, dict) and (message.get("params") or {}).get("name") == "failing_job":
            others = {name: value for name, value in headers.items() if name.lower() != "mcp-name"}
            session = self.create_session_with_skill(message, others)
            message["params"]["_meta"]["skillbox/session"] = session
        if isinstance(message, dict) and (name := rename_subject(message)):
            body = json.dumps(message).encode()
            for header in [header for header in headers if header.lower() == "mcp-name"]:
                headers[header] = name
        server = http.client.HTTPConnection(SERVER.hostname, SERVER.port)
        server.request(self.command, SERVER.path, body or None, headers)
        answer = server.getresponse()
        self.send_response(answer.status)
        for header, value in answer.getheaders():
            if header.lower() not in HOP_BY_HOP:
                self.send_header(header, value)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            while part := answer.read1():
                self.wfile.write(part)
        except OSError:
            pass  # The suite closed the connection.
        server.close()

    do_POST = do_GET = do_DELETE = do_OPTIONS = forward

    def log_message(self, *words: Any) -> None:
        pass


SERVER = urllib.parse.urlsplit(sys.argv[1])
proxy = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
threading.Thread(target=proxy.serve_forever, daemon=True).start()
print(f"http://127.0.0.1:{proxy.server_port}{SERVER.path}", flush=True)
sys.stdin.read()
os._exit(0)
