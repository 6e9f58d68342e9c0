"""Files of spans: one JSON document, JSON lines of exports or of single spans, or OTLP's protobuf."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Protocol

import orjson

from ctxctl.ingest.build import Json
from ctxctl.ingest.document import document
from ctxctl.ingest.lines import WHOLE_FILE, Report, values
from ctxctl.ingest.run import Run
from ctxctl.providers.spans.inferences import Inferences
from ctxctl.providers.spans.span import spans
from ctxctl.providers.spans.traces import Traces
from ctxctl.trace.source import Source

_HEAD: Final = 1 << 16
_METRIC: Final = b'"type":"metric"'
_BOM: Final = b"\xef\xbb\xbf"
_LINES: Final = 50
_SHORT: Final = 20


class Reader:
    """One import of a file."""

    def __init__(self, name: str, report: Report) -> None:
        self._run = Run(name, report)

    def events(self, source: Source) -> Iterator[Json]:
        """The file's events."""
        return _read(self._run, source)


def _read(run: Run, source: Source) -> Iterator[Json]:
    calls = Inferences(run)
    traces = Traces(calls)
    for value, size in values_of(run, source):
        for span in spans(value):
            span.line = run.line.number
            yield from traces.add(span, size)
    yield from traces.flush()
    calls.summed(traces.summed)
    calls.unpaired(traces.unpaired)
    held = f"{traces.others} other spans" if traces.others else "no spans"
    yield from calls.finish(held)


class Log(Protocol):
    """What puts together the records of an observability tool's export, for `records`."""

    run: Run
    calls: Inferences
    traces: Traces

    def take(self, value: Any) -> None:
        """Keep what a document or a line holds."""

    def drain(self, *, at_end: bool = False) -> Iterator[Json]:
        """Make calls of what was taken, if it is much."""


def records(log: Log, source: Source) -> Iterator[Json]:
    """The events of an export whose records `log` puts together; the caller ends the import."""
    run = log.run
    if is_document(source):
        run.line = WHOLE_FILE
        log.take(document(source, run.report))
    else:
        for line, value in values(source, run.report):
            run.line = line
            log.take(value)
            yield from log.drain()
    yield from log.drain(at_end=True)
    log.calls.summed(log.traces.summed)


def values_of(run: Run, source: Source) -> Iterator[tuple[Any, int]]:
    """The JSON values of a file, each with its size."""
    head = source.read(0, _HEAD).removeprefix(_BOM).lstrip(b" \t\r\n")
    if not head.startswith((b"{", b"[")) and source.read(0, 1) == b"\n":
        from ctxctl.providers.spans.protobuf import exports

        for value in exports(source, run):
            yield value, source.size
        return
    if is_document(source):
        run.line = WHOLE_FILE
        yield document(source, run.report), source.size
        return
    for line, value in values(source, run.report, _is_metric):
        run.line = line
        yield value, len(line.data)


def is_document(source: Source) -> bool:
    """Whether a file is one document rather than JSON lines, by its beginning; either may be damaged."""
    data = source.read(0, _HEAD)
    lines = data.removeprefix(_BOM).strip(b" \t\r\n").split(b"\n")
    if len(lines) == 1:
        return source.size <= len(data)
    if lines[0].strip() in (b"[", b"{"):
        return True
    return not any(_is_record(line.strip()) for line in lines[:_LINES])


def _is_record(line: bytes) -> bool:
    if len(line) < _SHORT or line[:1] not in (b"{", b"["):
        return False
    try:
        return isinstance(orjson.loads(line), dict | list)
    except orjson.JSONDecodeError:
        return False


def _is_metric(line: bytes) -> bool:
    return _METRIC in line[:64]
