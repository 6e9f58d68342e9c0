"""What was recorded for one step besides its frame, and the resulting causes of removals."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ctxctl.engine.replay.changes import Cause, NamedItem
from ctxctl.engine.replay.item_table import ItemTable
from ctxctl.engine.replay.placements import Placer
from ctxctl.model.records import (
    Assembly,
    Budget,
    Compaction,
    Injection,
    Missing,
    Ref,
    Selection,
    Surface,
)
from ctxctl.model.results import Placement
from ctxctl.model.vocab import CAUSES, TOOL_ARGUMENT

_SUMMED = tuple(name for name in Budget.__struct_fields__ if name not in ("target", "metadata"))

UNCHANGED = "duplicate"
"""The omission reason by which runtimes record that the model has this version already."""


_COUNT_TOLERANCE = 1.25
_COUNT_SLACK = 16


def exceeds_remainder(counted: int, left: int) -> bool:
    """Return whether a text exceeds what the budget left of it, whichever tokens each is counted in."""
    return counted > max(left + _COUNT_SLACK, _COUNT_TOLERANCE * left)


def holds_uncut(placement: Placement, left: int | None) -> bool:
    """Return whether a placement has the whole text of an item that a budget cut (`left` None: not cut).

    A block's own text is what was sent, and a text that its item calls cut is the remaining part.
    """
    if left is None:
        return False
    whole = placement.content is not None and not placement.own and not placement.truncated
    return whole and exceeds_remainder(placement.counted, left)


class StepFacts:
    """The records of one step and one target, in line order. They are mutable until the step is sealed."""

    __slots__ = (
        "assembly",
        "budgets",
        "causes",
        "chosen",
        "compactions",
        "cuts",
        "elsewhere",
        "entered",
        "faults",
        "injections",
        "missing",
        "model",
        "redacted",
        "removed",
        "rerooted",
        "selection",
        "surfaces",
    )

    def __init__(self) -> None:
        self.surfaces: list[Surface] = []
        self.selection: Selection | None = None
        self.chosen: list[Placement | None] = []
        """Placements of the selection's refs at its own line; None for refs unknown then."""
        self.budgets: list[Budget] = []
        self.assembly: Assembly | None = None
        self.injections: list[Injection] = []
        self.compactions: list[Compaction] = []
        self.missing: list[Missing] = []
        self.redacted: set[str] = set()
        self.removed: dict[str, str | None] = {}
        """Items removed by an event, each with the recorded cause."""
        self.entered: dict[str, None] = {}
        """Items added or updated, in line order. `append` mode sends them if nothing else is recorded."""
        self.rerooted = False
        """Whether the assembly began a new root: nothing of the previous history is in the window."""
        self.cuts: list[Compaction] = []
        """Compactions after the selection, which it does not reflect."""
        self.faults: set[str] = set()
        """Problems in the assembly's splices, as slugs."""
        self.causes: str | None = None
        """The cause, `branched` or `cleared`, of what a new root left out."""
        self.model: str | None = None
        self.elsewhere: dict[str, None] = {}
        """Other targets of an injection, as an ordered set."""

    def take(self, later: StepFacts) -> None:
        """Add later facts of the same step."""
        self.surfaces += later.surfaces
        if later.selection is not None:
            self.selection, self.chosen = later.selection, later.chosen
        self.budgets += later.budgets
        self.assembly = later.assembly or self.assembly
        self.injections += later.injections
        self.compactions += later.compactions
        self.missing += later.missing
        self.redacted |= later.redacted
        self.faults |= later.faults
        self.rerooted = self.rerooted or later.rerooted
        self.cuts = later.cuts if later.selection is not None else self.cuts + later.cuts
        for item, cause in later.removed.items():
            self.removed[item] = cause
            self.entered.pop(item, None)
        for item in later.entered:
            self.removed.pop(item, None)
            self.entered[item] = None
        self.causes = later.causes or self.causes
        self.model = later.model or self.model
        self.elsewhere.update(later.elsewhere)

    def copy(self) -> StepFacts:
        """Return an independent copy, for a snapshot of a replay."""
        twin = StepFacts()
        twin.take(self)
        return twin

    @property
    def budget(self) -> Budget | None:
        """The budget, with each field from the last record that has it."""
        if len(self.budgets) < 2:
            return self.budgets[0] if self.budgets else None
        merged = self.budgets[0]
        for later in self.budgets[1:]:
            more = {name: value for name in _SUMMED if (value := getattr(later, name)) not in (None, {}, ())}
            merged = msgspec.structs.replace(merged, **more)
        return merged


