"""Short spellings of Claude Code lines, and the frames that an importer's events add up to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ctxctl.importers.claude_code import FORMAT
from ctxctl.model.problem import Problem
from ctxctl.trace.source import Source

Json = dict[str, Any]
FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"


def line(kind: str, uuid: str, parent: str | None, **fields: Any) -> Json:
    return {
        "type": kind,
        "uuid": uuid,
        "parentUuid": parent,
        "sessionId": "s",
        "isSidechain": False,
        "timestamp": "2026-03-02T09:00:00.000Z",
        **fields,
    }


def user(uuid: str, parent: str | None, content: Any, **fields: Any) -> Json:
    return line("user", uuid, parent, message={"role": "user", "content": content}, **fields)


def result(uuid: str, parent: str | None, tool: str, content: Any = "ok", **fields: Any) -> Json:
    return user(uuid, parent, [{"type": "tool_result", "tool_use_id": tool, "content": content}], **fields)


def said(uuid: str, parent: str | None, message: str, *blocks: Json, **fields: Any) -> Json:
    body: Json = {"id": message, "role": "assistant", "model": "claude-x", "content": list(blocks)}
    if "usage" in fields:
        body["usage"] = fields.pop("usage")
    return line("assistant", uuid, parent, message=body, **fields)


def text(value: str) -> Json:
    return {"type": "text", "text": value}


def call(tool: str, name: str = "Read", **arguments: Any) -> Json:
    return {"type": "tool_use", "id": tool, "name": name, "input": arguments}


def source(*lines: Json) -> Source:
    return Source.from_bytes("session.jsonl", b"".join(json.dumps(value).encode() + b"\n" for value in lines))


def events(*lines: Json) -> tuple[list[Json], list[Problem]]:
    problems: list[Problem] = []
    return list(FORMAT.events(source(*lines), problems.append)), problems


def of_type(found: list[Json], event_type: str) -> list[Json]:
    return [event for event in found if event["event_type"] == event_type]


def frames(found: list[Json], *, refs: bool = False) -> dict[tuple[str, str], list[str]]:
    """Item ids (or refs) of each step's window, by thread and step, spelt out from the splices."""
    made: dict[tuple[str, str], list[str]] = {}
    last: dict[str, tuple[str, list[str]]] = {}
    for event in of_type(found, "context.assembly.created"):
        data = event["data"]
        own = data["metadata"]["ctxctl"]
        new = [b["item_refs"][0] if refs else b["block_id"] for b in data["ordered_blocks"]]
        thread = event["thread_id"]
        if "base" in own:
            base_id, base = last[thread]
            assert own["base"] == base_id
            new = spliced(base, new, own["splices"])
        last[thread] = (data["assembly_id"], new)
        made[thread, event["step_id"]] = new
    return made


def spliced(base: list[str], new: list[str], splices: list[list[int]]) -> list[str]:
    out: list[str] = []
    at = taken = 0
    for start, removed, inserted in splices:
        assert start >= at, "splices ascend and do not overlap"
        out += base[at:start] + new[taken : taken + inserted]
        at, taken = start + removed, taken + inserted
    assert taken == len(new)
    return out + base[at:]
