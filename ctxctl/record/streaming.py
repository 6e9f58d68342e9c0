"""Streamed answers: the pieces are joined before they are looked through, as a secret may lie across two."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import orjson

from ctxctl.record import values
from ctxctl.record.calls import guarded

if TYPE_CHECKING:
    from ctxctl.record.core import Core

_LIMIT: Final = 32 << 20
"""Bytes of a stream that are kept."""


class Stream:
    """Takes the pieces of one answer; nothing of it is written before `close`.

    Memory: what came so far, up to 32 MB; what is beyond is not recorded (`cut`).

    Args:
        core: Of the recorder.
        record: Records the joined answer, once.
        dialect: Of the request; None: told by the answer.
    """

    def __init__(self, core: Core, record: Callable[[Any], None], dialect: Any) -> None:
        self._core = core
        self._record = record
        self._dialect = dialect
        self._parts: list[bytes] = []
        self._size = 0
        self.cut = False
        """Whether more came than is kept."""
        self.closed = False

    @guarded
    def feed(self, data: bytes | str) -> None:
        """The next bytes of a stream of server-sent events, cut wherever they were."""
        self._add(data.encode("utf-8", "replace") if isinstance(data, str) else bytes(data))

    @guarded
    def chunk(self, chunk: Any) -> None:
        """The next chunk, as the provider's package gives it."""
        self._add(b"data: " + values.encoded(chunk) + b"\n\n")

    @guarded
    def text(self, delta: str) -> None:
        """The next piece of a plain text, where the program has nothing else of the answer."""
        self.chunk({"choices": [{"index": 0, "delta": {"role": "assistant", "content": delta}}]})

    @guarded
    def close(self) -> None:
        """The answer is over: record it."""
        from ctxctl.providers.dialects.stream import streamed_response

        if self.closed:
            return
        self.closed = True
        text = b"".join(self._parts).decode("utf-8", "replace")
        self._parts = []
        whole = streamed_response(text, self._dialect)
        if whole is None and self._dialect is not None:
            whole = streamed_response(text)
        if whole is None and text:
            try:
                whole = orjson.loads(text)  # it was no stream after all
            except orjson.JSONDecodeError:
                whole = None
        if isinstance(whole, dict):
            self._record(whole)

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _add(self, data: bytes) -> None:
        if self._size + len(data) > _LIMIT:
            self.cut = True
            return
        self._size += len(data)
        self._parts.append(data)


def watched(stream: Stream, chunks: Iterable[Any] | AsyncIterable[Any]) -> Any:
    """The chunks again; bytes and texts are taken as they came over the wire."""
    if isinstance(chunks, AsyncIterable):
        return _async(stream, chunks)
    return _sync(stream, chunks)


def _take(stream: Stream, chunk: Any) -> None:
    if isinstance(chunk, bytes | str):
        stream.feed(chunk)
    else:
        stream.chunk(chunk)


def _sync(stream: Stream, chunks: Iterable[Any]) -> Iterator[Any]:
    try:
        for chunk in chunks:
            _take(stream, chunk)
            yield chunk
    finally:
        stream.close()


async def _async(stream: Stream, chunks: AsyncIterable[Any]) -> AsyncIterator[Any]:
    try:
        async for chunk in chunks:
            _take(stream, chunk)
            yield chunk
    finally:
        stream.close()
