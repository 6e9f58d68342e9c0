"""What context-simple says of a compaction and of its budget, as records of the trace."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from ctxctl.ingest.build import Json
from ctxctl.ingest.parts import count

LEVELS: Final = 8
"""The last level of context-simple's ladder."""
_COUNTERS: Final = ("messages_removed", "messages_truncated", "user_messages_stubbed", "strategy_level")
_LATER: Final = ("ineffective_escalations", "measurement_kind", "trigger", "outcome", "count_calls")
"""Fields of the versions that repeat earlier decisions, whose counters are totals."""


class Compaction(NamedTuple):
    """One `context:compaction` event (or the pre/post pair of the contract) in plain words."""

    native: Json
    line: int
    counters: str
    """`per event`, `cumulative`, or `undetermined` where the numbers allow both."""
    removed: int | None
    """Messages that this event newly left out; None if that cannot be told."""

    def number(self, name: str) -> int | None:
        """One of the event's counts."""
        return count(self.native.get(name))

    @property
    def tokens(self) -> int | None:
        """The view's size by context-simple's own estimate (a quarter of the characters)."""
        return self.number("after_tokens")

    @property
    def budget(self) -> int | None:
        """What the messages may take, by the same estimate."""
        return self.number("budget")

    def fields(self) -> Json:
        """The `context_compaction`, without ids and refs."""
        coverage: Json = {}
        for name, field in (
            ("messages_before", "before_messages"),
            ("messages_after", "after_messages"),
            ("tokens_before", "before_tokens"),
            ("tokens_after", "after_tokens"),
        ):
            if (value := self.number(field)) is not None:
                coverage[name] = value
        if self.removed is not None:
            coverage["messages_newly_removed"] = self.removed
        return {
            "method": "custom",
            "trigger": "token_pressure",
            "replacement_policy": "ephemeral_view_only",
            "coverage": coverage,
            "loss_notes": self._losses(),
            "metadata": {"native": self.native, "ctxctl": {"counters": self.counters}},
        }

    def _losses(self) -> list[str]:
        notes: list[str] = []
        total = " since the session began" if self.counters == "cumulative" else ""
        for field, what in (
            ("messages_removed", "messages removed"),
            ("messages_truncated", "tool results truncated"),
            ("user_messages_stubbed", "user messages stubbed"),
        ):
            value = self.number(field)
            if value:
                notes.append(f"{value} {what}{total}")
        level = self.number("strategy_level")
        if level is not None:
            notes.append(f"level {level} of {LEVELS}")
        after, budget, target = self.tokens, self.budget, self.number("target_tokens")
        if after is not None and budget is not None and after > budget:
            notes.append(f"still over budget: {after} of {budget} estimated tokens")
        elif after is not None and target is not None and after > target:
            notes.append(f"within budget, over the target of {target} estimated tokens")
        return notes


class CompactionCounters:
    """Tells counts of one event from running totals, over the compactions of one session.

    Earlier versions decide anew for each request: their counts may fall.  Later ones repeat their decisions,
    and count all of them so far.
    """

    def __init__(self) -> None:
        self._last: Json | None = None
        self._kind = "undetermined"
        self._before: Json = {}

    def read(self, data: Json, line: int) -> Compaction:
        """The next event of the session."""
        native = {name: value for name, value in data.items() if name not in ("parent_id", "timestamp")}
        self._judge(native)
        made = Compaction(native, line, self._kind, self._newly(native))
        self._last = native
        return made

    def announced(self, data: Json) -> None:
        """A `context:pre_compact`: what the matching `context:post_compact` is measured against."""
        self._before = data

    def completed(self, data: Json, line: int) -> Compaction:
        """A `context:post_compact`, together with the announcement before it."""
        native: Json = {**data}
        for source, side in ((self._before, "before"), (data, "after")):
            for given, name in (("message_count", "messages"), ("tokens", "tokens")):
                if (value := count(source.get(given))) is not None:
                    native.setdefault(f"{side}_{name}", value)
        self._before = {}
        return self.read(native, line)

    def _judge(self, native: Json) -> None:
        if self._kind == "per event":
            return
        gone = _difference(native)
        removed = count(native.get("messages_removed"))
        if any(name in native for name in _LATER) or (
            gone is not None and removed is not None and removed > gone
        ):
            self._kind = "cumulative"
        elif self._last is not None and any(_fell(self._last, native, name) for name in _COUNTERS):
            self._kind = "per event"

    def _newly(self, native: Json) -> int | None:
        removed = count(native.get("messages_removed"))
        if removed is None:
            return _difference(native)
        before = count(self._last.get("messages_removed")) if self._last is not None else 0
        return None if before is None or removed < before else removed - before


