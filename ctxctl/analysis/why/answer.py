"""The answer to `why`: the item, its state at a step, and the chain of decisions.

It also names context recorded as missing (`gaps_recorded`), and says whether the capture holds a text that no
item has (`left_in_capture`), so that its importer left it out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import orjson

from ctxctl.analysis.frame_pair import fidelity_of
from ctxctl.analysis.why.chain import SentenceChain
from ctxctl.analysis.why.cost import carried_cost, compaction_figures, room_needed
from ctxctl.analysis.why.reading import StepReader
from ctxctl.engine.replay.annotations import OVER
from ctxctl.errors import CtxctlError, UsageError
from ctxctl.importers.capture import NATIVE
from ctxctl.ingest.about import FACTS
from ctxctl.ingest.folder import Folder
from ctxctl.model import vocab
from ctxctl.model.event import Event
from ctxctl.model.records import Missing, Surface
from ctxctl.model.vocab import Level
from ctxctl.model.why import Link, State, Why
from ctxctl.session.resolver import ASK_THERE, ItemCandidate, NoItem, no_such_item, only_item, resolve_item
from ctxctl.session.store_rows import lives_of
from ctxctl.store.lives import Entry, LifeMoment, Lives
from ctxctl.trace.source import Source, open_source

if TYPE_CHECKING:
    from ctxctl.session.facade import Inspector, Progress


def explain_item(
    inspector: Inspector,
    ordinal: int,
    name: str,
    *,
    everything: bool = False,
    ids: bool = False,
    progress: Progress | None = None,
) -> Why:
    """Explain why an item is, or is not, in the window of a step.

    `name` is resolved by `resolver.resolve_item`. With `ids`, sentences name records by id. It reads the
    lines of some steps. The first call for a trace replays it, and the first call with a name that is no id
    reads it once more.

    Raises UsageError: `ambiguous-item`; `no-such-item` with near names, or if another thread has it;
    `no-such-frame`.
    """
    lives = lives_of(inspector, progress)
    if not 0 <= ordinal < len(lives):
        raise UsageError("no-such-frame", f"the trace has no step {ordinal}")
    reader = StepReader(inspector)
    thread = lives.thread_of(ordinal)
    entry, version, how = lives.find(thread, name), None, None
    if entry is None:

        def remark(one: ItemCandidate) -> str:
            return _whether_there(lives, thread, ordinal, one)

        answer = resolve_item(inspector.items(progress), name, inspector.text, {lives.threads[thread]})
        if isinstance(answer, NoItem):
            return _never(inspector, lives, reader, answer, ordinal, name)
        found = only_item(answer, name, any_version=True, remark=remark)
        entry, version, how = lives.find(thread, found.candidate.item), found.version, found.how
        if entry is None:
            none = NoItem((), (), ())
            return _never(inspector, lives, reader, none, ordinal, found.candidate.item)
    return _of_item(inspector, lives, reader, ordinal, entry, version, how, everything, ids)


def _whether_there(lives: Lives, thread: int, ordinal: int, one: ItemCandidate) -> str:
    """Return whether a step's window holds an item, as words for a list; empty if no frame ever had it."""
    entry = lives.find(thread, one.item)
    life = lives.life(entry.number, ordinal) if entry is not None else []
    if not life:
        return ""
    there = life[-1].held > 0 and life[-1].status not in ("removed", "omitted", "gone")
    return f"{'in' if there else 'not in'} the window"


