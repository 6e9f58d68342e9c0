"""Lines that a command printed of every step of a trace, kept in the user's cache beside the kept replay.

One file for a trace, what it was replayed under and what was asked: compressed blocks of whole lines, each
with a checksum over its place and its bytes, then an index with a digest, so that nobody reads a torn one.
A file of another trace, of other code or parameters, or one that is damaged is as good as not there: where
that shows behind the first lines, the rest of them is made again.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Generic, TypeVar

import msgspec
import xxhash

from ctxctl.text import safe_lines
from ctxctl.trace.cache_files import (
    DamagedError,
    cache_file,
    fingerprint_of,
    is_keeping,
    open_own,
    same_file,
)
from ctxctl.typed_decoding import from_msgpack
from ctxctl.user_folders import make_private

if TYPE_CHECKING:
    from ctxctl.session.facade import Inspector
    from ctxctl.session.replay_rows import ReplayKey

Beside = TypeVar("Beside")
FORMAT: Final = 1
_BLOCK_BYTES: Final = 1 << 18
"""Bytes of lines that are compressed together; a line is never cut."""
_LEVEL: Final = 3
_CHECK: Final = 8
_END: Final = 16 + 8
"""Digest of the index, and its length."""
_MOST: Final = 8 << 20
"""Bytes of the largest index that is read."""
_LONGEST: Final = 1 << 28
"""Bytes of the largest block that is read."""


_Block = tuple[int, int, int]
"""Bytes of a block in the file, bytes of its lines, and their number."""


class _Index(msgspec.Struct, frozen=True):
    format: int
    made_under: str
    question: str
    file: dict[str, Any]
    """Of which trace, as `fingerprint_of` tells."""
    blocks: tuple[_Block, ...]
    beside: bytes
    """What else is known once all lines are made."""


class KeptLines:
    """What was printed of a trace as it is when this is made, in answer to one question.

    Args:
        key: The trace, and what it is replayed under.
        question: Whatever else the lines depend on.
    """

    def __init__(self, key: ReplayKey, question: str) -> None:
        self._key = key
        self._question = question
        self._size = key.source.refresh()
        self._file = fingerprint_of(key.source, self._size)
        name = sha256(f"{key.made_under}\0{question}".encode()).hexdigest()[:12]
        self._path = None if key.source.spooled else cache_file(key.source, f"lines-{name}")

    def find(self) -> tuple[bytes, Iterator[tuple[int, bytes]]] | None:
        """What is known beside the lines, and blocks of so many of them, which raise DamagedError.

        None where nothing is kept.
        """
        if self._path is None:
            return None
        try:
            file = open_own(self._path)
        except OSError:
            return None
        try:
            index = _index_of(file)
            good = (index.format, index.made_under, index.question) == (
                FORMAT, self._key.made_under, self._question,
            )  # fmt: skip
            if good and index.file["size"] == self._size:
                good = same_file(index.file, self._key.source, self._size)
            else:
                good = False
            with suppress(OSError):
                os.utime(self._path)  # the oldest are dropped first
        except (OSError, KeyError, TypeError, ValueError, DamagedError, msgspec.MsgspecError):
            good = False
        if not good:
            file.close()
            return None
        return index.beside, _blocks_of(file, index.blocks)

    def writer(self) -> LinesWriter | None:
        """What keeps lines; None where they cannot be kept."""
        if self._path is None or not is_keeping() or not self._key.steady():
            return None
        try:
            kept = self._key.source.kept is not None
            return LinesWriter(self._path, self._path.parent if kept else self._path, self._finished)
        except OSError:
            return None

    def _finished(self, blocks: list[_Block], beside: bytes) -> bytes | None:
        """The index of what was written; None if the trace is not the same any more."""
        source = self._key.source
        if fingerprint_of(source, source.refresh()) != self._file:
            return None
        index = _Index(FORMAT, self._key.made_under, self._question, self._file, tuple(blocks), beside)
        return msgspec.msgpack.encode(index)


class LinesWriter:
    """Writes lines down as they are printed; whatever goes wrong, nothing is kept.

    Raises OSError where there is no place for them.
    """

    def __init__(self, path: Path, spare: Path, index: Callable[[list[_Block], bytes], bytes | None]) -> None:
        """`spare`: what is not to go when room is made for them."""
        import tempfile  # slow to import

        self._path = path
        self._spare = spare
        self._index = index
        self._held: list[bytes] = []
        self._size = 0
        self._blocks: list[_Block] = []
        make_private(path.parent)
        fd, self._made = tempfile.mkstemp(dir=path.parent, prefix=".steps-")
        self._file: BinaryIO | None = os.fdopen(fd, "wb")

    def add(self, line: bytes) -> None:
        """Take in a line, with its end."""
        self._held.append(line)
        self._size += len(line)
        if self._size >= _BLOCK_BYTES:
            self._write()

    def finish(self, beside: bytes) -> None:
        """All lines are there: keep them."""
        self._write()
        if self._file is None:
            return
        try:
            index = self._index(self._blocks, beside)
            if index is None or len(index) > _MOST:
                return
            self._file.write(index + xxhash.xxh3_128_digest(index) + len(index).to_bytes(8, "little"))
            self._file.close()
            os.replace(self._made, self._path)
            self._file = None
        except OSError:
            return
        from ctxctl.session.cache_room import prune_cache

        prune_cache(spare=self._spare)

    def give_up(self) -> None:
        """Keep nothing of what is not finished."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            with suppress(OSError):
                os.unlink(self._made)
            self._file = None

    def _write(self) -> None:
        if not self._held or self._file is None:
            return
        data = zlib.compress(b"".join(self._held), _LEVEL)
        number, size, count = len(self._blocks), self._size, len(self._held)
        self._held, self._size = [], 0
        try:
            self._file.write(xxhash.xxh3_64_digest(data, number) + data)
        except OSError:
            self.give_up()
            return
        self._blocks.append((_CHECK + len(data), size, count))


