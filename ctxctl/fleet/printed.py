"""What was printed of the answers of a directory's captures, kept for who asks again while none has changed.

There is one row for a directory and a way of asking.  It says by a digest of what answers it was made, so
that it is taken for these alone.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import msgspec
import xxhash

from ctxctl.text import safe_lines
from ctxctl.typed_decoding import from_msgpack

if TYPE_CHECKING:
    from ctxctl.fleet.asking import Asker, Question

_LEVEL: Final = 3
_LEAST: Final = 100
"""Answers from which on it is worth its while."""
_MOST: Final = 32 << 20
"""Bytes of the most lines that are kept."""


class _Row(msgspec.Struct, frozen=True, array_like=True):
    answers: bytes
    """Digest of all of them."""
    findings: int
    size: int
    lines: bytes
    """Compressed."""


class KeptPrint:
    """Lines of JSON that hang on nothing but the answers.

    Args:
        asker: Whoever asked.
        question: What was asked.
        how: All that the lines depend on beside the answers.
        answers: By the captures' names.
    """

    def __init__(self, asker: Asker, question: Question, how: str, answers: Mapping[str, bytes]) -> None:
        self._asker = asker
        self._usable = len(answers) >= _LEAST
        key = blake2b(
            f"printed\0{question.rests_on}\0{question.work}\0{how}\0".encode("utf-8", "surrogateescape"),
            digest_size=16,
        )
        key.update(question.words)
        self._key = key.digest()
        digest = xxhash.xxh3_128()
        for name in sorted(answers) if self._usable else ():
            digest.update(b"%d\0" % len(name) + name.encode("utf-8", "surrogateescape"))
            digest.update(xxhash.xxh3_128_digest(answers[name]))
        self._answers = digest.digest()

    def find(self) -> tuple[int, bytes] | None:
        """The number of findings, and the lines; None where none are kept."""
        data = self._asker.found(self._key) if self._usable else None
        if data is None:
            return None
        try:
            row = from_msgpack(data, _Row)
            if row.answers != self._answers or not 0 < row.size <= _MOST:
                return None
            unpacker = zlib.decompressobj()
            lines = unpacker.decompress(row.lines, row.size)
        except (msgspec.MsgspecError, zlib.error):
            return None
        whole = len(lines) == row.size and not unpacker.decompress(unpacker.unconsumed_tail, 1)
        return (row.findings, lines) if whole and safe_lines(lines) is not None else None

    def keep(self, findings: int, lines: list[bytes]) -> None:
        """Keep lines."""
        size = sum(map(len, lines))
        if self._usable and 0 < size <= _MOST:
            packed = zlib.compress(b"".join(lines), _LEVEL)
            row = _Row(self._answers, findings, size, packed)
            self._asker.keep(self._key, msgspec.msgpack.encode(row))
