"""Amplifier's modules, as small as their contracts allow: a loop, a context manager, a provider, a tool.

Run as a program it drives a session on the real core, and prints what its own modules saw as JSON: the core
may crash when the interpreter ends, so what it prints counts and its exit code does not.
"""

from __future__ import annotations

import asyncio
import copy
import json
import sys
from types import ModuleType
from typing import Any

from amplifier_core import AmplifierSession
from amplifier_core.message_models import ChatRequest, ChatResponse, TextBlock, ToolCall, ToolCallBlock, Usage
from amplifier_core.models import ModelInfo, ProviderInfo, ToolResult

SEEN: dict[str, list[Any]] = {"views": [], "bodies": [], "results": [], "errors": []}


class Context:
    """Keeps a history; a view leaves its oldest messages out when it grows too long."""

    def __init__(self, hooks: Any, limit: int) -> None:
        self.messages: list[dict[str, Any]] = [{"role": "system", "content": "You look things up."}]
        self.hooks, self.limit = hooks, limit

    async def add_message(self, message: dict[str, Any]) -> None:
        self.messages.append(message)

    async def get_messages_for_request(
        self, token_budget: Any = None, provider: Any = None
    ) -> list[dict[str, Any]]:
        view = list(self.messages)
        while len(view) > self.limit:
            del view[1]
            while view[1]["role"] == "tool":
                del view[1]
        if len(view) < len(self.messages):
            await self.hooks.emit("context:compaction", {
                "before_messages": len(self.messages), "after_messages": len(view), "before_tokens": 900,
                "after_tokens": 400, "budget": 1000, "target_tokens": 500, "strategy_level": 3,
            })  # fmt: skip
        SEEN["views"].append(copy.deepcopy(view))
        return view

    async def get_messages(self) -> list[dict[str, Any]]:
        return list(self.messages)

    async def set_messages(self, messages: list[dict[str, Any]]) -> None:
        self.messages = list(messages)

    async def clear(self) -> None:
        self.messages = []


class Loop:
    """Asks the provider until it calls no more tools."""

    async def execute(
        self, prompt: str, context: Any, providers: Any, tools: Any, hooks: Any, **_: Any
    ) -> str:
        await hooks.emit("prompt:submit", {"prompt": prompt})
        await hooks.emit("execution:start", {"prompt": prompt})
        await context.add_message({"role": "user", "content": prompt})
        name, provider = next(iter(providers.items()))
        try:
            return await self._answer(name, provider, context, tools, hooks)
        finally:
            await hooks.emit("execution:end", {})
            await hooks.emit("orchestrator:complete", {"orchestrator": "loop-small", "turn_count": 1})

    async def _answer(self, name: str, provider: Any, context: Any, tools: Any, hooks: Any) -> str:
        for iteration in range(1, 9):
            await hooks.emit("provider:request", {"provider": name, "iteration": iteration})
            messages = await context.get_messages_for_request(provider=provider)
            try:
                response = await provider.complete(ChatRequest(messages=messages))
            except RuntimeError as error:
                await hooks.emit(
                    "provider:error", {"provider": name, "error": {"type": type(error).__name__, "msg": ""}}
                )
                raise
            calls = provider.parse_tool_calls(response)
            blocks = [block.model_dump() for block in response.content]
            for at, block in enumerate(blocks):
                await hooks.emit("content_block:start", {"block_type": block["type"], "block_index": at})
                await hooks.emit("content_block:delta", {"block_index": at, "delta": "…"})
                await hooks.emit("content_block:end", {"block": block, "block_index": at})
            if not calls:
                text = "".join(block.get("text", "") for block in blocks)
                await context.add_message({"role": "assistant", "content": text})
                return text
            made = [{"id": call.id, "tool": call.name, "arguments": call.arguments} for call in calls]
            await context.add_message({"role": "assistant", "content": blocks, "tool_calls": made})
            for call in calls:
                said = {"tool_name": call.name, "tool_input": call.arguments, "tool_call_id": call.id}
                await hooks.emit("tool:pre", said)
                result = await tools[call.name].execute(call.arguments)
                await hooks.emit("tool:post", {**said, "result": result.model_dump()})
                await context.add_message(
                    {
                        "role": "tool",
                        "name": call.name,
                        "tool_call_id": call.id,
                        "content": str(result.output),
                    }
                )
        return ""


