"""Files of spans: one JSON document, JSON lines of exports or of single spans, or OTLP's protobuf."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ctxctl.formats.build import Json
from ctxctl.formats.kit.document import document
from ctxctl.formats.kit.run import Run
from ctxctl.formats.lines import Line, Report, values
from ctxctl.formats.spans.inferences import Inferences
from ctxctl.formats.spans.span import spans
from ctxctl.formats.spans.traces import Traces
from ctxctl.trace.source import Source

_HEAD: Final = 1 << 16
_METRIC: Final = b'"type":"metric"'
_BOM: Final = b"\xef\xbb\xbf"


def read(name: str, source: Source, report: Report) -> Iterator[Json]:
    """The file's events."""
    run = Run(name, report)
    calls = Inferences(run)
    traces = Traces(calls)
    for value, size in _values(run, source):
        for span in spans(value):
            span.line = run.line.number
            yield from traces.add(span, size)
    yield from traces.flush()
    held = f"{traces.others} other spans" if traces.others else "no spans"
    yield from calls.finish(held)


def _values(run: Run, source: Source) -> Iterator[tuple[Any, int]]:
    """The JSON values of a file, each with its size."""
    head = source.read(0, _HEAD).removeprefix(_BOM).lstrip(b" \t\r\n")
    if not head.startswith((b"{", b"[")) and source.read(0, 1) == b"\n":
        from ctxctl.formats.otel.protobuf import exports

        for value in exports(source, run):
            yield value, source.size
        return
    if is_document(head):
        run.line = Line(1, 0, b"")
        yield document(source, run.report), source.size
        return
    for line, value in values(source, run.report, _is_metric):
        run.line = line
        yield value, len(line.data)


def is_document(head: bytes) -> bool:
    """Whether a file is one document: a list over lines, or an object whose first line does not close."""
    first, newline, _ = head.partition(b"\n")
    first = first.strip()
    if not newline:
        return True
    if first.startswith(b"["):
        return not (first.endswith(b"]") and len(first) > 1)
    return first in (b"{", b"[") or (first.startswith(b"{") and not first.endswith(b"}") and b'"' not in first[-3:])


def _is_metric(line: bytes) -> bool:
    return _METRIC in line[:64]