def _of_item(
    inspector: Inspector, lives: Lives, reader: StepReader, ordinal: int, entry: Entry,
    version: str | None, how: str | None, everything: bool, ids: bool,
) -> Why:  # fmt: skip
    life = lives.life(entry.number, ordinal)
    state = state_of(entry, life, reader, ordinal)
    chain = SentenceChain(inspector, lives, reader, ordinal, entry, life, state, ids=ids)
    if state in ("out", "omitted") and chain.untold():
        state = "untold"
        chain = SentenceChain(inspector, lives, reader, ordinal, entry, life, state, ids=ids)
    links, left_out = chain.links(everything=everything)
    state, more = chain.version(version)
    links += more
    last = life[-1] if life else None
    # Uncountable content (an encrypted block, a picture) has 0 tokens in the ledger, which is not its size.
    tokens = (last.tokens or None) if last is not None else None
    held = last.held if last is not None and state in ("current", "stale") else 0
    if state in ("out", "omitted", "available"):
        links += gaps_recorded(lives, reader, ordinal, (entry.item, entry.source or ""), only_these=True)
    elif state in ("current", "stale"):
        names = (entry.item, entry.source or "")
        links += gaps_recorded(lives, reader, ordinal, names, only_these=True, only_here=True)
    links += carried_cost(lives, reader, ordinal, life)
    if state in ("out", "omitted"):
        wanting = room_needed(lives, reader, ordinal, life, links)
        links += [msgspec.structs.replace(link, event=chain.measured()) for link in wanting]
        links += compaction_figures(lives, reader, ordinal, life)
    span = reader.span(ordinal)
    return Why(
        entry.item, version, entry.kind, entry.title, entry.source, ordinal, span.session, span.thread,
        span.turn, span.step, inspector.params.target, state, tokens, held,
        tuple(links), left_out, (how,) if how else (),
    )  # fmt: skip


def state_of(entry: Entry, life: list[LifeMoment], reader: StepReader, ordinal: int) -> State:
    """Return an item's state by the rows up to a step."""
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
    inspector: Inspector, lives: Lives, reader: StepReader, answer: NoItem, ordinal: int, name: str
) -> Why:
    """Return the answer for an unknown name: missing context of that name, or near names."""
    if answer.elsewhere:
        raise no_such_item(answer, name, ASK_THERE)
    links = gaps_recorded(lives, reader, ordinal, (name,), only_these=True)
    in_capture = [] if links else left_in_capture(inspector, name)
    state: State = "unread" if any(link.verdict == "not-understood" for link in in_capture) else "unknown"
    if state == "unread":
        links = in_capture
    elif not links:
        if answer.near:
            raise no_such_item(answer, name)
        links = [
            Link(
                "surface", "unknown", "was never available: no item has that id, title, source or text",
                provenance="derived",
            ),
            *in_capture,
        ]  # fmt: skip
        links += gaps_recorded(lives, reader, ordinal, (), only_these=False)
    span = reader.span(ordinal)
    return Why(
        name, None, None, None, None, ordinal, span.session, span.thread, span.turn, span.step,
        inspector.params.target, state, None, 0, tuple(links),
    )  # fmt: skip


_MAX_GAPS: Final = 12
"""Most records of missing context that the answer names, the latest ones."""
_MAX_GAP_STEPS: Final = 64
"""Most steps with such records that are read, the latest ones."""


def gaps_recorded(
    lives: Lives,
    reader: StepReader,
    ordinal: int,
    names: tuple[str, ...],
    *,
    only_these: bool,
    only_here: bool = False,
) -> list[Link]:
    """Return what records up to a step say about missing context with one of the names.

    Without `only_these`, return all such records, or a sentence that there are none. With `only_here`, return
    only the step's own records.
    """
    wanted = tuple(name.casefold() for name in names if name)
    found = list(_missing(lives, reader, ordinal, wanted, only_here=only_here))[-_MAX_GAPS:]
    if only_here:
        return found
    found += _sources(lives, reader, ordinal, wanted)
    if not found and not only_these:
        text = "nothing was recorded as missing, asked for or failed so far"
        found = [Link("missing", "nothing", text, provenance="derived")]
    return found


