"""Reads the calls of a goose provider recording: what goose gave its provider, and the answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from ctxctl.ingest.build import Json, canonical, digest_of
from ctxctl.ingest.conversation import Conversation
from ctxctl.ingest.document import document
from ctxctl.ingest.lines import Report
from ctxctl.ingest.parts import Part, call_title, count, moment, string
from ctxctl.ingest.run import Run
from ctxctl.providers.calls.encodings import unbase64
from ctxctl.providers.usage import usage_record
from ctxctl.trace.source import Source

NAME: Final = "goose-recordings"
"""As `--read-as` takes it."""


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
    for call in sorted(calls, key=_sort_key):
        threads.add(call)
        yield from run.drain()
    yield from run.finish()


def _sort_key(call: _Recorded) -> tuple[int, int]:
    """A sort key: the time of the answer, then the length of the history, as a replayed recording keeps its
    first times."""
    messages = _messages(call.input)
    answer = call.output.get("message")
    created = count(answer.get("created")) if isinstance(answer, dict) else None
    last = max((count(m.get("created")) or 0 for m in messages), default=0)
    return (created or last, len(messages))


def _messages(asked: Json) -> list[Json]:
    """The messages that the model gets; goose keeps others for people only."""
    found = asked.get("messages")
    kept = [m for m in found if isinstance(m, dict)] if isinstance(found, list) else []
    return [m for m in kept if not _hidden(m)]


def _hidden(message: Json) -> bool:
    marks = message.get("metadata")
    return isinstance(marks, dict) and marks.get("agentVisible") is False


class _Threads:
    """Keeps a thread for each conversation; one that begins with another prompt is another one."""

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


_KINDS: Final = {"user": "user_message", "assistant": "assistant_message", "system": "developer_instruction"}
_FOR_PEOPLE: Final = frozenset(
    {"toolConfirmationRequest", "frontendToolRequest", "conversationCompacted", "systemNotification"}
)


def tool_parts(tools: Any) -> list[Part]:
    """The tools of a call, as goose gave them to its provider."""
    made: list[Part] = []
    for tool in tools if isinstance(tools, list) else []:
        if isinstance(tool, dict):
            name = string(tool.get("name"))
            key = f"tool/{name}" if name is not None else None
            made.append(Part("tool_definition", canonical(tool), "system", key=key, title=name))
    return made


def parts_of(message: Json, position: int) -> list[Part]:
    """The parts of one message, in order; ids are those of its tool calls, else of the message."""
    role = "assistant" if message.get("role") == "assistant" else "user"
    content = message.get("content")
    native = string(message.get("id"))
    made: list[Part] = []
    for at, block in enumerate(content if isinstance(content, list) else []):
        if isinstance(block, dict) and str(block.get("type")) not in _FOR_PEOPLE:
            key = f"{native}/{at}" if native is not None else None
            made += _block(block, role, key)
    return made


def _block(block: Json, role: str, key: str | None) -> list[Part]:
    kind = block.get("type")
    if kind == "text":
        text = block.get("text")
        return [Part(_KINDS[role], text, role, key=key)] if isinstance(text, str) else []
    if kind == "toolRequest":
        return [_call(block)]
    if kind == "toolResponse":
        return _result(block)
    if kind == "image":
        return [_image(block, role, key)]
    if kind == "thinking":
        text = block.get("thinking")
        return [Part("reasoning", text if isinstance(text, str) else None, role, key=key)]
    if kind == "reasoning":
        text = block.get("text")
        return [Part("reasoning", text if isinstance(text, str) else None, role, key=key)]
    if kind == "redactedThinking":
        sealed = string(block.get("data")) or ""
        version = digest_of(sealed)[:16]
        return [Part("reasoning", None, role, key=key, title="sealed reasoning", version=version)]
    return [Part("custom", canonical(block), role, key=key, title=string(kind))]


def _call(block: Json) -> Part:
    identity = string(block.get("id"))
    call = block.get("toolCall")
    value = call.get("value") if isinstance(call, dict) else None
    if not isinstance(value, dict):
        failed = "a call that failed to parse"
        return Part("tool_call", canonical(call), "assistant", key=identity, title=failed)
    name = string(value.get("name")) or "?"
    arguments = value.get("arguments")
    title = call_title(name, arguments)
    return Part("tool_call", f"{name} {canonical(arguments)}", "assistant", key=identity, title=title)


def _result(block: Json) -> list[Part]:
    """A tool's answer; goose leaves out what is meant for people only."""
    identity = string(block.get("id"))
    result = block.get("toolResult")
    value = result.get("value") if isinstance(result, dict) else None
    if isinstance(value, dict):
        value = value.get("content")
    key = f"{identity}/result" if identity is not None else None
    if not isinstance(value, list):
        error = result.get("error") if isinstance(result, dict) else result
        text = error if isinstance(error, str) else canonical(error)
        return [Part("tool_result", text, "tool", key=key, native={"is_error": True})]
    texts: list[str] = []
    made: list[Part] = []
    for piece in value:
        if not isinstance(piece, dict) or not _for_model(piece):
            continue
        if isinstance(piece.get("text"), str):
            texts.append(piece["text"])
        elif piece.get("type") == "image":
            made.append(_image(piece, "tool", f"{key}/image-{len(made) + 1}" if key else None))
        else:
            texts.append(canonical(piece))
    return [Part("tool_result", "\n".join(texts), "tool", key=key), *made]


def _for_model(piece: Json) -> bool:
    marks = piece.get("annotations")
    audience = marks.get("audience") if isinstance(marks, dict) else None
    return not isinstance(audience, list) or "assistant" in audience


def _image(block: Json, role: str, key: str | None) -> Part:
    data = string(block.get("data")) or ""
    size = len(unbase64(data) or b"")
    kind = string(block.get("mimeType")) or "image"
    version = digest_of(data)[:16]
    return Part("image", None, role, key=key, version=version, title=kind, mime_type=kind, byte_size=size)
