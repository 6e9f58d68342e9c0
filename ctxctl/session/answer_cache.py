"""Answers about one trace that took one or more replays, cached beside the cached replay.

There is one small file per trace and parameters, written whole: a digest of the rest, then answers by
question. A file of another trace, code or parameters, or a damaged one, is ignored. If two processes write at
once, one may lose its answer, which is then computed again.
"""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

import msgspec
import xxhash

from ctxctl.trace.cache_files import cache_file, fingerprint_of, read_own, replace_file, same_file
from ctxctl.typed_decoding import from_msgpack

if TYPE_CHECKING:
    from ctxctl.session.facade import Inspector
    from ctxctl.store.file import StoreKey

FORMAT: Final = 1
_CHECK: Final = 16
LARGEST: Final = 1 << 20
"""Answers of this many bytes or more are not cached."""
_MAX_ANSWERS: Final = 200
"""Most answers cached for a trace, the latest ones."""
_MAX_BYTES: Final = 8 << 20
"""Most bytes of a file that is read or written."""


def digest_of(data: bytes) -> bytes:
    """Return the digest of all that follows it in a file."""
    return xxhash.xxh3_128_digest(data)


class _Kept(msgspec.Struct, frozen=True):
    format: int
    made_under: str
    file: dict[str, Any]
    """Identity of the trace; see `fingerprint_of`."""
    answers: dict[str, bytes]
    """Answers by question, the latest at the end."""


class KeptAnswers:
    """The cached answers about the current state of a trace, for its replay parameters."""

    def __init__(self, key: StoreKey) -> None:
        self._key = key
        self._size = key.source.refresh()
        self._file = fingerprint_of(key.source, self._size)
        name = sha256(key.made_under.encode()).hexdigest()[:12]
        self._path = None if key.source.spooled else cache_file(key.source, f"answers-{name}")

    def find(self, question: str) -> bytes | None:
        """Return the answer; None if none is cached."""
        found = self._load().get(question)
        if found is not None and self._path is not None:
            with suppress(OSError):
                os.utime(self._path)  # the oldest are removed first
        return found

    def keep(self, question: str, answer: bytes) -> None:
        """Cache an answer, if the trace is unchanged. Failures are ignored."""
        source = self._key.source
        if self._path is None or not self._key.steady() or len(answer) > LARGEST:
            return
        if fingerprint_of(source, source.refresh()) != self._file:
            return
        answers = self._load()
        answers.pop(question, None)
        answers[question] = answer
        for oldest in list(answers)[:-_MAX_ANSWERS]:
            del answers[oldest]
        kept = _Kept(FORMAT, self._key.made_under, self._file, answers)
        data = msgspec.msgpack.encode(kept)
        if len(data) < _MAX_BYTES:
            replace_file(self._path, digest_of(data) + data)

    def _load(self) -> dict[str, bytes]:
        if self._path is None:
            return {}
        try:
            data = read_own(self._path, _MAX_BYTES)
            if digest_of(data[_CHECK:]) != data[:_CHECK]:
                return {}
            kept = from_msgpack(data[_CHECK:], _Kept)
            if (kept.format, kept.made_under) != (FORMAT, self._key.made_under):
                return {}
            if kept.file["size"] != self._size or not same_file(kept.file, self._key.source, self._size):
                return {}
        except (OSError, KeyError, TypeError, ValueError, msgspec.MsgspecError):
            return {}
        return kept.answers


def answers_of(inspector: Inspector) -> KeptAnswers | None:
    """Return the cached answers about an inspector's trace; None if caching is impossible."""
    key = inspector.kept_replays.key(inspector.params, inspector.strategy, inspector.edits)
    return None if key is None else KeptAnswers(key)
