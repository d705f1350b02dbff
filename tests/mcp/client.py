"""Drives `skillbox mcp` with the Python client of the protocol's own SDK. Each scenario prints one line of JSON.

usage: client.py SCENARIO MODE SKILLBOX|ADDRESS ARGUMENT…

MODE is how the client begins: `legacy` (with a session) or `auto` (the stateless revision, where the server has it).
"""

import asyncio
import json
import sys
from typing import Any

import mcp.types as types
from mcp import Client, StdioServerParameters


class AnyResult(types.Result):
    """A result of a method that the SDK does not know yet."""

    model_config = {"extra": "allow"}


class Extension(types.Request[dict[str, Any], str]):
    """A request of the extension for skills."""

    method: str
    params: dict[str, Any]


async def ask(client: Client, method: str, **params: Any) -> dict[str, Any]:
    result = await client.session.send_request(Extension(method=method, params=params), AnyResult)
    return result.model_dump(by_alias=True, mode="json")


async def tour(client: Client) -> dict[str, Any]:
    """What there is to see, before anything runs."""
    tools = (await client.list_tools()).tools
    again = (await client.list_tools()).tools
    loaded = await client.call_tool("skill_load", {"skill": "csv-report"})
    docs = await client.call_tool("skill_list_docs", {"skill": "csv-report"})
    refused = await client.call_tool("skill_load", {"skill": "csv-repot"})
    prompts = (await client.list_prompts()).prompts
    prompt = await client.get_prompt("csv-report", {"arguments": "sales.csv"})
    resources = (await client.list_resources()).resources
    skill_md = await client.read_resource("skill://csv-report/SKILL.md")
    index = await client.read_resource("skill://index.json")
    skills = await ask(client, "skills/list")
    one = await ask(client, "skills/get", uri="skill://csv-report/SKILL.md")
    children = await ask(client, "resources/directory/read", uri="skill://csv-report")
    return {
        "version": client.protocol_version,
        "instructions": client.instructions,
        "tools": [tool.name for tool in tools],
        "stable": [tool.name for tool in tools] == [tool.name for tool in again],
        "without_output_schema": [tool.name for tool in tools if not tool.output_schema],
        "loaded_text": loaded.content[0].text,
        "loaded": loaded.structured_content,
        "docs": docs.structured_content,
        "refused": {"is_error": refused.is_error, "structured": refused.structured_content},
        "prompts": [prompt.name for prompt in prompts],
        "prompt": prompt.messages[0].content.text,
        "resources": [resource.model_dump(by_alias=True, mode="json") for resource in resources],
        "skill_md": skill_md.contents[0].text,
        "index": json.loads(index.contents[0].text),
        "skills": skills,
        "one": one,
        "children": children,
    }


async def report(client: Client, csv: str) -> dict[str, Any]:
    """`csv-report` on a file: the chart comes back, and what the script says comes while it says it."""
    told: list[str] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        told.append(message or "")

    result = await client.call_tool(
        "skill_run",
        {
            "skill": "csv-report",
            "command": "python3 scripts/report.py inputs/sales.csv --json out/report.json --svg out/chart.svg",
            "inputs": [{"from": f"host://{csv}", "to": "inputs/sales.csv"}],
            "outputs": {"globs": ["out/**"], "save": True},
        },
        progress_callback=progress,
    )
    links = {block.name: block.uri for block in result.content if block.type == "resource_link"}
    chart = await client.read_resource(links["out/chart.svg"])
    # The workspace is the session's: a later run finds what an earlier one made.
    later = await client.call_tool("skill_run", {"skill": "python-math", "command": "head -c 4 $OUTPUT_DIR/chart.svg"})
    binary = await client.call_tool(
        "skill_run",
        {"skill": "python-math", "command": "printf '\\377\\376' > $OUTPUT_DIR/raw.bin", "output_files": ["out/raw.bin"]},
    )
    raw = await client.read_resource("workspace://out/raw.bin")
    slow: list[str] = []

    async def slow_progress(done: float, total: float | None, message: str | None) -> None:
        slow.append(message or "")

    await client.call_tool(
        "skill_run",
        {"skill": "python-math", "command": "echo one; sleep 0.5; echo two"},
        progress_callback=slow_progress,
    )
    return {
        "result": result.structured_content,
        "links": links,
        "chart": chart.contents[0].text,
        "chart_type": chart.contents[0].mime_type,
        "listed": [resource.uri for resource in (await client.list_resources()).resources],
        "told": told,
        "slow": slow,
        "later": later.structured_content["stdout"],
        "binary": binary.structured_content["output_files"],
        "raw": raw.contents[0].blob,
    }


