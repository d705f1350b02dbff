"""Drives `skillbox mcp` with the client of the protocol's Python SDK. Each scenario prints one line of JSON.

usage: client.py SCENARIO MODE SKILLBOX|ADDRESS ARGUMENT…

MODE is how the client begins: `legacy` (with a session) or `auto` (the stateless revision, where the server supports it).
"""

import asyncio
import base64
import json
import pathlib
import sys
from typing import Any

import mcp.types as types
import tasks
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.extension import advertise


# Only a request that hangs takes so long, on a busy machine too.
TIMEOUT = 100


class Extension(types.Request[dict[str, Any], str]):
    """A request of the extension for skills."""

    method: str
    params: dict[str, Any]


async def ask(client: Client, method: str, **params: Any) -> dict[str, Any]:
    result = await client.session.send_request(Extension(method=method, params=params), tasks.AnyResult)
    return result.model_dump(by_alias=True, mode="json")


async def tour(client: Client) -> dict[str, Any]:
    """Lists everything without running anything."""
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
    """Runs `csv-report` on a file: returns the chart, and the progress messages during the run.

    The file is one of the server's host (`host://`), or one of the client's, which is part of the call (`data:`).
    """
    if not csv.startswith("host://"):
        content = base64.b64encode(pathlib.Path(csv).read_bytes()).decode()
        csv = f"data:text/csv;base64,{content}"
    messages: list[str] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        messages.append(message or "")

    result = await client.call_tool(
        "skill_run",
        {
            "skill": "csv-report",
            "command": "python3 scripts/report.py inputs/sales.csv --json out/report.json --svg out/chart.svg",
            "inputs": [{"from": csv, "to": "inputs/sales.csv"}],
            "outputs": {"globs": ["out/**"], "save": True},
        },
        progress_callback=progress,
    )
    links = {block.name: block.uri for block in result.content if block.type == "resource_link"}
    chart = await client.read_resource(links["out/chart.svg"])
    # The workspace belongs to the session: a later run finds the files of an earlier one.
    later = await client.call_tool("skill_run", {"skill": "python-math", "command": "head -c 4 $OUTPUT_DIR/chart.svg"})
    binary = await client.call_tool(
        "skill_run",
        {"skill": "python-math", "command": "printf '\\377\\376' > $OUTPUT_DIR/raw.bin", "output_files": ["out/raw.bin"]},
    )
    raw = await client.read_resource("workspace://out/raw.bin")
    named = await client.call_tool(
        "skill_run",
        {
            "skill": "python-math",
            "command": "printf odd > \"$OUTPUT_DIR/a b:ü%.txt\"",
            "outputs": {"globs": ["out/a*"], "save": True},
        },
    )
    link = next(block for block in named.content if block.type == "resource_link")
    odd = await client.read_resource(link.uri)
    slow: list[str] = []

    async def slow_progress(done: float, total: float | None, message: str | None) -> None:
        slow.append(message or "")

    await client.call_tool(
        "skill_run",
        {"skill": "python-math", "command": "echo one; sleep 2; echo two"},
        progress_callback=slow_progress,
    )
    return {
        "report": result.structured_content,
        "links": links,
        "chart": chart.contents[0].text,
        "chart_type": chart.contents[0].mime_type,
        "listed": [resource.uri for resource in (await client.list_resources()).resources],
        "progress": messages,
        "slow_progress": slow,
        "later": later.structured_content["stdout"],
        "binary": binary.structured_content["output_files"],
        "raw": raw.contents[0].blob,
        "named": [link.name.removeprefix("out/"), odd.contents[0].text],
    }


