"""Drives live sessions of Amplifier with its own modules, made to compact often; run as a program.

The core comes from the registry.  context-simple, the loops and hooks-logging are in no registry: whoever has
checkouts of them names their directories in `AMPLIFIER_MODULES` (separated as in `PATH`).  Provider and
tools are this file's, and no model is asked.  What the session logged and recorded is left in the directory
that is named; what the context manager itself held and gave is printed as JSON.
"""

from __future__ import annotations

import asyncio
import copy
import json
import os
import random
import sys
from types import ModuleType
from typing import Any, Final, NamedTuple

WORDS: Final = (
    "river", "table", "seven", "quiet", "engine", "paper", "window", "orange", "thread", "signal", "garden",
    "matter", "pocket", "silver", "train", "it's", '"quoted"', "tab\tbed", "path/to/file.py", "naïve",
    "日本語", "{brace}", "[list]", "line\nbreak", "0123456789", "<tag>", "--", "end",
)  # fmt: skip
MODULES: Final = "AMPLIFIER_MODULES"


class Plan(NamedTuple):
    """What a session is like."""

    seed: int
    loop: str
    """`loop-basic` or `loop-streaming`."""
    wire: str
    """The API that the provider speaks in what it tells: `chat`, `anthropic`, `responses`, or `none`."""
    budget: int
    recent: float = 0.3
    results: int = 5
    target: float = 0.5
    turns: int = 12
    reserve: int = 0
    """Tokens kept free for the notice."""
    blocks: bool = False
    """The provider gives content blocks, so that the loop tells of each."""
    reminders: bool = False
    """A hook puts a reminder into each request."""
    same: bool = False
    """Prompts and answers are the same few words again and again."""
    thinks: bool = False
    """Answers have a thinking block with a signature, which the history holds twice, and no log."""
    factory: bool = False
    """The system prompt is made anew for each request."""
    more: tuple[tuple[str, Any], ...] = ()
    """Further settings of context-simple."""


PLANS: Final = (
    Plan(1, "loop-streaming", "chat", 1500),
    Plan(2, "loop-streaming", "anthropic", 1800, results=2, blocks=True),
    Plan(3, "loop-streaming", "responses", 2200, recent=0.1, results=1, reminders=True),
    Plan(4, "loop-basic", "chat", 1500, results=2),
    Plan(5, "loop-basic", "anthropic", 2000, recent=0.1, results=1, blocks=True),
    Plan(6, "loop-basic", "responses", 1700, target=0.3, turns=14),
    Plan(7, "loop-streaming", "none", 1600, results=1),
    Plan(8, "loop-basic", "none", 1600, results=1, reminders=True),
    Plan(9, "loop-streaming", "anthropic", 900, recent=0.02, results=1, turns=14),
    Plan(10, "loop-basic", "chat", 900, recent=0.02, results=1, turns=14, blocks=True),
    Plan(11, "loop-streaming", "chat", 1500, results=2, same=True, more=(("truncate_chars", 90),)),
    Plan(12, "loop-basic", "anthropic", 1400, results=2, factory=True,
         more=(("compaction_notice_enabled", False), ("compact_threshold", 0.6))),
    Plan(13, "loop-streaming", "responses", 2600, reserve=800, results=3, factory=True,
         more=(("compaction_notice_verbosity", "minimal"), ("compact_threshold", 0.99))),
    Plan(14, "loop-streaming", "anthropic", 1500, results=2, thinks=True, blocks=True),
    Plan(15, "loop-basic", "chat", 1500, results=0, same=True, recent=0.0,
         more=(("compaction_notice_min_level", 5), ("truncate_chars", 700))),
)  # fmt: skip


def text(dice: random.Random, least: int, most: int) -> str:
    """Words, with what a printed form escapes among them."""
    return " ".join(dice.choice(WORDS) for _ in range(dice.randint(least, most)))


