"""Captures that are one JSON document, whatever its layout."""

from __future__ import annotations

from typing import Any, Final

import orjson

from ctxctl.formats.kit.mend import mended
from ctxctl.formats.lines import Report
from ctxctl.model.problem import Problem
from ctxctl.trace.source import Source

MAX_DOCUMENT: Final = 512 << 20
"""Bytes of the largest document that is read; it has to be in memory whole."""
_MAX_REPAIR: Final = 32 << 20
_BOM: Final = b"\xef\xbb\xbf"


def document(source: Source, report: Report) -> Any:
    """The value of a file that is one JSON document; None if nothing of it can be read.

    A damaged document is repaired as far as it goes (`repaired-document`): what stands before the damage
    comes out as it is, what follows as well as can be told.  Problems: `document-too-large`, `bad-json`.
    """
    data = source.read(0, MAX_DOCUMENT + 1)
    if len(data) > MAX_DOCUMENT:
        limit = MAX_DOCUMENT >> 20
        report(Problem(1, 0, "document-too-large", f"one JSON document of more than {limit} MiB; not read"))
        return None
    data = data.removeprefix(_BOM)
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        return _repaired(data, error, report)


def _repaired(data: bytes, error: orjson.JSONDecodeError, report: Report) -> Any:
    line = error.lineno or 1
    at = len(error.doc[: error.pos].encode("utf-8", "replace")) if isinstance(error.doc, str) else 0
    if len(data) > _MAX_REPAIR:
        report(Problem(line, at, "bad-json", f"not valid JSON ({error.msg}); too large to repair"))
        return None
    value = mended(data.decode("utf-8", "replace"))
    if not isinstance(value, dict | list) or not value:
        report(Problem(line, at, "bad-json", f"not valid JSON ({error.msg}); not read"))
        return None
    report(Problem(line, at, "repaired-document", f"not valid JSON ({error.msg}); read as far as it goes"))
    return value
