"""What was asked for and not there: missing context, sources that gave nothing, requests that failed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ctxctl.analysis.why.reading import StepReader
from ctxctl.engine.replay.annotations import OVER
from ctxctl.model import vocab
from ctxctl.model.event import Event
from ctxctl.model.records import Missing, Surface
from ctxctl.model.why import Link
from ctxctl.session.history.history import SURFACE, TOLD_MISSING, ItemHistory

_MOST: Final = 12
"""Records of missing context that are told, the latest ones."""
_STEPS: Final = 64
"""Steps with such records that are read, the latest ones."""


def gaps_recorded(
    chronicle: ItemHistory,
    reader: StepReader,
    ordinal: int,
    names: tuple[str, ...],
    *,
    only_these: bool,
    only_here: bool = False,
) -> list[Link]:
    """What was recorded up to a step of context that was lacking, as far as it speaks of one of the names.

    Without `only_these` it is all of it, and a sentence that says so where nothing was recorded; with
    `only_here` what the step's own records tell.
    """
    wanted = tuple(name.casefold() for name in names if name)
    found = list(_missing(chronicle, reader, ordinal, wanted, only_here=only_here))[-_MOST:]
    if only_here:
        return found
    found += _sources(chronicle, reader, ordinal, wanted)
    if not found and not only_these:
        text = "nothing was recorded as missing, asked for or failed up to here"
        found = [Link("missing", "nothing", text, provenance="derived")]
    return found


def _missing(
    chronicle: ItemHistory, reader: StepReader, ordinal: int, wanted: tuple[str, ...], *, only_here: bool
) -> Iterator[Link]:
    flags = chronicle.steps["flags"]
    steps = [n for n in reader.steps_of(ordinal) if n <= ordinal and flags[n] & TOLD_MISSING]
    if only_here:
        steps = [n for n in steps if n == ordinal]
    said: dict[str, str] = {}
    """What earlier records said of the same gap: a later one may hold its id alone."""
    for step in steps[-_STEPS:]:
        for event in reader.own(step):
            record = event.record
            if not isinstance(record, Missing):
                continue
            name = record.missing_id or f"line {event.line}"
            text = said[name] = f"{said.get(name, '')} {_all(record)}"
            if not wanted or any(word in text.casefold() for word in wanted):
                yield _told(reader, step, event, record)


def _all(record: Missing) -> str:
    """Everything that a record says, to be looked through."""
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


def _sources(chronicle: ItemHistory, reader: StepReader, ordinal: int, wanted: tuple[str, ...]) -> list[Link]:
    """Whether the last surface has a source of that name: it was attached, and nothing of it is there."""
    if not wanted:
        return []
    flags = chronicle.steps["flags"]
    told = (n for n in reversed(reader.steps_of(ordinal)) if n <= ordinal and flags[n] & SURFACE)
    for step in told:
        events = [event for event in reader.of(step) if isinstance(event.record, Surface)]
        if not events:
            continue
        event = events[-1]
        assert isinstance(event.record, Surface)
        sources = event.record.available_source_refs
        there = set[str | None]()
        for item in chronicle.frame(ordinal):
            entry = chronicle.entry(item)
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