class Provider:
    """Calls tools a few times, then answers; what it says is drawn from the plan's seed."""

    name = "scripted"

    def __init__(self, hooks: Any, plan: Plan, seen: dict[str, Any]) -> None:
        self.hooks, self.plan, self.seen = hooks, plan, seen
        self.dice = random.Random(plan.seed)
        self.count = self.left = 0

    def get_info(self) -> Any:
        from amplifier_core.models import ProviderInfo

        return ProviderInfo(id="scripted", display_name="Scripted", defaults={})

    async def list_models(self) -> list[Any]:
        return []

    def parse_tool_calls(self, response: Any) -> list[Any]:
        return response.tool_calls or []

    async def complete(self, request: Any, **_: Any) -> Any:
        from amplifier_core.message_models import (
            ChatResponse,
            TextBlock,
            ThinkingBlock,
            ToolCall,
            ToolCallBlock,
            Usage,
        )

        self.count += 1
        messages = [message.model_dump() for message in request.messages]
        body = BODIES[self.plan.wire](messages)
        told: dict[str, Any] = {
            "provider": "scripted", "model": _MODELS[self.plan.wire], "message_count": len(messages),
            "has_system": any(one["role"] == "system" for one in messages),
        }  # fmt: skip
        await self.hooks.emit("llm:request", {**told, **({"raw": body} if body is not None else {})})
        new = messages[-1]["role"] != "tool" and not messages[-1].get("tool_call_id")
        if new or self.left <= 0:
            self.left = self.dice.choice((0, 1, 1, 2, 3)) if new else 0
        again = self.left > 0
        self.left -= 1
        blocks: list[Any] = []
        calls: list[Any] = []
        if again:
            if self.dice.random() < 0.4:
                blocks.append(TextBlock(text=text(self.dice, 2, 12)))
            for n in range(self.dice.choice((1, 1, 2, 3))):
                given = {"path": text(self.dice, 1, 3), "n": n}
                key = f"call_{self.plan.seed}_{self.count}_{n}"
                blocks.append(ToolCallBlock(id=key, name="read", input=given))
                calls.append(ToolCall(id=key, name="read", arguments=given))
        else:
            blocks.append(TextBlock(text="Done." if self.plan.same else text(self.dice, 5, 60)))
        if self.plan.thinks and self.dice.random() < 0.7:
            thought = ThinkingBlock(thinking=text(self.dice, 2, 30), signature="sig" + "x" * 200)
            blocks.insert(0, thought)
        counted = {"input_tokens": 100 + self.count, "output_tokens": 7}
        answer = REPLIES[self.plan.wire](blocks, self.count, counted)
        await self.hooks.emit(
            "llm:response",
            {**told, "status": "ok", "usage": counted, **({"raw": answer} if answer is not None else {})},
        )
        usage = Usage(**counted, total_tokens=sum(counted.values()))
        said = ChatResponse(content=blocks, tool_calls=calls or None, usage=usage)
        if self.plan.blocks:
            said.content_blocks = [_shown(block) for block in blocks]
        return said


def _shown(block: Any) -> Any:
    from amplifier_core.content_models import TextContent, ThinkingContent, ToolCallContent

    if block.type == "thinking":
        return ThinkingContent(text=block.thinking)
    if block.type == "text":
        return TextContent(text=block.text)
    return ToolCallContent(id=block.id, name=block.name, arguments=block.input)


class Read:
    """A tool whose results are long, short, structured or an error."""

    name = "read"
    description = "Reads a file."
    input_schema: dict[str, Any] = {"type": "object", "properties": {"path": {"type": "string"}}}  # noqa: RUF012

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(-seed)

    async def execute(self, input: dict[str, Any]) -> Any:  # noqa: A002  the core's name
        from amplifier_core.models import ToolResult

        kind = self.dice.random()
        if kind < 0.1:
            return ToolResult(success=False, error={"message": text(self.dice, 1, 9)})
        if kind < 0.3:
            rows = [{"line": n, "text": text(self.dice, 1, 8)} for n in range(self.dice.randint(1, 9))]
            return ToolResult(success=True, output={"rows": rows, "path": input.get("path")})
        return ToolResult(success=True, output=text(self.dice, 2, 200))


# -- bodies ------------------------------------------------------------------------------------------------

Body = dict[str, Any]
_MODELS: Final = {"chat": "gpt-5", "anthropic": "claude-sonnet-5", "responses": "gpt-5", "none": "gpt-5"}
_TOOL: Final = {"name": "read", "description": Read.description}


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [one["text"] for one in content if one["type"] == "text"]


def _thoughts(message: Body) -> list[Body]:
    content = message["content"]
    return [] if isinstance(content, str) else [one for one in content if one["type"] == "thinking"]


def _calls(content: Any) -> list[Body]:
    return [] if isinstance(content, str) else [one for one in content if one["type"] == "tool_call"]


