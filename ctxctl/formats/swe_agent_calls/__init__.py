"""SWE-agent's log of model interactions: request and response on alternate lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from ctxctl.formats.calls.about import BODIES, LIMITS, TURNS
from ctxctl.formats.calls.heads import objects
from ctxctl.formats.fidelity import About, HeldAgainst
from ctxctl.formats.lines import Report
from ctxctl.trace.source import Source

_CUT: Final = re.compile(
    rb'^\{\s*"timestamp"\s*:\s*"[^"]*"\s*,\s*"type"\s*:\s*"request"\s*,\s*"request_params"\s*:\s*\{', re.M
)
_SURE: Final = 95


class SweAgentCalls:
    """The importer for `llm_interactions`."""

    name: str = "swe-agent-calls"
    title: str = "SWE-agent model interactions"
    default_policy: str = "recorded"
    about: About = About(
        reads="JSON lines of request parameters and litellm responses, paired by order as they have no ids.",
        places=("llm_interactions/interactions_*.jsonl of a SWE-agent checkout",),
        turns=TURNS,
        claims=BODIES,
        limits=(*LIMITS, "the model that answered may be another than the one asked for"),
        held_against=HeldAgainst(records=frozenset({"request", "response", "error"}), key=""),
        origin="SWE-agent/SWE-agent, sweagent/agent/models.py",
    )

    def detect(self, head: bytes) -> int:
        """How sure the lines look like requests and responses."""
        for value in objects(head):
            if value.get("type") == "request" and isinstance(value.get("request_params"), dict):
                return _SURE
            if value.get("type") == "response" and "outputs" in value and "response" in value:
                return _SURE
        return _SURE if _CUT.search(head) else 0

    def events(self, source: Source, report: Report) -> Iterator[dict[str, Any]]:
        """The log's events."""
        from ctxctl.formats.swe_agent_calls.reader import read

        return read(source, report)
