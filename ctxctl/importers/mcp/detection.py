"""Telling dumps and logs of the protocol from other JSON."""

from __future__ import annotations

import re
from typing import Any, Final

import orjson

from ctxctl.ingest.folder import Folder
from ctxctl.ingest.outline import OUTLINED, outline

CERTAIN: Final = 97
SURE: Final = 92
LIKELY: Final = 70
_LINES = 60
_BOM = b"\xef\xbb\xbf"
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
"""A record that has a message as a text."""
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


def dump_score(head: bytes) -> int:
    """How sure a document holds tool definitions and nothing but what comes with them."""
    body = head.removeprefix(_BOM).lstrip()
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
    """Whether a text that may be cut anywhere holds a name and an input schema."""
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


def folder_score(folder: Folder) -> int:
    """How sure a directory holds dumps alone; looks at some of its files."""
    names = [name for name in folder.files if name.endswith((".json", ".snap"))]
    if not names or len(names) * 2 < len(folder.files):
        return 0
    step = max(1, len(names) // _LOOKED)
    looked = [_file_score(folder, name) for name in names[::step]]
    return SURE if sum(score >= LIKELY for score in looked) * 2 > len(looked) else 0


def _file_score(folder: Folder, name: str) -> int:
    """As `dump_score`; a request may begin with more tools than its head holds."""
    head = folder.head(name, _FILE)
    score = dump_score(head)
    if score and len(head) == _FILE:
        layout = outline(folder.head(name, OUTLINED))
        return dump_score(layout) if layout else score
    return score


def log_score(head: bytes) -> int:
    """How sure the first lines are messages between a client and a server, or saved results of calls."""
    body = head.removeprefix(_BOM).lstrip()
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
