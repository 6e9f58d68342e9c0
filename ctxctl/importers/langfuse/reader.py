"""Reads observations as spans: what each generation was given, answered and billed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ctxctl.ingest.build import Json
from ctxctl.ingest.lines import Report
from ctxctl.ingest.parts import mapping, string
from ctxctl.ingest.run import Run
from ctxctl.providers.spans import billing, chat_values, shapes, traces
from ctxctl.providers.spans.chat_values import NOTHING, ChatContent
from ctxctl.providers.spans.content import content, definitions
from ctxctl.providers.spans.files import records
from ctxctl.providers.spans.inferences import Inferences, moment
from ctxctl.providers.spans.span import ReadBeside, Span
from ctxctl.providers.spans.traces import Traces
from ctxctl.trace.source import Source

NAME: Final = "langfuse"
_RENDERED: Final = "_rendered"
_KINDS: Final = {"GENERATION": "llm", "AGENT": "agent"}
_EVENT: Final = "event"
"""The kind of a generation that tells of an event of another generation's call (`beeai`)."""
_MODELS: Final = (
    "model", "providedModelName", "provided_model_name", "modelName", "internalModelId", "internal_model_id",
)  # fmt: skip
"""Traces and observations of the API, lists of its second version, exports of the tables."""
_TIMES: Final = ("startTime", "start_time", "timestamp", "createdAt")


class Log:
    """Takes traces and observations, and puts together what was said of one at different times."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.calls = Inferences(run)
        self.traces = Traces(self.calls)
        self._sessions: dict[str, str] = {}
        """The session of each trace."""
        self._held: dict[str, tuple[Json, int]] = {}
        """The observations by id, with the lines that they came from."""
        self.seen = 0
        self._size = 0

    def take(self, value: Any, depth: int = 0) -> None:
        """Take a document, a list, or the value of a line."""
        if isinstance(value, list):
            for one in value:
                self.take(one, depth)
            return
        if not isinstance(value, dict) or depth > 4:
            return
        trace = value.get("trace")
        for holder in (trace, value):
            if isinstance(holder, dict):
                self._session(holder)
        held = [
            v
            for v in (value.get("observations"), value.get("data"), value.get("batch"))
            if isinstance(v, list)
        ]
        if isinstance(trace, dict) and isinstance(trace.get("observations"), list):
            held.append([one for one in trace["observations"] if isinstance(one, dict) and "type" in one])
        if held:
            for one in held[:1] if held[0] else held:
                self.take(one, depth + 1)
        elif isinstance(value.get("body"), dict):
            self._event(value)
        elif "type" in value or "traceId" in value or "trace_id" in value:
            self._observation(value)
        else:
            for name, one in value.items():
                if isinstance(one, dict) and ("input" in one or "output" in one):
                    self._rendered(name, one)

    def _session(self, trace: Json) -> None:
        session, name = string(trace.get("sessionId")), string(trace.get("id"))
        if session is not None and name is not None:
            self._sessions[name] = session
        traced = string(trace.get("traceId"))
        if session is not None and traced is not None:
            self._sessions[traced] = session

    def _event(self, value: Json) -> None:
        """Take an event of the ingestion API."""
        body, kind = value["body"], str(value.get("type"))
        if kind.startswith("trace-"):
            self._session(body)
        else:
            named = {"generation": "GENERATION", "span": "SPAN"}.get(kind.partition("-")[0])
            self._observation({**body, "type": body.get("type") or named})

    def _observation(self, value: Json) -> None:
        self.seen += 1
        name = string(value.get("id")) or f"#{self.seen}"
        before, line = self._held.get(name, ({}, self.run.line.number))
        told = {key: inner for key, inner in value.items() if inner is not None}
        before.update(told)  # it is ours: what is said of one observation may be much
        self._held[name] = before, line
        self._size += len(self.run.line.data)

    def drain(self, *, at_end: bool = False) -> Iterator[Json]:
        """Make calls of what was taken, once that is much."""
        if not at_end and self._size < 16 << 20:
            return
        inner: dict[str, list[str]] = {}
        for name, (value, _) in self._held.items():
            parent = string(value.get("parentObservationId"))
            if parent is not None and _kind(value) == "llm":
                inner.setdefault(parent, []).append(name)
        for name, (value, line) in self._held.items():
            outer, _ = self._held.get(str(value.get("parentObservationId")), ({}, 0))
            alone = len(inner.get(str(value.get("parentObservationId")), ())) == 1
            around = outer if alone and _kind(outer) == "llm" else {}
            span = self._span(name, value, around)
            span.line = line
            yield from self.traces.add(span, 0)
        self._held.clear()
        self._size = 0
        yield from self.traces.flush()

    def _span(self, name: str, value: Json, around: Json) -> Span:
        kind = _kind(value)
        span = Span(string(value.get("name")) or "", {})
        span.id = name
        span.trace = string(value.get("traceId")) or string(value.get("trace_id"))
        span.parent = string(value.get("parentObservationId")) or string(value.get("parent_observation_id"))
        span.start = next((t for n in _TIMES if (t := moment(value.get(n))) is not None), None)
        if value.get("level") == "ERROR":
            span.error = (string(value.get("statusMessage")) or "error").partition("\n")[0][:160]
        if kind == "agent":
            span.attributes = {"agent_name": span.name}
        elif kind == _EVENT:
            span.attributes = _attributes(value)
        asked, usage, model = NOTHING, None, None
        answer: list[Json] = []
        if kind == "llm":
            model = next((s for name in _MODELS if (s := string(value.get(name))) is not None), None)
            usage = bill(value, model)
            asked, answer = spoken_content(value, around)
        session = string(value.get("sessionId")) or self._sessions.get(span.trace or "")
        span.given = ReadBeside(kind, asked, answer, usage, model, session or _session_of(value))
        if value.get(_RENDERED) is True:
            span.given = span.given._replace(thread=name)
        return span

    def _rendered(self, name: str, value: Json) -> None:
        """Read messages as Langfuse renders them, without kinds, times and bills."""
        sides: Json = {"id": name, "type": "GENERATION", _RENDERED: True}
        for side in ("input", "output"):
            held = value.get(side)
            if isinstance(held, dict) and isinstance(held.get("data"), list):
                sides[side] = held["data"]
        output = sides.get("output", [])
        said = output[0].get("role") if len(output) == 1 and isinstance(output[0], dict) else None
        # The output of an agent is more than one message of a model.
        if "input" in sides and (not output or said in ("assistant", "model", None)):
            self._observation(sides)


def read(source: Source, report: Report) -> Iterator[Json]:
    """The file's events."""
    log = Log(Run(NAME, report))
    yield from records(log, source)
    log.calls.unpaired(log.traces.unpaired)
    yield from log.calls.finish(f"{log.seen} observations, none of them a generation that shows its input")


