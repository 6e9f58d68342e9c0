"""Streamed responses: server-sent events put together to the body that an unstreamed call gives.

In streams of the Responses API the last event has the whole answer; a stream that was cut has its items.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import orjson

from ctxctl.ingest.build import Json
from ctxctl.ingest.parts import listed, mapping, string
from ctxctl.providers.dialects.base import Dialect

_LINE_END: Final = re.compile(r"\r\n|\n|\r")
_MAX_INDEX: Final = 10_000
_GEMINI: Final = frozenset({"candidates", "usageMetadata", "usage_metadata"})


def events(text: str) -> Iterator[Json]:
    """The JSON objects that a stream's events carry; what is no JSON (`[DONE]`, a torn end) is left out."""
    data: list[str] = []
    for line in _LINE_END.split(text) if "\r" in text else text.split("\n"):
        if line.startswith("data:"):
            data.append(line[5:])
        elif not line and data:
            yield from _loaded(data)
            data = []
    if data:
        yield from _loaded(data)


def _loaded(data: list[str]) -> Iterable[Json]:
    if len(data) > 1:
        return _of_lines(data)
    try:
        value = orjson.loads(data[0])
    except orjson.JSONDecodeError:
        return ()
    return (value,) if isinstance(value, dict) else ()


def _of_lines(data: list[str]) -> Iterator[Json]:
    # Several lines are one value; captures that lost the blank lines have one value a line.
    for whole in (["\n".join(data)], data):
        found = []
        for one in whole:
            try:
                value = orjson.loads(one)
            except orjson.JSONDecodeError:
                continue
            if isinstance(value, dict):
                found.append(value)
        if found:
            yield from found
            return


def streamed_response(text: str, dialect: Dialect | str | None = None) -> Json | None:
    """The response body that a stream amounts to; None if it carries nothing.

    A stream that was cut gives what had come; one that failed has its `error`.  The last totals win.
    """
    name = dialect.name if isinstance(dialect, Dialect) else dialect
    found = list(events(text))
    if not found:
        return None
    name = name or dialect_of(found[0])
    if name == "anthropic":
        return _anthropic(found)
    if name == "openai-responses":
        return of_items(found)
    if name == "gemini":
        return _gemini(found)
    return _chat(found) if name == "openai-chat" else None


def dialect_of(event: Json) -> str | None:
    """The name of the dialect that an event of a stream is in."""
    kind = event.get("type")
    if isinstance(kind, str):
        if kind.startswith("response."):
            return "openai-responses"
        if kind.startswith(("message_", "content_block_")) or kind in ("ping", "error"):
            return "anthropic"
    if "choices" in event:
        return "openai-chat"
    return "gemini" if event.keys() & _GEMINI else None


# -- Anthropic --------------------------------------------------------------------------------------------

_DELTAS: Final = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature",
                  "compaction_delta": "content"}  # fmt: skip


def _anthropic(found: list[Json]) -> Json | None:
    """The message; it is put together in what its own events hold, which nobody else has."""
    body: Json = {}
    blocks: dict[int, Json] = {}
    texts: dict[tuple[int, str], list[str]] = {}
    for event in found:
        kind = event.get("type")
        at = event.get("index")
        at = at if isinstance(at, int) else 0
        if kind == "message_start" and isinstance(event.get("message"), dict):
            body = dict(event["message"])
        elif kind == "content_block_start" and isinstance(event.get("content_block"), dict):
            blocks[at] = dict(event["content_block"])
        elif kind == "content_block_delta" and isinstance(event.get("delta"), dict):
            _delta(blocks.setdefault(at, {}), texts, at, event["delta"])
        elif kind == "message_delta":
            delta = event.get("delta")
            body.update(delta if isinstance(delta, dict) else {})
            body["usage"] = _later(body.get("usage"), event.get("usage"))
            if event.get("context_management") is not None:
                body["context_management"] = event["context_management"]
        elif kind == "error":
            body["error"] = event.get("error") or True
    for (at, field), pieces in texts.items():
        block = blocks[at]
        text = "".join(pieces)
        if field == "input":
            block["input"] = _input(text, block.get("input"))
        else:
            start = block.get(field)
            block[field] = (start if isinstance(start, str) else "") + text
    if not body and not blocks:
        return None
    body["content"] = [blocks[at] for at in sorted(blocks)]
    return body


def _delta(block: Json, texts: dict[tuple[int, str], list[str]], at: int, delta: Json) -> None:
    kind = delta.get("type")
    if kind == "input_json_delta":
        texts.setdefault((at, "input"), []).append(str(delta.get("partial_json") or ""))
    elif kind == "citations_delta":
        if not isinstance(block.get("citations"), list):
            block["citations"] = []
        block["citations"].append(delta.get("citation"))
    elif isinstance(kind, str) and kind in _DELTAS:
        field = _DELTAS[kind]
        value = delta.get(field)
        if isinstance(value, str):
            texts.setdefault((at, field), []).append(value)


