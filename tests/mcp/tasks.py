"""The client side of the extension `io.modelcontextprotocol/tasks`, built on the extension interface of the SDK."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, Literal

import mcp.types as types
from mcp import ClientSession
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim


class TaskRequest(types.Request[dict[str, Any], str]):
    """A request about a task."""

    name_param: ClassVar[str | None] = "taskId"
    method: str
    params: dict[str, Any]


class AnyResult(types.Result):
    """Any result."""

    model_config = {"extra": "allow"}


class TaskCreated(types.Result):
    """The result of a call that has become a task."""

    model_config = {"extra": "allow"}
    result_type: Literal["task"] = "task"


class TaskCancelled(Exception):
    """The task ended without a result."""


async def ask(session: ClientSession, method: str, task_id: str, **params: Any) -> dict[str, Any]:
    request = TaskRequest(method=method, params={"taskId": task_id, **params})
    result = await session.send_request(request, AnyResult)
    return result.model_dump(by_alias=True, mode="json")


class Tasks(ClientExtension):
    """Waits for tasks and records their states."""

    identifier = "io.modelcontextprotocol/tasks"

    def __init__(self, watch: Callable[[dict[str, Any]], Awaitable[None]] | None = None) -> None:
        self.created: list[dict[str, Any]] = []
        self.seen: list[dict[str, Any]] = []
        self.watch = watch

    def claims(self) -> list[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=TaskCreated, resolve=self.resolve)]

    async def resolve(self, created: TaskCreated, context: ClaimContext) -> types.CallToolResult:
        task = created.model_dump(by_alias=True, mode="json")
        self.created.append(task)
        while True:
            state = await ask(context.session, "tasks/get", task["taskId"])
            self.seen.append({key: value for key, value in state.items() if key != "result"})
            if self.watch:
                await self.watch(state)
            if state["status"] == "completed":
                return types.CallToolResult.model_validate(state["result"])
            if state["status"] != "working":
                raise TaskCancelled(state["status"])
            await asyncio.sleep(state["pollIntervalMs"] / 1000)