class FactsReading:
    """Reads a step's facts with the items of its thread."""

    def __init__(
        self,
        facts: StepFacts,
        book: ItemTable,
        placer: Placer,
        assembled: list[Placement] | None = None,
    ) -> None:
        self.facts = facts
        self.assembled = assembled or []
        """The placements of the step's assembly."""
        self.item_of = book.item_of
        self._book = book
        self._placer = placer
        self._compacted: dict[str, str | None] | None = None
        self._omitted: dict[str, Ref] | None = None
        self._dropped: dict[str, str | None] | None = None
        self._of_call: bool | None = None

    def dropped(self) -> dict[str, str | None]:
        """Return the items that budget records left out, with their reasons."""
        if self._dropped is None:
            self._dropped = {
                self._book.item_of(record.ref): record.reason
                for budget in self.facts.budgets
                for record in budget.truncations
                if record.dropped
            }
        return self._dropped

    def selected(self) -> list[Placement]:
        """Return the selection's placements as of its line. A ref unknown then is resolved now."""
        selection = self.facts.selection
        if selection is None:
            return []
        pairs = zip(selection.selected, self.facts.chosen, strict=True)
        return [found if found is not None else self._placer.ref(ref.ref) for ref, found in pairs]

    def truncated(self) -> frozenset[str]:
        """Return the items that budget records cut to fit."""
        if not self.facts.budgets:
            return frozenset()
        return frozenset(
            self._book.item_of(record.ref)
            for budget in self.facts.budgets
            for record in budget.truncations
            if not record.dropped
        )

    def cut_to(self) -> dict[str, int]:
        """Return the items that budget records cut to fit, with the tokens left by the budget's own count."""
        if not self.facts.budgets:
            return {}
        return {
            self._book.item_of(record.ref): record.tokens
            for budget in self.facts.budgets
            for record in budget.truncations
            if not record.dropped and record.tokens is not None
        }

    def compacted(self) -> dict[str, str | None]:
        """Return the items that a compaction removed, with the summary that replaced them."""
        if self._compacted is None:
            self._compacted = {
                self._book.item_of(ref): None if c.summary is None else self._book.item_of(c.summary)
                for c in self.facts.compactions
                for ref in c.sources
            }
        return self._compacted

    def omitted(self) -> dict[str, Ref]:
        """Return the selection's omissions by item."""
        if self._omitted is None:
            selection = self.facts.selection
            refs = selection.omitted if selection is not None else ()
            self._omitted = {self._book.item_of(r.ref): r for r in refs}
        return self._omitted

    def unchanged(self) -> Iterator[Ref]:
        """Yield refs that the selection skipped because the model has that version."""
        return (r for r in self.omitted().values() if r.reason == UNCHANGED)

    def cause_of(self, item: str) -> Cause:
        """Return why an item left: by record, compaction, selection, budget, redaction, or new root.

        What a tool call was given ends with that call, so it has `expired` in the next one's view.
        """
        recorded = self.facts.removed.get(item)
        if recorded in CAUSES:
            return Cause(recorded, None, self.compacted().get(item))
        if item in self.compacted():
            return Cause("compacted", None, self.compacted()[item])
        omitted = self.omitted().get(item)
        if omitted is not None:
            return Cause("omitted", omitted.reason)
        dropped = self.dropped()
        if item in dropped:
            return Cause("truncated", dropped[item])
        if item in self.facts.redacted:
            return Cause("redacted")
        if self.facts.causes is not None:
            return Cause(self.facts.causes)
        if self._ends_with_call():
            return Cause("expired", recorded)
        return Cause("unrecorded", recorded)

    def _ends_with_call(self) -> bool:
        """Return whether the step is a view for a tool call."""
        if self._of_call is None:
            self._of_call = any(one.injection_point == TOOL_ARGUMENT for one in self.facts.injections)
        return self._of_call

    def named(self) -> tuple[NamedItem, ...]:
        """Return candidates, omissions and drops in recorded order: the possible `omitted` of the step."""
        found: list[NamedItem] = []
        selection = self.facts.selection
        if selection is not None:
            found += (self._name(r.ref, r.reason) for r in selection.omitted)
            found += (self._name(r.ref, None) for r in (*selection.candidates, *selection.selected))
        for budget in self.facts.budgets:
            found += (self._name(t.ref, t.reason) for t in budget.truncations if t.dropped)
        found += self._unsent()
        reasons = {n.item: n.cause for n in reversed(found) if n.cause.reason is not None}
        return tuple(n._replace(cause=reasons.get(n.item, n.cause)) for n in found)

    def _unsent(self) -> Iterator[NamedItem]:
        """Yield items that entered at this step and were compacted before any frame had them."""
        for compaction in self.facts.compactions:
            reason = "budget_limit" if compaction.summary is None else "superseded_by_summary"
            for ref in compaction.sources:
                if self._book.item_of(ref) in self.facts.entered:
                    yield self._name(ref, reason)

    def _name(self, ref: str, reason: str | None) -> NamedItem:
        placement = self._placer.ref(ref)
        return NamedItem(placement.item, placement, Cause(None, reason))

    def scores(self) -> dict[str, float]:
        """Return the selection's scores, by item."""
        selection = self.facts.selection
        if selection is None:
            return {}
        scores = {self._book.item_of(ref): score for ref, score in selection.scores.items()}
        for ref in (*selection.candidates, *selection.selected, *selection.omitted):
            if ref.score is not None:
                scores[self._book.item_of(ref.ref)] = ref.score
        return scores
