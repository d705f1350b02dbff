"""Connects to the server in a configuration of an MCP host (`mcpServers`, read from standard input), as the host would,
and prints tools, prompts and the output of a run as one line of JSON."""

import asyncio
import json
import sys
from typing import Any

from mcp import Client, StdioServerParameters


async def main() -> None:
    (server,) = json.load(sys.stdin)["mcpServers"].values()
    found: dict[str, Any] = {}
    where = server["url"] if "url" in server else StdioServerParameters(command=server["command"], args=server["args"])
    async with Client(where) as client:
        found["tools"] = [tool.name for tool in (await client.list_tools()).tools]
        found["prompts"] = [prompt.name for prompt in (await client.list_prompts()).prompts]
        run = await client.call_tool("skill_run", {"skill": "csv-report", "command": "echo it runs"})
        found["stdout"] = run.structured_content["stdout"]
    print(json.dumps(found))


asyncio.run(main())