def _input(text: str, start: Any) -> Any:
    if not text:
        return start if start is not None else {}
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


_PROMPT: Final = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def _later(before: Any, after: Any) -> Json:
    """Two reports of usage of one stream, the first one brought up to the second: the later total wins.

    Of the prompt it says nothing by zeros alone; where it has a count of it, its zeros are meant as well
    (what the stream began with was read by a compaction, which is billed apart).
    """
    merged: Json = before if isinstance(before, dict) else {}
    told = after if isinstance(after, dict) else {}
    whole = any(told.get(name) for name in _PROMPT)
    for name, value in told.items():
        if value is not None and (value or whole or name == "output_tokens" or name not in merged):
            merged[name] = value
    return merged


# -- Chat Completions -------------------------------------------------------------------------------------


class _Message:
    """A message of Chat Completions that comes in pieces."""

    def __init__(self) -> None:
        self.texts: dict[str, list[str]] = {}
        self.sizes: dict[str, int] = {}
        self.other: Json = {}
        self.calls: dict[int, Json] = {}
        self.arguments: dict[int, list[str]] = {}
        self.finish: Any = None

    def take(self, delta: Json) -> None:
        for name, value in delta.items():
            if name == "tool_calls":
                for place, piece in enumerate(listed(value)):
                    self._call(piece, place)
            elif name == "function_call" and isinstance(value, dict):
                self._call({"index": -1, "function": value}, 0)
            elif name == "role":
                self.other.setdefault("role", value)
            elif isinstance(value, str):
                self.texts.setdefault(name, []).append(value)
                self.sizes[name] = self.sizes.get(name, 0) + len(value)
            elif isinstance(value, list) and isinstance(self.other.get(name), list):
                self.other[name] += value
            elif value is not None:
                self.other[name] = list(value) if isinstance(value, list) else value

    def repeat(self, message: Json, delta: Json) -> None:
        """Take a message that repeats all that came before it, as Perplexity's chunks have beside the delta.

        A message that does not repeat it is a further piece.
        """
        further = {name: value for name, value in message.items() if name not in delta}
        for name, value in message.items():
            if isinstance(value, str) and name != "role" and len(value) >= self.sizes.get(name, 0):
                if value.startswith("".join(self.texts.get(name, ()))):
                    self.texts[name], self.sizes[name] = [], 0
                    further[name] = value
            elif isinstance(value, list) and value:
                further[name] = value
                if name == "tool_calls":
                    self.calls.clear()
                    self.arguments.clear()
                self.other.pop(name, None)
        self.take(further)

    def _call(self, piece: Any, place: int) -> None:
        if not isinstance(piece, dict):
            return
        at = piece.get("index")
        at = at if isinstance(at, int) and at < _MAX_INDEX else place
        known = self.calls.setdefault(at, {"function": {}})
        for name in ("id", "type"):
            if string(piece.get(name)) is not None:
                known[name] = piece[name]
        function = piece.get("function")
        for name, value in function.items() if isinstance(function, dict) else ():
            if name == "arguments":
                if isinstance(value, str):
                    self.arguments.setdefault(at, []).append(value)
                elif value is not None:
                    known["function"]["arguments"] = value
            elif value is not None:
                known["function"].setdefault(name, value)

    def whole(self) -> Json:
        made: Json = {"role": "assistant", **self.other}
        made.update((name, "".join(pieces)) for name, pieces in self.texts.items())
        made.setdefault("content", None)
        for at, pieces in self.arguments.items():
            self.calls[at]["function"]["arguments"] = "".join(pieces)
        legacy = self.calls.pop(-1, None)
        if legacy is not None:
            made["function_call"] = legacy["function"]
        if self.calls:
            made["tool_calls"] = [{"type": "function", **self.calls[at]} for at in sorted(self.calls)]
        return made


def _chat(found: list[Json]) -> Json | None:
    body: Json = {}
    messages: dict[int, _Message] = {}
    for event in found:
        for name, value in event.items():
            if name not in ("choices", "usage") and value is not None:
                body.setdefault(name, value)
        if isinstance(event.get("usage"), dict):
            body["usage"] = event["usage"]
        for choice in listed(event.get("choices")):
            if not isinstance(choice, dict):
                continue
            at = choice.get("index")
            message = messages.setdefault(at if isinstance(at, int) else 0, _Message())
            delta = mapping(choice.get("delta"))
            message.take(delta)
            message.repeat(mapping(choice.get("message")), delta)
            message.finish = choice.get("finish_reason") or message.finish
    if not messages and "usage" not in body and "error" not in body:
        return None
    body["object"] = "chat.completion"
    body["choices"] = [
        {"index": at, "message": messages[at].whole(), "finish_reason": messages[at].finish}
        for at in sorted(messages)
    ]
    return body