def _kind(value: Json) -> str:
    kind = _KINDS.get(str(value.get("type")).upper(), "other")
    if kind == "llm" and value.get("input") is None and traces.is_event(value.get("name"), {}):
        return _EVENT
    return kind


def _attributes(value: Json) -> Json:
    """The attributes of the span that an observation was made of."""
    metadata = chat_values.opened(value.get("metadata"))
    attributes = chat_values.opened(metadata.get("attributes")) if isinstance(metadata, dict) else None
    return attributes if isinstance(attributes, dict) else {}


_STATED: Final = ("totalCost", "calculatedTotalCost", "costDetails", "cost_details")
"""The cost in US dollars, as Langfuse priced it by its own table or was told."""


def bill(value: Json, model: str | None) -> Json | None:
    """The bill of a generation: by its details, else by what older exports keep of them."""
    stated = next((value[name] for name in _STATED if value.get(name)), None)
    for name in ("usageDetails", "usage_details", "usage"):
        found = billing.of_details(value.get(name), model, stated)
        if found is not None:
            return found
    sums = {"input": value.get("inputUsage"), "output": value.get("outputUsage")}
    return billing.of_details(sums, model, stated) or billing.of_response(
        chat_values.opened(value.get("output")), model
    )


def spoken_content(value: Json, around: Json) -> tuple[ChatContent, list[Json]]:
    """The request and the answer of a generation.

    `around` is the generation around it, if that is the same call, which may hold more than prose.
    """
    metadata = mapping(chat_values.opened(value.get("metadata")))
    attributes = _attributes(value)
    given, made = value.get("input"), value.get("output")
    asked, answer = chat_values.request_content(given), chat_values.answer_messages(made)
    if not isinstance(chat_values.opened(given), dict | list) and isinstance(
        chat_values.opened(around.get("input")), dict | list
    ):
        asked, answer = (
            chat_values.request_content(around["input"]),
            chat_values.answer_messages(around.get("output")) or answer,
        )
    kept = content(_spanned(attributes))
    if not asked.messages or any(shapes.JSON in one for one in asked.messages):
        asked = kept.asked if kept.asked.messages else asked
    tools = (
        asked.tools
        or kept.asked.tools
        or definitions(attributes)
        or chat_values.definitions(metadata.get("tools"))
    )
    tools = tools or chat_values.definitions(value.get("toolDefinitions"))
    if isinstance(metadata.get("invocation_params"), dict):
        tools = tools or chat_values.definitions(metadata["invocation_params"].get("tools"))
    echo = chat_values.echoed_request(made)
    system = asked.system or kept.asked.system
    if not system and not any(one.get("role") in ("system", "developer") for one in asked.messages):
        system = echo.system
    return ChatContent(tools or echo.tools, system, asked.messages), answer or kept.answer


def _spanned(attributes: Json) -> Span:
    return Span("", attributes)


def _session_of(value: Json) -> str | None:
    attributes = _attributes(value)
    return string(attributes.get("session.id")) or string(attributes.get("langfuse.session.id"))
