"""The mark of a cached import, a file `mark` beside it: where the import can continue when its log has grown.

It holds a digest of the log's beginning, the size of the resulting trace, and the importer's state, as data
of classes that the format names. Everything that the import depended on up to there must be unchanged. In any
doubt the log is read from its first byte.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import msgspec
import xxhash

from ctxctl.entry_points import loaded
from ctxctl.ingest.checkpoint import Checkpoint, GoingOn
from ctxctl.model.problem import Problem
from ctxctl.trace.cache_files import (
    DamagedError,
    code_state,
    digest_of_beginning,
    open_own,
    read_own,
    replace_file,
)
from ctxctl.trace.graph_decode import decode_graph
from ctxctl.trace.graph_encode import encode_graph
from ctxctl.trace.inputs import FileState, Inputs, file_state, note_inputs
from ctxctl.trace.object_graph import NotKeptError
from ctxctl.trace.source import Source
from ctxctl.typed_decoding import from_msgpack

if TYPE_CHECKING:
    from collections.abc import Callable

    from ctxctl.ingest.declaration import Format
    from ctxctl.trace.writer import TraceWriter

_MARK: Final = "mark"
MOST: Final = 0.5
"""Largest share of a log that may be new. If more is, it is read from the start."""
AGAIN: Final = 0.02
"""Share of a log after which a new mark is made: reading less again costs less than the mark."""
LATELY: Final = 86_400.0
"""Seconds: a log without writes for this long is unlikely to grow, and is not marked."""
_FORMAT: Final = 2
_CHUNK: Final = 1 << 20
_MAX_UNFINISHED: Final = 1 << 20
"""Longest unfinished last line; with a longer one, no mark is made."""
_MAX_NEW: Final = 32 << 20
"""Most new bytes: how longer lines are reported depends on where reading began."""
_MAX: Final = 1 << 30


class _Mark(msgspec.Struct, frozen=True, array_like=True):
    format: int
    code: str
    importer: str
    offset: int
    """Bytes of the log that were imported: whole lines."""
    number: int
    """Number of these lines."""
    beginning: bytes
    """Digest of these bytes."""
    written: int
    """Bytes of the resulting trace."""
    native: bytes
    """Digest of the resulting trace."""
    problems: tuple[Problem, ...]
    files: dict[str, FileState | None]
    """Files read or looked for so far, except for the log itself."""
    listings: list[tuple[str, str, str]]
    graph: memoryview


class MarkedImport:
    """One import of a file into the cache, which makes a mark and may continue from an earlier one."""

    def __init__(
        self, folder: Path, earlier: str | None, source: Source, importer: Format, inputs: Inputs
    ) -> None:
        """`earlier` is the name of the file's cached trace, from whatever state of the file."""
        self._folder = folder
        self._earlier = earlier
        self._source = source
        self._importer = importer
        self._inputs = inputs
        self._own = os.path.abspath(source.path or "")
        self._problems: list[Problem] = []
        self._from = 0
        """Number of problems before this import."""
        self._outside: list[object] = []
        self._behind: int | None = None
        """Bytes of the log that the continued import had read."""
        self._made: _Mark | None = None

    def checkpoint(
        self, file: BinaryIO, writer: TraceWriter, problems: list[Problem], report: Callable[[Problem], None]
    ) -> Checkpoint | None:
        """Return the state for a marked import; None if it can neither be marked nor continued.

        The trace of a continued import is copied into `file`, and its problems are added to `problems`.
        """
        stop = _whole_lines(self._source)
        if stop is None or self._importer.going_on is None:
            return None
        about = self._importer.about
        held = about.held_against
        self._outside = [report, about, held, held.records if held is not None else None]
        self._problems, self._from = problems, len(problems)
        kept = self._found(stop)
        state = None if kept is None else self._state(kept)
        if kept is not None and state is not None and self._copied(kept, file):
            self._behind = kept.offset
            problems += kept.problems
            writer.go_on(state["writer"])
            made = Checkpoint(self._source, stop, self._reached, kept.offset, kept.number, state)
        elif _written_lately(self._source):
            made = Checkpoint(self._source, stop, self._reached)
        else:
            return None
        made.hand_in("writer", writer.state)
        return made

    def may_be_kept(self) -> bool:
        """Return whether the files beside the log are old enough for a mark of their states."""
        return not self._inputs.young.keys() - {self._own}

    def beginning(self) -> bytes:
        """Return a digest of the log as far as it is read, for `only_grew`."""
        return digest_of_beginning(self._source, self._source.size)

    def only_grew(self, beginning: bytes) -> bool:
        """Return whether the log grew while it was read, and nothing else changed. The result does not match
        the current log then, but the import can continue."""
        was, now = self._inputs.files.get(self._own), file_state(self._own)
        if was is None or now is None or (was.device, was.inode) != (now.device, now.inode):
            return False
        return now.size > was.size and self._inputs.unchanged(but=self._own) and self.beginning() == beginning

    def save(self, fd: int) -> None:
        """Save the mark of an import whose trace is cached. An earlier import's mark stays valid for it."""
        if self._made is None:
            return
        with open(os.dup(fd), "rb") as file:
            made = msgspec.structs.replace(self._made, native=_digest(file, self._made.written))
        try:
            data = msgspec.msgpack.encode(made)
        except UnicodeEncodeError:  # the name of a file, or what a problem quotes, is no text
            return
        replace_file(self._folder / _MARK, xxhash.xxh3_128_digest(data) + data)

    def _reached(self, state: dict[str, Any], number: int) -> None:
        stop = _whole_lines(self._source)
        if stop is None or (self._behind is not None and stop - self._behind <= AGAIN * self._source.size):
            return
        try:
            graph = encode_graph(self._going_on().table, state, self._outside)
        except NotKeptError:
            return
        self._made = _Mark(
            _FORMAT, code_state(), self._importer.name, stop, number,
            digest_of_beginning(self._source, stop),
            state["writer"][1], b"", tuple(self._problems[self._from :]),
            {name: known for name, known in self._inputs.files.items() if name != self._own},
            [(*key, digest) for key, digest in self._inputs.listings.items()], memoryview(graph),
        )  # fmt: skip

    def _going_on(self) -> GoingOn:
        found: GoingOn = loaded(self._importer.going_on or "")
        return found

    def _found(self, stop: int) -> _Mark | None:
        """Return the mark of an earlier import of this log; None if it cannot be used."""
        source = self._source
        try:
            data = memoryview(read_own(self._folder / _MARK, _MAX))
            if xxhash.xxh3_128_digest(data[16:]) != data[:16]:
                return None
            mark = from_msgpack(data[16:], _Mark)
        except (OSError, ValueError, msgspec.MsgspecError):
            return None
        if (mark.format, mark.code, mark.importer) != (_FORMAT, code_state(), self._importer.name):
            return None
        if not (1 - MOST) * source.size <= mark.offset <= stop or stop - mark.offset > _MAX_NEW:
            return None
        if not self._as_it_was(mark) or b"\0" in source.read(mark.offset, stop - mark.offset):
            return None
        return mark if digest_of_beginning(source, mark.offset) == mark.beginning else None

    def _as_it_was(self, mark: _Mark) -> bool:
        """Return whether all files beside the log are unchanged. If so, this import depends on them too."""
        inputs = Inputs()
        inputs.files = mark.files
        inputs.listings = {(directory, pattern): digest for directory, pattern, digest in mark.listings}
        if not inputs.unchanged():
            return False
        note_inputs(inputs)
        return True

    def _state(self, mark: _Mark) -> dict[str, Any] | None:
        going_on = self._going_on()
        try:
            state: dict[str, Any] = decode_graph(going_on.table, mark.graph, self._outside)
            if not going_on.still(state, self._source):
                return None
            going_on.brought(state)
        except (DamagedError, LookupError, AttributeError, TypeError):
            return None
        return state

    def _copied(self, mark: _Mark, file: BinaryIO) -> bool:
        """Copy the valid part of the earlier import's trace into a file."""
        if self._earlier is None:
            return False
        try:
            with open_own(self._folder / self._earlier) as kept:
                if _digest(kept, mark.written) != mark.native:
                    return False
                kept.seek(0)
                left = mark.written
                while left and (data := kept.read(min(_CHUNK, left))):
                    file.write(data)
                    left -= len(data)
        except OSError:
            file.seek(0)
            file.truncate()
            return False
        return True


def _whole_lines(source: Source) -> int | None:
    """Return the bytes up to the end of the last whole line; None if that is far, or NULs follow it."""
    rest = source.read(max(0, source.size - _MAX_UNFINISHED), _MAX_UNFINISHED)
    end = rest.rfind(b"\n") + 1
    return None if not end or b"\0" in rest[end:] else source.size - len(rest) + end


def _written_lately(source: Source) -> bool:
    state = file_state(str(source.path))
    return state is not None and state.mtime_ns / 1e9 > time.time() - LATELY


def _digest(file: BinaryIO, size: int) -> bytes:
    """Digest of the first bytes of a file."""
    digest = xxhash.xxh3_128()
    file.seek(0)
    while size > 0 and (data := file.read(min(_CHUNK, size))):
        digest.update(data)
        size -= len(data)
    return digest.digest()