# -- Gemini -----------------------------------------------------------------------------------------------


def _gemini(found: list[Json]) -> Json | None:
    body: Json = {}
    parts: list[Json] = []
    texts: list[list[str]] = []
    first: Json = {}
    for event in found:
        event = event["response"] if isinstance(event.get("response"), dict) else event
        # The SDK's own dumps have every field of its types, most of them null.
        body.update((n, value) for n, value in event.items() if n != "candidates" and value is not None)
        candidates = [c for c in listed(event.get("candidates")) if isinstance(c, dict)]
        for candidate in candidates[:1]:
            content = candidate.get("content")
            first.update((name, value) for name, value in candidate.items() if name != "content")
            if isinstance(content, dict):
                first.setdefault("content", {}).setdefault("role", content.get("role") or "model")
                for part in listed(content.get("parts")):
                    if isinstance(part, dict):
                        _grow(parts, texts, part)
    for part, pieces in zip(parts, texts, strict=True):
        if pieces:
            part["text"] = "".join(pieces)
    if parts:
        first.setdefault("content", {"role": "model"})["parts"] = parts
    if first:
        body["candidates"] = [first]
    return body or None


def _grow(parts: list[Json], texts: list[list[str]], part: Json) -> None:
    """Take one more part; text that goes on with the text before it is the same part."""
    text = part.get("text")
    last = parts[-1] if parts else None
    if (
        isinstance(text, str) and last is not None and texts[-1]
        and {name for name in part if part[name] is not None} <= {"text", "thought"}
        and last.get("thought") == part.get("thought")
        and "thoughtSignature" not in last
    ):  # fmt: skip
        texts[-1].append(text)
        return
    parts.append(dict(part))
    texts.append([text] if isinstance(text, str) else [])


_ENDS: Final = ("response.completed", "response.incomplete", "response.failed", "response.done")
_ITEM_DELTAS: Final = {
    "response.output_text.delta": ("content", "output_text"),
    "response.refusal.delta": ("content", "refusal"),
    "response.reasoning_text.delta": ("content", "reasoning_text"),
    "response.reasoning_summary_text.delta": ("summary", "summary_text"),
}


class _Item:
    """An output item that comes in pieces."""

    def __init__(self) -> None:
        self.start: Json = {}
        self.done: Json | None = None
        self.texts: dict[tuple[str, int], tuple[str, list[str]]] = {}
        self.arguments: dict[str, list[str]] = {}

    def whole(self) -> Json:
        if self.done is not None:
            return self.done
        made = dict(self.start)
        for (field, at), (kind, pieces) in sorted(self.texts.items()):
            blocks = list(listed(made.get(field)))
            block: Json = {"type": kind, ("refusal" if kind == "refusal" else "text"): "".join(pieces)}
            made[field] = [*blocks[:at], block]
        made.update((field, "".join(pieces)) for field, pieces in self.arguments.items())
        return made


def of_items(found: list[Json]) -> Json | None:
    """The response that the events of a stream amount to; None if they carry none."""
    body: Json = {}
    items: dict[int, _Item] = {}
    ended: Json | None = None
    for event in found:
        kind = event.get("type")
        response = event.get("response")
        if isinstance(response, dict):
            if kind in _ENDS:
                ended = response
            else:
                body.update(response)
        elif kind == "error":
            body["error"] = event.get("error") or event.get("message") or True
        elif isinstance(kind, str):
            _piece(items, kind, event)
    output = [items[at].whole() for at in sorted(items)]
    output = [item for item in output if item]
    if ended is not None:
        # Some back ends send the end without the output.
        return ended if listed(ended.get("output")) or not output else {**ended, "output": output}
    if not body and not output:
        return None
    body.setdefault("object", "response")
    body["output"] = output
    return body


def _piece(items: dict[int, _Item], kind: str, event: Json) -> None:
    at = _number(event.get("output_index"))
    item = event.get("item")
    if kind == "response.output_item.added" and isinstance(item, dict):
        items.setdefault(at, _Item()).start = item
    elif kind == "response.output_item.done" and isinstance(item, dict):
        items.setdefault(at, _Item()).done = item
    delta = event.get("delta")
    if not isinstance(delta, str):
        return
    if kind in _ITEM_DELTAS:
        field, block = _ITEM_DELTAS[kind]
        inner = _number(event.get("content_index", event.get("summary_index")))
        items.setdefault(at, _Item()).texts.setdefault((field, inner), (block, []))[1].append(delta)
    elif kind == "response.function_call_arguments.delta":
        items.setdefault(at, _Item()).arguments.setdefault("arguments", []).append(delta)
    elif kind == "response.custom_tool_call_input.delta":
        items.setdefault(at, _Item()).arguments.setdefault("input", []).append(delta)


def _number(value: Any) -> int:
    return value if isinstance(value, int) and 0 <= value < _MAX_INDEX else 0
