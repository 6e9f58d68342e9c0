"""The frame in `append` mode: differences go into a growing history (DESIGN section 3, rule 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxctl.model.records import Compaction
from ctxctl.model.results import Placement
from ctxctl.model.vocab import Basis

if TYPE_CHECKING:
    from ctxctl.engine.replay.step_facts import FactsReading, StepFacts
    from ctxctl.engine.replay.thread_data import ThreadData
    from ctxctl.engine.simulate.policy_step import SentStep


def appended_frame(
    thread: ThreadData,
    facts: StepFacts,
    reading: FactsReading,
    recorded: list[Placement],
    planned: SentStep | None,
) -> tuple[Basis, list[Placement], int]:
    """Return the basis, the previous frame with what this step sends, and how much of its head is the same.

    Older copies of sent items become stale, as do copies of removed items. Only a compaction removes copies.

    Args:
        recorded: The previous frame as recorded.
        planned: What a policy sends instead; None if the trace decides.
    """
    frame = list(recorded)
    index = thread.index
    if index is None:
        index = {p.item: at for at, p in enumerate(frame) if not p.stale}
    same = len(frame)
    summaries: set[str] = set()
    if facts.rerooted:
        frame, index, same = [], {}, 0
    if facts.compactions:
        frame, summaries = after_compactions(thread, facts.compactions, frame)
        index = {p.item: at for at, p in enumerate(frame) if not p.stale}
        same = 0
    basis, sent = _sent(thread, facts, reading, planned)
    stale = thread.placer.stale
    taken_back = planned.removed if planned is not None else ()
    for item in (*facts.removed, *taken_back):
        at = index.pop(item, None)
        if at is not None:
            frame[at] = stale(frame[at])
            same = min(same, at)
    for placement in _carried_in(thread, reading, index):
        index[placement.item] = len(frame)
        frame.append(placement)
    for placement in sent:
        if placement.item in summaries:
            continue
        at = index.get(placement.item)
        if at is not None:
            frame[at] = stale(frame[at])
            same = min(same, at)
        index[placement.item] = len(frame)
        frame.append(placement)
    thread.index = index
    thread.book.settle()
    return basis, frame, same


def _sent(
    thread: ThreadData, facts: StepFacts, reading: FactsReading, planned: SentStep | None
) -> tuple[Basis, list[Placement]]:
    """Return what this step adds to the history, by the policy's plan or else by the strongest record."""
    if planned is not None:
        return "policy", planned.placements
    if facts.assembly is not None:
        return "assembly", _separated(thread, facts.assembly.separator)
    dropped = reading.dropped()
    book, placer = thread.book, thread.placer
    if facts.selection is not None:
        chosen = reading.selected()
        return "selection", [p for p in chosen if p.item not in dropped and _sees(thread, p.item)]
    entered = (book.live.get(item) for item in facts.entered)
    sent = [placer.plain(v) for v in entered if v is not None and v.visible and v.item not in dropped]
    return ("items" if sent else "repeat"), sent


def _separated(thread: ThreadData, separator: str | None) -> list[Placement]:
    """Return an assembly's blocks, each with this assembly's separator, whatever later ones use."""
    blocks = thread.assembled
    if separator is None or len(blocks) < 2:
        return blocks
    behind = thread.placer.behind
    return [blocks[0], *(behind(placement, separator) for placement in blocks[1:])]


def after_compactions(
    thread: ThreadData, compactions: list[Compaction], frame: list[Placement]
) -> tuple[list[Placement], set[str]]:
    """Return a frame after compactions, in order, and the summaries that they added.

    A compaction removes the copies of the version that its ref names, or all copies for a plain `ID`. It puts
    its summary where they began, unless the frame holds that summary already.
    """
    placed: set[str] = set()
    for compaction in compactions:
        gone = [thread.book.named(ref) for ref in compaction.sources]
        whole = {item for item, version in gone if version is None}
        versions = {(item, version) for item, version in gone if version is not None}
        at = [n for n, p in enumerate(frame) if p.item in whole or (p.item, p.version) in versions]
        summary = None if compaction.summary is None else thread.placer.ref(compaction.summary)
        if summary is not None:
            known = thread.book.latest.get(summary.item)
            held = any(p.key == summary.key and not p.stale for p in frame)
            if held or (known is not None and not known.visible):
                summary = None
        taken = set(at)
        first = at[0] if at else len(frame)
        kept = [p for n, p in enumerate(frame) if n < first]
        if summary is not None:
            kept.append(summary)
            placed.add(summary.item)
        frame = kept + [p for n, p in enumerate(frame) if n >= first and n not in taken]
    return frame, placed


def _carried_in(thread: ThreadData, reading: FactsReading, index: dict[str, int]) -> list[Placement]:
    """Return items recorded as skipped unchanged that no frame held: they came before the trace."""
    carried: list[Placement] = []
    for ref in reading.unchanged():
        item = thread.book.item_of(ref.ref)
        if item not in index and item not in thread.placed:
            carried.append(thread.placer.carried(ref.ref, item))
    return carried


def _sees(thread: ThreadData, item: str) -> bool:
    version = thread.book.latest.get(item)
    return version is None or version.visible
