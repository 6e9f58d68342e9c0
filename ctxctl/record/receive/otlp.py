"""OTLP over HTTP: takes export requests in either encoding, and records their spans and log records as steps.

An exporter sends a span when it has ended: children before their parents, log records separately, each with
its own delay (5 seconds are usual).  The spans around a model call name its agent and its session.  So what
comes is held until its trace's outermost span has come and nothing more for `SETTLE` seconds, or until it has
waited for `HOLD` seconds.  What comes later of its trace goes where its content puts it, without the names of
agents, as the calls before it could not have them.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import orjson

from ctxctl.errors import UnavailableError
from ctxctl.ingest.parts import string
from ctxctl.ingest.run import Run
from ctxctl.model import vocab
from ctxctl.providers.dialects.exchanges import Exchange
from ctxctl.providers.spans.chat_values import NOTHING
from ctxctl.providers.spans.content import content
from ctxctl.providers.spans.inferences import CollectedDialect, Inference, Inferences, request
from ctxctl.providers.spans.nest import is_agent, session_of
from ctxctl.providers.spans.span import ReadBeside, Span, spans
from ctxctl.providers.spans.traces import Traces, is_call
from ctxctl.record.conversations import Conversations
from ctxctl.record.receive.replies import JSON, Reply, WriteGuard
from ctxctl.trace.depth import deeper_than

if TYPE_CHECKING:
    from ctxctl.record.recorder import Recorder


Json = dict[str, Any]
PROTOBUF: Final = "application/x-protobuf"
MEDIA: Final = frozenset((PROTOBUF, JSON))
_DEPTH: Final = 100
"""Levels of nesting of a document; protobuf's own limit is the same."""
_INVALID: Final = 3
_UNAVAILABLE: Final = 14
_LISTS: Final = {
    "traces": (("resourceSpans", "resource_spans"), ("scopeSpans", "scope_spans"), ("spans",)),
    "logs": (("resourceLogs", "resource_logs"), ("scopeLogs", "scope_logs"), ("logRecords", "log_records")),
}
_REJECTED: Final = {"traces": "rejectedSpans", "logs": "rejectedLogRecords"}


class BadExportError(ValueError):
    """The body is no export request."""


def available() -> None:
    """Raise UnavailableError if protobuf cannot be read: most exporters speak nothing else."""
    try:
        import opentelemetry.proto.collector.trace.v1.trace_service_pb2  # noqa: F401
    except ImportError:
        raise UnavailableError(
            "needs-otlp", "OTLP's protobuf needs opentelemetry-proto", hint="pip install 'ctxctl[serve]'"
        ) from None


class ExportEndpoint:
    """The endpoint of one signal, `traces` or `logs`; it hands spans and log records on."""

    def __init__(self, signal: str, held: SpanBuffer) -> None:
        self._signal = signal
        self._held = held

    def take(self, body: bytes, media: str) -> Reply:
        """Answer 200, with the number of unreadable records if there are any, or 400 to what is no export."""
        try:
            value = _decoded(self._signal, body) if media == PROTOBUF else _parsed(body)
            taken, rejected = _records(self._signal, value)
        except BadExportError as error:
            return refuse(400, str(error), media)
        # The rest of an export takes memory too: a record counts as its share of the whole.
        size = len(body) // max(1, len(taken))
        for span in taken:
            self._held.add(span, size)
        return _accepted(self._signal, rejected, media)


def ignored(body: bytes, media: str) -> Reply:
    """Accept metrics, which are not read."""
    return _accepted("metrics", 0, media)


def refuse(status: int, why: str, media: str) -> Reply:
    """Return an answer with a `google.rpc.Status`, as OTLP requires it."""
    code = _UNAVAILABLE if status >= 500 else _INVALID
    if media != PROTOBUF:
        return Reply(status, orjson.dumps({"code": code, "message": why}), JSON)
    text = why.encode()[:8000]
    return Reply(status, b"\x08" + bytes((code,)) + b"\x12" + _varint(len(text)) + text, PROTOBUF)


def _varint(number: int) -> bytes:
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    made.append(number)
    return bytes(made)


