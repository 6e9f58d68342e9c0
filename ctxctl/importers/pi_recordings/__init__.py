"""Recordings of a pi extension: the agent's events, and every body that went to a provider."""

from __future__ import annotations

import re
from typing import Final

from ctxctl.importers.shared_claims import BODY_CLAIMS, BODY_DIALECTS, BODY_LIMITS
from ctxctl.ingest.about import About, native
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.skim import values_of_head

_CUT: Final = re.compile(
    rb'^\[\s*(?:\d+\s*,\s*)?\d{12,}(?:\.\d+)?\s*,\s*"(?:session_start|before_(?:agent_start|provider_request))"',
    re.M,
)
_EVENTS: Final = frozenset({"session_start", "before_agent_start", "before_provider_request", "agent_start"})
_SURE: Final = 95
_LONGEST: Final = 3


ABOUT: Final = About(
    reads=f"JSON lines of arrays; bodies are the provider's own ({BODY_DIALECTS}), answers pi's messages.",
    places=(
        "test/recordings/*.jsonl of langsmith-pi-extension",
        "any extension that logs pi's events so",
    ),
    turns="One step is one before_provider_request; a turn is one before_agent_start.",
    claims={
        **BODY_CLAIMS,
        "turns": native("before_agent_start"),
        "limit": native("the window of the model that is set"),
    },
    limits=BODY_LIMITS,
    origin="langchain-ai/langsmith-pi-extension",
)


def detect(head: bytes) -> int:
    """How sure the lines look like recorded events."""
    for value in values_of_head(head):
        if isinstance(value, list) and len(value) >= _LONGEST:
            names = [name for name in value[1:3] if isinstance(name, str)]
            if isinstance(value[0], int | float) and any(name in _EVENTS for name in names):
                return _SURE
    return _SURE if _CUT.search(head) else 0


FORMAT: Final = Format(
    name="pi-recordings",
    title="pi extension recording",
    detect=detect,
    reader="ctxctl.importers.pi_recordings.reader:read",
    about=ABOUT,
)
