"""Reads SWE-agent's log of requests and responses, on alternate lines without an id."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ctxctl.ingest.build import Json
from ctxctl.ingest.lines import Report
from ctxctl.ingest.parts import string
from ctxctl.ingest.run import Run
from ctxctl.providers.calls.http import Call, Calls
from ctxctl.trace.source import Source

NAME: Final = "swe-agent-calls"
"""As `--read-as` takes it."""
_NOT_BODY: Final = frozenset({"api_key", "api_version", "fallbacks", "n", "api_base"})


def read(source: Source, report: Report) -> Iterator[Json]:
    """The log's events; a response answers the request before it."""
    run = Run(NAME, report)
    calls = Calls(run)
    waiting: Call | None = None
    for record in run.records(source):
        kind = record.get("type")
        if kind == "request":
            if waiting is not None:
                calls.take(waiting._replace(error="no response recorded"))
            waiting = _request(record, run)
        elif kind in ("response", "error"):
            if waiting is None:
                run.problem("lone-response", "a response without a request before it; skipped")
            else:
                calls.take(_answered(waiting, record)._replace(answer_line=run.line.number))
            waiting = None
        else:
            run.problem("unknown-record", "neither a request nor a response; skipped")
        yield from run.drain()
    if waiting is not None:
        calls.take(waiting._replace(error="no response recorded"))
    yield from calls.finish()


def _request(record: Json, run: Run) -> Call:
    sent = record.get("request_params")
    if sent is None and isinstance(record.get("messages"), list):
        # The first shape, of November 2025: the parameters stand in the line itself, without the tools.
        sent = {key: value for key, value in record.items() if key not in ("timestamp", "type")}
    body: Any = None
    if isinstance(sent, dict):
        body = {key: value for key, value in sent.items() if key not in _NOT_BODY and value is not None}
    return Call(
        url="/v1/chat/completions", request=body, line=run.line.number, time=string(record.get("timestamp")),
        whole=False,  # the same tools stand in every record, whatever was sent of them
    )  # fmt: skip


def _answered(call: Call, record: Json) -> Call:
    answer = record.get("response")
    if isinstance(answer, dict):
        return call._replace(response=answer)
    outputs = record.get("outputs")
    if answer is None and isinstance(outputs, list) and outputs:
        return call._replace(response=_response(record, outputs))
    error = string(record.get("error")) or string(record.get("exception")) or "no response recorded"
    return call._replace(error=error.partition("\n")[0])


def _response(record: Json, outputs: list[Any]) -> Json:
    """A response of the first shape, which holds what SWE-agent took out of the provider's."""
    choices: list[Json] = []
    for index, one in enumerate(outputs):
        if isinstance(one, dict):
            told = {key: value for key, value in one.items() if key != "message"}
            message = {"role": "assistant", "content": one.get("message"), **told}
            choices.append({"index": index, "message": message})
    told = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens", "cost": "cost"}
    usage = {name: record[key] for name, key in told.items() if record.get(key) is not None}
    return {"object": "chat.completion", "model": record.get("model"), "choices": choices, "usage": usage}
