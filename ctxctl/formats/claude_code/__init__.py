"""Claude Code session transcripts: ``~/.claude/projects/<slug>/<session>.jsonl``, versions 1.0 to 2.1.

One step is one API call; a turn is what one prompt sets off.  A transcript holds messages and what the
harness put between them, but neither the system prompt nor the tool schemas: they are not invented, and show
up as the difference between what was counted and what was billed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import orjson

from ctxctl.formats.claude_code.session import NAME, Session
from ctxctl.formats.lines import Report
from ctxctl.trace.source import Source

_MESSAGES = frozenset({"user", "assistant", "system", "attachment", "progress"})
_MESSAGE_KEYS = ("parentUuid", "sessionId", "isSidechain", "userType")
_OTHERS: Final[dict[str, tuple[str, ...]]] = {
    "summary": ("leafUuid",),
    "file-history-snapshot": (),
    "queue-operation": ("sessionId",),
    "last-prompt": ("sessionId", "lastPrompt"),
    "custom-title": ("sessionId", "customTitle"),
    "ai-title": ("sessionId", "aiTitle"),
    "agent-name": ("sessionId", "agentName"),
    "mode": ("sessionId", "mode"),
    "permission-mode": ("sessionId", "permissionMode"),
    "started": ("key", "agentId"),
    "result": ("key", "agentId"),
}
_FOREIGN_KEYS = ("event_type", "parent_tool_use_id", "payload", "kind")
_SURE = 95
_LIKELY = 80
_LINES = 20


class ClaudeCode:
    """The importer for Claude Code transcripts; a session's sub-agents come along as threads."""

    name: str = NAME
    title: str = "Claude Code transcript"
    default_policy: str = "recorded"

    def detect(self, head: bytes) -> int:
        """How sure the first lines look like a transcript's; 0 for other JSON lines."""
        best = 0
        body = head.removeprefix(b"\xef\xbb\xbf").lstrip()
        if body.startswith((b"{\n", b"{\r\n")):
            return _document(body)
        for line in body.split(b"\n")[:_LINES]:
            try:
                value = orjson.loads(line)
            except orjson.JSONDecodeError:
                best = max(best, _by_text(line))
                continue
            if isinstance(value, dict):
                best = max(best, _by_keys(value))
        return best

    def events(self, source: Source, report: Report) -> Iterator[dict[str, Any]]:
        """The session's steps as `context_event` records; bounded by the session, linear in the file."""
        return Session(report).events(source)


def _by_keys(value: dict[str, Any]) -> int:
    kind = value.get("type")
    if not isinstance(kind, str) or any(key in value for key in _FOREIGN_KEYS):
        return 0
    if kind in _MESSAGES:
        if "uuid" in value and any(key in value for key in _MESSAGE_KEYS):
            return _SURE
        return 0
    wanted = _OTHERS.get(kind)
    return _LIKELY if wanted is not None and all(key in value for key in wanted) else 0


def _document(head: bytes) -> int:
    try:
        value = orjson.loads(head)
    except orjson.JSONDecodeError:
        return _by_text(head)
    return _by_keys(value) if isinstance(value, dict) else 0


def _by_text(head: bytes) -> int:
    """For a line that is longer than the head, damaged, or pretty-printed."""
    marks = (b'"parentUuid"', b'"isSidechain"', b'"sessionId"', b'"userType"')
    return _SURE if sum(mark in head for mark in marks) >= 2 and b'"event_type"' not in head else 0
