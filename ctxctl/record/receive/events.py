"""`POST /v1/events`: native events and calls of the recorder, one JSON object a line."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

import orjson

from ctxctl.record.receive.books import Books, NotWrittenError
from ctxctl.record.receive.calls import Caller
from ctxctl.record.receive.inbox import BadEventError, Inbox
from ctxctl.record.receive.replies import JSON, Reply, seconds, told
from ctxctl.trace.depth import deeper_than

if TYPE_CHECKING:
    from ctxctl.record.recorder import Recorder

MEDIA: Final = frozenset(
    (
        "application/json",
        "application/jsonl",
        "application/ndjson",
        "application/x-ndjson",
        "application/x-jsonl",
    )
)
MAX_LINE: Final = 8 << 20
"""Bytes of one line."""
MAX_LINES: Final = 100_000
"""Lines of one request."""
_DEPTH: Final = 100
"""Levels of one event, as in what a recorder is passed."""
_TOLD: Final = 100
_SEEN: Final = 200_000
"""Ids that are remembered, so that what is sent twice is written once."""


class Events:
    """Writes what is posted, in its order; not for several threads at once."""

    def __init__(self, recorder: Recorder) -> None:
        self._books = Books(recorder._core.journal)
        self._inbox = Inbox(recorder)
        self._caller = Caller(recorder)
        self._default = recorder.session
        self._seen: OrderedDict[bytes, None] = OrderedDict()

    def take(self, body: bytes, media: str) -> Reply:
        """Write the lines of a body; what is acknowledged is in the file.

        200: all of them are.  422: those that `errors` lists are not and never will be, the others are.
        503: the trace cannot be written to; from line `next` on nothing is.
        """
        written = failed = repeated = 0
        errors: list[dict[str, Any]] = []
        try:
            lines = _lines(body, media)
        except BadEventError as error:
            return told(400, str(error))
        for number, line in lines:
            try:
                if number > MAX_LINES:
                    raise BadEventError(f"more than {MAX_LINES} lines in one request")
                if self._write(line):
                    written += 1
                else:
                    repeated += 1
            except BadEventError as error:
                failed += 1
                if len(errors) < _TOLD:
                    errors.append({"line": number, "error": str(error)})
            except NotWrittenError as error:
                counts = {"written": written, "repeated": repeated, "failed": failed, "errors": errors}
                why = f"the trace cannot be written to: {error}"
                return told(503, why, wait=self._books.wait(), next=number, **counts)
        made: dict[str, Any] = {"written": written, "repeated": repeated, "failed": failed}
        if failed:
            made["errors"] = errors
        return Reply(422 if failed else 200, orjson.dumps(made), JSON)

    def wait(self) -> int | None:
        """Seconds until the trace may be written to again; None: it is."""
        wait = self._books.wait()
        return seconds(wait) if wait else None

    def _write(self, raw: bytes) -> bool:
        """Write one line; False if it was written before."""
        line = _parsed(raw)
        if not isinstance(line, dict):
            raise BadEventError("not a JSON object")
        key = self._key(line)
        if key is not None and key in self._seen:
            return False
        with self._books.attempt():
            if "event_type" in line:
                self._inbox.write(line)
            elif "call" in line:
                self._caller.make(line)
            else:
                raise BadEventError("neither an event (event_type) nor a call (call)")
        if key is not None:
            self._seen[key] = None
            if len(self._seen) > _SEEN:
                self._seen.popitem(last=False)
        return True

    def _key(self, line: dict[str, Any]) -> bytes | None:
        """What a line is known by if it comes again; None if it has no id."""
        event = "event_type" in line
        name = line.get("event_id" if event else "id")
        if not isinstance(name, str) or not name:
            return None
        where = (line.get("session_id") or self._default, line.get("source")) if event else ()
        return blake2b(repr((event, name, where)).encode("utf-8", "replace"), digest_size=16).digest()


def _lines(body: bytes, media: str) -> Iterator[tuple[int, bytes]]:
    """The lines and their numbers, from 1 on; of a JSON array its elements."""
    if media == "application/json":
        if body[:64].lstrip().startswith(b"["):
            held = _parsed(body, len(body))
            return ((number, orjson.dumps(one)) for number, one in enumerate(held, 1))
        with suppress(BadEventError):  # NDJSON by another name
            _parsed(body)
            return iter([(1, body)])
    return _split(body)


def _split(body: bytes) -> Iterator[tuple[int, bytes]]:
    at = number = 0
    while at < len(body):
        end = body.find(b"\n", at)
        end = len(body) if end < 0 else end
        number += 1
        line = body[at : min(end, at + MAX_LINE + 1)]
        at = end + 1
        if line.strip():
            yield number, line


def _parsed(line: bytes, limit: int = MAX_LINE) -> Any:
    if len(line) > limit:
        raise BadEventError(f"longer than {MAX_LINE >> 20} MiB")
    if deeper_than(_DEPTH, line):
        raise BadEventError(f"nested more than {_DEPTH} deep")
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise BadEventError(f"not JSON: {error.msg} (column {error.colno})") from None
