"""Recordings of a pi extension: the agent's events, and every body that went to a provider."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from ctxctl.formats.calls.about import BODIES, DIALECTS, LIMITS
from ctxctl.formats.fidelity import About, native
from ctxctl.formats.kit.skim import values
from ctxctl.formats.lines import Report
from ctxctl.trace.source import Source

_CUT: Final = re.compile(
    rb'^\[\s*(?:\d+\s*,\s*)?\d{12,}(?:\.\d+)?\s*,\s*"(?:session_start|before_(?:agent_start|provider_request))"',
    re.M,
)
_EVENTS: Final = frozenset({"session_start", "before_agent_start", "before_provider_request", "agent_start"})
_SURE: Final = 95
_LONGEST: Final = 3


class PiRecordings:
    """The importer for JSON arrays `[time, event, payload, context]`."""

    name: str = "pi-recordings"
    title: str = "pi extension recording"
    default_policy: str = "recorded"
    about: About = About(
        reads=f"JSON lines of arrays; bodies are the provider's own ({DIALECTS}), answers pi's messages.",
        places=(
            "test/recordings/*.jsonl of langsmith-pi-extension",
            "any extension that logs pi's events so",
        ),
        turns="One step is one before_provider_request; a turn is one before_agent_start.",
        claims={
            **BODIES,
            "turns": native("before_agent_start"),
            "limit": native("the window of the model that is set"),
        },
        limits=LIMITS,
        origin="langchain-ai/langsmith-pi-extension",
    )

    def detect(self, head: bytes) -> int:
        """How sure the lines look like recorded events."""
        for value in values(head):
            if isinstance(value, list) and len(value) >= _LONGEST:
                names = [name for name in value[1:3] if isinstance(name, str)]
                if isinstance(value[0], int | float) and any(name in _EVENTS for name in names):
                    return _SURE
        return _SURE if _CUT.search(head) else 0

    def events(self, source: Source, report: Report) -> Iterator[dict[str, Any]]:
        """The recording's events."""
        from ctxctl.formats.pi_recordings.reader import read

        return read(source, report)