def _difference(native: Json) -> int | None:
    before, after = count(native.get("before_messages")), count(native.get("after_messages"))
    return before - after if before is not None and after is not None and before >= after else None


def _fell(last: Json, now: Json, name: str) -> bool:
    before, after = count(last.get(name)), count(now.get(name))
    return before is not None and after is not None and after < before


class BudgetLimits:
    """The budget that a session's requests are held to, as last told."""

    def __init__(self) -> None:
        self._fields: Json = {}
        self._model: str | None = None
        self._made = 0

    def budget(self, data: Json, model: str | None) -> None:
        """Take a `context:budget` event into account."""
        effective = count(data.get("effective_budget"))
        self._set(data, model, effective if effective is not None else count(data.get("max_tokens")))
        for name, field in (("max_tokens", "context_window"), ("reserved_tokens", "reserved_output")):
            if (value := count(data.get(field))) is not None:
                self._fields[name] = value

    def compaction(self, found: Compaction, model: str | None) -> None:
        """The budget that a compaction worked to; what else is known of the window stays."""
        if found.budget is None:
            return
        kept: Json = {
            name: self._fields[name] for name in ("max_tokens", "reserved_tokens") if name in self._fields
        }
        target = found.native.get("target_tokens")
        self._set({"budget": found.budget, "target_tokens": target}, model, found.budget)
        self._fields.update(kept)

    def _set(self, native: Json, model: str | None, prompt: int | None) -> None:
        told = {k: v for k, v in native.items() if v is not None and k not in ("parent_id", "timestamp")}
        self._model = model
        self._fields = {
            "metadata": {"native": told, "ctxctl": {"max_input": prompt} if prompt is not None else {}}
        }

    def record(
        self, model: str | None, *, acted: Compaction | None, cuts: list[Json], told: bool
    ) -> Json | None:
        """The `context_budget` of a request; None if nothing is known of one.

        Args:
            model: The model that is asked; another one than the budget was told for has its own.
            acted: The compaction before this request.
            cuts: Items that were cut to fit.
            told: The runtime told the budget with this request; otherwise it is repeated, and marked so.
        """
        known = self._fields if model is None or self._model is None or model == self._model else {}
        if not known and not cuts:
            return None
        self._made += 1
        meta: Json = {**known.get("metadata", {})}
        if not told:
            meta["ctxctl"] = {**meta.get("ctxctl", {}), "derived": True}
        made: Json = {"budget_id": f"budget-{self._made}", "target": "model", **known, "metadata": meta}
        if acted is not None and acted.tokens is not None:
            made["actual_tokens"] = acted.tokens
            made["overflow_strategy"] = "custom"
        if cuts:
            made["truncation_records"] = cuts
        return made


def ingress_compaction(data: Json) -> Json:
    """The `context_compaction` of a tool result that was cut before it was stored, without ids and refs."""
    before, after = (count(data.get(f"{side}_text_utf8_bytes")) for side in ("original", "stored"))
    coverage: dict[str, Any] = {}
    if before is not None:
        coverage["bytes_before"] = before
    if after is not None:
        coverage["bytes_after"] = after
    return {
        "method": "custom",
        "trigger": "custom",
        "replacement_policy": "destructive_ingress",
        "coverage": coverage,
        "loss_notes": ["a tool result was cut before it was stored; the rest is gone"],
        "metadata": {"native": {k: v for k, v in data.items() if k not in ("parent_id", "timestamp")}},
    }
