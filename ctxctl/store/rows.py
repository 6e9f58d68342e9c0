"""What a row of the session store says, as the values of the model.  `schema.sql` has the tables."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import msgspec

from ctxctl.model.content import Content
from ctxctl.model.problem import Problem
from ctxctl.model.results import Change, Placement, Step, Summary, Turn
from ctxctl.trace.cache_files import DamagedError
from ctxctl.trace.contents import StoredContent

LAYOUT: Final = 1
"""The version of the schema.  A store of another version is made again."""


class About(msgspec.Struct, frozen=True):
    """Which trace a store is of, under what it was replayed, and what the replay as a whole found."""

    layout: int
    made_under: str
    file: dict[str, Any]
    """The trace's identity, as `fingerprint_of` gives it."""
    steps: int
    summary: Summary
    found: tuple[Problem, ...]
    """The first problems that the engine reported, of `found_count`."""
    found_count: int
    late: int
    """Events that came for a step that was over."""
    problems: tuple[Problem, ...]
    """The first problems that the trace's reader found, of `problem_count`."""
    problem_count: int


class ToldDelta(msgspec.Struct, frozen=True, array_like=True):
    """How a step's frame differs from the one before, where comparing the two frames says otherwise.

    A step that built its frame anew takes out and puts in what both frames hold.  Numbers of placements take
    four bytes each, in this machine's order.
    """

    against: bytes | None
    """The frame before, weighed again for this step's model; None: it is the frame of the step before."""
    prefix: int
    suffix: int
    removed: bytes
    inserted: bytes
    reordered: bool


TEXT_COLUMNS: Final = (
    "digest", "size", "form", "tokens", "exact", "first", "offset", "length", "base", "before", "after",
    "text",
)  # fmt: skip
_DESCRIPTION: Final = ("item", "kind", "title", "source")
"""Fields of a placement or a change that its row of `items` has."""
PLACEMENT_FIELDS: Final = tuple(
    name for name in Placement.__struct_fields__ if name not in (*_DESCRIPTION, "content")
)
_FLAGS: Final = ("stale", "derived", "simulated", "truncated", "carried", "own")
_FLAGS_AT: Final = tuple(Placement.__struct_fields__.index(name) for name in _FLAGS)
_CONTENT_AT: Final = Placement.__struct_fields__.index("content")
PLACEMENTS: Final = "SELECT p.id, {} FROM placements p JOIN items i ON i.id = p.item".format(
    ", ".join(
        f"i.{name}" if name in _DESCRIPTION else "p.text" if name == "content" else f"p.{name}"
        for name in Placement.__struct_fields__
    )
)
"""Selects placements as `placement_of` takes them."""
STEP_COLUMNS: Final = {
    "turn": "turn", "step": "step", "turn_id": "turn_id", "step_id": "step_id", "time": "time",
    "model": "model", "sent": "window.used", "sent_method": "window.used_method",
    "recorded": "window.recorded", '"limit"': "window.limit", "window_before": "ledger.window_before",
    "reweighed": "ledger.reweighed", "new": "ledger.new", "freed": "ledger.freed", "added": "counts.added",
    "updated": "counts.updated", "removed": "counts.removed", "skipped": "counts.skipped",
    "omitted": "counts.omitted", "cached": "cache.reported_cached",
    "cache_write": "cache.reported_cache_write", "prefix": "cache.possible_prefix",
    "first_line": "first_line", "first_byte": "first_byte",
}  # fmt: skip
"""Columns of a step, and which field of `Step` each one has."""
_STEP_VALUES: Final = attrgetter(*STEP_COLUMNS.values())
STEP_INSERT: Final = "INSERT INTO steps (id, thread, nth, {}, {}, body, told) VALUES ({})".format(
    ", ".join(STEP_COLUMNS),
    "input, output, missed, miss_cause, lacks, surface",
    ", ".join("?" * (len(STEP_COLUMNS) + 11)),
)
CHANGES: Final = (
    "SELECT c.step, c.text, c.status, i.item, i.kind, i.title, c.version, c.previous_version, c.tokens,"
    ' c.in_window, c.new, c.freed, c.cause, c.reason, c."into", c.flags, i.source, c.provenance, c.line,'
    " c.unsized FROM changes c JOIN items i ON i.id = c.item ORDER BY c.step, c.n"
)
"""Selects changes as `change_of` takes them."""
CHANGE_INSERT: Final = f"INSERT INTO changes VALUES ({', '.join('?' * 18)})"
_encode: Final = msgspec.msgpack.Encoder().encode
_STEP: Final = msgspec.msgpack.Decoder(Step)
_TURN: Final = msgspec.msgpack.Decoder(Turn)
_TOLD: Final = msgspec.msgpack.Decoder(ToldDelta)