def _accepted(signal: str, rejected: int, media: str) -> Reply:
    why = "not read: no attributes, or not a record at all"
    if media != PROTOBUF:
        made = {"partialSuccess": {_REJECTED[signal]: str(rejected), "errorMessage": why}} if rejected else {}
        return Reply(200, orjson.dumps(made), JSON)
    if not rejected:
        return Reply(200, b"", PROTOBUF)
    text = why.encode()
    inner = b"\x08" + _varint(rejected) + b"\x12" + _varint(len(text)) + text
    return Reply(200, b"\x0a" + _varint(len(inner)) + inner, PROTOBUF)


def _parsed(body: bytes) -> Any:
    if deeper_than(_DEPTH, body):
        raise BadExportError(f"nested more than {_DEPTH} deep")
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadExportError(f"not JSON: {error.msg} (line {error.lineno}, column {error.colno})") from None


def _decoded(signal: str, body: bytes) -> Json:
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    from ctxctl.providers.spans import protobuf

    request: Any = ExportTraceServiceRequest() if signal == "traces" else ExportLogsServiceRequest()
    try:
        request.ParseFromString(body)
    except DecodeError:
        raise BadExportError("not an export request in protobuf") from None
    return protobuf.traces(request) if signal == "traces" else protobuf.logs(request)


def _records(signal: str, value: Any) -> tuple[list[Span], int]:
    """Return the readable records of an export, and the number of the others."""
    outer = _LISTS[signal][0]
    if not isinstance(value, dict) or not all(isinstance(value.get(n, []), list) for n in outer):
        raise BadExportError(f"not an export request: an object with {outer[0]} was expected")
    if value and not any(name in value for name in outer):
        raise BadExportError(f"not an export request: no {outer[0]} in it")
    found: list[Any] = [value]
    for names in _LISTS[signal]:
        found = list(_inside(found, names))
    taken: list[Span] = []
    for record in found:
        # OTLP's JSON leaves empty fields out.
        if isinstance(record, dict) and isinstance(record.get("attributes", []), list | dict):
            known = {"attributes": [], **record}
            made = list(spans({outer[0]: [{_LISTS[signal][1][0]: [{_LISTS[signal][2][0]: [known]}]}]}))
            taken += made
    return taken, len(found) - len(taken)


def _inside(values: list[Any], names: tuple[str, ...]) -> Iterator[Any]:
    for value in values:
        for name in names if isinstance(value, dict) else ():
            if isinstance(value.get(name), list):
                yield from value[name]


_DIALECT: Final = CollectedDialect()


class CallWriter:
    """Writes calls in the order in which they come; not safe for several threads at once."""

    def __init__(self, recorder: Recorder) -> None:
        self._core = recorder._core
        self._conversations = Conversations(recorder)
        self.count = 0

    def count_lost(self, error: Exception) -> None:
        """Count a call that could not be written, also in the trace."""
        self._core.journal.count_lost(f"{type(error).__name__} in a span")

    def add(self, call: Inference) -> None:
        """Write one call: its request, answer and bill.

        Its events have the time of writing; the time of the call's beginning is in the usage's metadata.
        """
        name = self._core.clean_id
        thread = call.agent
        if thread is None and not call.asked.messages:
            thread = vocab.MAIN_THREAD
        exchange = Exchange(
            request=request(call.asked, call.model),
            response=None,
            line=0,
            native_id=name(call.native_id),
            session=name(call.session),
            thread=name(thread),
            turn=name(call.turn),
            dialect=_DIALECT,
            origin=call.origin,
        )
        asked = self._conversations.ask(exchange, _DIALECT)
        self.count += 1
        if call.usage:
            usage = {**call.usage}
            if call.time is not None:
                metadata = usage.get("metadata")
                usage["metadata"] = {
                    **(metadata if isinstance(metadata, dict) else {}),
                    "began_at": call.time,
                }
            if call.model is not None:
                usage.setdefault("model", call.model)
            self._core.record(vocab.USAGE_REPORTED, usage, asked.place)
        if call.error is not None:
            self._core.record(vocab.STEP_FAILED, {"error": call.error}, asked.place)
        answer: dict[str, Any] | None = {"messages": call.answer} if call.answer else None
        self._conversations.answered(asked, answer, cut=False)


