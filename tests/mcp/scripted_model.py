"""A chat model with scripted responses: it loads a skill, runs a script of the skill, and returns the output."""

from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult


class ScriptedModel(BaseChatModel):
    """Fails when the messages lack information that a real model would need."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> "ScriptedModel":
        names = [getattr(tool, "name", "") for tool in tools]
        assert "skill_load" in names and "skill_run" in names, names
        return self

    def _generate(self, messages: list[BaseMessage], *rest: Any, **more: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.next_message(messages))])

    def next_message(self, messages: list[BaseMessage]) -> AIMessage:
        last = messages[-1]
        if not isinstance(last, ToolMessage):
            prompt = "".join(message.text for message in messages if isinstance(message, SystemMessage))
            assert "python-math" in prompt, f"the prompt does not mention the skill: {prompt}"
            return call("skill_load", {"skill": "python-math"})
        if last.name == "skill_load":
            assert "scripts/fib.py" in last.text, f"the skill does not mention its script: {last.text}"
            return call("skill_run", {"skill": "python-math", "command": "python3 scripts/fib.py 50 | tail -n 1"})
        number = last.artifact["structured_content"]["stdout"].strip()
        return AIMessage(content=f"It is {number}.")


def call(tool: str, arguments: dict[str, Any]) -> AIMessage:
    return AIMessage(content="", tool_calls=[{"name": tool, "args": arguments, "id": f"call-{tool}"}])


model = ScriptedModel()
