"""One frame's changes, only those that a query holds of.  Runs in a thread; no widget, no view state."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from ctxctl.engine.query import Query, Word, contained
from ctxctl.inspector.around import Arounds
from ctxctl.labels import plural
from ctxctl.model.results import Change, Placement
from ctxctl.tui.changes import Arrangement, Facts, Note
from ctxctl.tui.state import Detail

if TYPE_CHECKING:
    from ctxctl.inspector import Inspector
    from ctxctl.tui.detailing import Gathered


def filtered(inspector: Inspector, found: Gathered, how: Arrangement) -> Detail:
    """The changes of a frame that fit `how.only`, listed as `how` says."""
    from ctxctl.tui.detailing import arranged_detail

    assert how.only is not None
    detail = arranged_detail(fitting(inspector, found, how.only), how)
    table = detail.table
    if not table.groups:
        changed = [change for change in found.facts.changes if change.status != "skipped"]
        listed = [*changed, *(found.facts.skipped or ())]
        note = Note(f"none of {plural(len(listed), 'change')} fits: Esc lists all")
        table = replace(table, notes=(*table.notes, note))
    return replace(detail, table=table, with_skipped=found.facts.skipped is not None)


def fitting(inspector: Inspector, found: Gathered, query: Query) -> Gathered:
    """The same facts without the changes of which the query does not hold.

    Of skipped items that are not listed only those are looked at to which something happened.
    """
    frame = inspector.frame(found.target.ordinal)
    before = inspector.previous(found.target.first)
    placed = _current(frame.placements)
    were = {} if before is None else _current(inspector.frame(before).placements)
    withheld = frame.step.told.withheld
    around = Arounds(query, inspector.text).alone(frame.step, frame.placements)

    def text_of(change: Change) -> str | None:
        if change.item in withheld and change.status in ("removed", "omitted"):
            return None
        if change.status == "omitted":
            return _recorded(inspector, change.line)
        placement = (were if change.status == "removed" else placed).get(change.item)
        return inspector.text(placement.content) if placement is not None and placement.content else None

    def fits(change: Change) -> bool:
        holding = found.facts.holdings.get(change.item)
        segment = holding.segment if holding is not None else None
        contains = _asked(lambda: text_of(change))
        return query.matches_change(found.step, change, contains, segment or None, around)

    facts = found.facts
    kept = [change for change in facts.changes if fits(change)]
    noted = [change for change in kept if change.status == "skipped"]
    skipped = noted if facts.skipped is None else [change for change in facts.skipped if fits(change)]
    made = Facts(
        kept, skipped, len(skipped), facts.used, facts.saved, facts.stale, facts.holdings, facts.servers
    )
    return found._replace(facts=made)


def _asked(text: Callable[[], str | None]) -> Callable[[Word], bool | None]:
    """Looks for words in a text that is fetched when the first is looked for."""
    known: list[Callable[[Word], bool | None]] = []

    def contains(word: Word) -> bool | None:
        if not known:
            known.append(contained(text()))
        return known[0](word)

    return contains


def _current(placements: tuple[Placement, ...]) -> dict[str, Placement]:
    return {placement.item: placement for placement in placements if not placement.stale}


def _recorded(inspector: Inspector, line: int) -> str | None:
    """The text of an item that no frame holds, from its line of the trace."""
    data = inspector.native(line).get("data") if line else None
    content = data.get("content") if isinstance(data, dict) else None
    return content if content is None or isinstance(content, str) else json.dumps(content, ensure_ascii=False)
