"""The calls of a goose provider recording: what goose gave its provider, and the answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from ctxctl.formats.build import Json
from ctxctl.formats.goose_recordings.messages import parts_of, tool_parts
from ctxctl.formats.kit.conversation import Conversation
from ctxctl.formats.kit.document import document
from ctxctl.formats.kit.parts import Part, count, moment, string
from ctxctl.formats.kit.run import Run
from ctxctl.formats.kit.usage import usage_record
from ctxctl.formats.lines import Report
from ctxctl.trace.source import Source

NAME: Final = "goose-recordings"
"""As `--format` takes it."""


class _Recorded(NamedTuple):
    key: str
    input: Json
    output: Json


def read(source: Source, report: Report) -> Iterator[Json]:
    """The recording's events; calls in the order of their times, as the file has none."""
    run = Run(NAME, report)
    found = document(source, run.report)
    calls: list[_Recorded] = []
    for key, value in found.items() if isinstance(found, dict) else ():
        asked = value.get("input") if isinstance(value, dict) else None
        if not isinstance(asked, dict):
            run.problem("not-a-record", "a recording without an input; skipped")
            continue
        given = value.get("output")
        calls.append(_Recorded(key, asked, given if isinstance(given, dict) else {}))
    threads = _Threads(run)
    for call in sorted(calls, key=_order):
        threads.add(call)
        yield from run.drain()
    yield from run.finish()


def _order(call: _Recorded) -> tuple[int, int]:
    """Length of the history, after the time of the answer: a replayed recording keeps its first times."""
    messages = _messages(call.input)
    answer = call.output.get("message")
    created = count(answer.get("created")) if isinstance(answer, dict) else None
    last = max((count(m.get("created")) or 0 for m in messages), default=0)
    return (created or last, len(messages))


def _messages(asked: Json) -> list[Json]:
    """The messages that the model gets: goose keeps some for people only."""
    found = asked.get("messages")
    kept = [m for m in found if isinstance(m, dict)] if isinstance(found, list) else []
    return [m for m in kept if not _hidden(m)]


def _hidden(message: Json) -> bool:
    marks = message.get("metadata")
    return isinstance(marks, dict) and marks.get("agentVisible") is False


class _Threads:
    """A thread for each conversation: those that begin with another prompt are others."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._known: dict[str, Conversation] = {}

    def add(self, call: _Recorded) -> None:
        messages = _messages(call.input)
        history = [part for at, message in enumerate(messages) for part in parts_of(message, at)]
        titles = {part.item: part.title for part in history if part.kind == "tool_call"}
        for part in history:
            if part.kind == "tool_result":
                part.title = titles.get(part.item.removesuffix("/result"), part.title)
        conversation = self._thread(history)
        window = tool_parts(call.input.get("tools"))
        system = string(call.input.get("system"))
        if system is not None:
            window.append(Part("system_prompt", system, "system", key="system"))
        answer = call.output.get("message")
        if isinstance(answer, dict):
            self._run.make.at(moment(answer.get("created")))
        conversation.turn = f"turn-{sum(map(_is_prompt, messages)) or 1}"
        conversation.replace(window + history)
        usage = call.output.get("usage")
        billed: Json = usage if isinstance(usage, dict) else {}
        model = string(billed.get("model"))
        conversation.request(call.key[:16], model=model, native_id=call.key)
        self._bill(conversation, billed, model)
        if isinstance(answer, dict):
            conversation.append(*parts_of(answer, len(messages)))

    def _thread(self, history: list[Part]) -> Conversation:
        first = history[0].mark if history else ""
        if first not in self._known:
            name = f"conversation-{len(self._known) + 1}" if self._known else None
            self._known[first] = self._run.thread(name)
        return self._known[first]

    def _bill(self, conversation: Conversation, billed: Json, model: str | None) -> None:
        counts = billed.get("usage")
        if isinstance(counts, dict):
            conversation.usage(
                usage_record(
                    input_tokens=counts.get("input_tokens"),
                    output_tokens=counts.get("output_tokens"),
                    model=model,
                    native=counts,
                )
            )


def _is_prompt(message: Json) -> bool:
    content = message.get("content")
    kinds = [b.get("type") for b in content if isinstance(b, dict)] if isinstance(content, list) else []
    return message.get("role") == "user" and any(kind in ("text", "image") for kind in kinds)
