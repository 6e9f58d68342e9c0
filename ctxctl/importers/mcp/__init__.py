"""The Model Context Protocol: dumps of `tools/list`, and logs of what a client and a server said.

Neither holds a request to a model.  What they hold is what a server offers (and what each definition costs)
and what came back from calls; whether a client put it before a model is not recorded.
"""

from __future__ import annotations

from typing import Final

from ctxctl.importers.mcp.detection import dump_score, folder_score, log_score
from ctxctl.ingest.about import About, absent, derived, native
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.folder import Folder

_NO_REQUEST: Final = absent("a client's requests to its model are not in it")
_ORIGIN: Final = "Model Context Protocol, revisions 2024-11-05 to 2025-11-25"
TOOLS: Final = About(
    reads=(
        "The tools of one server or several: the result of `tools/list`, an array of tools, one tool a file,"
        " or the reduced form of registries (name, description, arguments)."
    ),
    places=("the answer of `tools/list`, saved", "a directory of such files: one server a directory"),
    turns="One step shows every definition with its cost; nothing is known of requests.",
    claims={
        "candidates": native("the tools that are offered"),
        "sources": native("the server; in a directory the name of its folder, which is derived"),
        "item_ids": native("name of the tool"),
        "tool_definitions": derived("name, description and input schema: what clients put before a model"),
        "reminders": native("instructions of the server"),
        "requests": _NO_REQUEST,
        "turns": derived("one step stands for the dump"),
    },
    limits=("annotations and output schemas are kept but not counted: clients do not send them",),
    origin=_ORIGIN,
)
LOG: Final = About(
    reads=(
        "JSON-RPC messages between a client and servers: bare lines, lines marked STDIN: and STDOUT:, or"
        " records that wrap a message with its direction; saved results of calls."
    ),
    places=("a log of the stdio or HTTP transport",),
    turns="Each call of a tool, read of a resource or use of a prompt is a step and a turn of its own.",
    claims={
        "candidates": native("tools, resources and prompts that are offered"),
        "sources": native("name of the server"),
        "item_ids": native("names, URIs and JSON-RPC ids"),
        "tool_definitions": derived("name, description and input schema: what clients put before a model"),
        "messages": native("calls and results; messages of sampling requests"),
        "reminders": native("instructions of the server, resources, prompts"),
        "system_prompt": native("of sampling requests only"),
        "requests": native("of sampling requests only"),
        "turns": native("JSON-RPC ids"),
        "threads": native("sampling requests are threads"),
        "model": native("of sampling requests only"),
        "order": native("of sampling requests only"),
        "times": native("where the log has them"),
    },
    limits=("notifications, pings and the server's own log lines are passed over",),
    origin=_ORIGIN,
)


def detect_mcp_tools(head: bytes) -> int:
    """How sure a document is one of tool definitions."""
    return dump_score(head)


def detect_folder_mcp_tools(folder: Folder) -> int:
    """How sure every JSON file of a directory is a dump."""
    return folder_score(folder)


def detect_mcp_session(head: bytes) -> int:
    """How sure the first lines are JSON-RPC messages of the protocol."""
    return log_score(head)


MCP_TOOLS: Final = Format(
    name="mcp-tools",
    title="MCP tool definitions",
    detect=detect_mcp_tools,
    reader="ctxctl.importers.mcp.tools_reader:dump",
    about=TOOLS,
    detect_folder=detect_folder_mcp_tools,
    folder_reader="ctxctl.importers.mcp.tools_reader:dumps",
)

MCP_SESSION: Final = Format(
    name="mcp-session",
    title="MCP session log",
    detect=detect_mcp_session,
    reader="ctxctl.providers.mcp.session:McpSession",
    about=LOG,
)