async def cancel(client: Client) -> dict[str, Any]:
    """Cancels a run; the session stays usable."""
    started = asyncio.Event()

    async def progress(done: float, total: float | None, message: str | None) -> None:
        if "here" in (message or ""):
            started.set()

    request = {"skill": "python-math", "command": "echo here; sleep 600; echo never"}
    run = asyncio.create_task(client.call_tool("skill_run", request, progress_callback=progress))
    await asyncio.wait_for(started.wait(), TIMEOUT)
    run.cancel()
    await asyncio.gather(run, return_exceptions=True)
    begin = asyncio.get_running_loop().time()
    # The runs of a session are sequential: this one has to wait for the end of the other.
    after = await asyncio.wait_for(client.call_tool("skill_run", {"skill": "python-math", "command": "echo after"}), TIMEOUT)
    waited = asyncio.get_running_loop().time() - begin
    return {"after": after.structured_content["stdout"], "waited": waited}


async def forever(client: Client, marker: str, seconds: str = "600") -> dict[str, Any]:
    """Prints a line when the run has started, and never ends by itself."""

    async def progress(done: float, total: float | None, message: str | None) -> None:
        if "here" in (message or ""):
            print(json.dumps({"running": True}), flush=True)

    request = {"skill": "python-math", "command": f"echo here; touch {marker}; sleep {seconds}"}
    await client.call_tool("skill_run", request, progress_callback=progress)
    return {"running": False}


async def changes(client: Client, directory: str) -> dict[str, Any]:
    """A skill that is added while the client is connected is announced and listed."""
    notifications: list[str] = []

    async def write() -> None:
        skill = pathlib.Path(directory, "added")
        skill.mkdir()
        fields = "name: added\ndescription: Added later.\nargument-hint: '[file]'\n"
        (skill / "SKILL.md").write_text(f"---\n{fields}---\nHello.\n")

    if client.protocol_version < "2026":
        await write()
        await asyncio.wait_for(RESOURCES_CHANGED.wait(), TIMEOUT)
        notifications = NOTIFICATIONS
    else:
        async with client.listen(tools_list_changed=True, resources_list_changed=True) as subscription:
            await write()
            async for event in subscription:
                notifications.append(type(event).__name__)
                if len(notifications) == 2:
                    break
    prompts = (await client.list_prompts(cache_mode="bypass")).prompts
    return {"notifications": notifications, "prompts": [[prompt.name, prompt.arguments[0].description] for prompt in prompts]}


# The notifications that a client with a session receives without a subscription.
NOTIFICATIONS: list[str] = []
RESOURCES_CHANGED = asyncio.Event()


async def record_notification(message: Any) -> None:
    NOTIFICATIONS.append(type(message).__name__)
    if isinstance(message, types.ResourceListChangedNotification):
        RESOURCES_CHANGED.set()


async def every_tool(client: Client) -> dict[str, Any]:
    """Calls every tool; the SDK validates the results against the output schemas."""
    skill = {"skill": "csv-report"}
    arguments = {
        "skill_list": {},
        "skill_load": skill,
        "skill_list_docs": skill,
        "skill_select_docs": skill | {"docs": ["references/report.md"]},
        "skill_read": skill | {"path": "SKILL.md", "limit": 10},
        "skill_run": skill | {"command": "echo 1 > $OUTPUT_DIR/x", "output_files": ["out/x"]},
        "skill_search": {"query": "chart"},
        "skill_disable": {"skill": "text-stats"},
        "skill_enable": {"skill": "text-stats"},
        "skill_unload": skill,
        "load_skill": {"skill_name": "csv-report"},
        "read_skill": {"skill_name": "csv-report"},
        "search_skills": {"query": "chart"},
        "disable_skill": {"skill_name": "text-stats"},
    }
    names = {tool.name for tool in (await client.list_tools()).tools}
    called, without_structured_content = [], []
    for name in [name for name in arguments if name in names]:
        result = await client.call_tool(name, arguments[name])
        assert not result.is_error, (name, result)
        called.append(name)
        if result.structured_content is None:
            without_structured_content.append(name)
    return {"called": called, "without_structured_content": without_structured_content}


