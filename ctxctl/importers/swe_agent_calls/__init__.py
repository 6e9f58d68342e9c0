"""SWE-agent's log of model interactions: request and response on alternate lines."""

from __future__ import annotations

import re
from typing import Any, Final

from ctxctl.importers.shared_claims import BODY_CLAIMS, BODY_LIMITS, BODY_TURNS
from ctxctl.ingest.about import About, HeldAgainst
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.skim import objects_of_head

_CUT: Final = re.compile(
    rb'^\{\s*"timestamp"\s*:\s*"[^"]*"\s*,\s*"type"\s*:\s*"request"\s*,\s*"request_params"\s*:\s*\{', re.M
)
_SURE: Final = 95
_FIRST_REQUEST: Final = frozenset({"timestamp", "model", "temperature", "top_p", "n"})
_FIRST_RESPONSE: Final = frozenset({"timestamp", "model", "outputs", "input_tokens", "cost"})


ABOUT: Final = About(
    reads="JSON lines of request parameters and litellm responses, paired by order as they have no ids.",
    places=("llm_interactions/interactions_*.jsonl of a SWE-agent checkout",),
    turns=BODY_TURNS,
    claims=BODY_CLAIMS,
    limits=(
        *BODY_LIMITS,
        "the model that answered may be another than the one asked for",
        "tokens of the start of November 2025 are litellm's count of the texts, without tools and calls",
    ),
    held_against=HeldAgainst(records=frozenset({"request", "response", "error"}), key=""),
    origin="SWE-agent/SWE-agent, sweagent/agent/models.py",
)


def detect(head: bytes) -> int:
    """How sure the lines look like requests and responses."""
    for value in objects_of_head(head):
        if value.get("type") == "request" and isinstance(value.get("request_params"), dict):
            return _SURE
        if value.get("type") == "response" and "outputs" in value and "response" in value:
            return _SURE
        if _is_first_shape(value):
            return _SURE
    return _SURE if _CUT.search(head) else 0


def _is_first_shape(value: dict[str, Any]) -> bool:
    """A line of the start of November 2025: parameters and outputs stand in it, not within anything."""
    if value.get("type") == "request":
        return isinstance(value.get("messages"), list) and set(value) >= _FIRST_REQUEST
    return value.get("type") == "response" and set(value) >= _FIRST_RESPONSE


FORMAT: Final = Format(
    name="swe-agent-calls",
    title="SWE-agent model interactions",
    detect=detect,
    reader="ctxctl.importers.swe_agent_calls.reader:read",
    about=ABOUT,
)
