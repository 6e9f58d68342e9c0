"""What Anthropic's usage and messages say of its prompt cache beside the counts that every provider has."""

from __future__ import annotations

from typing import Any, Final

from ctxctl.formats.kit.parts import count, string

_SILENT: Final = frozenset({"none", ""})
"""A comparison that found nothing."""


def hour_writes(usage: Any) -> int | None:
    """Of the tokens written to the cache, those kept for an hour; None: the usage does not say."""
    parts = usage.get("cache_creation") if isinstance(usage, dict) else None
    return count(parts.get("ephemeral_1h_input_tokens")) if isinstance(parts, dict) else None


def miss_cause(message: Any) -> str | None:
    """Why the cache was not read, as the API told the client (`diagnostics.cache_miss_reason`, its beta cache
    diagnostics, which Claude Code writes to its log with the message); None: nothing is said, or nothing
    was found."""
    told = message.get("diagnostics") if isinstance(message, dict) else None
    reason = told.get("cache_miss_reason") if isinstance(told, dict) else None
    kind = string(reason.get("type")) if isinstance(reason, dict) else None
    return None if kind is None or kind in _SILENT else kind