def _missing(
    lives: Lives, reader: StepReader, ordinal: int, wanted: tuple[str, ...], *, only_here: bool
) -> Iterator[Link]:
    steps = lives.lacking(lives.thread_of(ordinal), ordinal)
    if only_here:
        steps = [n for n in steps if n == ordinal]
    said: dict[str, str] = {}
    """What earlier records said about a gap. A later record may hold only its id."""
    for step in steps[-_MAX_GAP_STEPS:]:
        for event in reader.own(step):
            record = event.record
            if not isinstance(record, Missing):
                continue
            name = record.missing_id or f"line {event.line}"
            text = said[name] = f"{said.get(name, '')} {_all(record)}"
            if not wanted or any(word in text.casefold() for word in wanted):
                yield _told(reader, step, event, record)


def _all(record: Missing) -> str:
    """Return all words of a record in one text, for a search."""
    words = (
        record.missing_id, record.question, record.summary, record.needed_for, record.requested_from,
        record.requested_action, *record.candidate_sources, *record.resolution_refs,
    )  # fmt: skip
    return "\n".join(word for word in words if word)


def _told(reader: StepReader, step: int, event: Event, record: Missing) -> Link:
    done = {
        vocab.MISSING_DETECTED: "was found missing",
        vocab.MISSING_REQUESTED: "was asked for",
        vocab.MISSING_RESOLVED: "is no longer missing",
    }.get(event.event_type, "was recorded as missing")
    parts = [f"context {record.missing_id or 'without a name'} {done}"]
    if record.question:
        parts.append(" ".join(record.question.split())[:200])
    if record.requested_from:
        parts.append(f"asked of {record.requested_from}")
    if record.candidate_sources:
        parts.append(f"may come from {', '.join(record.candidate_sources[:4])}")
    if record.resolution_refs:
        parts.append(f"resolved by {', '.join(record.resolution_refs[:4])}")
    state = record.status or ("resolved" if event.event_type == vocab.MISSING_RESOLVED else None)
    verdict = "resolved" if state in OVER else event.event_type.rpartition(".")[2]
    numbers = {"missing_id": record.missing_id, "status": state, "severity": record.severity}
    return Link(
        "missing", verdict, "; ".join(parts), reader.moment(step), reader.rest(event),
        {name: value for name, value in numbers.items() if value is not None},
    )  # fmt: skip


def _sources(lives: Lives, reader: StepReader, ordinal: int, wanted: tuple[str, ...]) -> list[Link]:
    """Return a sentence if the last surface has a source of that name, attached but without any content."""
    if not wanted:
        return []
    for step in lives.surfaces(lives.thread_of(ordinal), ordinal):
        events = [event for event in reader.of(step) if isinstance(event.record, Surface)]
        if not events:
            continue
        event = events[-1]
        assert isinstance(event.record, Surface)
        sources = event.record.available_source_refs
        there = set[str | None]()
        for item in lives.frame(ordinal):
            entry = lives.entry(item)
            there |= {entry.item, entry.source}
        found = [s for s in sources if s.casefold() in wanted and s not in there]
        return [
            Link(
                "surface", "attached", f"source {source} was attached, and nothing of it is in the window",
                reader.moment(step), reader.rest(event), {"source": source},
            )
            for source in found
        ]  # fmt: skip
    return []


SHORTEST_TEXT: Final = 4
"""Shortest text that is searched in the capture; shorter ones occur everywhere."""
SEARCHED_BYTES: Final = 256 << 20
"""Most bytes of a capture that are searched."""
_BLOCK: Final = 1 << 20
_MAX_LINE: Final = 4 << 20
"""Longest line whose keys are named, in bytes."""
_MAX_NODES: Final = 100_000
_HELD: Final = ("system_prompt", "tool_definitions", "reminders")


class Spot(NamedTuple):
    """Where a text is in a capture."""

    line: int
    byte: int
    key: str
    """The keys that lead to it, joined by dots; empty if the line is not JSON."""
    file: str | None


