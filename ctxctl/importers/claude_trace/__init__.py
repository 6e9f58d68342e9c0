"""claude-trace logs: the raw request and response of every call that Claude Code made."""

from __future__ import annotations

import re
from typing import Final

from ctxctl.importers.shared_claims import BODY_CLAIMS, BODY_LIMITS, BODY_TURNS
from ctxctl.ingest.about import About, HeldAgainst
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.skim import objects_of_head

_CUT: Final = re.compile(rb'^\{\s*"request"\s*:\s*\{\s*"timestamp"\s*:\s*[\d.]+\s*,\s*"method"\s*:', re.M)
_SURE: Final = 96
_LIKELY: Final = 88


ABOUT: Final = About(
    reads="JSON lines of request/response pairs as claude-trace 1.0 writes them, streams included.",
    places=(".claude-trace/log-*.jsonl of the working directory",),
    turns=BODY_TURNS,
    claims=BODY_CLAIMS,
    limits=BODY_LIMITS,
    held_against=HeldAgainst("claude-trace", "1.0", "1.0"),
    origin="badlogic/lemmy, apps/claude-trace",
)


def detect(head: bytes) -> int:
    """How sure the lines look like pairs with times and headers."""
    for value in objects_of_head(head):
        request = value.get("request")
        if not isinstance(request, dict) or "response" not in value or not {"url", "headers"} <= set(request):
            continue
        if "logged_at" in value:
            return _SURE
        if "timestamp" in request and "path" not in request:
            return _LIKELY
    return _LIKELY if _CUT.search(head) else 0


FORMAT: Final = Format(
    name="claude-trace",
    title="claude-trace log",
    detect=detect,
    reader="ctxctl.importers.claude_trace.reader:read",
    about=ABOUT,
)