async def cancel(client: Client) -> dict[str, Any]:
    """A cancelled run is over at once, and the session goes on."""
    started = asyncio.Event()

    async def progress(done: float, total: float | None, message: str | None) -> None:
        if "here" in (message or ""):
            started.set()

    request = {"skill": "python-math", "command": "echo here; sleep 600; echo never"}
    run = asyncio.create_task(client.call_tool("skill_run", request, progress_callback=progress))
    await asyncio.wait_for(started.wait(), 20)
    run.cancel()
    await asyncio.gather(run, return_exceptions=True)
    begin = asyncio.get_running_loop().time()
    # Runs of one session come one after the other: this one has to wait for the end of the other.
    after = await asyncio.wait_for(client.call_tool("skill_run", {"skill": "python-math", "command": "echo after"}), 20)
    waited = asyncio.get_running_loop().time() - begin
    return {"after": after.structured_content["stdout"], "waited": waited}


async def forever(client: Client, marker: str) -> dict[str, Any]:
    """Says when the run goes on, and never ends by itself."""

    async def progress(done: float, total: float | None, message: str | None) -> None:
        if "here" in (message or ""):
            print(json.dumps({"running": True}), flush=True)

    request = {"skill": "python-math", "command": f"echo here; touch {marker}; sleep 600"}
    await client.call_tool("skill_run", request, progress_callback=progress)
    return {"running": False}


async def changes(client: Client, directory: str) -> dict[str, Any]:
    """A skill that comes while the client is there is told and listed."""
    import pathlib

    heard: list[str] = []

    async def write() -> None:
        skill = pathlib.Path(directory, "newcomer")
        skill.mkdir()
        (skill / "SKILL.md").write_text("---\nname: newcomer\ndescription: Comes late.\n---\nHello.\n")

    async with client.listen(tools_list_changed=True, resources_list_changed=True) as subscription:
        await write()
        async for event in subscription:
            heard.append(type(event).__name__)
            if len(heard) == 2:
                break
    prompts = (await client.list_prompts(cache_mode="bypass")).prompts
    return {"heard": heard, "prompts": [prompt.name for prompt in prompts]}


async def handle(client: Client) -> dict[str, Any]:
    """Without sessions in the protocol, a handle leads back to the workspace, and nobody else finds it."""
    write = {"skill": "python-math", "command": "echo kept > $OUTPUT_DIR/kept", "output_files": ["out/kept"]}
    look = {"skill": "python-math", "command": "cat $OUTPUT_DIR/kept"}
    first = await client.call_tool("skill_run", write)
    carried = {"skillbox/session": first.meta["skillbox/session"]}
    later = await client.call_tool("skill_run", look, meta=carried)
    read = await client.read_resource("workspace://out/kept", meta=carried)
    stranger = await client.call_tool("skill_run", look)
    refused = []
    for meta in ({}, {"skillbox/session": "mcp-0"}):
        try:
            await client.read_resource("workspace://out/kept", meta=meta)
        except Exception as error:
            refused.append(str(error))
    return {
        "later": later.structured_content["stdout"],
        "read": read.contents[0].text,
        "stranger": stranger.structured_content["exit_code"],
        "refused": refused,
    }


async def main() -> None:
    scenario, mode, program, *arguments = sys.argv[1:]
    at = arguments.index("--") if "--" in arguments else len(arguments)
    own, server = arguments[:at], arguments[at + 1 :]
    is_address = program.startswith("http://")
    where = program if is_address else StdioServerParameters(command=program, args=["mcp", *server])
    async with Client(where, mode=mode) as client:
        result = await globals()[scenario](client, *own)
    print(json.dumps(result), flush=True)


asyncio.run(main())
