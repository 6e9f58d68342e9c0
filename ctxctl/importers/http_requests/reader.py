"""Reads any JSON document that holds HTTP requests with their bodies, however deep: golden files, request
dumps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ctxctl.ingest.build import Json
from ctxctl.ingest.document import document
from ctxctl.ingest.lines import Report
from ctxctl.ingest.run import Run
from ctxctl.providers.calls.http import Call, Calls
from ctxctl.trace.source import Source

NAME: Final = "http-requests"
_DEPTH: Final = 8


def read(source: Source, report: Report) -> Iterator[Json]:
    """The document's events; a request under a name of its own is a thread of that name."""
    run = Run(NAME, report)
    calls = Calls(run, addresses=False)
    for path, request, response in _requests(document(source, run.report), (), _DEPTH):
        calls.take(_call(path, request, response))
        yield from run.drain()
    yield from calls.finish()


def _requests(value: Any, path: tuple[str, ...], depth: int) -> Iterator[tuple[tuple[str, ...], Json, Any]]:
    if depth < 0:
        return
    if isinstance(value, list):
        for entry in value:
            yield from _requests(entry, path, depth - 1)
    elif isinstance(value, dict):
        request = value.get("request")
        if is_request(value):
            yield path, value, value.get("response")
        elif isinstance(request, dict) and is_request(request):
            yield path, request, value.get("response")
        else:
            for key, entry in value.items():
                yield from _requests(entry, (*path, key), depth - 1)


def is_request(value: Json) -> bool:
    """Whether an object is an HTTP request with a body."""
    return "body" in value and isinstance(value.get("url", value.get("uri")), str)


def _call(path: tuple[str, ...], request: Json, response: Any) -> Call:
    answer: Json = response if isinstance(response, dict) else {}
    wrapped = "body" in answer
    return Call(
        url=request.get("url", request.get("uri")),
        method=request.get("method", "POST"),
        request=request.get("body"),
        response=answer.get("body") if wrapped else response,
        status=answer.get("status", answer.get("status_code")) if wrapped else None,
        headers=answer.get("headers") if wrapped else None,
        thread="/".join(path) or None,
    )
