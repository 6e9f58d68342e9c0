"""Luminarys skill calls: requests and responses of the skill interface, in msgpack or decoded (0.2).

A call's result, with the LLM context that the skill sets beside it, goes to the model; a skill's state goes
to that skill alone.  One call is one step; what a call adds stays in the model's history (mode `append`).
"""

from __future__ import annotations

import re
from typing import Final

import orjson

from ctxctl.ingest.about import About, HeldAgainst, absent, derived, native, simulated
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.folder import Folder

_LINES: Final = 20
_MAX_FILES: Final = 20_000
_KEYS: Final = (b"\xa7version", b"\xa8skill_id", b"\xa6method", b"\xaarequest_id")
_ANSWERS: Final = (b"\xa5state", b"\xa7payload", b"\xabllm_context", b"\xa5error")
_IDS: Final = ("request_id", "trace_id", "llm_session_id", "payload")
_MESSAGES: Final = re.compile(r"[._-](?:request|response|req|resp)\.(?:msgpack|mp|bin)(?:\.gz|\.zst)?$")

ABOUT: Final = About(
    reads=(
        "Calls of skills (SDKs 0.2): pairs of msgpack files, messages one behind the other in a file, JSON"
        " lines of decoded calls; with what the host returned over MCP where it was captured beside them."
    ),
    places=(
        "a test host or wrapper around skill_handle that saves X.request.msgpack and X.response.msgpack",
        "JSON lines of {request, response}, bytes as {b64}",
    ),
    turns="The interface knows no turns: each call is a step. Session and LLM session are native.",
    claims={
        "candidates": absent(),
        "sources": absent(),
        "item_ids": native("made of the request's id and the skill's"),
        "limit": derived("recommended size of a state, where it is exceeded"),
        "messages": native("results and LLM context; arguments as the skill got them, for the tool only"),
        "reminders": derived("a skill's state, decoded, for the tool only"),
        "order": simulated(
            "LLM context before the result, as documented; derived where what the host returned is there"
        ),
        "wrapper": simulated("`---`"),
        "requests": absent("the model's requests are not in such a capture"),
        "turns": absent(),
        "threads": native("llm_session_id"),
        "times": native("where a log has them"),
    },
    limits=(
        "Whether a result reached a model is not recorded: the host's side is not public.",
        "A response names no request: it belongs to the request opened last.",
        "What another skill calls (as its id tells, if it was called before) is shown to the tool only.",
        "Descriptions of skills and commands in responses are not read as context.",
    ),
    held_against=HeldAgainst("SDK", "0.2.0", "0.2.0"),
    origin="LuminarysAI sdk-go, sdk-rust and sdk-as 0.2.0",
)


def detect(head: bytes) -> int:
    """How sure the first bytes look like messages of the skill interface."""
    body = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return _decoded(body) if body[:1] in (b"{", b"[") else packed(head)


def detect_folder(folder: Folder) -> int:
    """Sure of a directory with pairs of message files, in which nothing else has messages."""
    if not 0 < len(folder.files) <= _MAX_FILES:
        return 0
    pairs = [name for name in folder.files if _MESSAGES.search(name)]
    if not pairs or len(pairs) < len(folder.files) // 2 or any(name.count("/") > 1 for name in pairs):
        return 0
    return 95 if packed(folder.head(pairs[0], 1 << 16)) else 0


def packed(head: bytes) -> int:
    """How sure the first bytes are msgpack messages of a skill."""
    first = head[0] if head else 0
    if not (0x80 <= first <= 0x9F or first in (0xDC, 0xDD, 0xDE, 0xDF)):
        return 0
    if sum(key in head for key in _KEYS) >= 3:
        return 95
    answers = _KEYS[0] in head[:64] and any(key in head for key in _ANSWERS)
    return 85 if answers and first < 0x90 else 0


def _decoded(body: bytes) -> int:
    for line in body.split(b"\n", _LINES)[:_LINES]:
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        request = value.get("request", value) if isinstance(value, dict) else None
        if not isinstance(request, dict) or not isinstance(request.get("method"), str):
            continue
        if isinstance(request.get("skill_id"), str) and sum(key in request for key in _IDS) >= 2:
            return 95
    return 0


FORMAT: Final = Format(
    name="luminarys",
    title="Luminarys skill calls",
    detect=detect,
    reader="ctxctl.plugins.luminarys.reader:Reader",
    about=ABOUT,
    detect_folder=detect_folder,
)
