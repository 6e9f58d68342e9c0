"""What became of a summary that an item went into, and of the summaries that it went into itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ctxctl.inspector.why.chronicle import Chronicle
from ctxctl.inspector.why.evidence import Evidence
from ctxctl.inspector.why.reading import Named, Reader
from ctxctl.model.why import Link

_FATES: Final = 8
"""Summaries of summaries that are followed."""
_STAYS: Final = ("added", "updated", "skipped")


def fate(
    chronicle: Chronicle, reader: Reader, ordinal: int, thread: int, summary: str, target: str
) -> Iterator[Link]:
    """What became of a summary up to a step: a sentence for each, down to one that is there or is lost."""
    seen = set[str]()
    for _ in range(_FATES):
        entry = chronicle.find(thread, summary) or chronicle.find(thread, summary.rpartition("@")[0])
        if entry is None or entry.item in seen:
            return
        seen.add(entry.item)
        life = chronicle.life(entry.number, ordinal)
        if not life:
            text = f"summary {entry.item} was in no frame up to here"
            yield Link("compaction", "summary-absent", text, None, None, {"item": entry.item}, "derived")
            return
        last = life[-1]
        if last.status in _STAYS:
            # A provider's own compaction is encrypted: it is there, and nobody can count it.
            size = f"{last.tokens:,} tokens" if last.tokens else "its size is not known"
            text = f"summary {entry.item} is in the window, {size}"
            yield Link(
                "compaction", "summary-present", text, reader.moment(last.first), reader.rest_at(last.line),
                {"item": entry.item, "tokens": last.tokens or None}, "derived",
            )  # fmt: skip
            return
        evidence = Evidence(reader, last.first, Named(entry.item), target)
        compacted = next(evidence.compacted(), None)
        window = evidence.window()
        why, rest = f"left the window ({last.cause or 'unrecorded'})", reader.rest(window) if window else None
        into = None
        if compacted is not None:
            why, rest, into = compacted.text, compacted.event, compacted.numbers.get("into")
        text = f"summary {entry.item} {why}"
        yield Link("compaction", "summary-left", text, evidence.moment, rest, {"item": entry.item}, "derived")
        if not isinstance(into, str):
            return
        summary = into
