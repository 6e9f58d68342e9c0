"""Which `token_count` events are evidence of a request, and what that request was billed.

Codex repeats the event (after rate-limit news, at the start of a turn, after a compaction, on resume): only
one whose running total changed stands for a request.
"""

from __future__ import annotations

from typing import Any, Final

from ctxctl.formats.build import Json
from ctxctl.formats.kit.parts import count
from ctxctl.formats.kit.usage import usage_record

_FIELDS: Final = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens")
_WRITTEN: Final = "cache_write_input_tokens"


class Counts:
    """The running total of a thread."""

    def __init__(self) -> None:
        self._raw: Any = None
        self._total: Json | None = None
        self.unlogged: Json | None = None
        """What the total grew by beyond the last bill: requests whose own event was never logged."""

    def read(self, info: Any, model: str | None, provider: str | None) -> Json | None:
        """The usage record of the request that an event's `info` tells of for the first time, else None.

        The bill is `last_token_usage`; where that is lacking, by how much the total grew.
        """
        self.unlogged = None
        if not isinstance(info, dict):
            return None
        raw = info.get("total_token_usage")
        if raw is not None and raw == self._raw:
            return None
        self._raw = raw
        total = _numbers(raw)
        last = _numbers(info.get("last_token_usage"))
        if total is None and last is None:
            return None
        before = self._total
        if total is not None:
            self._total = total
            if total == before or not any(total.values()):
                return None
            if last is None:
                last = _grown(total, before)
            elif before is not None and total["input_tokens"] > before["input_tokens"] + last["input_tokens"]:
                rest = _grown(_grown(total, before), last)
                self.unlogged = None if rest is None else _record(rest, model, provider)
        if last is None or not (last["input_tokens"] or last["output_tokens"]):
            return None
        return _record(last, model, provider)


def told(payload: Json, model: str | None, provider: str | None) -> Json | None:
    """The usage record of a `token_usage_record` (from about 0.15), which is of one request; None where it
    has no counts."""
    usage = _numbers(payload.get("usage"))
    if usage is None or not (usage["input_tokens"] or usage["output_tokens"]):
        return None
    return _record(usage, model, provider)


def _record(usage: Json, model: str | None, provider: str | None) -> Json | None:
    return usage_record(
        input_tokens=usage["input_tokens"],
        cached=usage.get("cached_input_tokens"),
        cache_write=usage.get(_WRITTEN),
        output_tokens=usage.get("output_tokens"),
        reasoning=usage.get("reasoning_output_tokens"),
        provider=provider,
        model=model,
        bill=usage,
    )


def _numbers(value: Any) -> Json | None:
    """The token counts of a usage object; None for what is none."""
    if not isinstance(value, dict) or count(value.get("input_tokens")) is None:
        return None
    made: Json = {}
    for name in _FIELDS:
        found = value.get(name)
        made[name] = found if type(found) is int and found >= 0 else 0
    if _WRITTEN in value and count(value[_WRITTEN]) is not None:
        made[_WRITTEN] = value[_WRITTEN]
    return made


def _grown(total: Json | None, before: Json | None) -> Json | None:
    """What the total grew by; None where it became smaller."""
    if before is None or total is None:
        return total
    grown = {name: value - before.get(name, 0) for name, value in total.items()}
    return grown if all(value >= 0 for value in grown.values()) else None
