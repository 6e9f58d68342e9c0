"""Copy a stream into an unlinked temporary file, decompressing it, within bounds."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator
from typing import IO

from ctxctl.errors import UnavailableError, UnreadableError
from ctxctl.model.problem import Problem

CHUNK = 1 << 18
"""Bytes per read; 256 KiB was the cheapest size measured (docs/benchmarks.md)."""

RATIO_LIMIT = 500
"""Output bytes per input byte above `RATIO_FLOOR`; zstd with a long window reaches 320 on honest traces,
gzip at most 1032 on zeros."""
RATIO_FLOOR = 256 << 20
SIZE_LIMIT = 64 << 30
"""Most bytes of one spooled trace."""
DISK_RESERVE = 256 << 20
"""Bytes left free on the temporary file system."""

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_ZSTD_WINDOW = 1 << 27
_ZSTD_PIECE = 2048
"""Input bytes per call: the library does not bound its output, and 2 KiB become 64 MiB at most."""


def compression(head: bytes) -> str | None:
    """`gzip`, `zstd` or None, from the first four bytes."""
    if head.startswith(_GZIP):
        return "gzip"
    return "zstd" if head.startswith(_ZSTD) else None


class Spooled:
    """A finished copy: its file (closed on leaving the `with`) and what was wrong with the input."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.problems: list[Problem] = []

    def __enter__(self) -> Spooled:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()


def spool_stream(
    name: str, chunks: Iterable[bytes], *, scheme: str | None = None, compressed_size: int = 0
) -> Spooled:
    """Copy `chunks` to a temporary file; a damaged compressed stream keeps what could be decoded.

    Raises:
        UnreadableError: `decompression-bomb`, `no-space`, `bad-compression` (nothing could be decoded).
        UnavailableError: `needs-zstd`.
    """
    import tempfile

    result = Spooled(tempfile.TemporaryFile(prefix="ctxctl-"))  # noqa: SIM115 - closed by the caller's with
    try:
        limit = SIZE_LIMIT
        if scheme is not None:
            limit = min(limit, max(RATIO_FLOOR, RATIO_LIMIT * compressed_size))
            chunks = _inflate(name, chunks, scheme, result)
        _copy(name, chunks, result.file, limit)
    except BaseException:
        result.file.close()
        raise
    return result


def _copy(name: str, chunks: Iterable[bytes], file: IO[bytes], limit: int) -> None:
    written = checked = 0
    try:
        for chunk in chunks:
            written += len(chunk)
            if written > limit:
                raise _bomb(name, limit)
            if written - checked > DISK_RESERVE // 2:
                checked = written
                room = os.fstatvfs(file.fileno())
                if room.f_bavail * room.f_frsize < DISK_RESERVE:
                    raise no_space(name)
            file.write(chunk)
        file.flush()
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise no_space(name, error.strerror) from None


def _inflate(name: str, chunks: Iterable[bytes], scheme: str, result: Spooled) -> Iterator[bytes]:
    produced = 0
    try:
        for piece in _gunzip(chunks) if scheme == "gzip" else _unzstd(chunks):
            produced += len(piece)
            yield piece
    except (zlib.error, EOFError, _ZstdError) as error:
        if not produced:
            raise UnreadableError(
                "bad-compression", f"{name} is not readable {scheme} data: {error}"
            ) from None
        result.problems.append(
            Problem(
                0, produced, "damaged-compression", f"the {scheme} data end early: {error}; the rest is lost"
            )
        )


def _gunzip(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield members one after the other, in bounded pieces. NUL padding after the last one is skipped."""
    decoder = zlib.decompressobj(wbits=31)
    fresh = True
    for chunk in chunks:
        data = chunk
        while data:
            if decoder.eof:
                decoder, fresh = zlib.decompressobj(wbits=31), True
            if fresh and not (data := data.lstrip(b"\0")):
                break
            fresh = False
            yield decoder.decompress(data, CHUNK)
            data = decoder.unused_data if decoder.eof else decoder.unconsumed_tail
    if not fresh and not decoder.eof:
        yield decoder.flush()
        raise EOFError("the last member is cut off")


class _ZstdError(Exception):
    """A zstd stream that cannot be decoded further."""


def _unzstd(chunks: Iterable[bytes]) -> Iterator[bytes]:
    try:
        import zstandard
    except ImportError:
        raise UnavailableError(
            "needs-zstd", "this trace is compressed with zstd", hint="pip install 'ctxctl[zstd]'"
        ) from None
    context = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
    decoder = context.decompressobj()
    fresh = True
    try:
        for chunk in chunks:
            for at in range(0, len(chunk), _ZSTD_PIECE):
                data = chunk[at : at + _ZSTD_PIECE]
                while data:
                    if decoder.eof:
                        decoder, fresh = context.decompressobj(), True
                    if fresh and not (data := data.lstrip(b"\0")):
                        break
                    fresh = False
                    yield decoder.decompress(data)
                    data = decoder.unused_data if decoder.eof else b""
    except zstandard.ZstdError as error:
        raise _ZstdError(str(error)) from None
    if not fresh and not decoder.eof:
        raise _ZstdError("the last frame is cut off")


def _bomb(name: str, limit: int) -> UnreadableError:
    return UnreadableError(
        "decompression-bomb",
        f"{name} decompresses to more than {limit} bytes, which no trace does",
        hint="decompress it yourself if you trust it, and open the result",
    )


def no_space(name: str, reason: str | None = "no space left") -> UnreadableError:
    """Return the error for a temporary directory without space for a copy of a trace."""
    return UnreadableError(
        "no-space",
        f"cannot copy {name} to the temporary directory: {reason}",
        hint="set TMPDIR to a larger disk",
    )