HOLD: Final = 6.0
"""Seconds for which a span waits at most."""
SETTLE: Final = 1.0
"""Seconds without news after which a trace with its outermost span counts as whole."""
MAX_HELD: Final = 64 << 20
"""Bytes that wait at most; the trace that has waited longest goes first."""
_TRACES: Final = 4096
"""Traces that are remembered after their spans were handed on."""
_IDS: Final = 20_000
"""Spans of one trace that are remembered."""


class SpanBuffer:
    """Holds spans and hands on what has waited long enough; not safe for several threads at once.

    Args:
        recorder: Where steps are recorded.
        clock: Gives the time in seconds.
    """

    def __init__(self, recorder: Recorder, clock: Callable[[], float] = monotonic) -> None:
        self._steps = CallWriter(recorder)
        recorder._core.journal.patient = True  # what is held was acknowledged, and can wait
        self._guard = WriteGuard(recorder._core.journal)
        self._ready: deque[Inference] = deque()
        """Calls that are to be written next; they wait while the trace cannot be written."""
        self._clock = clock
        self._collected = CollectedCalls()
        self._sorter = Traces(self._collected)
        self._traces: OrderedDict[str, _Trace] = OrderedDict()
        self._alone = 0
        self.bytes = 0
        """Bytes that are held, approximately."""
        self.others = 0
        """The number of spans and log records that are no model calls."""
        self.late = 0
        """The number of those that came twice, or after the call that they belong to was written."""

    @property
    def calls(self) -> int:
        """The number of model calls written."""
        return self._steps.count

    def add(self, span: Span, size: int) -> None:
        """Take a span or a log record; `size`: its bytes, approximately."""
        if span.is_log and not _is_genai(span):
            self.others += 1
            return
        if span.trace is None:
            self._alone += 1
            name = f"\x00{self._alone}"
        else:
            name = span.trace
        trace = self._traces.get(name)
        if trace is None:
            trace = self._traces[name] = _Trace()
        self._traces.move_to_end(name)
        now = self._clock()
        if not trace.add(span, size, now):
            self.late += 1
            return
        self.bytes += size
        while self.bytes > MAX_HELD:
            self._release(self._waiting_longest())
        self._forget()

    def is_full(self) -> bool:
        """Whether nothing more should be taken while the trace cannot be written."""
        return self.bytes > MAX_HELD // 2

    def due(self, *, everything: bool = False) -> None:
        """Hand on what has waited long enough, or `everything`; nothing while the trace cannot be written."""
        if not everything and self._guard.wait():
            return
        now = self._clock()
        for group in list(self._groups()):
            if everything or all(t.is_settled(now) for t in group) or any(t.is_old(now) for t in group):
                self._release(group)
        self._write(everything=everything)

    def _groups(self) -> Iterator[list[_Trace]]:
        """Yield the traces that hold spans; those of one session together, as their order counts."""
        by_session: dict[str, list[_Trace]] = {}
        for trace in self._traces.values():
            if trace.spans and trace.session is None:
                yield [trace]
            elif trace.spans:
                by_session.setdefault(trace.session or "", []).append(trace)
        yield from by_session.values()

    def _waiting_longest(self) -> list[_Trace]:
        return [min((t for t in self._traces.values() if t.spans), key=lambda trace: trace.since)]

    def _release(self, group: list[_Trace]) -> None:
        taken: list[Span] = []
        for trace in group:
            self.bytes -= trace.size
            taken += trace.taken()
        for span in taken:
            deque(self._sorter.add(span, 0), maxlen=0)
        deque(self._sorter.flush(), maxlen=0)
        self._sorter.forget()
        found, self._collected.found = self._collected.found, []
        self.others += max(0, sum(not span.is_log for span in taken) - len(found))
        self._ready += found
        self._write(everything=False)

    def _write(self, *, everything: bool) -> None:
        """Write the calls that are ready, until the trace cannot be written; `everything`: all of them."""
        while self._ready and (everything or not self._guard.wait()):
            call = self._ready.popleft()
            try:
                self._steps.add(call)
            except Exception as error:  # one call must not cost the others
                self._steps.count_lost(error)

    def _forget(self) -> None:
        while len(self._traces) > _TRACES:
            idle = next((name for name, trace in self._traces.items() if not trace.spans), None)
            if idle is None:
                self._release(self._waiting_longest())
            else:
                del self._traces[idle]


