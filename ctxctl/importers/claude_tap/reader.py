"""Reads the records of a claude-tap trace as HTTP calls, from JSON lines or from a compact bundle."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ctxctl.ingest.build import Json, canonical
from ctxctl.ingest.document import document
from ctxctl.ingest.lines import Report
from ctxctl.ingest.parts import string
from ctxctl.ingest.run import Run
from ctxctl.providers.calls import encodings, websockets
from ctxctl.providers.calls.http import Call, Calls
from ctxctl.trace.source import Source

NAME: Final = "claude-tap"
BUNDLE: Final = b"__claude_tap_compact_trace__"
_RECORD: Final = "__claude_tap_compact_record__"
PUT_BACK: Final = 256 << 20
"""Bytes that the references of a bundle of any size may stand for."""
_TIMES_PUT_BACK: Final = 64
"""How often as many bytes as the bundle has they may stand for beyond these: a client that sends a hundred
tools with each request has them in the bundle once, and two kilobytes or more of each request."""
_ENTRY: Final = 1024
"""Bytes that an entry of a list counts as beside its own: so long takes reading it."""
_BLOB: Final = "__claude_tap_blob_ref__"
_HEAD: Final = 4096


def read(source: Source, report: Report) -> Iterator[Json]:
    """The trace's events; JSON lines are streamed, a bundle is read whole."""
    run = Run(NAME, report)
    calls = Calls(run)
    records = _bundled(source, calls) if BUNDLE in source.read(0, _HEAD) else run.records(source)
    for record in records:
        for call in _calls(record, run, calls):
            calls.take(call)
        yield from run.drain()
    yield from calls.finish()


def _calls(record: Json, run: Run, calls: Calls) -> Iterator[Call]:
    request, response = record.get("request"), record.get("response")
    if not isinstance(request, dict):
        run.problem("unknown-record", "no request in it; skipped")
        return
    answer: Json = response if isinstance(response, dict) else {}
    base = string(record.get("upstream_base_url")) or ""
    call = Call(
        url=base.rstrip("/") + (string(request.get("path")) or string(request.get("url")) or ""),
        method=request.get("method", "POST"),
        request=request.get("body"),
        response=_body(answer),
        status=answer.get("status"),
        headers=answer.get("headers"),
        line=run.line.number,
        time=record.get("timestamp"),
        native_id=string(record.get("request_id")) or string(record.get("id")),
        session=calls.session_of(request.get("body")) or string(record.get("session_id")),
        error=string(answer.get("error")) or (None if answer else "no response recorded"),
    )
    if record.get("transport") == "websocket" or request.get("method") == "WEBSOCKET":
        yield from websockets.calls_of_messages(
            call, request.get("ws_events"), answer.get("ws_events"), calls.unpacker
        )
    else:
        yield call


def _body(answer: Json) -> Any:
    """The body that was put together, else the stream's events as they were recorded."""
    body = answer.get("body")
    if body not in (None, "", {}):
        return body
    events = answer.get("sse_events")
    if not isinstance(events, list):
        return body
    return "\n".join(_event(event) for event in events if isinstance(event, dict)) or None


def _event(event: Json) -> str:
    data = event.get("data")
    name = event.get("event")
    text = data if isinstance(data, str) else canonical(data)
    head = f"event: {name}\n" if isinstance(name, str) and name != "message" else ""
    return head + "".join(f"data: {line}\n" for line in text.split("\n"))


# -- bundles ----------------------------------------------------------------------------------------------


def _bundled(source: Source, calls: Calls) -> Iterator[Json]:
    """The records of a `.ctap.json` bundle, their blobs put back."""
    run = calls.run
    found = document(source, run.report)
    records = found.get("records") if isinstance(found, dict) else None
    blobs = _Blobs(found.get("blobs") if isinstance(found, dict) else None, run, source.size)
    for record in records if isinstance(records, list) else []:
        if isinstance(record, dict) and _RECORD in record:
            record = record.get("record")
        if isinstance(record, dict):
            yield _whole(record, blobs, calls)
        else:
            run.problem("not-a-record", "not a JSON object; skipped")
        if blobs.are_too_many():
            return


def _whole(record: Json, blobs: _Blobs, calls: Calls) -> Json:
    """A record with its references resolved where the writer puts them: in bodies and their lists."""
    made = dict(record)
    for side in ("request", "response"):
        part = made.get(side)
        body = _opened(part.get("body"), calls) if isinstance(part, dict) else None
        if isinstance(part, dict) and isinstance(body, dict):
            made[side] = {**part, "body": {key: blobs.resolved(value) for key, value in body.items()}}
    return made


def _opened(body: Any, calls: Calls) -> Any:
    return encodings.decoded_body(body, unpacker=calls.unpacker)


class _Blobs:
    """The blobs of a bundle by their hashes, as long as what is put back is no more than a client sends.

    A reference of few bytes stands for a list of any length, in each of thousands of records.
    """

    def __init__(self, blobs: Any, run: Run, size: int) -> None:
        self._blobs: Json = blobs if isinstance(blobs, dict) else {}
        self._run = run
        self._most = self._left = PUT_BACK + _TIMES_PUT_BACK * size
        self._weights: dict[str, int] = {}

    def resolved(self, value: Any) -> Any:
        """A value of a body, its references replaced by what they stand for."""
        if isinstance(value, list):
            return [self._one(entry) for entry in value]
        return self._one(value)

    def are_too_many(self) -> bool:
        """Whether too much was put back by now, and says so."""
        if self._left >= 0:
            return False
        message = (
            "the records up to here refer to shared parts so often that these come to "
            f"{self._most >> 20:,} MiB: the rest of the bundle is not read"
        )
        self._run.problem("windows-too-large", message)
        return True

    def _one(self, value: Any) -> Any:
        reference = value.get(_BLOB) if isinstance(value, dict) and len(value) == 1 else None
        if not isinstance(reference, dict):
            return value
        name = str(reference.get("hash"))
        blob = self._blobs.get(name)
        if isinstance(blob, dict) and "payload" in blob:
            self._left -= self._weight(name, blob["payload"])
            return blob["payload"]
        self._run.problem("missing-blob", "a part of a request is not in the bundle; it is left out")
        return None

    def _weight(self, name: str, payload: Any) -> int:
        if name not in self._weights:
            entries = len(payload) if isinstance(payload, list) else 1
            self._weights[name] = len(canonical(payload)) + _ENTRY * entries
        return self._weights[name]
