"""What a pi extension recorded: the agent's events, and each body before it went to the provider."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from ctxctl.formats.build import Json
from ctxctl.formats.calls.http import Call, Calls
from ctxctl.formats.kit.parts import string
from ctxctl.formats.kit.run import Run
from ctxctl.formats.lines import Report, values
from ctxctl.formats.pi_recordings.answers import answer_of
from ctxctl.trace.source import Source

NAME: Final = "pi-recordings"
"""As `--format` takes it."""
EVENTS: Final = frozenset(
    {
        "session_start", "resources_discover", "input", "before_agent_start", "agent_start", "agent_end",
        "turn_start", "turn_end", "message_start", "message_update", "message_end", "context",
        "before_provider_request", "after_provider_response", "tool_call", "tool_result",
        "tool_execution_start", "tool_execution_update", "tool_execution_end", "session_shutdown",
        "session_before_compact", "session_compact", "model_select",
    }
)  # fmt: skip


class Record(NamedTuple):
    """One line: `[TIME, EVENT, PAYLOAD, CONTEXT]`, or the same after a number of its own."""

    time: Any
    event: str
    payload: Json
    context: Json


def record_of(value: Any) -> Record | None:
    """A line's record; None if it is none."""
    if not isinstance(value, list):
        return None
    numbers = 0
    while numbers < min(len(value), 2) and isinstance(value[numbers], int | float):
        numbers += 1
    if not numbers or len(value) < numbers + 2 or not isinstance(value[numbers], str):
        return None
    payload = value[numbers + 1]
    if not isinstance(payload, dict):
        return None
    context = value[numbers + 2] if len(value) > numbers + 2 else None
    return Record(value[numbers - 1], value[numbers], payload, context if isinstance(context, dict) else {})


def read(source: Source, report: Report) -> Iterator[Json]:
    """The recording's events; a request is told once its answer came, or the next request, or the end."""
    run = Run(NAME, report)
    calls = Calls(run)
    session = _Session(calls)
    for line, value in values(source, run.report):
        run.line = line
        record = record_of(value)
        if record is None:
            run.problem("not-a-record", "not a recorded event; skipped")
            continue
        session.take(record, line.number)
        yield from run.drain()
    session.flush()
    yield from calls.finish()


class _Session:
    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._waiting: Call | None = None
        self._prompts = 0
        self._id: str | None = None

    def take(self, record: Record, line: int) -> None:
        """The next event."""
        payload = record.payload
        if record.event == "before_agent_start":
            self._prompts += 1
        elif record.event == "before_provider_request":
            self.flush()
            self._waiting = self._request(record, line)
        elif self._waiting is None:
            return
        elif record.event == "after_provider_response":
            self._waiting = self._waiting._replace(
                status=payload.get("status"), headers=payload.get("headers"), error=None
            )
        elif record.event == "message_end":
            message = payload.get("message")
            if isinstance(message, dict) and message.get("role") == "assistant":
                error = string(message.get("errorMessage")) if message.get("stopReason") == "error" else None
                self._waiting = self._waiting._replace(
                    response=answer_of(message), error=error, answer_line=line
                )
                self.flush()

    def flush(self) -> None:
        """Tell the request that waits."""
        if self._waiting is not None:
            self._calls.take(self._waiting)
            self._waiting = None

    def _request(self, record: Record, line: int) -> Call:
        model = record.context.get("model")
        base = string(model.get("baseUrl")) if isinstance(model, dict) else None
        turn = f"turn-{self._prompts}" if self._prompts else None
        return Call(
            url=base,
            request=_with_model(record.payload.get("payload"), model),
            line=line,
            time=record.time,
            turn=turn,
            error="no response recorded",
            limit=model.get("contextWindow") if isinstance(model, dict) else None,
        )


def _with_model(body: Any, model: Any) -> Any:
    """A body of Gemini's names its model in the address only, which is not recorded."""
    named = string(model.get("id")) if isinstance(model, dict) else None
    if isinstance(body, dict) and "model" not in body and named is not None:
        return {**body, "model": named}
    return body
