"""The frame in `append` mode: differences go into a growing history (DESIGN section 3, rule 2)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ctxctl.model.results import Placement
from ctxctl.model.vocab import Basis

if TYPE_CHECKING:
    from ctxctl.engine.facts import Facts, Reading
    from ctxctl.engine.thread import ThreadState

_DIGEST = re.compile(r"[0-9a-f]{8,64}")


def grown(thread: ThreadState, facts: Facts, reading: Reading) -> tuple[Basis, list[Placement], int]:
    """The previous frame plus what this step sends, and how much of its head is surely the same.

    Older copies of what is sent become stale, as do the copies of removed items; only a compaction takes
    copies out.
    """
    frame = list(thread.frame.placements)
    index = thread.index
    if index is None:
        index = {p.item: at for at, p in enumerate(frame) if not p.stale}
    compacted = reading.compacted()
    same = len(frame)
    if compacted:
        frame, index = _cut(thread, frame, compacted)
        same = 0
    basis, sent = _sent(thread, facts, reading)
    stale = thread.placer.stale
    taken_back = thread.sent.removed if thread.sent is not None else ()
    for item in (*facts.removed, *taken_back):
        at = index.pop(item, None)
        if at is not None:
            frame[at] = stale(frame[at])
            same = min(same, at)
    for placement in _carried_in(thread, reading, index):
        index[placement.item] = len(frame)
        frame.append(placement)
    for placement in sent:
        at = index.get(placement.item)
        if at is not None:
            frame[at] = stale(frame[at])
            same = min(same, at)
        index[placement.item] = len(frame)
        frame.append(placement)
    thread.index = index
    thread.book.settle()
    return basis, frame, same


def _sent(thread: ThreadState, facts: Facts, reading: Reading) -> tuple[Basis, list[Placement]]:
    """What this step adds to the history, by the strongest thing recorded."""
    if thread.simulation is not None:
        thread.sent = thread.simulation.send(thread, facts)
        return "policy", thread.sent.placements
    if facts.assembly is not None:
        return "assembly", thread.assembled
    dropped = reading.dropped()
    book, placer = thread.book, thread.placer
    if facts.selection is not None:
        chosen = reading.selected()
        return "selection", [p for p in chosen if p.item not in dropped and _sees(thread, p.item)]
    entered = (book.live.get(item) for item in facts.entered)
    sent = [placer.plain(v) for v in entered if v is not None and v.visible and v.item not in dropped]
    return ("items" if sent else "repeat"), sent


def _cut(
    thread: ThreadState, frame: list[Placement], compacted: dict[str, str | None]
) -> tuple[list[Placement], dict[str, int]]:
    """Take the sources of a compaction out, stale copies too, and put its summary where they began."""
    kept: list[Placement] = []
    done: set[str] = set()
    for placement in frame:
        if placement.item not in compacted:
            kept.append(placement)
            continue
        into = compacted[placement.item]
        if into is not None and into not in done:
            done.add(into)
            kept.append(thread.placer.ref(into))
    for into in compacted.values():
        if into is not None and into not in done:
            done.add(into)
            kept.append(thread.placer.ref(into))
    return kept, {p.item: at for at, p in enumerate(kept) if not p.stale}


def _carried_in(thread: ThreadState, reading: Reading, index: dict[str, int]) -> list[Placement]:
    """Items recorded as skipped unchanged that no frame ever held: they came in before the trace."""
    carried: list[Placement] = []
    for ref in reading.unchanged():
        item, name = thread.book.item_of(ref.ref), ref.ref
        head, at, suffix = name.rpartition("@")
        if item == name and at and item not in thread.book.latest and _DIGEST.fullmatch(suffix):
            item = head
        if item not in index and item not in thread.placed:
            carried.append(thread.placer.carried(name, item))
    return carried


def _sees(thread: ThreadState, item: str) -> bool:
    version = thread.book.latest.get(item)
    return version is None or version.visible
