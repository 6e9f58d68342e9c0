"""LHAR, the LLM HTTP archive of context-lens: sessions and entries, with or without bodies."""

from __future__ import annotations

import re
from typing import Final

from ctxctl.importers.shared_claims import BODY_CLAIMS, BODY_LIMITS, BODY_TURNS
from ctxctl.ingest.about import About, HeldAgainst, native
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.skim import objects_of_head, text_of_head

_WRAPPED: Final = re.compile(rb'^\{\s*"lhar"\s*:\s*\{')
_CUT: Final = re.compile(rb'^\{\s*"type"\s*:\s*"entry"\s*,\s*"id"\s*:\s*"[^"]*"\s*,\s*"trace_id"\s*:', re.M)
_SURE: Final = 96


ABOUT: Final = About(
    reads=(
        "LHAR 0.1 of context-lens. An entry without bodies (privacy below full) gives one item for each "
        "category of its composition, with the collector's token count and without text."
    ),
    places=("context-lens data/*.lhar", "its export, .lhar and .lhar.json"),
    turns=BODY_TURNS,
    claims={
        **BODY_CLAIMS,
        "limit": native("the window as the collector knew it"),
        "threads": native("sessions by trace_id; sub-agents by agent_role"),
    },
    limits=(
        *BODY_LIMITS,
        "token counts of categories are the collector's, scaled by it to the provider's total",
        "without bodies, what a compaction cut is not recorded",
    ),
    origin="larsderidder/context-lens, docs/LHAR.md and schema 0.1.0",
    held_against=HeldAgainst(client="LHAR", newest="0.1.0", records=frozenset({"session", "entry", ""})),
)


def detect(head: bytes) -> int:
    """How sure the head looks like an archive's."""
    if _WRAPPED.match(text_of_head(head)):
        return _SURE
    for value in objects_of_head(head):
        kind = value.get("type")
        if kind == "session" and "trace_id" in value and "started_at" in value:
            return _SURE
        if kind == "entry" and "trace_id" in value and ("gen_ai" in value or "context_lens" in value):
            return _SURE
    return _SURE if _CUT.search(head) else 0


FORMAT: Final = Format(
    name="lhar",
    title="LLM HTTP archive",
    detect=detect,
    reader="ctxctl.importers.lhar.reader:read",
    about=ABOUT,
)
