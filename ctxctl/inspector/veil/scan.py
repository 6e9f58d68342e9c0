"""Whether a trace says of anything that it was redacted; looks at the bytes, decodes nothing."""

from __future__ import annotations

import re
from typing import Final

from ctxctl.model import vocab
from ctxctl.trace.source import Source

_CHUNK: Final = 4 << 20
_OVERLAP: Final = 256
_EVENT: Final = vocab.REDACTION_APPLIED.encode()
_STATE: Final = b'"redaction_state"'
_SAYS: Final = re.compile(rb'\s*:\s*"(?!(?:none|raw|not_redacted|unredacted)")')


def redacts(source: Source, at: int = 0) -> bool:
    """True where it does from a byte on, and where a text of it looks as if."""
    while data := source.read(at, _CHUNK + _OVERLAP):
        if _EVENT in data or _says(data):
            return True
        if len(data) <= _CHUNK:
            break
        at += _CHUNK
    return False


def _says(data: bytes) -> bool:
    at = data.find(_STATE)
    while at >= 0:
        at += len(_STATE)
        if _SAYS.match(data, at):
            return True
        at = data.find(_STATE, at)
    return False