def _chat(messages: list[Body]) -> Body:
    """As OpenAI's chat interface has them."""
    made: list[Body] = []
    for one in messages:
        row: Body = {"role": one["role"], "content": "".join(_texts(one["content"])) or None}
        calls = _calls(one["content"])
        if calls:
            row["tool_calls"] = [
                {"id": call["id"], "type": "function",
                 "function": {"name": call["name"], "arguments": json.dumps(call["input"])}}
                for call in calls
            ]  # fmt: skip
        if one["role"] == "tool":
            row["tool_call_id"] = one["tool_call_id"]
        made.append(row)
    tools = [{"type": "function", "function": {**_TOOL, "parameters": Read.input_schema}}]
    return {"model": "gpt-5", "messages": made, "tools": tools, "max_tokens": 500}


def _anthropic(messages: list[Body]) -> Body:
    """As Anthropic's interface has them: results in messages of the user, system prompts beside them."""
    made: list[Body] = []
    for one in messages:
        if one["role"] == "system":
            continue
        if one["role"] == "tool":
            block = {"type": "tool_result", "tool_use_id": one["tool_call_id"], "content": one["content"]}
            if made and made[-1]["role"] == "user" and made[-1]["content"][0]["type"] == "tool_result":
                made[-1]["content"].append(block)
            else:
                made.append({"role": "user", "content": [block]})
            continue
        parts = [{n: block[n] for n in ("type", "thinking", "signature")} for block in _thoughts(one)]
        parts += [{"type": "text", "text": said} for said in _texts(one["content"])]
        parts += [
            {"type": "tool_use", "id": call["id"], "name": call["name"], "input": call["input"]}
            for call in _calls(one["content"])
        ]
        made.append({"role": one["role"], "content": parts})
    system = [one["content"] for one in messages if one["role"] == "system"]
    return {
        "model": _MODELS["anthropic"], "max_tokens": 500, "messages": made,
        "system": [{"type": "text", "text": said} for said in system],
        "tools": [{**_TOOL, "input_schema": Read.input_schema}],
    }  # fmt: skip


def _responses(messages: list[Body]) -> Body:
    """As OpenAI's responses interface has them."""
    made: list[Body] = []
    for one in messages:
        if one["role"] == "tool":
            output = {
                "type": "function_call_output",
                "call_id": one["tool_call_id"],
                "output": one["content"],
            }
            made.append(output)
            continue
        kind = "output_text" if one["role"] == "assistant" else "input_text"
        for said in _texts(one["content"]):
            if one["role"] != "system":
                made.append({"role": one["role"], "content": [{"type": kind, "text": said}]})
        made += [
            {"type": "function_call", "call_id": call["id"], "name": call["name"],
             "arguments": json.dumps(call["input"])}
            for call in _calls(one["content"])
        ]  # fmt: skip
    system = "\n\n".join(one["content"] for one in messages if one["role"] == "system")
    return {
        "model": "gpt-5", "input": made, "instructions": system, "max_output_tokens": 500,
        "tools": [{"type": "function", **_TOOL, "parameters": Read.input_schema}],
    }  # fmt: skip


def _chat_reply(blocks: list[Any], count: int, usage: Body) -> Body:
    parts = [block.model_dump() for block in blocks]
    row = _chat([{"role": "assistant", "content": parts}])["messages"][0]
    bill = {"prompt_tokens": usage["input_tokens"], "completion_tokens": usage["output_tokens"]}
    choice = {"index": 0, "finish_reason": "stop", "message": row}
    return {
        "id": f"chatcmpl-{count}", "object": "chat.completion", "model": "gpt-5", "choices": [choice],
        "usage": bill,
    }  # fmt: skip


def _anthropic_reply(blocks: list[Any], count: int, usage: Body) -> Body:
    parts = [block.model_dump() for block in blocks]
    row = _anthropic([{"role": "assistant", "content": parts}])["messages"][0]
    return {
        "id": f"msg_{count}", "type": "message", "role": "assistant", "model": _MODELS["anthropic"],
        "content": row["content"], "usage": usage,
    }  # fmt: skip


def _responses_reply(blocks: list[Any], count: int, usage: Body) -> Body:
    parts = [block.model_dump() for block in blocks]
    rows = _responses([{"role": "assistant", "content": parts}])["input"]
    rows = [{"type": "message", **row} if "role" in row else row for row in rows]
    return {
        "id": f"resp_{count}", "object": "response", "model": "gpt-5", "output": rows, "usage": usage,
    }  # fmt: skip


def _nothing(*_: Any) -> None:
    return None


