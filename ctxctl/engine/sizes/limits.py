"""The limits in force, in tokens, items, bytes, characters and time, and how far a step exceeds them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ctxctl.model.numbers import count
from ctxctl.model.records import Assembly, Budget, Compaction
from ctxctl.model.results import Window
from ctxctl.model.vocab import LimitSource
from ctxctl.model.whatif import AS_RECORDED, Limits

if TYPE_CHECKING:
    from ctxctl.engine.replay.rules import CataloguedModel, ReplayRules, ThresholdRule
    from ctxctl.engine.replay.thread import SealedStep, ThreadState


class InForce(NamedTuple):
    """The limits in force in tokens, and their source."""

    limits: Limits
    source: LimitSource | None = None
    """None if no source gives a limit."""
    note: str | None = None
    """For limits of the model table: how the model was found, or why its limits do not hold."""
    max_output: int | None = None
    """The model's largest answer, if the model table has it."""
    line: ThresholdRule | None = None
    """The client's compaction threshold, if a compaction showed it."""


def limits_in_force(
    budget: Budget | None,
    model: str | None,
    provider: str | None,
    rules: ReplayRules,
    *,
    billed: int = 0,
    client: str | None = None,
    compacted: int | None = None,
) -> InForce:
    """Return the limits in tokens: supposed ones, else recorded ones, else those of the model table.

    `billed` is the largest bill so far: if it exceeds the table's window, that window is not in force.
    `compacted` is the size at which the client last compacted automatically: if it fits the threshold of a
    smaller window, the table's larger one is not in force.
    """
    recorded = AS_RECORDED
    if budget is not None:
        recorded = Limits(budget.max_tokens, budget.reserved_tokens, budget.max_input)
    found = InForce(recorded)
    if budget is not None and (said := source_of(budget, imported=rules.imported)) is not None:
        found = InForce(recorded, said)
    elif (table := rules.catalogue(model, provider, client)) is not None:
        found = _catalogued(table, recorded, billed)
        seen = rules.compacted_window(compacted, model, client) if compacted and not table.own else None
        if seen is not None and billed < (seen[0].limits.window or 0) < (found.limits.window or 0):
            limits = Limits(seen[0].limits.window, recorded.reserve)
            found = InForce(limits, "client", seen[0].note, found.max_output, seen[1])
    supposed = rules.limits
    if not supposed.given:
        return found
    source: LimitSource | None = found.source
    if supposed.window is not None or supposed.max_input is not None:
        source = "supposed"
    note = None if source == "supposed" else found.note
    return InForce(supposed.over(found.limits), source, note, line=found.line)


def _catalogued(table: CataloguedModel, recorded: Limits, billed: int) -> InForce:
    """Return the table's limits, unless the provider has accepted more."""
    limits = Limits(table.limits.window, recorded.reserve, table.limits.max_input)
    cap = limits.cap
    if cap is None:
        return InForce(recorded, None, table.note)
    if billed > cap and not table.own:
        note = f"{billed:,} tokens were billed, so the {cap:,} of the model table is not its window here"
        return InForce(recorded, None, note)
    return InForce(limits, "client" if table.by_client else "catalogue", table.note, table.max_output)


def compacted_at(record: Compaction | Assembly | None) -> int | None:
    """Return the tokens at which the runtime compacted automatically, by a compaction or a first assembly."""
    marks = record.metadata.get("ctxctl") if record is not None else None
    return count(marks.get("compacted_at")) if isinstance(marks, dict) else None


def source_of(budget: Budget, *, imported: bool) -> LimitSource | None:
    """Return the source of a budget's limits: the recorded trace, or the client of an imported capture.

    None if the budget has no limits in tokens.
    """
    if budget.max_tokens is None and budget.max_input is None:
        return None
    return "runtime" if imported else "recorded"


def threshold_in_force(
    thread: ThreadState, sealed: SealedStep, found: InForce, rules: ReplayRules
) -> ThresholdRule | None:
    """Return the runtime's compaction threshold: as recorded, else by its rule."""
    budget = sealed.facts.budget
    if budget is not None and budget.compacts_at is not None and found.source != "supposed":
        from ctxctl.engine.replay.rules import ThresholdRule

        return ThresholdRule(budget.compacts_at, budget.compacts_by or "The trace records it.")
    if found.line is not None and found.source == "client":
        return found.line
    named = rules.model or thread.model or rules.first_model
    return rules.compacts_at(found.limits, named, thread.provider, thread.client)


def used_items(sealed: SealedStep) -> int | None:
    """Return the number of items that the selection kept and the budget did not drop; None if not recorded.

    The frame has another number: a limit on items applies to candidates, not to messages and tools.
    """
    if sealed.facts.selection is None:
        return None
    kept = {sealed.reading.item_of(ref.ref) for ref in sealed.facts.selection.selected}
    return len(kept.difference(sealed.reading.dropped()))


def used_bytes(thread: ThreadState) -> int | None:
    """Return the bytes of the frame's texts; None if the trace lacks one of them."""
    sizes = [p.content.size if p.content is not None else None for p in thread.frame.placements]
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


class Excess(dict[str, int]):
    """How far a step exceeds its limits: `over_items`, `over_bytes`, `over_chars`, `over_time_ms`.

    None if it does not. The runtime's measurement counts; without one, what the trace shows.
    """


def excess_over(thread: ThreadState, sealed: SealedStep) -> Excess:
    """Return how far the step exceeds its budget in items, bytes, characters and time."""
    found = Excess()
    budget = sealed.facts.budget
    if budget is None:
        return found
    for name, limit, used in _measures(thread, sealed, budget):
        if limit is not None and used is not None and used > limit:
            found[name] = used - limit
    return found


def _measures(
    thread: ThreadState, sealed: SealedStep, budget: Budget
) -> list[tuple[str, int | None, int | None]]:
    items, size = budget.actual_items, budget.actual_bytes
    if items is None and budget.max_items is not None:
        items = used_items(sealed)
    if size is None and budget.max_bytes is not None:
        size = used_bytes(thread)
    return [
        ("over_items", budget.max_items, items),
        ("over_bytes", budget.max_bytes, size),
        ("over_chars", budget.max_chars, budget.actual_chars),
        ("over_time_ms", budget.max_time_ms, budget.actual_time_ms),
    ]


def is_over(thread: ThreadState, sealed: SealedStep, window: Window) -> bool:
    """Return whether the window exceeds its cap, or another limit is exceeded."""
    return bool(window.over) or bool(excess_over(thread, sealed))


def still_over(thread: ThreadState, sealed: SealedStep, window: Window) -> bool:
    """Return whether a limit is exceeded although the budget acted (dropped, cut or compacted)."""
    facts = sealed.facts
    acted = bool(facts.compactions) or any(b.truncations for b in facts.budgets)
    if not acted:
        return False
    actual = facts.budget.actual_tokens if facts.budget is not None else None
    # The runtime's measurement decides: its budget may leave out what our count includes (tool definitions).
    over = bool(window.over) if actual is None or window.cap is None else actual > window.cap
    return over or bool(excess_over(thread, sealed))
