"""Reads the samples of a log, one after the other, from a document or from an `.eval` archive.

The entries of an archive are read within bounds; zstd entries need the extra `zstd`.
"""

from __future__ import annotations

import io
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import orjson

from ctxctl.errors import UnavailableError, UnreadableError
from ctxctl.importers.inspect_ai.sample import Sample
from ctxctl.ingest.build import Json
from ctxctl.ingest.document import MAX_DOCUMENT, document
from ctxctl.ingest.lines import Report
from ctxctl.ingest.parts import listed, string
from ctxctl.ingest.run import Run
from ctxctl.model.problem import Problem
from ctxctl.trace.source import Source
from ctxctl.trace.spool import CHUNK, RATIO_FLOOR, RATIO_LIMIT

_MONOLITH: Final = re.compile(r"samples/(.+)_epoch_(\d+)\.json\Z", re.DOTALL)
_SHELL: Final = re.compile(r"samples/(.+)_epoch_(\d+)/sample\.json\Z", re.DOTALL)
_SEQUENCES: Final = ("messages", "events", "calls", "attachments")
_DIGITS: Final = re.compile(r"(\d+)")
_SHOWN: Final = 80


class Log(Run):
    """One import of a log."""

    def events(self, source: Source) -> Iterator[Json]:
        """Yield the samples' sessions: of an archive by id and epoch, of a document as they stand."""
        samples = self._archive(source) if source.read(0, 2) == b"PK" else self._document(source)
        names: dict[str, int] = {}
        for sample, model in samples:
            name = _session(sample)
            again = names[name] = names.get(name, 0) + 1
            self.session = name if again == 1 else f"{name}~{again}"
            yield from Sample(self, sample, model).events()
            yield from self.end_session()

    def _document(self, source: Source) -> Iterator[tuple[Json, str | None]]:
        value = document(source, self.report)
        if not isinstance(value, dict):
            if value is not None:
                self.problem("not-a-record", "the document is not an object; not read")
            return
        model = _model(value)
        self.understood.version(value.get("version"), 1)
        samples = listed(value.get("samples"))
        for number in range(len(samples)):
            sample, samples[number] = samples[number], None
            if isinstance(sample, dict):
                yield sample, model
            else:
                self.problem("not-a-record", f"sample {number + 1} is not an object; skipped")

    def _archive(self, source: Source) -> Iterator[tuple[Json, str | None]]:
        archive = Archive(source, self.report)
        names = sorted(archive.names, key=_natural)
        chunks = _chunks_of(names)
        model = None
        for name in ("header.json", "_journal/start.json"):
            model = model or _model(self._read(archive, name))
        for name in names:
            whole, shell = _MONOLITH.match(name), _SHELL.match(name)
            if whole is None and shell is None:
                continue
            sample = self._read(archive, name)
            if not isinstance(sample, dict):
                continue
            match = whole or shell
            assert match is not None
            sample.setdefault("id", match.group(1))
            sample.setdefault("epoch", int(match.group(2)[:9]))
            if shell is not None:
                self._put_together(archive, chunks.get(name.removesuffix("/sample.json"), []), sample)
            self.make.file = name
            yield sample, model
        self.make.file = None

    def _read(self, archive: Archive, name: str) -> Any:
        data = archive.read(name)
        if data is None:
            return None
        try:
            return orjson.loads(data)
        except orjson.JSONDecodeError as error:
            self.problem("bad-json", f"{name[:_SHOWN]}: not valid JSON ({error.msg}); skipped")
            return None

    def _put_together(self, archive: Archive, chunks: list[tuple[str, str]], sample: Json) -> None:
        """Put a chunked sample together, whose events, pools and attachments stand in entries of their own.

        It refers to attachments by place; what is given by hash, in its shell or in a chunk, is kept.
        """
        found: dict[str, list[Any]] = {sequence: [] for sequence in _SEQUENCES}
        texts: Json = {}
        for sequence, name in chunks:
            chunk = self._read(archive, name)
            if isinstance(chunk, list):
                found[sequence] += chunk
            elif isinstance(chunk, dict) and sequence == "attachments":
                texts |= chunk
        sample["events"] = found["events"] or sample.get("events")
        if found["messages"] or found["calls"]:
            sample["events_data"] = {"messages": found["messages"], "calls": found["calls"]}
        texts |= {str(at): text for at, text in enumerate(found["attachments"])}
        own = sample.get("attachments")
        sample["attachments"] = {**(own if isinstance(own, dict) else {}), **texts}


