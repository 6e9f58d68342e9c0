"""The Model Context Protocol: dumps of `tools/list`, and logs of what a client and a server said.

Neither holds a request to a model.  What they hold is what a server offers (and what each definition costs)
and what came back from calls; whether a client put it before a model is not recorded.
"""

from __future__ import annotations

import re
from typing import Any, Final

import orjson

from ctxctl.ingest.about import About, absent, derived, native
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.folder import Folder
from ctxctl.ingest.outline import OUTLINED, outline
from ctxctl.ingest.skim import text_of_head

CERTAIN: Final = 97
SURE: Final = 92
LIKELY: Final = 70
_LINES = 60
_METHODS: Final = re.compile(
    rb'"method"\s*:\s*"(?:initialize|ping|tools/|resources/|prompts/|sampling/|notifications/|completion/|logging/)'
)
_PREFIX: Final = re.compile(rb"(?:STDIN|STDOUT|STDERR):", re.IGNORECASE)
_SCHEMA: Final = re.compile(rb'"(?:inputSchema|input_schema)"\s*:\s*\{')
_NAME: Final = re.compile(rb'"name"\s*:\s*"')
_BEGINS: Final = re.compile(rb'\{\s*"(?:name|annotations|description|title)"\s*:')
_REDUCED: Final = re.compile(
    rb'\[\s*\{\s*"name"\s*:\s*"[^"\\]*+(?:\\.[^"\\]*+)*+"\s*,\s*"description"\s*:\s*"[^"\\]*+(?:\\.[^"\\]*+)*+"\s*'
    rb'(?:\}|,\s*"(?:arguments|annotations|inputSchema|title)"\s*:)'
)
_TOOLS: Final = re.compile(rb'"tools"\s*:\s*\[\s*\{\s*"(?:name|annotations|description|title)"\s*:')
_WRAPPED: Final = re.compile(
    rb'"(?:body|raw|message|payload|data|msg|rpc|request|response)"\s*:\s*"'
    rb'(?:event: message\\n)?(?:data: ?)?\{\\"'
    rb'(?:jsonrpc\\"\s*:\s*\\"2\.0|(?:id|result|method)\\"[^\n]{0,400}\\"jsonrpc)\\"'
)
"""A record that holds a message as a string."""
_RESULT: Final = re.compile(
    rb'\[\s*\{\s*"(?:content|isError|structuredContent)"\s*:\s*(?:true|false|\{|\[\s*(?:\]|\{\s*"(?:type|text|annotations)"\s*:))'
)
_MESSAGES: Final = re.compile(rb'"(?:messages|contents|role|model|choices|resourceSpans|uuid)"\s*:')
_OF_REQUESTS: Final = frozenset({"messages", "contents", "model", "input", "choices"})
_ENVELOPES: Final = ("request", "requests", "req", "body", "request_body", "requestBody", "raw_request",
                     "params", "payload", "data", "content", "json", "kwargs", "modelInput")  # fmt: skip
"""Fields that a log of calls may hold a request in."""
_HEAD = 16 * 1024
_FILE = 64 * 1024
_LOOKED = 24


def detect_mcp_tools(head: bytes) -> int:
    """How sure a document holds tool definitions and nothing but what comes with them."""
    body = text_of_head(head)
    if body[:1] not in (b"{", b"[") or (b'"jsonrpc"' in body[:2048] and b'"tools"' not in body[:4096]):
        return 0
    if _METHODS.search(body, 0, _HEAD) and b'"jsonrpc"' in body[:_HEAD]:
        return 0  # a log: it holds the question too
    value = _loaded(body)
    if value is not None:
        return SURE if not _asks(value) and _holds_tools(value) else 0
    if _MESSAGES.search(body[:2048]) or _asks(_loaded(body.partition(b"\n")[0])):
        return 0
    if body.startswith(b"["):
        return SURE if _REDUCED.match(body) or (_one(body) and b'"function"' not in body[:512]) else 0
    tools = _TOOLS.search(body[:4096])
    if tools is not None:
        rest = body[tools.start() : _HEAD + tools.start()]
        return SURE if _one(rest) or _REDUCED.search(rest) else 0
    return LIKELY if _BEGINS.match(body) and _one(body[:_HEAD]) else 0


def _asks(value: Any, depth: int = 4) -> bool:
    """Whether a document is a request to a model, or holds one that has the tools."""
    if isinstance(value, dict):
        if not _OF_REQUESTS.isdisjoint(value):
            return True
        inner = [value[name] for name in _ENVELOPES if name in value]
    else:
        inner = value[:1] if isinstance(value, list) else []
    return depth > 0 and any(_asks(one, depth - 1) for one in inner)


def _one(body: bytes) -> bool:
    """Whether a text, which may be cut anywhere, holds a name and an input schema."""
    return _SCHEMA.search(body, 0, _HEAD) is not None and _NAME.search(body, 0, _HEAD) is not None


def _holds_tools(value: Any) -> bool:
    from ctxctl.providers.mcp.parts import servers

    found = list(servers(value, None))
    return bool(found) and any(server.tools for server in found)


def _loaded(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None


def detect_folder_mcp_tools(folder: Folder) -> int:
    """How sure a directory holds dumps alone; looks at some of its files."""
    names = [name for name in folder.files if name.endswith((".json", ".snap"))]
    if not names or len(names) * 2 < len(folder.files):
        return 0
    step = max(1, len(names) // _LOOKED)
    looked = [_file_score(folder, name) for name in names[::step]]
    return SURE if sum(score >= LIKELY for score in looked) * 2 > len(looked) else 0


def _file_score(folder: Folder, name: str) -> int:
    """As `detect_mcp_tools`; a request may begin with more tools than its head holds."""
    head = folder.head(name, _FILE)
    score = detect_mcp_tools(head)
    if score and len(head) == _FILE:
        layout = outline(folder.head(name, OUTLINED))
        return detect_mcp_tools(layout) if layout else score
    return score


def detect_mcp_session(head: bytes) -> int:
    """How sure the first lines are messages between a client and a server, or saved results of calls."""
    body = text_of_head(head)
    for line in body.split(b"\n", _LINES)[:_LINES]:
        line = line.strip()
        prefix = _PREFIX.match(line)
        if prefix is not None and not line.upper().startswith(b"STDERR"):
            return SURE if b'"jsonrpc"' in line else 0
        if b'"jsonrpc"' in line and (_METHODS.search(line) or b'"result"' in line or b'"error"' in line):
            return CERTAIN
    if body.startswith(b"[") and b'"jsonrpc"' in body[:_HEAD] and _METHODS.search(body, 0, _HEAD):
        return LIKELY if _MESSAGES.search(body[:_HEAD]) else SURE
    return LIKELY if _RESULT.match(body) or _WRAPPED.search(body[:_HEAD]) else 0


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
    limits=("notifications, pings and the server's own log lines are skipped",),
    origin=_ORIGIN,
)


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
