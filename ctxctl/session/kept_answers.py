"""What was worked out of a whole trace, kept beside its replay: small answers that would take a walk again.

A file for each question.  It rests on the same trace and parameters as the kept replay does, and holds only
as long as there is one; a digest over the whole makes a damaged one as good as not there.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import xxhash

from ctxctl.session.cache_key import made_under
from ctxctl.trace.cache_files import cache_file, fingerprint_of, open_own, replace_file, same_file

if TYPE_CHECKING:
    from ctxctl.session.facade import Inspector

FORMAT: Final = 1
MOST: Final = 1 << 20
"""Bytes of an answer from which on it is not kept."""
_MAGIC: Final = b"ctxctl answer\n"
_SUM: Final = 16


class _Kept(msgspec.Struct, frozen=True, array_like=True):
    format: int
    key: str
    file: dict[str, Any]
    """Of which trace, as `fingerprint_of` tells."""
    answer: bytes


def kept_answer(inspector: Inspector, question: str) -> bytes | None:
    """What was answered before; None where nothing is kept that still holds.

    Args:
        inspector: On the trace, under the parameters that the answer rests on.
        question: Its name, and all that the answer depends on besides.
    """
    place = _place(inspector, question)
    if place is None:
        return None
    path, key = place
    source = inspector.trace.source
    try:
        with open_own(path) as file:
            data = file.read(len(_MAGIC) + _SUM + 2 * MOST)
        body = data[len(_MAGIC) : -_SUM]
        if not data.startswith(_MAGIC) or _check(body) != data[-_SUM:]:
            return None
        kept = msgspec.msgpack.decode(body, type=_Kept)
        size = source.refresh()
        if (kept.format, kept.key, kept.file["size"]) != (FORMAT, key, size):
            return None
        return kept.answer if same_file(kept.file, source, size) else None
    except (OSError, KeyError, TypeError, ValueError, msgspec.MsgspecError):
        return None


def keep_answer(inspector: Inspector, question: str, answer: bytes) -> None:
    """Keep what was found out by a walk that came to its end, if its replay is kept; never raises."""
    place = _place(inspector, question)
    if place is None or len(answer) > MOST:
        return
    path, key = place
    source = inspector.trace.source
    try:
        kept = _Kept(FORMAT, key, fingerprint_of(source, source.refresh()), answer)
    except OSError:
        return
    body = msgspec.msgpack.encode(kept)
    replace_file(path, _MAGIC + body + _check(body))


def _check(body: bytes) -> bytes:
    return xxhash.xxh3_128_digest(body)


def _place(inspector: Inspector, question: str) -> tuple[Path, str] | None:
    """Where an answer is, and its whole key; None where the replay is not kept either."""
    if inspector.kept_replay() is None:
        return None
    under = made_under(inspector.params, inspector.strategy, inspector.edits)
    key = f"{under}\n{question}"
    path = cache_file(inspector.trace.source, f"answer-{sha256(key.encode()).hexdigest()[:12]}")
    return None if path is None else (path, key)
