"""What one call billed, by the lines that tell of it."""

from __future__ import annotations

from typing import Any

from ctxctl.formats.build import Json
from ctxctl.formats.kit.parts import count, string
from ctxctl.formats.kit.usage import hour_writes, miss_cause, usage_record

_PROMPT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


class Bill:
    """The counts of one call.

    A line repeats the counts of the message's beginning: its output is a count so far.  The output is told
    only where the answer had ended.
    """

    def __init__(self, model: str | None) -> None:
        self.model = model
        self._prompt: Json | None = None
        self._output: Any = None
        self._reasoning: Any = None
        self._cause: str | None = None
        self._final: Json | None = None
        """The usage at the answer's end: it alone counts calls of tools and further samplings."""

    def merge(self, message: Json) -> None:
        """A message's line."""
        self._cause = miss_cause(message) or self._cause
        usage = message.get("usage")
        if isinstance(usage, dict):
            if self._prompt is None and count(usage.get("input_tokens")) is not None:
                self._prompt = usage
            if message.get("stop_reason") is not None:
                self.ended(usage)

    def ended(self, usage: Json) -> None:
        """The counts at the answer's end."""
        if count(usage.get("output_tokens")) is not None:
            self._output = usage["output_tokens"]
            self._final = usage
            details = usage.get("output_tokens_details")
            self._reasoning = details.get("thinking_tokens") if isinstance(details, dict) else None
        if self._prompt is None and count(usage.get("input_tokens")) is not None:
            self._prompt = usage

    def settle(self, totals: Json) -> None:
        """The `usage` of a run's result: of its last call, or of the only one, it holds the final counts."""
        if self._prompt is None or self._output is not None:
            return
        iterations = totals.get("iterations")
        last = iterations if isinstance(iterations, list) and len(iterations) == 1 else []
        for usage in (*last, totals):
            if isinstance(usage, dict) and all(usage.get(k) == self._prompt.get(k) for k in _PROMPT):
                self.ended(usage)
                return

    def record(self) -> Json | None:
        """The record of `ctxctl.usage.reported`; None where no line tells of a usage."""
        prompt = self._prompt
        if prompt is None:
            return None
        tier = string(prompt.get("service_tier"))
        made = usage_record(
            provider="anthropic",
            model=self.model,
            input_tokens=prompt.get("input_tokens"),
            cached=prompt.get("cache_read_input_tokens"),
            cache_write=prompt.get("cache_creation_input_tokens"),
            cache_write_1h=hour_writes(prompt),
            miss_cause=self._cause,
            output_tokens=self._output,
            reasoning=self._reasoning,
            excludes_cache=True,
            bill={**prompt, **(self._final or {})},
        )
        if made is not None and tier is not None:
            made["metadata"] = {"native": {"service_tier": tier}}
        return made
