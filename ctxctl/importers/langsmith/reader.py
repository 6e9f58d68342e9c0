"""Reads runs as spans: puts creations and patches together, and tells what each llm run was given, answered
and billed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ctxctl.ingest.build import Json
from ctxctl.ingest.lines import Line, Report
from ctxctl.ingest.parts import mapping, string
from ctxctl.ingest.run import Run
from ctxctl.providers.spans import billing, chat_values
from ctxctl.providers.spans.chat_values import NOTHING
from ctxctl.providers.spans.files import records
from ctxctl.providers.spans.inferences import Inferences, moment
from ctxctl.providers.spans.span import ReadBeside, Span
from ctxctl.providers.spans.traces import Traces
from ctxctl.trace.source import Source

NAME: Final = "langsmith"
_MAX_HELD: Final = 16 << 20
_KEPT: Final = ("id", "name", "run_type", "trace_id", "parent_run_id", "dotted_order", "start_time", "error",
                "extra", "inputs", "outputs", "prompt_tokens", "completion_tokens", "prompt_token_details",
                "completion_token_details", "total_tokens", "session_id")  # fmt: skip
_EXPORTED: Final = {
    "prompt_tokens": "input_tokens", "completion_tokens": "output_tokens",
    "prompt_token_details": "input_token_details", "completion_token_details": "output_token_details",
    "total_tokens": "total_tokens",
}  # fmt: skip
"""The counts of an exported run, with LangChain's names for them."""
_SESSIONS: Final = ("session_id", "conversation_id", "thread_id")


class Log:
    """Takes runs, and makes one of a run's creation and its patches."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.calls = Inferences(run)
        self.traces = Traces(self.calls)
        self._held: dict[str, tuple[Json, int, int]] = {}
        """By id, the run, the line on which it begins, and the line of its answer."""
        self._size = 0
        self.seen = 0

    def take(self, value: Any, depth: int = 0) -> None:
        """Take a document, a batch, a list, or the value of a line."""
        if isinstance(value, list):
            for one in value:
                self.take(one, depth + 1)
        elif isinstance(value, dict) and depth < 5:
            batches = [
                value[n]
                for n in ("post", "patch", "runs", "create", "update")
                if isinstance(value.get(n), list)
            ]
            for batch in batches:
                self.take(batch, depth + 1)
            if not batches:
                self._take(value)
                if isinstance(value.get("child_runs"), list):
                    self.take(value["child_runs"], depth + 1)

    def _take(self, value: Json) -> None:
        name = string(value.get("id")) or _id_of_run(value.get("dotted_order"))
        if name is None:
            return
        self.seen += 1
        before, line, answered = self._held.get(name, ({}, self.run.line.number, 0))
        told = {key: value[key] for key in _KEPT if value.get(key) not in (None, {}, "")}
        if before.get("run_type", told.get("run_type", "llm")) != "llm":
            # Only the place of such a run in the tree is needed.
            told.pop("inputs", None)
            told.pop("outputs", None)
        else:
            self._size += len(self.run.line.data)
        if "extra" in before and "extra" in told:
            told["extra"] = _merged(before["extra"], told["extra"])
        if "inputs" in before:
            told.pop("inputs", None)
        answered = self.run.line.number if "outputs" in told else answered
        before.update(told)  # it is ours: patches may be many
        self._held[name] = before, line, answered

    def drain(self, *, at_end: bool = False) -> Iterator[Json]:
        """Make calls of what was taken, once that is much."""
        if not at_end and self._size < _MAX_HELD:
            return
        for name, (value, line, answered) in self._held.items():
            if "run_type" not in value and _is_answer(value.get("outputs")):
                message = "an answer without its run: what it was given is not recorded"
                self.run.problem("no-request", message, Line(line, 0, b""))
            span = _span(name, value)
            span.line, span.answer_line = line, answered
            yield from self.traces.add(span, 0)
        self._held.clear()
        self._size = 0
        yield from self.traces.flush()


def read(source: Source, report: Report) -> Iterator[Json]:
    """The file's events."""
    log = Log(Run(NAME, report))
    yield from records(log, source)
    yield from log.calls.finish(
        f"{log.seen} runs, none of them an llm's" if log.seen else "inputs without their runs"
    )


def _is_answer(outputs: Any) -> bool:
    """Whether outputs are a model's, in a patch whose creation is not in the capture."""
    return isinstance(outputs, dict) and ("generations" in outputs or "choices" in outputs)


