"""HAR 1.2: HTTP archives of browsers, proxies and recorders."""

from __future__ import annotations

import re
from typing import Final

from ctxctl.importers.shared_claims import BODY_CLAIMS, BODY_LIMITS, BODY_TURNS
from ctxctl.ingest.about import About, HeldAgainst
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.skim import text_of_head

_LOG: Final = re.compile(rb'^\{\s*"log"\s*:\s*\{')
_FIELDS: Final = (b'"entries"', b'"creator"', b'"browser"', b'"pages"', b'"_recordingName"')
_SURE: Final = 94


ABOUT: Final = About(
    reads=(
        "HAR 1.2 with bodies, as text or base64, streamed answers and WebSocket messages included "
        "(Chrome, Firefox, mitmproxy, Polly.js)."
    ),
    places=("a browser's network panel, Save all as HAR", "mitmdump --set hardump=FILE"),
    turns=BODY_TURNS,
    claims=BODY_CLAIMS,
    limits=(
        *BODY_LIMITS,
        "bodies that the writer left out (Chrome keeps none of some streams) are not there",
    ),
    origin="HAR 1.2 specification",
    held_against=HeldAgainst(client="HAR", newest="1.2"),
)


def detect(head: bytes) -> int:
    """How sure the head looks like an archive's."""
    start = text_of_head(head)[:8192]
    return _SURE if _LOG.match(start) and any(field in start for field in _FIELDS) else 0


FORMAT: Final = Format(
    name="har",
    title="HTTP archive",
    detect=detect,
    reader="ctxctl.importers.har.reader:read",
    about=ABOUT,
)
