"""Where an import that is kept can be gone on with once its log has grown: a file beside it, `mark`.

It says how the log began, byte by byte, how much of the kept trace that gave, and what the importer knew by
then, as data of classes that the format names.  Everything that the import rested on up to there has to be
as it was; in any doubt there is none, and the log is read from its first byte.
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
"""Share of a log that may have come since; where more has, it is read anew."""
AGAIN: Final = 0.02
"""Share of a log from which on another mark is made: what is read again until then costs less than that."""
LATELY: Final = 86_400.0
"""Seconds: a log that nobody wrote to for so long hardly goes on, and is not marked."""
_FORMAT: Final = 2
_CHUNK: Final = 1 << 20
_LONGEST: Final = 1 << 20
"""Bytes of an unfinished last line; with a longer one nothing is marked."""
_NEW: Final = 32 << 20
"""Bytes that may have come since: how longer lines are told depends on where reading began."""
_MAX: Final = 1 << 30


class _Mark(msgspec.Struct, frozen=True, array_like=True):
    format: int
    code: str
    importer: str
    offset: int
    """Bytes of the log that were taken in: whole lines."""
    number: int
    """How many lines that is."""
    beginning: bytes
    """Digest of these bytes."""
    written: int
    """Bytes of the kept trace that they gave."""
    native: bytes
    """Digest of those."""
    problems: tuple[Problem, ...]
    files: dict[str, FileState | None]
    """Read or looked for by then, the log itself left out."""
    listings: list[tuple[str, str, str]]
    graph: memoryview


class MarkedImport:
    """One import of a file into the cache, marked on its way, and gone on with from an earlier mark."""

    def __init__(
        self, folder: Path, earlier: str | None, source: Source, importer: Format, inputs: Inputs
    ) -> None:
        """`earlier`: the name of the trace that is kept of the file, however it was by then."""
        self._folder = folder
        self._earlier = earlier
        self._source = source
        self._importer = importer
        self._inputs = inputs
        self._own = os.path.abspath(source.path or "")
        self._problems: list[Problem] = []
        self._from = 0
        """Problems that were there before."""
        self._outside: list[object] = []
        self._behind: int | None = None
        """Bytes of the log that the earlier import had taken in, where it is gone on with."""
        self._made: _Mark | None = None

    def checkpoint(
        self, file: BinaryIO, writer: TraceWriter, problems: list[Problem], report: Callable[[Problem], None]
    ) -> Checkpoint | None:
        """What the import is made under; None where it can neither be marked nor be gone on with.

        Of an earlier import its trace is put into `file`, what it reported is added to `problems`.
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
        """Whether the files beside the log are old enough for a mark, which keeps their states only."""
        return not self._inputs.young.keys() - {self._own}

    def beginning(self) -> bytes:
        """A digest of the log as far as it is read, for `only_grew`."""
        return digest_of_beginning(self._source, self._source.size)

    def only_grew(self, beginning: bytes) -> bool:
        """Whether the log was written on while it was read, and nothing else has changed: what was made of it
        is of no use for the log as it is now, but can be gone on with."""
        was, now = self._inputs.files.get(self._own), file_state(self._own)
        if was is None or now is None or (was.device, was.inode) != (now.device, now.inode):
            return False
        return now.size > was.size and self._inputs.unchanged(but=self._own) and self.beginning() == beginning

    def save(self, fd: int) -> None:
        """Keep the mark of an import whose trace is kept; that of an earlier one holds for it, too."""
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
        """The mark of an earlier import of this very log; None where it is of no use."""
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
        if not (1 - MOST) * source.size <= mark.offset <= stop or stop - mark.offset > _NEW:
            return None
        if not self._as_it_was(mark) or b"\0" in source.read(mark.offset, stop - mark.offset):
            return None
        return mark if digest_of_beginning(source, mark.offset) == mark.beginning else None

    def _as_it_was(self, mark: _Mark) -> bool:
        """Whether all that stands beside the log is; says then that this import rests on it, too."""
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
        """Put the earlier import's trace, as far as it holds, into a file."""
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
    """Bytes up to the end of the last whole line; None where that is far away, or NULs stand behind it."""
    rest = source.read(max(0, source.size - _LONGEST), _LONGEST)
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
