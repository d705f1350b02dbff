"""Drives one Python client library of the Model Context Protocol through the actions of the client matrix.

usage: matrix.py CLIENT ADDRESS [INSPECTOR…]

CLIENT is a key of CLIENTS below, and ADDRESS is that of a server over HTTP with a session of its own (`/mcp/s/NAME`).
INSPECTOR is the command of the MCP Inspector, for the client of that name. Prints one line of JSON for each action.
"""

import asyncio
import base64
import hashlib
import json
import sys
import tempfile
import traceback
from collections.abc import Callable
from typing import Any

# The characters of a result that may reach a model, whatever the run wrote.
MAX_MODEL_TEXT = 20 << 10
# Only a call that hangs takes so long, on a busy machine too.
TIMEOUT = 60
SKILL = {"skill": "python-math"}
TABLE = b"a,b\n1,2\n"
MEGABYTE = (
    "import os; rows = open('/workspace/work/inputs/table.csv').read(); "
    "open(os.environ['OUTPUT_DIR'] + '/large.csv', 'w').write(rows * 131072)"
)
FILE_RUN = SKILL | {
    "argv": ["python3", "-c", MEGABYTE],
    "inputs": [{"from": "data:text/csv;base64," + base64.b64encode(TABLE).decode(), "to": "inputs/table.csv"}],
    "output_files": ["out/*"],
}


class Refused(Exception):
    """A tool call was refused; the text is what a model reads."""


class PythonSdk:
    """`mcp`, the SDK of the protocol."""

    def __init__(self, address: str) -> None:
        from mcp import Client

        self.client = Client(address)

    async def __aenter__(self) -> "PythonSdk":
        await self.client.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self.client.__aexit__(None, None, None)

    async def tools(self) -> list[str]:
        return [tool.name for tool in (await self.client.list_tools()).tools]

    async def call(self, name: str, arguments: dict[str, Any]) -> tuple[str, list[str]]:
        """The text for the model, and the links of the result."""
        return self.result(await self.client.call_tool(name, arguments))

    def result(self, result: Any) -> tuple[str, list[str]]:
        text = "\n".join(block.text for block in result.content if block.type == "text")
        links = [str(block.uri) for block in result.content if block.type == "resource_link"]
        if result.is_error:
            raise Refused(text)
        return text + "\n".join(links), links

    async def read(self, uri: str) -> str:
        return (await self.client.read_resource(uri)).contents[0].text


class FastMcp(PythonSdk):
    """The client of FastMCP."""

    def __init__(self, address: str) -> None:
        from fastmcp import Client

        self.client = Client(address)

    async def tools(self) -> list[str]:
        return [tool.name for tool in await self.client.list_tools()]

    async def call(self, name: str, arguments: dict[str, Any]) -> tuple[str, list[str]]:
        return self.result(await self.client.call_tool(name, arguments, raise_on_error=False))

    async def read(self, uri: str) -> str:
        return (await self.client.read_resource(uri))[0].text


class PydanticAi(PythonSdk):
    """The tool set of Pydantic AI, which returns to the model what `direct_call_tool` returns."""

    def __init__(self, address: str) -> None:
        from pydantic_ai.mcp import MCPToolset

        # By default, a request times out after 5 minutes.
        self.client = MCPToolset(address, tool_error_behavior="error")

    async def tools(self) -> list[str]:
        return [tool.name for tool in await self.client.list_tools()]

    async def call(self, name: str, arguments: dict[str, Any]) -> tuple[str, list[str]]:
        try:
            value = await self.client.direct_call_tool(name, arguments)
        except Exception as error:
            raise Refused(str(error)) from error
        parts = value if isinstance(value, list) else [value]
        links = [part for part in parts if isinstance(part, str) and "://" in part.split("\n")[0]]
        return json.dumps(value), links

    async def read(self, uri: str) -> str:
        contents = await self.client.read_resource(uri)
        return contents if isinstance(contents, str) else contents[0]


class OpenAiAgents(PythonSdk):
    """The MCP server of the OpenAI Agents SDK; `MCPUtil` makes the output of a tool for the model."""

    def __init__(self, address: str) -> None:
        from agents.mcp import MCPServerStreamableHttp

        # The default of 5 seconds is shorter than most runs.
        self.client = MCPServerStreamableHttp({"url": address}, client_session_timeout_seconds=300)

    async def tools(self) -> list[str]:
        return [tool.name for tool in await self.client.list_tools()]

    async def call(self, name: str, arguments: dict[str, Any]) -> tuple[str, list[str]]:
        result = await self.client.call_tool(name, arguments)
        is_error = getattr(result, "isError", None) or getattr(result, "is_error", None)
        # As in `MCPUtil.invoke_mcp_tool`: the blocks as JSON, in order.
        text = json.dumps([block.model_dump(mode="json") for block in result.content])
        if is_error:
            raise Refused(text)
        return text, [str(block.uri) for block in result.content if block.type == "resource_link"]

    async def read(self, uri: str) -> str:
        return (await self.client.read_resource(uri)).contents[0].text