class CollectedCalls(Inferences):
    """Collects calls in their order, without making steps of them."""

    def __init__(self) -> None:
        super().__init__(Run("otel", lambda _: None))
        self.found: list[Inference] = []

    def add(self, call: Inference) -> None:
        """Add the next call."""
        self.found.append(call)


class _Trace:
    """The spans that are held of one trace, and what is known of those handed on."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.size = 0
        self.since = 0.0
        """The time at which the first of `spans` came."""
        self.session: str | None = None
        self._news = 0.0
        self._rooted = False
        """Whether its outermost span has come."""
        self._early = False
        """Whether some spans were handed on before the outermost one came."""
        self._ids: set[tuple[str | None, bool]] = set()
        """Ids of spans held or handed on, and of the spans of log records."""
        self._gone: set[str] = set()
        """Spans whose calls were handed on."""
        self._around: set[str] = set()
        """Spans around such a call."""

    def add(self, span: Span, size: int, now: float) -> bool:
        """Hold a span; False if it comes too late or twice."""
        if span.id is not None:
            if span.id in self._gone or (not span.is_log and (span.id, False) in self._ids):
                return False
            if len(self._ids) < _IDS:
                self._ids.add((span.id, span.is_log))
        if not self.spans:
            self.since = now
        self._news = now
        self.spans.append(span)
        self.size += size
        if not span.is_log and not (span.parent or "").strip("0"):
            self._rooted = True
        if self.session is None and not self._early:
            self.session = session_of(span)
        return True

    def is_old(self, now: float) -> bool:
        """Whether a span has waited for `HOLD` seconds."""
        return now - self.since >= HOLD

    def is_settled(self, now: float) -> bool:
        """Whether nothing more of the trace is expected."""
        if not self._rooted or now - self._news < SETTLE:
            return False
        logged = {span.id for span in self.spans if span.is_log}
        spanned = {span.id for span in self.spans if not span.is_log}
        # A call's texts may be in a log record that is still to come, and a log record's call likewise.
        calls = (span for span in self.spans if not span.is_log and is_call(span))
        lacking = any(span.id not in logged and not content(span).asked.messages for span in calls)
        return logged <= spanned and not lacking

    def taken(self) -> list[Span]:
        """Return the spans that were held, and hold them no longer."""
        spans, self.spans, self.size = self.spans, [], 0
        self._early = self._early or not self._rooted
        parents = {span.id: span.parent for span in spans if span.id is not None and not span.is_log}
        for name in [name for name in parents if name in self._around]:
            self._mark(parents[name], parents)
        before = frozenset(self._around)
        made = []
        for span in spans:
            if self._early and not span.is_log and is_agent(span):
                continue
            if self.session is not None and session_of(span) is None:
                span.attributes = {**span.attributes, "gen_ai.conversation.id": self.session}
            if span.is_log or is_call(span):
                self._note(span, parents)
            if span.id in before and not span.is_log:
                span.given = ReadBeside("other", NOTHING, [], None)  # the call inside it was handed on before
            made.append(span)
        return made

    def _note(self, call: Span, parents: dict[str, str | None]) -> None:
        """Remember a call that is handed on, and the spans around it."""
        if len(self._gone) + len(self._around) > _IDS:
            self._gone.clear()
            self._around.clear()
        if call.id is not None:
            self._gone.add(call.id)
            self._mark(parents.get(call.id, call.parent), parents)

    def _mark(self, name: str | None, parents: dict[str, str | None]) -> None:
        while name is not None and name not in self._around:
            self._around.add(name)
            name = parents.get(name)


def _is_genai(log: Span) -> bool:
    name = log.name or string(log.attributes.get("event.name")) or ""
    return name.startswith("gen_ai.")
