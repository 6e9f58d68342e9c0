"""Parameters of a request that its prompt cache depends on, besides the window.

What breaks the cache is what providers document (November 2026):

- Every cache is one model's (Anthropic: "Prompt caching"; OpenAI: "Unrolling the Codex agent loop"; Google:
  "Context caching").
- Anthropic, "Prompt caching", What invalidates the cache: the order is tools, system, messages, and each of
  them goes with the one before.  `speed` and citations (on or off) change the system prompt; `tool_choice`,
  whether there are images, `thinking` and `output_config.effort` change the messages, and on some models,
  which are not named, what stands before them.  Without `effort` a model's default is in force, which is
  `high`; `thinking.display` says what comes back, not what is sent.
- OpenAI, "Prompt caching": the exact prefix of tools, answer schema, messages and images, no parameter;
  `prompt_cache_key` and the user only say where a request is routed to.
- Google, "Context caching": the common prefix.

Tools, answer schemas and web search, which Anthropic puts into the system prompt, are placements: `prefix`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

SYSTEM: Final = 1
MESSAGES: Final = 2
"""Ranks of what goes first, as placements have them; 0 is all."""
LEVELS: Final = ("tools", "system", "messages")
_ANTHROPIC: Final = (
    ("speed", SYSTEM),
    ("tool_choice", MESSAGES),
    ("thinking", MESSAGES),
    ("effort", MESSAGES),
)
_DEFAULTS: Final[Mapping[str, Any]] = {
    "speed": "standard",
    "tool_choice": {"type": "auto"},
    "effort": "high",
}
_DATED: Final = re.compile(r"[-@]\d{4}-?\d{2}-?\d{2}")


class RequestSettings(NamedTuple):
    """The parameters of a request: all of it but its window."""

    model: str | None = None
    """The requested model; None if unknown."""
    request: Mapping[str, Any] | None = None
    """The API and the parameters of the body; None if the body is unknown."""
    images: bool = False
    citations: bool = False


class BrokenSetting(NamedTuple):
    """A request parameter that has changed since the last request."""

    name: str
    rank: int
    """Placements of this rank and of later ones cannot be read from the cache."""


def broken_setting(before: RequestSettings, now: RequestSettings) -> BrokenSetting | None:
    """Return the parameter whose change breaks most of a prompt cache; None if none does."""
    if not same_model(before.model, now.model):
        return BrokenSetting("model", 0)
    if before.request is None or now.request is None:
        return None
    if before.request.get("api") != now.request.get("api") or now.request.get("api") != "anthropic":
        return None
    found = [
        BrokenSetting(name, rank)
        for name, rank in _ANTHROPIC
        if _value(name, before.request) != _value(name, now.request)
    ]
    if before.citations != now.citations:
        found.append(BrokenSetting("citations", SYSTEM))
    if before.images != now.images:
        found.append(BrokenSetting("images", MESSAGES))
    return min(found, key=lambda one: one.rank, default=None)


def same_model(one: str | None, other: str | None) -> bool:
    """Return whether two names may be one model's: one is unknown, or has only a date more."""
    if one is None or other is None or one == other or "<" in (one[:1], other[:1]):
        return True  # `<synthetic>` means that no model was asked
    short, long = sorted((one.lower(), other.lower()), key=len)
    return short == long or (long.startswith(short) and _DATED.fullmatch(long, len(short)) is not None)


def _value(name: str, request: Mapping[str, Any]) -> Any:
    value = request.get(name, _DEFAULTS.get(name))
    if name == "thinking" and isinstance(value, dict):
        return {field: inner for field, inner in value.items() if field != "display"}
    if name == "tool_choice" and isinstance(value, dict):
        return {field: inner for field, inner in value.items() if inner is not False}
    return value
