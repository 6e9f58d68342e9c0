"""What of a request to Anthropic its model read: less what the provider left out, by its own documents.

*Compaction*: nothing before the last compaction block is read.  *Context editing*: the oldest results of
tools that are not excluded, and the thinking of the oldest turns that have some, as many as the answer says;
a call goes with its result where inputs are cleared too.  *Tool search tool*: a deferred tool is read where a
search found it, and nowhere before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tools.independent.raw import Object, at, events

FOUND = "found tool"
"""The type of the block that stands in for the definition of a tool that a search found."""


def content(said: Any) -> list[Any]:
    """The blocks of an answer, streamed or not; of a streamed one as far as a compaction needs it."""
    if isinstance(said, str):
        found: dict[Any, Object] = {}
        for event in events(said):
            if event.get("type") == "content_block_start":
                found[event.get("index")] = dict(event.get("content_block") or {})
            elif at(event, "delta", "type") == "compaction_delta":
                found[event.get("index")] |= {"content": at(event, "delta", "content")}
        return list(found.values())
    return at(said, "content") if isinstance(at(said, "content"), list) else []


def applied(said: Any) -> list[Any]:
    """The edits that an answer says were applied."""
    told = events(said) if isinstance(said, str) else [said]
    lists = [
        edits
        for one in told
        for inner in (one, at(one, "message"))
        if isinstance(edits := at(inner, "context_management", "applied_edits"), list)
    ]
    return lists[-1] if lists else []


def read(body: Object, said: Any, passes: list[Any]) -> Object:
    """A body as the model read it in the last pass that answered."""
    messages = [dict(m) for m in body["messages"] if isinstance(m, dict)]
    messages = [
        {**m, "content": list(m["content"]) if isinstance(m.get("content"), list) else m.get("content")}
        for m in messages
    ]
    kinds = [at(one, "type") for one in passes]
    if "compaction" in kinds and kinds[-1] != "compaction":
        messages.append({"role": "assistant", "content": [b for b in content(said) if _is_summary(b)]})
    messages = _after_summary(messages)
    edits = {str(at(e, "type")): e for e in at(body, "context_management", "edits") or ()}
    for done in applied(said):
        edit = edits.get(str(at(done, "type"))) or {}
        _clear_results(messages, at(done, "cleared_tool_uses") or 0, edit)
        _clear_thinking(messages, at(done, "cleared_thinking_turns") or 0)
    tools = body.get("tools")
    if not isinstance(tools, list) or not any(at(tool, "defer_loading") is True for tool in tools):
        return {**body, "messages": messages}
    deferred = {at(tool, "name"): tool for tool in tools if at(tool, "defer_loading") is True}
    for message in messages:
        blocks = message["content"] if isinstance(message["content"], list) else []
        names = [name for block in list(blocks) for name in references(block)]
        blocks += [{"type": FOUND, "tool": deferred.pop(name)} for name in names if name in deferred]
    shown = [tool for tool in tools if at(tool, "defer_loading") is not True]
    return {**body, "messages": messages, "tools": shown}


def references(value: Any) -> list[Any]:
    """The names of the tools that a result refers to."""
    if isinstance(value, list):
        return [name for one in value for name in references(one)]
    if at(value, "type") == "tool_reference":
        return [at(value, "tool_name")]
    if not str(at(value, "type")).endswith("tool_result"):
        return []
    inner = at(value, "content")
    return references((at(inner, "tool_references") if isinstance(inner, dict) else inner) or [])


def _is_summary(block: Any) -> bool:
    return at(block, "type") == "compaction" and isinstance(at(block, "content"), str)


def _after_summary(messages: list[Object]) -> list[Object]:
    for place in range(len(messages) - 1, -1, -1):
        blocks = messages[place]["content"]
        marks = [i for i, b in enumerate(blocks) if _is_summary(b)] if isinstance(blocks, list) else []
        if marks:
            return [{**messages[place], "content": blocks[marks[-1] :]}, *messages[place + 1 :]]
    return messages


def _clear_results(messages: list[Object], count: int, edit: Object) -> None:
    spared = edit.get("exclude_tools") or ()
    blocks = [b for m in messages if isinstance(m["content"], list) for b in m["content"]]
    used = [b for b in blocks if str(at(b, "type")).endswith("tool_use") and at(b, "name") not in spared]
    gone, inputs = {b["id"] for b in used[:count]}, edit.get("clear_tool_inputs")
    inputs = {b["name"] for b in used} if inputs is True else set(inputs or ())
    inside = {b["id"] for b in used if b["id"] in gone and b["name"] in inputs}
    _take_out(messages, lambda b: at(b, "tool_use_id") in gone or at(b, "id") in inside)


def _clear_thinking(messages: list[Object], count: int) -> None:
    turns: list[list[int]] = [[]]
    for place, message in enumerate(messages):
        blocks = message["content"] if isinstance(message["content"], list) else []
        if message.get("role") == "user" and not any(at(b, "type") == "tool_result" for b in blocks):
            turns.append([])
        elif any(_thinks(b) for b in blocks):
            turns[-1].append(place)
    for place in [place for turn in [t for t in turns if t][:count] for place in turn]:
        _take_out(messages[place : place + 1], _thinks)


def _thinks(block: Any) -> bool:
    return at(block, "type") in {"thinking", "redacted_thinking"}


def _take_out(messages: list[Object], gone: Callable[[Any], bool]) -> None:
    """Take blocks out, in place."""
    for message in messages:
        if isinstance(message["content"], list):
            message["content"][:] = [b for b in message["content"] if not gone(b)]
