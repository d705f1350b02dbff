"""Serves scripted chat completions in the format of OpenAI: loads a skill, runs a script of it, and returns the output.

Prints its address, and ends at the end of its standard input.
"""

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def next_message(request: dict[str, Any]) -> dict[str, Any]:
    """Fails when the messages lack information that a real model would need."""
    messages = request["messages"]
    names = [tool["function"]["name"] for tool in request["tools"]]
    assert "skill_load" in names and "skill_run" in names, names
    results = [json.loads(message["content"]) for message in messages if message["role"] == "tool"]
    if not results:
        assert "python-math" in messages[0]["content"], "the prompt does not mention the skill"
        return call("skill_load", {"skill": "python-math"})
    if len(results) == 1:
        assert "scripts/fib.py" in messages[0]["content"], "the prompt does not mention the script of the loaded skill"
        return call("skill_run", {"skill": "python-math", "command": "python3 scripts/fib.py 50 | tail -n 1"})
    return {"role": "assistant", "content": f"It is {results[-1]['stdout'].strip()}."}


def call(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    function = {"name": tool, "arguments": json.dumps(arguments)}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": f"call-{tool}", "type": "function", "function": function}],
    }


class Provider(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        message = next_message(request)
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if "tool_calls" in message else "stop"}
        answer = {"id": "1", "object": "chat.completion", "created": 0, "model": request["model"], "choices": [choice]}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: Any) -> None:
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(f"http://127.0.0.1:{server.server_port}/v1", flush=True)
sys.stdin.read()
os._exit(0)