def _chunks_of(names: list[str]) -> dict[str, list[tuple[str, str]]]:
    """By the folder of a sample, its chunks in order: of what, and the entry."""
    found: dict[str, list[tuple[str, str]]] = {}
    for name in names:
        folder, sequence, number = ("", "", *name.rsplit("/", 2))[-3:]
        if sequence in _SEQUENCES and number.removesuffix(".json").isdigit():
            found.setdefault(folder, []).append((sequence, name))
    return found


def _natural(name: str) -> list[tuple[int, int, str]]:
    """A sort key in which numbers in names count as numbers."""
    return [(0, int(bit[:18]), "") if bit.isdecimal() else (1, 0, bit) for bit in _DIGITS.split(name)]


def _session(sample: Json) -> str:
    ident, epoch = sample.get("id"), sample.get("epoch")
    name = str(ident) if isinstance(ident, int | str) else "sample"
    name = name.replace("/", "_").replace(":", "_")
    return f"{name}.epoch-{epoch}" if isinstance(epoch, int) else name


def _model(header: Any) -> str | None:
    facts = header.get("eval") if isinstance(header, dict) else None
    return string(facts.get("model")) if isinstance(facts, dict) else None


_HEADER: Final = 30
_ZSTD: Final = 93
_MAGIC: Final = b"PK\x03\x04"
_LOOKED: Final = 1 << 20
_MAX_FOUND: Final = 100_000
_ENTRY_FLOOR: Final = 64 << 20
_ENTRY_RATIO: Final = 200
"""The most output bytes per input byte of one entry above the floor; an entry has to be in memory whole."""
_DAMAGED: Final = (
    zipfile.BadZipFile, NotImplementedError, ValueError, struct.error, OverflowError, EOFError, LookupError,
)  # fmt: skip
"""What a damaged directory makes the library raise."""


