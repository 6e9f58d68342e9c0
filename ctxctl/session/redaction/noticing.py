"""Determine whether a trace redacts anything, from its bytes, without decoding.

This costs twice a count of the lines. For a large file, the part without redactions is recorded beside its
index, so that opening it does not take longer the larger it is.
"""

from __future__ import annotations

import json
import re
from typing import Final

from ctxctl.model import vocab
from ctxctl.trace.cache_files import cache_file, fingerprint_of, open_own, replace_file, same_file
from ctxctl.trace.source import Source

_CHUNK: Final = 4 << 20
_OVERLAP: Final = 256
_MIN_CACHED: Final = 16 << 20
"""Bytes from which the result is cached."""
_KIND: Final = "unredacted"
_MOST: Final = 4096
_EVENT: Final = vocab.REDACTION_APPLIED.encode()
_STATE: Final = b'"redaction_state"'
_SAYS: Final = re.compile(rb'\s*:\s*"(?!(?:none|raw|not_redacted|unredacted)")')


def trace_redacts(source: Source) -> bool:
    """Return whether a trace redacts anything; True also if a text only looks like it."""
    if source.size < _MIN_CACHED or source.spooled:
        return file_redacts(source)
    known = _known(source)
    if file_redacts(source, max(0, known - _OVERLAP)):
        return True
    if known < source.size:
        _keep(source)
    return False


def file_redacts(source: Source, at: int = 0) -> bool:
    """Return `trace_redacts` for what follows a byte."""
    while data := source.read(at, _CHUNK + _OVERLAP):
        if _EVENT in data or _says(data):
            return True
        if len(data) <= _CHUNK:
            break
        at = max(at + _CHUNK, source.data_from(at + _CHUNK) - _OVERLAP)  # skip a hole of a sparse file
    return False


def _says(data: bytes) -> bool:
    at = data.find(_STATE)
    while at >= 0:
        at += len(_STATE)
        if _SAYS.match(data, at):
            return True
        at = data.find(_STATE, at)
    return False


def _known(source: Source) -> int:
    """Return the bytes from the start of a file that are known to redact nothing."""
    path = cache_file(source, _KIND)
    if path is None:
        return 0
    try:
        with open_own(path) as file:
            noted = json.loads(file.read(_MOST))
        covered = noted["covered"]
        return covered if isinstance(covered, int) and same_file(noted["file"], source, covered) else 0
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def _keep(source: Source) -> None:
    path = cache_file(source, _KIND)
    if path is not None:
        noted = {"covered": source.size, "file": fingerprint_of(source, source.size)}
        replace_file(path, json.dumps(noted).encode())
