"""JSON documents that hold HTTP requests with bodies: golden requests of libraries, dumps of recorders."""

from __future__ import annotations

import re
from typing import Final

from ctxctl.importers.shared_claims import BODY_CLAIMS, BODY_LIMITS
from ctxctl.ingest.about import About, absent, native
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.skim import text_of_head

_REQUEST: Final = re.compile(rb'"ur[il]"\s*:\s*"(?:https?:)?\\?/')
_BODY: Final = re.compile(
    rb'"body"\s*:\s*(?:\{\s*"(?:model|messages|contents|input|system\w*|instructions|max_tokens|stream|tools)"'
    rb'|"\{\s*\\"(?:model|messages|contents|input|system\w*)\\")'
)
_MANY: Final = 3
_LIKELY: Final = 93
_PERHAPS: Final = 55


ABOUT: Final = About(
    reads=(
        "A JSON document in which objects with `url` and `body` are requests to models, with or without "
        "their responses; each that has a name is a thread of that name."
    ),
    places=("golden requests in a client library's tests", "request dumps"),
    turns="One step is one request.",
    claims={
        **BODY_CLAIMS,
        "threads": native("the name that a request stands by"),
        "times": absent(),
    },
    limits=BODY_LIMITS,
    origin="cognesy/instructor-php driver-golden-requests.json",
)


def detect(head: bytes) -> int:
    """How sure the head looks like a list of requests; formats that hold requests claim them first."""
    start = text_of_head(head)
    if start[:1] not in (b"{", b"[") or _is_log(start):
        return 0
    if not _REQUEST.search(start) or b'"method"' not in start:
        return 0
    found = len(_BODY.findall(start))
    addressed = found >= _MANY and len(_REQUEST.findall(start)) >= found
    return _LIKELY if addressed else _PERHAPS if found else 0


def _is_log(start: bytes) -> bool:
    """Whether the head is a log of calls, one a line: a format of its own, in which each stands by itself."""
    first, newline, rest = start.partition(b"\n")
    following = rest.lstrip()[:1] == b"{" and first.rstrip()[-1:] == b"}"
    return bool(newline) and following if start[:1] == b"{" else False


FORMAT: Final = Format(
    name="http-requests",
    title="document of HTTP requests",
    detect=detect,
    reader="ctxctl.importers.http_requests.reader:read",
    about=ABOUT,
)