class Archive:
    """Reads entries by name; damaged ones are reported and come out as None."""

    def __init__(self, source: Source, report: Report) -> None:
        self._source = source
        self._report = report
        self._limit = self._left = max(RATIO_FLOOR, RATIO_LIMIT * source.size)
        """The bytes that may still be inflated; overlapping entries could give any amount."""
        self._entries = self._listed()

    @property
    def names(self) -> list[str]:
        """The entries' names in the order in which they were written; the last entry of a name counts."""
        return list(self._entries)

    def read(self, name: str) -> bytes | None:
        """An entry's bytes; raises UnavailableError(`needs-zstd`), UnreadableError(`decompression-bomb`)."""
        info = self._entries.get(name)
        if info is None:
            return None
        packed = min(info.compress_size or self._source.size, self._source.size)
        limit = min(self._left, MAX_DOCUMENT, max(_ENTRY_FLOOR, _ENTRY_RATIO * packed))
        try:
            # The directory may say less than there is, but hardly more.
            data = self._inflated(info, limit) if info.file_size <= limit else b""
        except (zlib.error, ValueError, struct.error, zipfile.BadZipFile) as error:
            self._problem(info, "damaged-compression", f"{name}: {error}; skipped")
            return None
        self._left -= len(data) if info.file_size <= limit else info.file_size
        if len(data) < limit and info.file_size <= limit:
            return data
        if self._left <= 0:
            raise UnreadableError(
                "decompression-bomb",
                f"{self._source.name} decompresses to more than {self._limit} bytes, which no log does",
                hint="unpack it yourself if you trust it, and open the samples",
            )
        self._problem(info, "document-too-large", f"{name} holds more than {limit >> 20} MiB; not read")
        return None

    def _problem(self, info: zipfile.ZipInfo, slug: str, message: str) -> None:
        self._report(Problem(0, info.header_offset, slug, message))

    def _listed(self) -> dict[str, zipfile.ZipInfo]:
        try:
            with zipfile.ZipFile(SourceFile(self._source)) as archive:
                return {info.filename: info for info in archive.infolist() if info.filename}
        except _DAMAGED as error:
            self._report(Problem(0, 0, "damaged-compression", f"the archive's directory is lost: {error}"))
            return {info.filename: info for info in islice(self._found(), _MAX_FOUND)}

    def _found(self) -> Iterator[zipfile.ZipInfo]:
        """The entries by their own headers, for an archive that is cut off."""
        at = 0
        while at < self._source.size:
            head = self._source.read(at, _LOOKED)
            start = head.find(_MAGIC)
            if start < 0:
                at += max(1, len(head) - 3)
                continue
            at += start
            fields = self._source.read(at, _HEADER)
            if len(fields) < _HEADER:
                return
            flags, method = struct.unpack("<HH", fields[6:10])
            packed, size, name_size, extra = struct.unpack("<IIHH", fields[18:30])
            info = zipfile.ZipInfo(
                self._source.read(at + _HEADER, name_size).decode("utf-8", "replace") or "?"
            )
            info.compress_type, info.header_offset = method, at
            info.compress_size = packed if packed and not flags & 8 and packed != 0xFFFFFFFF else 0
            info.file_size = size
            yield info
            at += _HEADER + name_size + extra + info.compress_size

    def _inflated(self, info: zipfile.ZipInfo, limit: int) -> bytes:
        """Inflate an entry to at most `limit` bytes."""
        fields = self._source.read(info.header_offset, _HEADER)
        if len(fields) < _HEADER or not fields.startswith(_MAGIC):
            raise ValueError("no entry where the directory says")
        name, extra = struct.unpack("<HH", fields[26:30])
        start = info.header_offset + _HEADER + name + extra
        packed = info.compress_size or self._source.size - start
        if info.compress_type == zipfile.ZIP_STORED:
            return self._source.read(start, min(info.compress_size, limit))
        if info.compress_type == zipfile.ZIP_DEFLATED:
            return self._inflate(start, start + packed, limit)
        if info.compress_type == _ZSTD:
            return _unzstd(self._source.read(start, min(packed, MAX_DOCUMENT)), limit)
        raise ValueError(f"compressed by method {info.compress_type}, which is not supported")

    def _inflate(self, at: int, end: int, limit: int) -> bytes:
        """Inflate piece by piece, as only the data may tell where an entry ends."""
        decoder = zlib.decompressobj(wbits=-15)
        made: list[bytes] = []
        while at < end and not decoder.eof and limit > 0:
            piece = self._source.read(at, min(CHUNK, end - at))
            if not piece:
                break
            at += len(piece)
            made.append(decoder.decompress(piece, limit))
            limit -= len(made[-1])
        return b"".join(made)


def _unzstd(raw: bytes, limit: int) -> bytes:
    try:
        import zstandard
    except ImportError:
        raise UnavailableError(
            "needs-zstd", "this log is compressed with zstd", hint="pip install 'ctxctl[zstd]'"
        ) from None
    try:
        with zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(raw) as reader:
            return bytes(reader.read(limit))
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from None


class SourceFile(io.RawIOBase):
    """Reads a `Source` like a file opened for reading in binary; closing it leaves the source open."""

    def __init__(self, source: Source) -> None:
        super().__init__()
        self._source = source
        self._at = 0

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def tell(self) -> int:
        """The byte offset of the next read."""
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move; a place before the start is the start."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._source.size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def read(self, size: int | None = -1, /) -> bytes:
        """At most `size` bytes; all that is left where it is negative or None."""
        left = max(0, self._source.size - self._at)
        data = self._source.read(self._at, left if size is None or size < 0 else min(size, left))
        self._at += len(data)
        return data

    def readinto(self, buffer: object, /) -> int:
        """As `read`, into a buffer."""
        view = memoryview(buffer).cast("B")  # type: ignore[arg-type]
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)
