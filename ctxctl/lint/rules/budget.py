"""Budgets that contradict themselves, limits that were not kept, and compactions without an account."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import orjson

from ctxctl.engine.replay.step_facts import exceeds_remainder
from ctxctl.lint.rule import Hit, Rule
from ctxctl.model.records import Budget
from ctxctl.model.sizes import limit_words, sent_of

if TYPE_CHECKING:
    from ctxctl.lint.context import SeenRecord, StepContext
    from ctxctl.model.results import Window

_SLACK = 0.02
"""Share by which the sum of a budget's segments may miss its total: separators are nobody's."""
_FEW = 16


class BudgetDoesNotAddUp(Rule):
    """The numbers of a budget record cannot all be true.

    Segments that do not add up to the total, a reserve larger than the window, something dropped that is
    still there, something cut that is as long as it was: whatever decided by this record decided wrongly.
    """

    code = "CTX015"
    name = "budget-does-not-add-up"
    severity = "error"
    needs = "budget records"
    fix = "Compute the record from the assembled window, after the last change to it, with one tokenizer."

    def seen(self, seen: SeenRecord) -> Iterator[Hit]:
        """The record by itself."""
        record = seen.record
        if not isinstance(record, Budget):
            return
        window, reserve = record.max_tokens, record.reserved_tokens
        if window is not None and reserve is not None and reserve >= window > 0:
            message = f"the budget reserves {reserve:,} of a window of {window:,} tokens"
            yield Hit("reserve", message, seen.place)
        if record.actual_tokens is not None:
            total = _segments(seen)
            if total is not None and abs(total - record.actual_tokens) > max(
                _FEW, _SLACK * record.actual_tokens
            ):
                message = (
                    f"the budget's segments add up to {total:,} tokens, and it says {record.actual_tokens:,}"
                )
                yield Hit("segments", message, seen.place, None, abs(total - record.actual_tokens))

    def step(self, look: StepContext) -> Iterator[Hit]:
        """The records against the frame."""
        facts = look.sealed.facts
        truncations = [t for budget in facts.budgets for t in budget.truncations]
        if not truncations or look.step.mode == "append":
            return
        frame = {p.item: p for p in look.placements if not p.stale}
        injected = look.step.basis == "assembly"
        for record in truncations:
            item = look.sealed.reading.item_of(record.ref)
            there = frame.get(item)
            if there is None:
                continue
            if record.dropped and injected and not there.truncated:
                message = f"the budget says that {item} was dropped, and it is in the window"
                yield Hit(
                    f"dropped {item}", message, look.place(), item, there.tokens, look.money(there.tokens)
                )
            if record.tokens is not None and there.own and exceeds_remainder(there.counted, record.tokens):
                over = there.counted - record.tokens
                message = (
                    f"the budget says that {item} was cut to {record.tokens:,} tokens, and a block holds "
                    f"{there.counted:,} of it"
                )
                yield Hit(f"cut {item}", message, look.place(), item, over, look.money(over))


def _segments(seen: SeenRecord) -> int | None:
    """What the record's window segments add up to; None where one of them does not say, or there is none."""
    event = seen.event
    try:
        value: Any = orjson.loads(seen.around.inspector.trace.line(event.offset, event.length))
        segments = value["data"]["window_segments"]
        found = [segment["actual_tokens"] for segment in segments]
    except (ValueError, KeyError, TypeError):
        return None
    whole = all(isinstance(tokens, int) and not isinstance(tokens, bool) for tokens in found)
    return sum(found) if found and whole else None


class StillOverBudget(Rule):
    """The budget cut, dropped or compacted, and the window is over its limit all the same.

    The request is refused, or the provider cuts it where it likes.  Runtimes that compact to a fixed target
    (Amplifier's levels, for one) reach this when what they may not touch is too large already.
    """

    code = "CTX016"
    name = "still-over-budget"
    severity = "error"
    needs = "budget records"
    fix = "Let the last stage cut what the others protect, or reject the request with your own message."

    def step(self, look: StepContext) -> Iterator[Hit]:
        """A step that the engine flags."""
        step = look.step
        if "still_over_budget" not in step.flags:
            return
        facts = step.stages["budget"].facts
        actual, cap, whose = facts.get("actual_tokens"), step.window.cap, step.window.limit_source
        if cap is not None and actual is not None and actual > cap:
            over = actual - cap
            counted = f"{actual:,} by the budget's own count"
            message = f"still over budget after it was cut: {counted}, and {limit_words(cap, whose)} fit"
        elif step.window.over:
            over, fit = step.window.over, limit_words(cap or 0, whose)
            message = f"still over budget after it was cut: {sent_of(step.window)}, and {fit} fit"
        else:
            over = 0
            by = [f"{name.removeprefix('over_')} by {facts[name]:,}" for name in _OTHERS if facts.get(name)]
            message = f"still over budget after it was cut: {', '.join(by) or 'by its own record'}"
        yield Hit("", message, look.place(), None, over or None)


_OTHERS = ("over_items", "over_bytes", "over_chars", "over_time_ms")


class OverCap(Rule):
    """More was sent than the budget in force allows.

    The bill has the last word: it has the system prompt, the tool definitions and the wrappers that a
    runtime's own count leaves out, so a window that fits by its record may be far over its cap.  Nothing was
    refused where it was billed, but what is kept free for the answer is gone, and the next request may be
    refused.  Where the budget had cut and it was over all the same, that is CTX016.
    """

    code = "CTX030"
    name = "over-cap"
    needs = "a limit on the window"
    fix = (
        "Budget in the provider's tokens: count all that is sent, not only the content, or correct by the "
        "last bill."
    )
    parameters = {"tokens": "smallest overflow that counts, in tokens"}  # noqa: RUF012
    tokens = 1

    def step(self, look: StepContext) -> Iterator[Hit]:
        """A step that is surely over its cap."""
        if "still_over_budget" in look.step.flags:
            return
        window = look.step.window
        over = _surely_over(window)
        if over < self.tokens or window.cap is None:
            return
        message = f"sent {sent_of(window)}, and {limit_words(window.cap, window.limit_source)} fit"
        yield Hit("", message, look.place(), None, over, note="tokens over the cap, over all these requests")


def _surely_over(window: Window) -> int:
    """Tokens over the cap; less the error of a size that is expected, and 0 where that is not known."""
    if not window.over:
        return 0
    if window.used_method != "expected":
        return window.over
    return 0 if window.used_error is None else window.over - window.used_error


class CompactionWithoutCoverage(Rule):
    """A compaction names neither what its summary covers nor what it leaves out.

    Nobody can say later whether a decision was lost there.  Agent Context has `coverage` and `loss_notes`.
    """

    code = "CTX017"
    name = "compaction-without-coverage"
    severity = "info"
    needs = "compaction records"
    fix = "Record coverage (what the summary covers) and loss_notes (what it leaves out)."

    def step(self, look: StepContext) -> Iterator[Hit]:
        """Compactions of the step."""
        for one in look.step.annotations.compactions:
            if not one.coverage and not one.loss_notes:
                what = one.compaction_id or one.summary or "a compaction"
                count = len(one.source_item_refs)
                of = f" of {count:,} items" if count else ""
                yield Hit("", f"{what}{of} has neither coverage nor loss notes", look.place(), one.summary)
