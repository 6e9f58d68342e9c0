"""Recompute stages by a runtime's own rules, and compare them with the record."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final, overload

import msgspec

from ctxctl.model.recompute import Part, Piece, Recomputer, Recorded
from ctxctl.model.results import Placement, StageView

if TYPE_CHECKING:
    from ctxctl.engine.replay.placements import Placer
    from ctxctl.engine.replay.thread import SealedStep, ThreadState


LISTED: Final = 20
"""Most differing places of a list that are shown."""


def recomputed_stages(
    views: dict[str, StageView], thread: ThreadState, sealed: SealedStep, rules: Recomputer
) -> dict[str, StageView]:
    """Return the stages with `matches` or `differs` where the rules apply. A stage not recorded stays so."""
    out = dict(views)
    for stage, found in rules.recompute(_recorded(thread, sealed)).items():
        view = views.get(stage)
        if view is None or view.verdict == "not_recorded":
            continue
        if found.expected == found.recorded:
            out[stage] = msgspec.structs.replace(view, verdict="matches")
        else:
            expected, recorded = _narrowed(found.expected, found.recorded)
            facts = {"expected": expected, "recorded": recorded, "inputs": dict(found.inputs)}
            out[stage] = StageView("differs", {**view.facts, **facts})
    return out


def _narrowed(expected: Any, recorded: Any) -> tuple[Any, Any]:
    """Return what differs: fields of two records, or places of two lists."""
    if isinstance(expected, dict) and isinstance(recorded, dict):
        names = [name for name in {**expected, **recorded} if expected.get(name) != recorded.get(name)]
        return {n: expected.get(n) for n in names}, {n: recorded.get(n) for n in names}
    if isinstance(expected, list) and isinstance(recorded, list):
        pairs = [(a, b) for a, b in zip_longest(expected, recorded) if a != b][:LISTED]
        return [a for a, _ in pairs], [b for _, b in pairs]
    return expected, recorded


def _recorded(thread: ThreadState, sealed: SealedStep) -> Recorded:
    facts, reading = sealed.facts, sealed.reading
    selection, budget, assembly = facts.selection, facts.budget, facts.assembly
    truncations = [t for one in facts.budgets for t in one.truncations]
    selected = [_part(thread, reading.item_of(ref.ref)) for ref in selection.selected] if selection else []
    return Recorded(
        selected=tuple(part for part in selected if part is not None),
        entered=tuple(part for item in facts.entered if (part := _part(thread, item)) is not None),
        query=selection.query if selection is not None else None,
        selection=_native(selection.metadata) if selection is not None else None,
        budget=_native(budget.metadata) if budget is not None else None,
        max_items=budget.max_items if budget is not None else None,
        dropped=tuple(reading.item_of(t.ref) for t in truncations if t.dropped),
        cut=tuple(reading.item_of(t.ref) for t in truncations if not t.dropped),
        pieces=_Pieces(thread.placer, reading.assembled),
        separator=assembly.separator if assembly is not None else None,
    )


def _native(metadata: dict[str, Any]) -> dict[str, Any]:
    native = metadata.get("native")
    return native if isinstance(native, dict) else {}


def _part(thread: ThreadState, item: str) -> Part | None:
    version = thread.book.live.get(item)
    if version is None:
        return None
    record, content, placer = version.record, version.content, thread.placer
    read = (lambda: placer.text(content)) if content is not None else _unknown
    return Part(item, record.title, record.context_kind, read, _native(record.metadata))


class _Pieces(Sequence[Piece]):
    """The blocks of an assembly, made on access, because most rules read few of them."""

    def __init__(self, placer: Placer, assembled: Sequence[Placement]) -> None:
        self._placer = placer
        self._assembled = assembled

    def __len__(self) -> int:
        return len(self._assembled)

    @overload
    def __getitem__(self, at: int) -> Piece: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Piece]: ...
    def __getitem__(self, at: int | slice) -> Piece | Sequence[Piece]:
        if isinstance(at, slice):
            return _Pieces(self._placer, self._assembled[at])
        p = self._assembled[at]
        content, placer = p.content, self._placer
        return Piece(p.item, (lambda: placer.text(content)) if content is not None else _unknown)


def _unknown() -> None:
    return None