def connected(path: Path) -> sqlite3.Connection:
    """A store for reading; raises sqlite3.Error."""
    uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


@contextmanager
def damage() -> Iterator[None]:
    """Raise DamagedError for a row that is not there or cannot be what a writer wrote."""
    try:
        yield
    except (sqlite3.Error, msgspec.MsgspecError, zlib.error, LookupError, TypeError, ValueError) as error:
        raise DamagedError from error


def placement_of(row: tuple[Any, ...], content: Content | None) -> Placement:
    """The placement of a row of `PLACEMENTS`."""
    fields = list(row[1:])
    fields[_CONTENT_AT] = content
    for at in _FLAGS_AT:
        fields[at] = bool(fields[at])
    return Placement(*fields)


def _packed(value: msgspec.Struct) -> bytes:
    """A value as a row has it.  Compression at its quickest makes a step a third of its size."""
    return zlib.compress(_encode(value), 1)


def step_row(step: Step, told: ToldDelta | None) -> tuple[Any, ...]:
    """The values of a step that follow its thread and number."""
    usage, miss = step.usage, step.cache.miss
    return (
        *_STEP_VALUES(step),
        usage.reported_input if usage is not None else None,
        usage.reported_output if usage is not None else None,
        miss.tokens if miss is not None else None,
        miss.cause if miss is not None else None,
        bool(step.annotations.missing),
        step.stages["surface"].verdict != "not_recorded",
        _packed(msgspec.structs.replace(step, changes=())),
        _packed(told) if told is not None else None,
    )


def change_row(change: Change) -> tuple[Any, ...]:
    """The values of a change that follow its step, number, status and item."""
    return (
        change.version, change.previous_version, change.tokens, change.in_window, change.new, change.freed,
        change.cause, change.reason, change.into, ",".join(change.flags) or None, change.provenance,
        change.line, change.unsized,
    )  # fmt: skip


def change_of(row: tuple[Any, ...]) -> Change:
    """The change of a row of `CHANGES`."""
    fields = list(row[2:])
    fields[13] = tuple(fields[13].split(",")) if fields[13] else ()
    fields[-1] = bool(fields[-1])
    return Change(*fields)


def step_of(body: bytes, changes: tuple[Change, ...]) -> Step:
    """The step of a row's body and its changes."""
    step = _STEP.decode(zlib.decompress(body))
    return msgspec.structs.replace(step, changes=changes) if changes else step


def turn_body(turn: Turn) -> bytes:
    """A turn as its row has it."""
    return _packed(turn)


def turn_of(body: bytes | None) -> Turn | None:
    """The turn of a row's body."""
    return None if body is None else _TURN.decode(zlib.decompress(body))


def told_of(body: bytes | None) -> ToldDelta | None:
    """What a step's row tells of its frame beside the stays."""
    return None if body is None else _TOLD.decode(zlib.decompress(body))


def text_row(stored: StoredContent) -> tuple[Any, ...]:
    """The values of a text, as `TEXT_COLUMNS` names them."""
    tokens, exact = stored.count or (None, None)
    return (
        stored.digest, stored.size, stored.form, tokens, exact, stored.first, stored.offset, stored.length,
        stored.base, stored.before, stored.after, stored.text,
    )  # fmt: skip


def text_of(row: tuple[Any, ...]) -> StoredContent:
    """The text of a row."""
    digest, size, form, tokens, exact, *rest = row
    count = None if tokens is None else (tokens, bool(exact))
    return StoredContent(digest, size, form, count, *rest)
