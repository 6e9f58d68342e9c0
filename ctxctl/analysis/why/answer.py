"""The answer: which item is meant, in which state it is at a step, and the chain that led there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ctxctl.analysis.why.chain import SentenceChain
from ctxctl.analysis.why.cost import carried_cost, compaction_figures, room_needed
from ctxctl.analysis.why.gaps import gaps_recorded
from ctxctl.analysis.why.raw import left_in_capture
from ctxctl.analysis.why.reading import StepReader
from ctxctl.errors import UsageError
from ctxctl.model.why import Link, State, Why
from ctxctl.session.history.cache import item_history_of
from ctxctl.session.history.history import HistoryRow, ItemEntry, ItemHistory
from ctxctl.session.resolver import ASK_THERE, ItemCandidate, NoItem, no_such_item, only_item, resolve_item

if TYPE_CHECKING:
    from ctxctl.session.facade import Inspector, Progress


def explain_item(
    inspector: Inspector,
    ordinal: int,
    name: str,
    *,
    everything: bool = False,
    progress: Progress | None = None,
) -> Why:
    """Why an item is, or is not, in the window of a step.

    `name` is what `resolver.resolve` takes.  Reads the lines of some steps; the first call for a trace
    replays it, and the first one for a name that is no id reads it once more.

    Raises UsageError: `ambiguous-item`; `no-such-item` with near names, or where another thread has it;
    `no-such-frame`.
    """
    chronicle = item_history_of(inspector, progress)
    if not 0 <= ordinal < len(chronicle):
        raise UsageError("no-such-frame", f"the trace has no step {ordinal}")
    reader = StepReader(inspector)
    thread = chronicle.thread_of(ordinal)
    entry, version, how = chronicle.find(thread, name), None, None
    if entry is None:

        def remark(one: ItemCandidate) -> str:
            return _whether_there(chronicle, thread, ordinal, one)

        answer = resolve_item(inspector.items(progress), name, inspector.text, {chronicle.threads[thread]})
        if isinstance(answer, NoItem):
            return _never(inspector, chronicle, reader, answer, ordinal, name)
        found = only_item(answer, name, any_version=True, remark=remark)
        entry, version, how = chronicle.find(thread, found.candidate.item), found.version, found.how
        if entry is None:
            none = NoItem((), (), ())
            return _never(inspector, chronicle, reader, none, ordinal, found.candidate.item)
    return _of_item(inspector, chronicle, reader, ordinal, entry, version, how, everything)


def _whether_there(chronicle: ItemHistory, thread: int, ordinal: int, one: ItemCandidate) -> str:
    """Whether a step's window holds an item, for a list of candidates; empty where no frame ever had it."""
    entry = chronicle.find(thread, one.item)
    life = chronicle.life(entry.number, ordinal) if entry is not None else []
    if not life:
        return ""
    there = life[-1].held > 0 and life[-1].status not in ("removed", "omitted", "gone")
    return f"{'in' if there else 'not in'} the window"


def _of_item(
    inspector: Inspector, chronicle: ItemHistory, reader: StepReader, ordinal: int, entry: ItemEntry,
    version: str | None, how: str | None, everything: bool,
) -> Why:  # fmt: skip
    life = chronicle.life(entry.number, ordinal)
    state = state_of(entry, life, reader, ordinal)
    chain = SentenceChain(inspector, chronicle, reader, ordinal, entry, life, state)
    if state in ("out", "omitted") and chain.untold():
        state = "untold"
        chain = SentenceChain(inspector, chronicle, reader, ordinal, entry, life, state)
    links, left_out = chain.links(everything=everything)
    state, more = chain.version(version)
    links += more
    last = life[-1] if life else None
    # What nobody can count (an encrypted block, a picture) stands with 0 in the ledger: that is no size.
    tokens = (last.tokens or None) if last is not None else None
    held = last.held if last is not None and state in ("current", "stale") else 0
    if state in ("out", "omitted", "available"):
        links += gaps_recorded(chronicle, reader, ordinal, (entry.item, entry.source or ""), only_these=True)
    elif state in ("current", "stale"):
        names = (entry.item, entry.source or "")
        links += gaps_recorded(chronicle, reader, ordinal, names, only_these=True, only_here=True)
    links += carried_cost(chronicle, reader, ordinal, life)
    if state in ("out", "omitted"):
        wanting = room_needed(chronicle, reader, ordinal, life, links)
        links += [msgspec.structs.replace(link, event=chain.measured()) for link in wanting]
        links += compaction_figures(chronicle, reader, ordinal, life)
    span = reader.span(ordinal)
    return Why(
        entry.item, version, entry.kind, entry.title, entry.source, ordinal, span.session, span.thread,
        span.turn, span.step, inspector.params.target, state, tokens, held,
        tuple(links), left_out, (how,) if how else (),
    )  # fmt: skip


def state_of(entry: ItemEntry, life: list[HistoryRow], reader: StepReader, ordinal: int) -> State:
    """In which state an item is, by the rows up to a step."""
    if life:
        last = life[-1]
        if last.status in ("added", "updated", "skipped"):
            return "current"
        if last.held > 0:
            return "stale"
        if any(row.status in ("added", "updated", "skipped", "removed") for row in life):
            return "out"
        return "omitted"
    return "available" if 0 < entry.line <= reader.end_line(ordinal) else "later"


def _never(
    inspector: Inspector, chronicle: ItemHistory, reader: StepReader, answer: NoItem, ordinal: int, name: str
) -> Why:
    """No item is called so: what was asked for instead, or the nearest names."""
    if answer.elsewhere:
        raise no_such_item(answer, name, ASK_THERE)
    links = gaps_recorded(chronicle, reader, ordinal, (name,), only_these=True)
    told = [] if links else left_in_capture(inspector, name)
    state: State = "unread" if any(link.verdict == "not-understood" for link in told) else "unknown"
    if state == "unread":
        links = told
    elif not links:
        if answer.near:
            raise no_such_item(answer, name)
        links = [
            Link(
                "surface", "unknown", "was never on the surface: no item has that id, title, source or text",
                provenance="derived",
            ),
            *told,
        ]  # fmt: skip
        links += gaps_recorded(chronicle, reader, ordinal, (), only_these=False)
    span = reader.span(ordinal)
    return Why(
        name, None, None, None, None, ordinal, span.session, span.thread, span.turn, span.step,
        inspector.params.target, state, None, 0, tuple(links),
    )  # fmt: skip