async def named(client: Client, word: str) -> dict[str, Any]:
    """Adds a word to a file in the session that the address names, and returns what it contains."""
    command = f"echo {word} >> $OUTPUT_DIR/words; cat $OUTPUT_DIR/words"
    result = await client.call_tool(
        "skill_run", {"skill": "python-math", "command": command, "output_files": ["out/*"]}
    )
    link = next(block for block in result.content if block.type == "resource_link")
    read = await client.read_resource(link.uri)
    return {"words": result.structured_content["stdout"], "read": read.contents[0].text, "link": str(link.uri)}


async def argument(client: Client) -> dict[str, Any]:
    """A model names the session of an earlier result by an argument; links name it by themselves."""
    write = {"skill": "python-math", "command": "echo kept > $OUTPUT_DIR/kept", "output_files": ["out/kept"]}
    first = await client.call_tool("skill_run", write)
    session = first.structured_content["session"]
    link = next(block for block in first.content if block.type == "resource_link")
    read_file = {"skill": "python-math", "command": "cat $OUTPUT_DIR/kept", "session": session}
    later = await client.call_tool("skill_run", read_file)
    inputs = [{"from": str(link.uri), "to": "inputs/kept"}]
    input_run = {"skill": "python-math", "command": "cat $WORK_DIR/inputs/kept", "inputs": inputs}
    by_input = await client.call_tool("skill_run", input_run)
    try:
        await client.call_tool("skill_run", read_file | {"session": "short"})
        message = ""
    except MCPError as error:
        message = str(error)
    tools = (await client.list_tools()).tools
    return {
        "in_text": session in first.content[-1].text if first.content[-1].type == "text" else False,
        "later": later.structured_content["stdout"],
        "read": (await client.read_resource(link.uri)).contents[0].text,
        "by_input": by_input.structured_content["stdout"],
        "refused": message,
        "declared": all("session" in tool.input_schema["properties"] for tool in tools),
    }


async def handle(client: Client) -> dict[str, Any]:
    """Without protocol sessions, a handle identifies the workspace; without the handle it cannot be found."""
    write = {"skill": "python-math", "command": "echo kept > $OUTPUT_DIR/kept", "output_files": ["out/kept"]}
    read_file = {"skill": "python-math", "command": "cat $OUTPUT_DIR/kept"}
    first = await client.call_tool("skill_run", write)
    carried = {"skillbox/session": first.meta["skillbox/session"]}
    later = await client.call_tool("skill_run", read_file, meta=carried)
    read = await client.read_resource("workspace://out/kept", meta=carried)
    other_session = await client.call_tool("skill_run", read_file)
    refused = []
    for meta in ({}, {"skillbox/session": "mcp-0"}):
        try:
            await client.read_resource("workspace://out/kept", meta=meta)
        except Exception as error:
            refused.append(str(error))
    return {
        "later": later.structured_content["stdout"],
        "read": read.contents[0].text,
        "other_session": other_session.structured_content["exit_code"],
        "refused": refused,
    }


async def refused(request: Any) -> Any:
    """Returns the result of a request, or the code of its error."""
    try:
        return await request
    except MCPError as error:
        return error.code