class PrintedLines(Generic[Beside]):
    """Lines of JSON about all steps of a trace, as they were kept or as they are made.

    Args:
        inspector: On the trace; once all lines are given it knows what a walk through the trace tells.
        key: The trace, and what it is replayed under.
        question: Whatever else the lines depend on.
        made: Makes them, by a walk through the trace to its end.
        beside: What else is known then, for whoever is given kept lines.
        beside_type: Of what type that is.
        settle: As for `Inspector.take_over`.
    """

    def __init__(
        self,
        inspector: Inspector,
        key: ReplayKey,
        question: str,
        made: Callable[[], Iterator[bytes]],
        beside: Callable[[], Beside],
        beside_type: type[Beside],
        *,
        settle: bool,
    ) -> None:
        self._inspector = inspector
        self._kept = KeptLines(key, question)
        self._made = made
        self._beside = beside
        self._type = beside_type
        self._settle = settle
        self._given = 0
        self._were_kept = False
        """All of them were."""

    @property
    def beside(self) -> Beside:
        """What else is known once all lines are given."""
        return self._known if self._were_kept else self._beside()

    def __iter__(self) -> Iterator[bytes]:
        """One line or many at a time, each with its end."""
        yield from self._from_cache()
        if not self._were_kept:
            yield from self._anew()

    def _from_cache(self) -> Iterator[bytes]:
        replay = self._inspector.kept_replay()
        found = self._kept.find() if replay is not None else None
        if replay is None or found is None:
            return
        beside, blocks = found
        try:
            self._known = from_msgpack(beside, self._type)
            for count, lines in blocks:
                self._given += count
                yield lines
        except (DamagedError, msgspec.MsgspecError, UnicodeDecodeError):
            return
        self._inspector.take_over(replay, settle=self._settle)
        self._were_kept = True

    def _anew(self) -> Iterator[bytes]:
        # A log that has grown is asked again when it has grown further: its lines would be kept for nobody.
        grown = self._inspector.kept_replays.went_on
        writer = None if grown else self._kept.writer()
        if writer is None:
            yield from islice(self._made(), self._given, None)
            return
        try:
            for number, line in enumerate(self._made()):
                writer.add(line)
                if number >= self._given:
                    yield line
            if self._inspector.kept_replay() is not None:
                with suppress(OverflowError, TypeError, UnicodeEncodeError):
                    writer.finish(msgspec.msgpack.encode(self._beside()))
        finally:
            writer.give_up()


def _index_of(file: BinaryIO) -> _Index:
    """The index of a file; raises DamagedError, and what reading and decoding raise."""
    size = file.seek(0, os.SEEK_END)
    if size < _END:
        raise DamagedError
    file.seek(size - _END)
    end = file.read(_END)
    length = int.from_bytes(end[16:], "little")
    if length > min(_MOST, size - _END):
        raise DamagedError
    file.seek(size - _END - length)
    data = file.read(length)
    if xxhash.xxh3_128_digest(data) != end[:16]:
        raise DamagedError
    index = from_msgpack(data, _Index)
    if sum(block[0] for block in index.blocks) != size - _END - length:
        raise DamagedError
    file.seek(0)
    return index


def _blocks_of(file: BinaryIO, blocks: tuple[_Block, ...]) -> Iterator[tuple[int, bytes]]:
    """The lines of a file, block by block, with the number of them; raises DamagedError."""
    with file:
        for number, (length, size, count) in enumerate(blocks):
            if not (_CHECK < length <= _LONGEST and 0 < size <= _LONGEST):
                raise DamagedError
            try:
                data = file.read(length)
                if len(data) != length or xxhash.xxh3_64_digest(data[_CHECK:], number) != data[:_CHECK]:
                    raise DamagedError
                unpacker = zlib.decompressobj()
                lines = unpacker.decompress(data[_CHECK:], size)
                more = unpacker.decompress(unpacker.unconsumed_tail, 1)
            except (OSError, zlib.error):
                raise DamagedError from None
            if more or not unpacker.eof or len(lines) != size or safe_lines(lines) != count:
                raise DamagedError
            yield count, lines
