"""Names of tools and of the servers that they are from, as placements tell them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from ctxctl.engine.query.facts import tool_server_of

if TYPE_CHECKING:
    from ctxctl.model.results import Placement

OWN = "the runtime itself"
_HEAD = 400
_COPILOT = re.compile(r"([a-z0-9-]+-mcp-server)-(.+)")


def defined(tool: Placement) -> str | None:
    """The name that a tool is called by."""
    if tool.title:
        return tool.title
    return tool.item.removeprefix("tool:").removeprefix("tool/") or None


def server(tool: Placement) -> str:
    """The server that a tool is from, by its name or its source."""
    found = tool_server_of(tool)
    if found is not None:
        return found
    name = defined(tool) or ""
    match = _COPILOT.match(name)
    if match is not None:
        return match[1]
    head, between, _ = name.partition("__")
    return head if between and head else OWN


def short(name: str) -> str:
    """A tool's name without its server's."""
    return name.rpartition("__")[2]


def called(text: str) -> str | None:
    """The tool that a call's text names: `NAME {arguments}`, or an object with a name."""
    if not text.startswith("{"):
        name = text.partition(" ")[0].partition("\n")[0]
        return name if 0 < len(name) <= _HEAD else None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    for inner in (value, value.get("function"), value.get("function_call")):
        found = inner.get("name") if isinstance(inner, dict) else None
        if isinstance(found, str) and found:
            return found
    return None
