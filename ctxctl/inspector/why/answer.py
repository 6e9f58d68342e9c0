"""The answer: which item is meant, in which state it is at a step, and the chain that led there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ctxctl.errors import UsageError
from ctxctl.inspector.why.chain import Chain
from ctxctl.inspector.why.chronicle import Chronicle, Entry, Row
from ctxctl.inspector.why.gaps import gaps
from ctxctl.inspector.why.known import chronicle_of
from ctxctl.inspector.why.raw import untaken
from ctxctl.inspector.why.reading import Reader
from ctxctl.inspector.why.resolving import Asked, Resolver
from ctxctl.inspector.why.room import carried, compacts, room
from ctxctl.model.why import Link, State, Why

if TYPE_CHECKING:
    from ctxctl.inspector.facade import Inspector, Progress

_LONGEST = 10_000


def explain(
    inspector: Inspector,
    ordinal: int,
    name: str,
    *,
    everything: bool = False,
    progress: Progress | None = None,
) -> Why:
    """Why an item is, or is not, in the window of a step.

    `name` is an id, `ID@VERSION`, a title, a source, or a piece of a text.  Reads the lines of some steps;
    the first call for a trace replays it, and so does looking for a piece of text.

    Raises UsageError: `ambiguous-item`; `no-such-item` with near names, or where another thread has it;
    `no-such-frame`.
    """
    if not name.strip() or len(name) > _LONGEST:
        raise UsageError("no-such-item", "an item without a name" if not name.strip() else "a name too long")
    chronicle = chronicle_of(inspector, progress)
    if not 0 <= ordinal < len(chronicle):
        raise UsageError("no-such-frame", f"the trace has no step {ordinal}")
    reader = Reader(inspector)
    resolver = Resolver(inspector, chronicle, reader, ordinal, progress)
    asked = resolver.find(name)
    if asked.entry is None:
        return _never(inspector, chronicle, reader, resolver, ordinal, name)
    return _of_item(inspector, chronicle, reader, ordinal, asked, asked.entry, everything)


def _of_item(
    inspector: Inspector, chronicle: Chronicle, reader: Reader, ordinal: int, asked: Asked, entry: Entry,
    everything: bool,
) -> Why:  # fmt: skip
    life = chronicle.life(entry.number, ordinal)
    state = state_of(entry, life, reader, ordinal)
    chain = Chain(inspector, chronicle, reader, ordinal, entry, life, state)
    if state in ("out", "omitted") and chain.untold():
        state = "untold"
        chain = Chain(inspector, chronicle, reader, ordinal, entry, life, state)
    links, left_out = chain.links(everything=everything)
    state, more = chain.version(asked.version)
    links += more
    last = life[-1] if life else None
    # What nobody can count (an encrypted block, a picture) stands with 0 in the ledger: that is no size.
    tokens = (last.tokens or None) if last is not None else None
    held = last.held if last is not None and state in ("current", "stale") else 0
    if state in ("out", "omitted", "available"):
        links += gaps(chronicle, reader, ordinal, (entry.item, entry.source or ""), only_these=True)
    elif state in ("current", "stale"):
        names = (entry.item, entry.source or "")
        links += gaps(chronicle, reader, ordinal, names, only_these=True, only_here=True)
    links += carried(chronicle, reader, ordinal, life)
    if state in ("out", "omitted"):
        wanting = room(chronicle, reader, ordinal, life, links)
        links += [msgspec.structs.replace(link, event=chain.measured()) for link in wanting]
        links += compacts(chronicle, reader, ordinal, life)
    span = reader.span(ordinal)
    return Why(
        entry.item, asked.version, entry.kind, entry.title, entry.source, ordinal, span.session, span.thread,
        span.turn, span.step, inspector.params.target, state, tokens, held, tuple(links), left_out, asked.how,
    )  # fmt: skip


def state_of(entry: Entry, life: list[Row], reader: Reader, ordinal: int) -> State:
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
    inspector: Inspector, chronicle: Chronicle, reader: Reader, resolver: Resolver, ordinal: int, name: str
) -> Why:
    """No item is called so: what was asked for instead, or the nearest names."""
    links = gaps(chronicle, reader, ordinal, (name,), only_these=True)
    told = [] if links else untaken(inspector, name)
    state: State = "unread" if any(link.verdict == "not-understood" for link in told) else "unknown"
    if state == "unread":
        links = told
    elif not links:
        near = resolver.near(name)
        if near:
            raise UsageError(
                "no-such-item", f"no item is called {name[:200]!r}, and none says so",
                hint=f"did you mean {', '.join(near)}?",
            )  # fmt: skip
        links = [
            Link(
                "surface", "unknown", "was never on the surface: no item has that id, title, source or text",
                provenance="derived",
            ),
            *told,
        ]  # fmt: skip
        links += gaps(chronicle, reader, ordinal, (), only_these=False)
    span = reader.span(ordinal)
    return Why(
        name, None, None, None, None, ordinal, span.session, span.thread, span.turn, span.step,
        inspector.params.target, state, None, 0, tuple(links),
    )  # fmt: skip