def left_in_capture(inspector: Inspector, text: str) -> list[Link]:
    """Return a sentence if the capture holds the text; else one on what such a capture does not record.

    It reads the foreign file again, so call it only on request. Redacted content is never searched.
    """
    if inspector.format == NATIVE:
        return []
    spot = None if inspector.redactor or len(text.strip()) < SHORTEST_TEXT else _spot(inspector, text.strip())
    if spot is not None:
        file = f" of {spot.file}" if spot.file is not None else ""
        under = f", under {spot.key}" if spot.key else ""
        where = f"the capture holds it on line {spot.line:,}{file} (byte {spot.byte:,}){under}"
        sentence = f"{where}, which ctxctl does not read: whether it was sent is not known"
        return [Link("surface", "not-understood", sentence)]
    lacking = _lacking(inspector)
    if not lacking:
        return []
    sentence = f"such a capture does not record {lacking}: what was there is not known"
    return [Link("surface", "not-recorded", sentence, provenance="derived")]


def _lacking(inspector: Inspector) -> str:
    """Return the parts of a request that no import of the trace contains, in words."""
    found = fidelity_of(inspector)
    names = [
        fact.asks.partition(" (")[0]
        for fact in FACTS
        if fact.name in _HELD
        and found
        and all(set(one.facts.get(fact.name, {})) <= {Level.NOT_RECORDED.value} for one in found)
    ]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _spot(inspector: Inspector, text: str) -> Spot | None:
    path = inspector.trace.source.path
    if path is None:
        return None
    try:
        if Path(path).is_dir():
            return _in_folder(Folder(str(path), Path(path)), text)
        with open_source(path) as source:
            return _in_source(source, text, None)
    except (CtxctlError, OSError):
        return None


def _in_folder(folder: Folder, text: str) -> Spot | None:
    left = SEARCHED_BYTES
    for name in folder.files:
        try:
            with folder.open(name) as source:
                spot = _in_source(source, text, name) if source.size <= left else None
                left -= source.size
        except (CtxctlError, OSError):
            continue
        if spot is not None or left <= 0:
            return spot
    return None


def _in_source(source: Source, text: str, name: str | None) -> Spot | None:
    """Return the first place of the text in a file, plain or as JSON, whatever its case."""
    spellings = [text.encode(), json.dumps(text)[1:-1].encode(), orjson.dumps(text)[1:-1]]
    needles = tuple(dict.fromkeys(one.lower() for one in (*spellings, spellings[1].replace(b"\\", b"\\\\"))))
    overlap, line = max(map(len, needles)), 1
    for at in range(0, min(source.size, SEARCHED_BYTES), _BLOCK):
        data = source.read(at, _BLOCK + overlap)
        small = data.lower()
        places = [place for place in (small.find(needle) for needle in needles) if 0 <= place < _BLOCK]
        if places:
            place = min(places)
            byte = at + place
            return Spot(line + data.count(b"\n", 0, place), byte, _key(source, byte, text), name)
        line += data.count(b"\n", 0, _BLOCK)
    return None


def _key(source: Source, byte: int, text: str) -> str:
    """Return the keys that lead to the text in the JSON value of its line, or of the whole document."""
    before = source.read(max(0, byte - _MAX_LINE), min(byte, _MAX_LINE))
    start = max(0, byte - _MAX_LINE) + before.rfind(b"\n") + 1
    data = source.read(start, _MAX_LINE).partition(b"\n")[0]
    for candidate in (data, source.read(0, _MAX_LINE) if source.size <= _MAX_LINE else b""):
        try:
            value = orjson.loads(candidate)
        except orjson.JSONDecodeError:
            continue
        return next(_keys(value, text.casefold()), "")
    return ""


def _keys(value: Any, text: str) -> Iterator[str]:
    waiting: list[tuple[Any, str]] = [(value, "")]
    for _ in range(_MAX_NODES):
        if not waiting:
            return
        one, path = waiting.pop()
        if isinstance(one, str):
            if text in one.casefold():
                yield path
        elif isinstance(one, list):
            waiting += reversed([(inner, path) for inner in one])
        elif isinstance(one, dict):
            members = [(inner, f"{path}.{key}" if path else key) for key, inner in one.items()]
            yield from (under for key, (_, under) in zip(one, members, strict=True) if text in key.casefold())
            waiting += reversed(members)
