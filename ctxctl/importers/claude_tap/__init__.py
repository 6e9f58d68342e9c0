"""claude-tap traces: JSON lines of a proxy's records, or the compact bundle that it exports."""

from __future__ import annotations

import re
from typing import Final

from ctxctl.importers.shared_claims import BODY_CLAIMS, BODY_LIMITS, BODY_TURNS
from ctxctl.ingest.about import About, HeldAgainst
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.skim import objects_of_head

_CUT: Final = re.compile(
    rb'^\{\s*"timestamp"\s*:\s*"[^"]{10,40}"\s*,\s*"request_id"\s*:\s*"[^"]*"\s*,\s*"turn"\s*:', re.M
)
_BUNDLE: Final = b'"__claude_tap_compact_trace__"'
_SURE: Final = 95


ABOUT: Final = About(
    reads=(
        "JSON lines of a claude-tap proxy, of any client: answers put together or as stream events, "
        "Codex over WebSocket request by request; and compact bundles (.ctap.json)."
    ),
    places=(".traces/trace_*.jsonl", "claude-tap export --format compact"),
    turns=BODY_TURNS,
    claims=BODY_CLAIMS,
    limits=(*BODY_LIMITS, "the times are those of the answers' ends", "its SQLite store is not read"),
    held_against=HeldAgainst("claude-tap", "0.1", "0.1"),
    origin="liaohch3/claude-tap 0.1",
)


def detect(head: bytes) -> int:
    """How sure the lines look like a proxy's records."""
    if _BUNDLE in head[:4096]:
        return _SURE
    for value in objects_of_head(head):
        request = value.get("request")
        if not isinstance(request, dict) or "method" not in request or "path" not in request:
            continue
        if "response" in value and ("turn" in value or "request_id" in value or "duration_ms" in value):
            return _SURE
    return _SURE if _CUT.search(head) else 0


FORMAT: Final = Format(
    name="claude-tap",
    title="claude-tap trace",
    detect=detect,
    reader="ctxctl.importers.claude_tap.reader:read",
    about=ABOUT,
)
