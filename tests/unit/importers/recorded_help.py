"""Runs of real clients as they were recorded: what the client logged, and the messages that it sent."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

from tests.unit.importers.agent_help import Window

Json = dict[str, Any]
RECORDED = Path(__file__).parent / "recorded"

Sent = tuple[str, str]
"""What it is (`user`, `assistant`, `reasoning`, `call`, `result`) and its text."""

_KINDS = {
    "reasoning": "reasoning",
    "tool_call": "call",
    "tool_result": "result",
    "assistant_message": "assistant",
    "developer_instruction": "system",
}


def recorded(name: str) -> Json:
    """A recording."""
    found: Json = json.loads((RECORDED / name).read_text())
    return found


def database(path: Path, recording: Json, *, filler: int = 0) -> Path:
    """The database of a recording; `filler`: tables of others that are made first."""
    with sqlite3.connect(path) as made:
        for at in range(filler):
            columns = ", ".join(f"column_of_nothing_{at}_{one} TEXT" for one in range(40))
            made.execute(f"CREATE TABLE other_{at} ({columns})")
        for statement in recording["schema"]:
            made.execute(statement)
        for table, rows in recording["rows"].items():
            places = ", ".join("?" for _ in rows["columns"])
            names = ", ".join(f'"{name}"' for name in rows["columns"])
            made.executemany(f'INSERT INTO "{table}" ({names}) VALUES ({places})', rows["values"])
    made.close()
    return path


def sent(messages: list[Json]) -> list[Sent]:
    """The messages of a body in Anthropic's dialect, piece by piece."""
    return [one for message in messages for one in _blocks(message)]


def _blocks(message: Json) -> list[Sent]:
    content, role = message["content"], message["role"]
    if isinstance(content, str):
        return [(role, content)]
    found: list[Sent] = []
    for block in content:
        if block["type"] == "text":
            found.append((role, block["text"]))
        elif block["type"] == "thinking":
            found.append(("reasoning", block["thinking"]))
        elif block["type"] == "tool_use":
            found.append(("call", _call(block["name"], block["input"])))
        elif block["type"] == "tool_result":
            inner = block["content"]
            texts = [inner] if isinstance(inner, str) else [one["text"] for one in inner]
            found.append(("result", "".join(texts)))
    return found


def held(window: Window) -> list[tuple[str, str | None]]:
    """The messages of a frame, piece by piece; a text that the log does not hold is None."""
    return [
        _held(kind, text) for kind, text in window.items if kind not in ("system_prompt", "tool_definition")
    ]


def _held(kind: str, text: str | None) -> tuple[str, str | None]:
    if kind == "tool_call" and text is not None:
        name, _, arguments = text.partition(" ")
        return "call", _call(name, json.loads(arguments))
    return _KINDS.get(kind, "user"), text


def _call(name: str, arguments: Any) -> str:
    return f"{name} {json.dumps(arguments, sort_keys=True)}"