BODIES: Final = {"chat": _chat, "anthropic": _anthropic, "responses": _responses, "none": _nothing}
REPLIES: Final = {
    "chat": _chat_reply, "anthropic": _anthropic_reply, "responses": _responses_reply, "none": _nothing,
}  # fmt: skip


# -- a session ---------------------------------------------------------------------------------------------


def found() -> bool:
    """Whether Amplifier's own modules are here."""
    for place in os.environ.get(MODULES, "").split(os.pathsep):
        if place and place not in sys.path:
            sys.path.append(place)
    from importlib.util import find_spec

    wanted = "context_simple", "loop_basic", "loop_streaming", "hooks_logging"
    return all(find_spec(f"amplifier_module_{name}") is not None for name in wanted)


def _install(plan: Plan, seen: dict[str, Any]) -> None:
    """Make this file's modules known to the core's loader."""

    async def provider(coordinator: Any, config: Any) -> None:
        await coordinator.mount("providers", Provider(coordinator.hooks, plan, seen), name="scripted")

    async def tool(coordinator: Any, config: Any) -> None:
        await coordinator.mount("tools", Read(plan.seed), name="read")

    async def reminder(coordinator: Any, config: Any) -> None:
        from amplifier_core.models import HookResult

        async def remind(event: str, data: dict[str, Any]) -> Any:
            said = (
                f'<system-reminder source="hooks-status">\nstep {data.get("iteration")}\n</system-reminder>'
            )
            return HookResult(
                action="inject_context", context_injection=said, context_injection_role="user",
                ephemeral=True, append_to_last_tool_result=True,
            )  # fmt: skip

        coordinator.hooks.register("provider:request", remind, priority=10, name="reminder")

    for name, mount in (("provider_scripted", provider), ("tool_read", tool), ("hooks_reminder", reminder)):
        module = ModuleType(f"amplifier_module_{name}")
        module.mount = mount  # type: ignore[attr-defined]
        sys.modules[module.__name__] = module


def mounted(plan: Plan, where: str) -> dict[str, Any]:
    """The mount plan."""
    context = {
        "max_tokens": plan.budget, "protected_recent": plan.recent, "protected_tool_results": plan.results,
        "target_usage": plan.target, "compaction_notice_token_reserve": plan.reserve, **dict(plan.more),
    }  # fmt: skip
    hooks = [
        {"module": "hooks-logging", "config": {"session_log_template": f"{where}/events.jsonl"}},
        {"module": "hooks-ctxctl", "config": {"path": f"{where}/recorded.jsonl"}},
    ]
    if plan.reminders:
        hooks.append({"module": "hooks-reminder"})
    return {
        "session": {"orchestrator": plan.loop, "context": {"module": "context-simple", "config": context}},
        "providers": [{"module": "provider-scripted", "config": {"raw": plan.wire != "none"}}],
        "tools": [{"module": "tool-read"}],
        "hooks": hooks,
    }


async def run(plan: Plan, where: str) -> dict[str, Any]:
    """One session; what its context manager held at the end, and each view that it gave."""
    from amplifier_core import AmplifierSession

    seen: dict[str, Any] = {"views": []}
    _install(plan, seen)
    session = AmplifierSession(mounted(plan, where), session_id=f"simple-{plan.seed}")
    await session.initialize()
    context = session.coordinator.get("context")
    if plan.factory:

        async def made() -> str:
            return "You read files, and the time is always the same."

        await context.set_system_prompt_factory(made)
    else:
        await context.add_message({"role": "system", "content": "You read files."})
    given = context.get_messages_for_request

    async def watched(*args: Any, **named: Any) -> Any:
        view = await given(*args, **named)
        held = len(await context.get_messages())
        seen["views"].append({"held": held, "view": copy.deepcopy(view)})
        return view

    context.get_messages_for_request = watched
    dice = random.Random(1000 + plan.seed)
    for _ in range(plan.turns):
        same = dice.choice(("continue", "continue", "and again, please: " + "look into it once more, " * 5))
        await session.execute(same if plan.same else text(dice, 3, 50))
    seen["history"] = await context.get_messages()
    await session.cleanup()
    return seen


if __name__ == "__main__":
    assert found()
    (number,) = (n for n, plan in enumerate(PLANS) if plan.seed == int(sys.argv[1]))
    print(json.dumps(asyncio.run(run(PLANS[number], sys.argv[2]))), flush=True)
