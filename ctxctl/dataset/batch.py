"""A batch of captures as the files of a dataset: the same captures give the same files, byte for byte.

Nothing here knows of the dataset, its versions, other batches or the time: whoever runs it, in whatever
process and however often, gets the same.
"""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from ctxctl.dataset.keys import digests_of
from ctxctl.dataset.log import DataFile, data_path
from ctxctl.dataset.parquet import arrow_table, packed
from ctxctl.dataset.rows.capture import CaptureRows, clear_texts, read_rows
from ctxctl.dataset.rows.words import DatasetWords
from ctxctl.dataset.schema import TABLES, UNKNOWN_MONTH, table
from ctxctl.errors import CtxctlError
from ctxctl.fleet.captures import lasting
from ctxctl.model.problem import Problem, may_pass
from ctxctl.text import visible
from ctxctl.trace.cache_files import only_reading
from ctxctl.trace.inputs import FileState, Inputs, files_under, recording

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctxctl.dataset.rows.facts import Row

WORK: Final = "ctxctl.dataset.batch:worked"
FAILED: Final = "capture-failed"
"""Slug of a capture that ends whoever reads it, or raises what nobody raises on purpose."""


class Capture(msgspec.Struct, frozen=True, array_like=True):
    """One capture of a batch."""

    path: bytes
    format: str
    source: int
    """Its key."""
    settled: bool = True
    """Whether its last change lies so long back that the next one shows: else it is read again next time."""
    read: bool = True
    """False: it is known to end the process that reads it."""
    known: bool = False
    """Whether the dataset has rows of it, which stay where it cannot be read for now."""


class Batch(msgspec.Struct, frozen=True, array_like=True):
    """Captures of one format, and what they are read under."""

    captures: list[Capture]
    words: DatasetWords


class Unread(msgspec.Struct, frozen=True, array_like=True):
    """A capture that could not be read."""

    source: int
    slug: str
    message: str
    kept: bool = False
    """Whether what the dataset has of it stays: it may be readable the next time."""


class Made(msgspec.Struct, frozen=True, array_like=True):
    """What a batch came to."""

    files: list[tuple[DataFile, bytes]]
    sessions: int
    unread: list[Unread]


class States(msgspec.Struct, frozen=True, array_like=True):
    """What a capture was read from: that of it which tells whether it has changed since."""

    files: list[tuple[bytes, FileState | None]]
    listings: list[tuple[bytes, str, str]]
    """Directory, pattern, digest."""

    def inputs(self) -> Inputs:
        """As they are asked whether they are unchanged."""
        found = Inputs()
        found.files = {os.fsdecode(path): state for path, state in self.files}
        found.listings = {(os.fsdecode(folder), pattern): digest for folder, pattern, digest in self.listings}
        return found


def worked(data: bytes) -> bytes:
    """`batch` as a piece of work for another process; never raises what a capture causes."""
    return msgspec.msgpack.encode(batch(msgspec.msgpack.decode(data, type=Batch)))


def batch(asked: Batch) -> Made:
    """The files of some captures."""
    rows: dict[tuple[str, str], list[Row]] = {}
    """By table and month."""
    unread: list[Unread] = []
    sessions = 0
    format_name = asked.captures[0].format if asked.captures else ""
    for capture in asked.captures:
        read, source_row, failed = _read(capture, asked.words)
        sessions += read.sessions
        if failed is not None:
            unread.append(failed)
            if failed.kept:
                continue
        for name, found in {**read.rows, "sources": [source_row]}.items():
            month_at = _MONTH_AT[name]
            for row in found:
                rows.setdefault((name, row[month_at]), []).append(row)
        read.rows.clear()
    files = [data_file(name, month, format_name, rows.pop((name, month))) for name, month in sorted(rows)]
    return Made(files, sessions, unread)


_MONTH_AT: Final = {one.name: [c.name for c in one.columns].index("month") for one in TABLES}


def data_file(name: str, month: str, format_name: str, rows: Sequence[Row]) -> tuple[DataFile, bytes]:
    """Rows of one table, month and format as a file."""
    shape = table(name)
    data = packed(shape, arrow_table(shape, rows))
    return described(name, month, format_name, len(rows), data), data


def described(name: str, month: str, format_name: str, rows: int, data: bytes) -> DataFile:
    """What a commit says of a file."""
    digest = sha256(data).hexdigest()
    path = data_path(name, month, format_name, digest)
    return DataFile(name, path, month, format_name, rows, len(data), digest)


def _read(capture: Capture, words: DatasetWords) -> tuple[CaptureRows, Row, Unread | None]:
    """A capture's rows, its row in `sources`, and why it could not be read."""
    path = os.fsdecode(capture.path)
    read, failed = CaptureRows(UNKNOWN_MONTH, 0, 0, {}), None
    with recording() as inputs, only_reading():
        try:
            if not capture.read:
                raise CtxctlError(FAILED, "a process that read it ended")
            read = read_rows(path, capture.format, capture.source, words)
        except CtxctlError as error:
            message = error.message.replace(path, os.path.basename(path))
            failed = Unread(capture.source, error.slug, visible(message[:_SAID]))
        except OSError as error:
            name = os.path.basename(error.filename) if isinstance(error.filename, str) else "a file"
            failed = Unread(capture.source, "read-failed", visible(f"cannot read {name}: {error.strerror}"))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a panic of a native library is no Exception
            if os.environ.get("CTXCTL_TRACEBACK"):
                raise
            failed = Unread(capture.source, FAILED, f"a bug in ctxctl: {type(error).__name__}")
        if os.path.isdir(path):
            files_under(Path(path))
        else:
            inputs.file(path)
    if failed is not None and capture.known and may_pass(failed.slug):
        failed = msgspec.structs.replace(failed, kept=True)
    shown = clear_texts(words).path(path) if words.paths else None
    row: Row = [
        capture.source, read.month, capture.format, shown, words.host, _size(inputs),
        _sealed(inputs, capture, words, failed), words.release, read.sessions, read.problems,
        None if failed is None else failed.slug,
    ]  # fmt: skip
    return read, row, failed


_SAID: Final = 300


def _size(inputs: Inputs) -> int:
    """Bytes of all files that were read, or looked for and there."""
    return sum(state.size for state in inputs.files.values() if state is not None)


def _sealed(inputs: Inputs, capture: Capture, words: DatasetWords, failed: Unread | None) -> bytes:
    """The states of what was read, for the next run; nothing where it may be read otherwise then."""
    problems = [] if failed is None else [Problem(0, 0, failed.slug, failed.message)]
    if (
        not capture.settled
        or not inputs.unchanged()
        or not lasting(capture.format, words.asked.policy, problems)
    ):
        return b""
    states = States(
        [(os.fsencode(path), inputs.files[path]) for path in sorted(inputs.files)],
        sorted(
            (os.fsencode(folder), pattern, digest) for (folder, pattern), digest in inputs.listings.items()
        ),
    )
    return digests_of(words.key).seal(msgspec.msgpack.encode(states))


def unchanged(sealed: bytes, key: bytes) -> bool:
    """Whether everything that a capture was read from is as it was; False where nobody can tell."""
    data = digests_of(key).unseal(sealed) if sealed else None
    if data is None:
        return False
    try:
        return msgspec.msgpack.decode(data, type=States).inputs().unchanged()
    except (msgspec.MsgspecError, ValueError):
        return False
