"""Reads the pairs of a claude-trace log as HTTP calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ctxctl.ingest.build import Json
from ctxctl.ingest.lines import Report
from ctxctl.ingest.parts import string
from ctxctl.ingest.run import Run
from ctxctl.providers.calls.http import Call, Calls
from ctxctl.trace.source import Source

NAME = "claude-trace"


def read(source: Source, report: Report) -> Iterator[Json]:
    """The log's events; bounded by the window, linear in the file."""
    run = Run(NAME, report)
    calls = Calls(run)
    for record in run.records(source):
        request = record.get("request")
        if not isinstance(request, dict):
            run.problem("unknown-record", "no request in it; skipped")
            continue
        response = record.get("response")
        answer: Json = response if isinstance(response, dict) else {}
        calls.take(
            Call(
                url=request.get("url"),
                method=request.get("method", "POST"),
                request=request.get("body"),
                response=_body(answer),
                status=answer.get("status_code", answer.get("status")),
                headers=answer.get("headers"),
                line=run.line.number,
                time=request.get("timestamp") or record.get("logged_at"),
                session=calls.session_of(request.get("body")),
                error=None if answer else string(record.get("note")) or "no response recorded",
            )
        )
        yield from run.drain()
    yield from calls.finish()


def _body(answer: Json) -> Any:
    """The parsed body; where there is none, the raw one (an event stream)."""
    body = answer.get("body")
    return body if body not in (None, "") else answer.get("body_raw")
