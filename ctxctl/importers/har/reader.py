"""Reads the entries of an HTTP archive as HTTP calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ctxctl.ingest.build import Json
from ctxctl.ingest.document import document
from ctxctl.ingest.lines import Report
from ctxctl.ingest.run import Run
from ctxctl.providers.calls import websockets
from ctxctl.providers.calls.encodings import unbase64
from ctxctl.providers.calls.http import Call, Calls
from ctxctl.trace.source import Source

NAME: Final = "har"
_RECEIVED: Final = ("receive", "received")


def read(source: Source, report: Report) -> Iterator[Json]:
    """The archive's events, in the order in which its requests were sent."""
    run = Run(NAME, report)
    calls = Calls(run)
    found = document(source, run.report)
    log = found.get("log") if isinstance(found, dict) else None
    entries = log.get("entries") if isinstance(log, dict) else None
    run.understood.version(log.get("version") if isinstance(log, dict) else None)
    if not isinstance(entries, list):
        run.problem("not-a-record", "the archive has no list of entries")
        entries = []
    for entry in sorted(entries, key=_started):
        if isinstance(entry, dict) and isinstance(entry.get("request"), dict):
            for call in _calls(entry, calls):
                calls.take(call)
            yield from run.drain()
        else:
            run.problem("not-a-record", "not an entry of an archive; skipped")
    yield from calls.finish()


def _started(entry: Any) -> str:
    """A sort key by start, as some writers list entries as they end."""
    value = entry.get("startedDateTime") if isinstance(entry, dict) else None
    return value if isinstance(value, str) else ""


def _calls(entry: Json, calls: Calls) -> Iterator[Call]:
    request, response = entry["request"], entry.get("response")
    answer: Json = response if isinstance(response, dict) else {}
    content = answer.get("content")
    body = _posted(request.get("postData"))
    call = Call(
        url=request.get("url"),
        method=request.get("method", "POST"),
        request=body,
        response=_content(content) if isinstance(content, dict) else None,
        status=answer.get("status") or None,
        headers=answer.get("headers"),
        time=entry.get("startedDateTime"),
        session=calls.session_of(body),
        error=None if answer.get("status") else _failed(answer),
    )
    messages = entry.get("_webSocketMessages")
    if not isinstance(messages, list):
        yield call
        return
    sent = [m.get("data") for m in messages if isinstance(m, dict) and m.get("type") in ("send", "sent")]
    got = [m.get("data") for m in messages if isinstance(m, dict) and m.get("type") in _RECEIVED]
    yield from websockets.calls_of_messages(call, sent, got, calls.unpacker)


def _failed(answer: Json) -> str:
    text = answer.get("_error") or answer.get("statusText")
    return text if isinstance(text, str) and text else "no response recorded"


def _posted(data: Any) -> Any:
    if not isinstance(data, dict):
        return None
    return _content(data)


def _content(content: Json) -> Any:
    """The text of a content, or its bytes where it is base64."""
    text = content.get("text")
    if content.get("encoding") == "base64" and isinstance(text, str):
        return unbase64(text)
    return text
