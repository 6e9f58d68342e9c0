"""Reads OpenHands' logs of completions: one file holds one call; a directory of them is a session."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from ctxctl.errors import UnreadableError
from ctxctl.importers.openhands_completions import logs_of
from ctxctl.ingest.build import Json, canonical
from ctxctl.ingest.document import document
from ctxctl.ingest.folder import Folder
from ctxctl.ingest.lines import Report
from ctxctl.ingest.run import Run
from ctxctl.providers.calls.http import Call, Calls
from ctxctl.trace.source import Source

NAME: Final = "openhands-completions"
"""As `--read-as` takes it."""
_TAIL: Final = 4096


class _Log(NamedTuple):
    time: float
    name: str


def read(source: Source, report: Report) -> Iterator[Json]:
    """Read the one call of a file."""
    run = Run(NAME, report)
    calls = Calls(run)
    found = document(source, run.report)
    if isinstance(found, dict):
        yield from _take(found, calls)
    else:
        run.problem("not-a-record", "not a JSON object; skipped")
    yield from calls.finish()


def read_folder(folder: Folder, report: Report) -> Iterator[Json]:
    """Read the calls of a directory, in the order of the logs' times; one file is held at a time."""
    run = Run(NAME, report)
    calls = Calls(run)
    logs = sorted(_Log(_moment(folder, name), name) for name in logs_of(folder))
    for log in logs:
        run.make.file = log.name
        try:
            with folder.open(log.name) as source:
                found = document(source, run.report)
        except UnreadableError as error:
            run.problem(error.slug, str(error))
            continue
        if isinstance(found, dict):
            yield from _take(found, calls)
        else:
            run.problem("not-a-record", "not a JSON object; skipped")
    yield from calls.finish()


def _moment(folder: Folder, name: str) -> float:
    """When a log was written: its own field is at its end, so the number in its name goes before it."""
    stem = name.rpartition("/")[2].removesuffix(".json")
    found = stem.rpartition("-")[2]
    try:
        value = float(found)
    except ValueError:
        value = 0.0
    if value > 1e9:
        return value
    try:
        with folder.open(name) as source:
            tail = source.read(max(0, source.size - _TAIL), _TAIL)
    except UnreadableError:
        return 0.0
    _, sep, after = tail.rpartition(b'"timestamp":')
    digits = after.lstrip()[:24].split(b",")[0].split(b"}")[0].strip() if sep else b""
    try:
        return float(digits)
    except ValueError:
        return 0.0


def _take(log: Json, calls: Calls) -> Iterator[Json]:
    calls.take(_call(log))
    yield from calls.run.drain()


def _call(log: Json) -> Call:
    kwargs = log.get("kwargs")
    options: Json = kwargs if isinstance(kwargs, dict) else {}
    body: Json = {}
    for key in ("messages", "input", "instructions"):
        if isinstance(log.get(key), list | str):
            body[key] = log[key]
    model = _model(log, options)
    if model is not None:
        body["model"] = model
    tools = _tools(log, options)
    if tools:
        body["tools"] = tools
    return Call(
        url="/v1/responses" if "messages" not in body else "/v1/chat/completions",
        request=body,
        response=_answer(log),
        time=_sent(log),
        error=_error(log),
        limit=log.get("context_window"),
    )


def _sent(log: Json) -> Any:
    """When the request was sent: the log is written once its answer is there."""
    written, latency = log.get("timestamp"), log.get("latency_sec")
    if isinstance(written, int | float) and isinstance(latency, int | float) and 0 <= latency < written:
        return written - latency
    return written


def _tools(log: Json, options: Json) -> Any:
    """The tools that were sent, by the call's own arguments; a log without these has the agent's tools.

    Where a model has no function calling, its tools are in the prompt and none is sent.
    """
    if "tools" in options:
        return options["tools"]
    if "raw_messages" in log or "fncall_messages" in log:
        return None
    return log.get("tools")


def _answer(log: Json) -> Any:
    """The model's answer, as it was before its text was turned into function calls.

    The bill is with the answer that was turned.
    """
    raw, answer = log.get("raw_response"), log.get("response")
    if not isinstance(raw, dict):
        return answer
    usage = answer.get("usage") if isinstance(answer, dict) else None
    return {**raw, "usage": usage} if "usage" not in raw and isinstance(usage, dict) else raw


def _model(log: Json, options: Json) -> str | None:
    args = log.get("args")
    first = args[0] if isinstance(args, list) and args else None
    answer = log.get("response")
    answered = answer.get("model") if isinstance(answer, dict) else None
    for value in (options.get("model"), first, log.get("model"), answered):
        if isinstance(value, str) and value:
            return value
    return None


def _error(log: Json) -> str | None:
    error = log.get("error")
    if isinstance(error, str) and error:
        return error.partition("\n")[0]
    if isinstance(error, dict):
        return canonical(error)[:200]
    return None if isinstance(log.get("response"), dict) else "no response recorded"
