"""HAR 1.2: HTTP archives of browsers, proxies and recorders."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from ctxctl.formats.calls.about import BODIES, LIMITS, TURNS
from ctxctl.formats.fidelity import About, HeldAgainst
from ctxctl.formats.kit.skim import body
from ctxctl.formats.lines import Report
from ctxctl.trace.source import Source

_LOG: Final = re.compile(rb'^\{\s*"log"\s*:\s*\{')
_FIELDS: Final = (b'"entries"', b'"creator"', b'"browser"', b'"pages"', b'"_recordingName"')
_SURE: Final = 94


class Har:
    """The importer for HTTP archives; takes the calls that ask a model."""

    name: str = "har"
    title: str = "HTTP archive"
    default_policy: str = "recorded"
    about: About = About(
        reads=(
            "HAR 1.2 with bodies, as text or base64, streamed answers and WebSocket messages included "
            "(Chrome, Firefox, mitmproxy, Polly.js)."
        ),
        places=("a browser's network panel, Save all as HAR", "mitmdump --set hardump=FILE"),
        turns=TURNS,
        claims=BODIES,
        limits=(*LIMITS, "bodies that the writer left out (Chrome keeps none of some streams) are not there"),
        origin="HAR 1.2 specification",
        held_against=HeldAgainst(client="HAR", newest="1.2"),
    )

    def detect(self, head: bytes) -> int:
        """How sure the head looks like an archive's."""
        start = body(head)[:8192]
        return _SURE if _LOG.match(start) and any(field in start for field in _FIELDS) else 0

    def events(self, source: Source, report: Report) -> Iterator[dict[str, Any]]:
        """The archive's events."""
        from ctxctl.formats.har.reader import read

        return read(source, report)