async def task(client: Client) -> dict[str, Any]:
    """A long run becomes a task with the result of a run; a short one stays a call; a cancelled one is killed."""
    extension = EXTENSIONS["task"]
    # The server makes a run a task after half a second. On a busy machine a short run may take as long: then try again.
    clock = asyncio.get_running_loop().time
    for _ in range(100):
        begin, earlier_tasks = clock(), len(extension.created)
        short = await client.call_tool("skill_run", {"skill": "python-math", "command": "echo short"})
        if clock() - begin < 0.4:
            break
    tasks_of_short_run = len(extension.created) - earlier_tasks
    extension.created.clear()
    command = "echo halfway; sleep 1.5; printf 'a\\377' > $OUTPUT_DIR/a.bin"
    long = await client.call_tool(
        "skill_run", {"skill": "python-math", "command": command, "output_files": ["out/a.bin"]}
    )
    first = extension.created[0]
    links = [block.uri for block in long.content if block.type == "resource_link"]
    carried = {key: value for key, value in (long.meta or {}).items() if key == "skillbox/session"}
    raw = await client.read_resource(links[0], meta=carried)
    acknowledged = await tasks.ask(client.session, "tasks/cancel", first["taskId"])
    updated = await tasks.ask(client.session, "tasks/update", first["taskId"], inputResponses={})
    again = await tasks.ask(client.session, "tasks/get", first["taskId"])
    unknown = [
        await refused(tasks.ask(client.session, method, "mcp-0", **more))
        for method, more in (("tasks/get", {}), ("tasks/cancel", {}), ("tasks/update", {"inputResponses": {}}))
    ]

    async def cancel(state: dict[str, Any]) -> None:
        if state.get("statusMessage") == "here":
            await tasks.ask(client.session, "tasks/cancel", state["taskId"])

    extension.watch = cancel
    begin = asyncio.get_running_loop().time()
    request = {"skill": "python-math", "command": "echo here; sleep 600; echo never"}
    try:
        await asyncio.wait_for(client.call_tool("skill_run", request, meta=carried), TIMEOUT)
        ended = "completed"
    except tasks.TaskCancelled as error:
        ended = str(error)
    # The runs of a session are sequential: this one needs the end of the other.
    after = await client.call_tool("skill_run", {"skill": "python-math", "command": "echo after"}, meta=carried)
    return {
        "short": short.structured_content["stdout"],
        "tasks_of_short_run": tasks_of_short_run,
        "created": first,
        "messages": [state["statusMessage"] for state in extension.seen if state.get("statusMessage")],
        "long": long.structured_content,
        "raw": raw.contents[0].blob,
        "acknowledged": [acknowledged, updated],
        "again": again["status"],
        "unknown": unknown,
        "ended": ended,
        "after": after.structured_content["stdout"],
        "waited": asyncio.get_running_loop().time() - begin,
    }


async def task_left(client: Client) -> dict[str, Any]:
    """Disconnects while a task is running."""
    started = asyncio.Event()

    async def watch(state: dict[str, Any]) -> None:
        if state.get("statusMessage") == "here":
            started.set()

    EXTENSIONS["task_left"].watch = watch
    request = {"skill": "python-math", "command": "echo here; sleep 600"}
    call = asyncio.create_task(client.call_tool("skill_run", request))
    await asyncio.wait_for(started.wait(), TIMEOUT)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    return {"task": EXTENSIONS["task_left"].created[0]["taskId"]}


async def look(client: Client, task_id: str) -> dict[str, Any]:
    """Returns what another client learns of a task."""
    return {"code": await refused(tasks.ask(client.session, "tasks/get", task_id))}


async def look_legacy(client: Client, task_id: str) -> dict[str, Any]:
    """Does the same as a client with a session, which declares its extensions at initialization."""
    await client.call_tool("skill_run", {"skill": "python-math", "command": "true"})
    return await look(client, task_id)


# The extensions that the client of a scenario supports.
EXTENSIONS = {
    "task": tasks.Tasks(),
    "task_left": tasks.Tasks(),
    "look": tasks.Tasks(),
    "look_legacy": advertise(tasks.Tasks.identifier),
}


async def main() -> None:
    scenario, mode, program, *arguments = sys.argv[1:]
    at = arguments.index("--") if "--" in arguments else len(arguments)
    own, server = arguments[:at], arguments[at + 1 :]
    is_address = program.startswith("http://")
    where = program if is_address else StdioServerParameters(command=program, args=["mcp", *server])
    extension = EXTENSIONS.get(scenario)
    extensions = [extension] if extension else None
    async with Client(where, mode=mode, extensions=extensions, message_handler=record_notification) as client:
        result = await globals()[scenario](client, *own)
    print(json.dumps(result), flush=True)


asyncio.run(main())