class LangChain(PythonSdk):
    """The adapters of LangChain. Each call has a connection of its own, and the address names the session."""

    def __init__(self, address: str) -> None:
        from langchain_mcp_adapters.client import MultiServerMCPClient

        self.client = MultiServerMCPClient({"skillbox": {"transport": "http", "url": address}})

    async def __aenter__(self) -> "LangChain":
        self.by_name = {tool.name: tool for tool in await self.client.get_tools()}
        return self

    async def __aexit__(self, *error: Any) -> None:
        pass

    async def tools(self) -> list[str]:
        return list(self.by_name)

    async def call(self, name: str, arguments: dict[str, Any]) -> tuple[str, list[str]]:
        from langchain_core.tools import ToolException

        try:
            message = await self.by_name[name].ainvoke(
                {"type": "tool_call", "id": "1", "name": name, "args": arguments}
            )
        except ToolException as error:
            raise Refused(str(error)) from error
        text = json.dumps(message.content)
        if message.status == "error":
            raise Refused(text)
        blocks = message.content if isinstance(message.content, list) else []
        links = [block["url"] for block in blocks if isinstance(block, dict) and "url" in block]
        return text, links

    async def read(self, uri: str) -> str:
        return (await self.client.get_resources("skillbox", uris=[uri]))[0].as_string()


class Inspector(PythonSdk):
    """The command line of the MCP Inspector: one process for each request."""

    def __init__(self, address: str) -> None:
        self.address = address

    async def __aenter__(self) -> "Inspector":
        return self

    async def __aexit__(self, *error: Any) -> None:
        pass

    async def request(self, *words: str) -> dict[str, Any]:
        command = [*sys.argv[3:], "--cli", self.address, "--transport", "http", *words]
        with tempfile.TemporaryFile() as output:
            process = await asyncio.create_subprocess_exec(
                *command, stdin=asyncio.subprocess.DEVNULL, stdout=output, stderr=asyncio.subprocess.PIPE
            )
            try:
                _, stderr = await process.communicate()
            except asyncio.CancelledError:
                process.kill()
                await process.wait()
                raise
            output.seek(0)
            text = output.read().decode()
        if not text.strip():
            raise Refused(stderr.decode())
        return json.loads(text)

    async def tools(self) -> list[str]:
        return [tool["name"] for tool in (await self.request("--method", "tools/list"))["tools"]]

    async def call(self, name: str, arguments: dict[str, Any]) -> tuple[str, list[str]]:
        pairs = [f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in arguments.items()]
        words = [word for pair in pairs for word in ("--tool-arg", pair)]
        result = await self.request("--method", "tools/call", "--tool-name", name, *words)
        text = "\n".join(block["text"] for block in result["content"] if block["type"] == "text")
        links = [block["uri"] for block in result["content"] if block["type"] == "resource_link"]
        if result.get("isError"):
            raise Refused(text)
        return text + "\n".join(links), links

    async def read(self, uri: str) -> str:
        return (await self.request("--method", "resources/read", "--uri", uri))["contents"][0]["text"]


CLIENTS: dict[str, Callable[[str], PythonSdk]] = {
    "python-sdk": PythonSdk,
    "fastmcp": FastMcp,
    "pydantic-ai": PydanticAi,
    "openai-agents": OpenAiAgents,
    "langchain": LangChain,
    "inspector": Inspector,
}


async def list_tools(client: PythonSdk) -> None:
    names = await client.tools()
    assert "skill_run" in names and "skill_load" in names, names


async def load(client: PythonSdk) -> None:
    text, _ = await client.call("skill_load", SKILL)
    assert "python-math" in text, text[:500]


async def files(client: PythonSdk) -> None:
    text, links = await client.call("skill_run", FILE_RUN)
    assert len(text) <= MAX_MODEL_TEXT, f"{len(text)} characters reach the model"
    whole = await client.read(next(link for link in links if "large.csv" in link))
    expected = TABLE * 131072
    assert hashlib.sha256(whole.encode()).digest() == hashlib.sha256(expected).digest(), len(whole)


async def refusal(client: PythonSdk) -> None:
    try:
        text, _ = await client.call("skill_run", SKILL | {"command": "echo none", "cwd": "../.."})
    except Refused as refused:
        text = str(refused)
        assert "hint" in text and "without `..`" in text, text
    else:
        raise AssertionError(f"not refused: {text}")


async def cancel(client: PythonSdk) -> None:
    run = asyncio.create_task(client.call("skill_run", SKILL | {"command": "touch $WORK_DIR/begun; sleep 611"}))
    await asyncio.sleep(3)
    assert not run.done(), await run
    run.cancel()
    await asyncio.gather(run, return_exceptions=True)
    # A session runs one command at a time: this one starts when the cancelled one has ended.
    text, _ = await client.call("skill_run", SKILL | {"command": "ls $WORK_DIR; echo after"})
    assert "begun" in text and "after" in text, text


async def silence(client: PythonSdk) -> None:
    text, _ = await client.call("skill_run", SKILL | {"command": "sleep 10; echo awake"})
    assert "awake" in text, text


ACTIONS = {"list": list_tools, "load": load, "files": files, "refusal": refusal, "cancel": cancel, "silence": silence}


async def main() -> None:
    async with CLIENTS[sys.argv[1]](sys.argv[2]) as client:
        for name, action in ACTIONS.items():
            reason = ""
            try:
                await asyncio.wait_for(action(client), TIMEOUT)
            except Exception:
                reason = traceback.format_exc()
            print(json.dumps({"action": name, "ok": not reason, "reason": reason}), flush=True)


asyncio.run(main())