def _id_of_run(dotted: Any) -> str | None:
    """The run's id, from its place in the tree (`<time>Z<id>.<time>Z<id>`)."""
    last = dotted.rpartition(".")[2] if isinstance(dotted, str) else ""
    return last.partition("Z")[2] or None


def _above(dotted: Any) -> str | None:
    return _id_of_run(dotted.rpartition(".")[0]) if isinstance(dotted, str) else None


def _merged(before: Any, told: Any) -> Any:
    """What was told before, changed in place to what is told now beside it."""
    if not isinstance(before, dict) or not isinstance(told, dict):
        return told
    for name, value in told.items():
        known = before.get(name)
        if isinstance(known, dict) and isinstance(value, dict):
            known.update(value)
        else:
            before[name] = value
    return before


def _span(name: str, value: Json) -> Span:
    span = Span(string(value.get("name")) or "", {})
    span.id = name
    span.trace = string(value.get("trace_id")) or _id_of_run(str(value.get("dotted_order")).partition(".")[0])
    span.parent = string(value.get("parent_run_id")) or _above(value.get("dotted_order"))
    span.start = moment(value.get("start_time"))
    error = string(value.get("error"))
    span.error = error.partition("\n")[0][:160] if error is not None else None
    metadata, parameters = _extra(value, "metadata"), _extra(value, "invocation_params")
    session = next((s for n in _SESSIONS if (s := string(metadata.get(n))) is not None), None)
    if value.get("run_type") != "llm":
        span.given = ReadBeside("other", NOTHING, [], None, None, session)
        return span
    inputs, outputs = chat_values.opened(value.get("inputs")), chat_values.opened(value.get("outputs"))
    asked, answer = chat_values.request_content(inputs), chat_values.answer_messages(_output(outputs))
    tools = (
        asked.tools
        or chat_values.definitions(parameters.get("tools"))
        or chat_values.definitions(parameters.get("functions"))
    )
    held = outputs if isinstance(outputs, dict) else {}
    model = string(held.get("model")) or next(
        (s for s in (string(parameters.get("model")), string(parameters.get("model_name")),
                     string(metadata.get("ls_model_name"))) if s is not None), None
    )  # fmt: skip
    native_id = string(held.get("id"))
    span.given = ReadBeside(
        "llm", asked._replace(tools=tools), answer, bill(value, held, model), model, session, native_id
    )
    return span


def _extra(value: Json, name: str) -> Json:
    extra = value.get("extra")
    found = extra.get(name) if isinstance(extra, dict) else None
    return found if isinstance(found, dict) else {}


def _output(outputs: Any) -> Any:
    """An answer inside the key that traced functions put it in."""
    if isinstance(outputs, dict) and "choices" not in outputs and "generations" not in outputs:
        inner = outputs.get("output")
        if isinstance(inner, dict) and (
            "role" in inner or "lc" in inner or "choices" in inner or "content" in inner
        ):
            return inner
    return outputs


def bill(value: Json, outputs: Json, model: str | None) -> Json | None:
    """The bill of an llm run, by the first place that tells it."""
    found = billing.of_metadata(outputs.get("usage_metadata"), model) or billing.of_response(outputs, model)
    if found is not None:
        return found
    generations = outputs.get("generations")
    first = generations[0] if isinstance(generations, list) and generations else None
    first = first[0] if isinstance(first, list) and first else first
    message = (
        first.get("message") if isinstance(first, dict) else outputs.get("message") or outputs.get("output")
    )
    if isinstance(message, dict):
        inner = message.get("kwargs")
        fields = inner if isinstance(inner, dict) else message
        told = mapping(fields.get("response_metadata"))
        found = billing.of_metadata(fields.get("usage_metadata"), model)
        for name in ("token_usage", "tokenUsage", "usage"):
            found = found or billing.of_tokens(told.get(name), model)
    output = outputs.get("llm_output")
    for name in ("token_usage", "tokenUsage", "usage"):
        if found is None and isinstance(output, dict):
            found = billing.of_tokens(output.get(name), model)
    if found is None:
        found = billing.of_tokens(outputs.get("usage"), model)
    exported = {name: value.get(key) for key, name in _EXPORTED.items()}
    return found or (billing.of_metadata(exported, model) if exported["input_tokens"] else None)