class Provider:
    """Calls a tool where a prompt asks for it, then answers; fails where it is told to."""

    name = "mock"

    def __init__(self, hooks: Any, raw: bool) -> None:
        self.hooks, self.raw, self.count = hooks, raw, 0

    def get_info(self) -> ProviderInfo:
        return ProviderInfo(id="mock", display_name="Mock")

    async def list_models(self) -> list[ModelInfo]:
        return []

    def parse_tool_calls(self, response: ChatResponse) -> list[ToolCall]:
        return response.tool_calls or []

    async def complete(self, request: ChatRequest, **_: Any) -> ChatResponse:
        self.count += 1
        body = {"model": "gpt-5", "messages": _wire(request), "tools": [_DEFINITION], "max_tokens": 100}
        SEEN["bodies"].append(body)
        said = {"provider": "mock", "model": "gpt-5", "message_count": len(request.messages)}
        await self.hooks.emit("llm:request", {**said, **({"raw": body} if self.raw else {})})
        last = request.messages[-1]
        text = last.content if isinstance(last.content, str) else ""
        if "fail" in text:
            await self.hooks.emit("llm:response", {
                "provider": "mock", "model": "gpt-5", "status": "error",
                "error": {"type": "RateLimited", "msg": "no"},
            })  # fmt: skip
            raise RuntimeError("no")
        usage = {"input_tokens": 100 + self.count, "output_tokens": 7, "cache_read_tokens": 64}
        await self.hooks.emit(
            "llm:response", {"provider": "mock", "model": "gpt-5", "status": "ok", "usage": usage}
        )
        billed = Usage(input_tokens=100 + self.count, output_tokens=7, total_tokens=107 + self.count)
        if last.role == "user" and "look" in text:
            key, given = f"call_{self.count}", {"city": "Paris"}
            return ChatResponse(
                content=[ToolCallBlock(id=key, name="look", input=given)],
                tool_calls=[ToolCall(id=key, name="look", arguments=given)], usage=billed,
            )  # fmt: skip
        return ChatResponse(content=[TextBlock(text=f"Answer {self.count}.")], usage=billed)


class Look:
    """A tool."""

    name = "look"
    description = "Looks up a city."
    input_schema = {"type": "object", "properties": {"city": {"type": "string"}}}  # noqa: RUF012

    async def execute(self, input: dict[str, Any]) -> ToolResult:  # noqa: A002  the core's name
        SEEN["results"].append(input)
        return ToolResult(success=True, output=f"Sun in {input['city']}, " + "warm, " * 5)


_DEFINITION = {"type": "function", "function": {"name": "look", "description": "Looks up a city."}}


def _wire(request: ChatRequest) -> list[dict[str, Any]]:
    """Messages as OpenAI's chat interface has them."""
    made: list[dict[str, Any]] = []
    for message in request.messages:
        if isinstance(message.content, str):
            made.append({"role": message.role, "content": message.content})
        else:
            calls = [
                {"id": b.id, "type": "function",
                 "function": {"name": b.name, "arguments": json.dumps(b.input)}}
                for b in message.content if isinstance(b, ToolCallBlock)
            ]  # fmt: skip
            made.append({"role": message.role, "content": None, "tool_calls": calls})
        if message.role == "tool":
            made[-1]["tool_call_id"] = message.tool_call_id
    return made


def _install(name: str, mount: Any) -> None:
    """Make a module that the core's loader finds by its name."""
    module = ModuleType(f"amplifier_module_{name}")
    module.mount = mount  # type: ignore[attr-defined]
    sys.modules[module.__name__] = module


def install(limit: int, *, raw: bool) -> None:
    """Make the modules known to the core's loader."""

    async def loop(coordinator: Any, config: Any) -> None:
        await coordinator.mount("orchestrator", Loop())

    async def context(coordinator: Any, config: Any) -> None:
        await coordinator.mount("context", Context(coordinator.hooks, limit))

    async def provider(coordinator: Any, config: Any) -> None:
        await coordinator.mount("providers", Provider(coordinator.hooks, raw), name="mock")

    async def tool(coordinator: Any, config: Any) -> None:
        await coordinator.mount("tools", Look(), name="look")

    for name, mount in (("loop_small", loop), ("context_small", context), ("provider_small", provider),
                        ("tool_look", tool)):  # fmt: skip
        _install(name, mount)


def stand_in(names: dict[str, str]) -> None:
    """Let modules stand in for others, by their names."""
    for own, other in names.items():
        sys.modules[f"amplifier_module_{other}"] = sys.modules[f"amplifier_module_{own}"]


def plan(path: str, raw: bool) -> dict[str, Any]:
    """A mount plan with the hook in it."""
    return {
        "session": {"orchestrator": "loop-small", "context": "context-small"},
        "providers": [{"module": "provider-small", "config": {"raw": raw}}],
        "tools": [{"module": "tool-look"}],
        "hooks": [{"module": "hooks-ctxctl", "config": {"path": path}}],
    }


async def main(path: str, limit: int, raw: bool) -> None:
    """A session of three prompts, the last of which fails, and a child's session within it."""
    install(limit, raw=raw)
    session = AmplifierSession(plan(path, raw), session_id="root-1")
    await session.initialize()
    await session.execute("Please look at Paris.")
    child = AmplifierSession(plan(path, raw), session_id="root-1-0123_explorer", parent_id="root-1")
    await child.initialize()
    await child.execute("A question of the child's.")
    await child.cleanup()
    await session.execute("And please look again.")
    try:
        await session.execute("Now fail.")
    except RuntimeError as error:
        SEEN["errors"].append(str(error))
    await session.cleanup()
    print(json.dumps(SEEN), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3] == "raw"))
