"""Reads VS Code chat exports and stored chats (`requests[]`): what the chat panel keeps of a conversation.

A stored chat (since 1.109) is a snapshot on the first line, then a change of it on each line.  The texts of
prompts hold elements that the extension puts around what was typed (`pieces`), and trees (`rendered`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from ctxctl.importers.copilot_chat import is_log
from ctxctl.ingest.build import VERSION_DIGITS, Json, canonical, digest_of
from ctxctl.ingest.conversation import Conversation
from ctxctl.ingest.document import document
from ctxctl.ingest.lines import Report
from ctxctl.ingest.parts import Part, call_title, listed, parsed, string
from ctxctl.ingest.run import Run
from ctxctl.ingest.skim import text_of_head
from ctxctl.trace.source import Source

_KINDS: Final = {
    "environment_info": "runtime_state",
    "workspace_info": "runtime_state",
    "context": "runtime_state",
    "editorContext": "runtime_state",
    "repoContext": "runtime_state",
    "todoList": "runtime_state",
    "attachments": "external_resource",
    "attachment": "external_resource",
    "toolReferences": "policy_note",
    "reminderInstructions": "policy_note",
    "reminder": "policy_note",
    "instructions": "developer_instruction",
    "customInstructions": "developer_instruction",
    "conversation-summary": "thread_summary",
    "userRequest": "user_message",
    "user_query": "user_message",
}
_OPENING: Final = re.compile(
    r"^<(" + "|".join(re.escape(tag) for tag in _KINDS) + r")(?: [^<>\n]*)?>", re.MULTILINE
)
_MAX_NODES: Final = 200_000


class Piece(NamedTuple):
    """A stretch of a message; the pieces put together are the whole."""

    text: str
    kind: str
    tag: str | None


def pieces(text: str) -> list[Piece]:
    """A user message cut at the elements that the extension puts into it."""
    made: list[Piece] = []
    at = 0
    while (match := _OPENING.search(text, at)) is not None:
        tag = match.group(1)
        closing = f"</{tag}>"
        end = text.find(closing, match.end())
        if end < 0:
            break
        end += len(closing)
        while end < len(text) and text[end].isspace():
            end += 1
        start = match.start()
        if text[at:start].strip():
            made.append(Piece(text[at:start], "user_message", None))
        else:
            start = at
        made.append(Piece(text[start:end], _KINDS[tag], tag))
        at = end
    if text[at:]:
        made.append(Piece(text[at:], "user_message", None))
    return made


def rendered(value: Any) -> str:
    """The text of a prompt-tsx tree (`{"node": …}`) as VS Code stores tool results."""
    made: list[str] = []
    waiting = [value.get("node") if isinstance(value, dict) else None]
    left = _MAX_NODES
    while waiting and left:
        left -= 1
        node = waiting.pop()
        if not isinstance(node, dict):
            continue
        text = node.get("text")
        if isinstance(text, str):
            if node.get("lineBreakBefore") is True and made and not made[-1].endswith("\n"):
                made.append("\n")
            made.append(text)
        children = node.get("children")
        if isinstance(children, list):
            if node.get("lineBreakBefore") is True and made and not made[-1].endswith("\n"):
                made.append("\n")
            waiting.extend(reversed(children))
    return "".join(made)


NAME: Final = "copilot-chat"
_HEAD: Final = 1024


class Export(Run):
    """One exported chat: a turn is a request of the panel, a step a round of tool calls or the answer."""

    def __init__(self, name: str, report: Report) -> None:
        super().__init__(name, report)
        self._model: str | None = None

    def events(self, source: Source) -> Iterator[Json]:
        """The chat's events; the file is one document and is held whole."""
        head = text_of_head(source.read(0, _HEAD))
        value = final_state(self, source) if is_log(head) else None
        if value is None:
            value = document(source, self.report)
        if not isinstance(value, dict):
            return
        self.session = string(value.get("sessionId"))
        self.understood.version(value.get("version"), 1)
        requests = value.get("requests")
        for number, request in enumerate(requests if isinstance(requests, list) else [], 1):
            if isinstance(request, dict):
                self._turn(request, number)
                yield from self.drain()
            else:
                self.problem("not-a-record", f"request {number} is not a JSON object; skipped")
        yield from self.finish()

    def _turn(self, request: Json, number: int) -> None:
        if request.get("shouldBeRemovedOnSend"):
            return
        conversation = self.thread(None)
        name = string(request.get("requestId")) or f"request-{number}"
        self.make.at(_time(request.get("timestamp")))
        self._model = string(request.get("modelId")) or self._model
        result = request.get("result")
        metadata = result.get("metadata") if isinstance(result, dict) else None
        metadata = metadata if isinstance(metadata, dict) else {}
        conversation.turn = name
        conversation.append(*_asked(request, metadata, name))
        rounds = [r for r in listed(metadata.get("toolCallRounds")) if isinstance(r, dict)]
        results = metadata.get("toolCallResults")
        for one in rounds:
            self._round(conversation, one, results if isinstance(results, dict) else {}, metadata)
        answered = bool(rounds) and not listed(rounds[-1].get("toolCalls"))
        text = _shown(request.get("response"))
        if not answered and (text or not rounds):
            if not text and request.get("isCanceled") is True:
                return
            # The panel's own rendering of the answer: links are names there, not what the model wrote.
            conversation.request(None, model=self._model, derived=True)
            if text and not rounds:
                conversation.append(
                    Part("assistant_message", text, "assistant", key=f"{name}/answer", derived=True)
                )

    def _round(self, conversation: Conversation, one: Json, results: Json, metadata: Json) -> None:
        name = string(one.get("id"))
        self.make.at(_time(one.get("timestamp")))
        conversation.request(name, model=self._model, derived=True)
        parts: list[Part] = []
        thinking = one.get("thinking")
        if isinstance(thinking, dict):
            parts += _thinking(thinking, name)
        text = string(one.get("response"))
        if text is not None:
            parts.append(Part("assistant_message", text, "assistant", key=name))
        done: list[Part] = []
        for call in listed(one.get("toolCalls")):
            if isinstance(call, dict):
                part = _called(call)
                parts.append(part)
                done += _result(results.get(string(call.get("id")) or ""), part)
        conversation.append(*parts, *done)
        summary = string(one.get("summary"))
        told = metadata.get("summary")
        if summary is None and isinstance(told, dict) and told.get("toolCallRoundId") == name:
            summary = string(told.get("text"))
        if summary is not None:
            part = Part("thread_summary", summary, "user", title="conversation summary")
            marks, asked = {"ctxctl": {"derived": True}}, conversation.unbilled()
            conversation.compact([part], summary=part, metadata=marks, request=asked)


def _asked(request: Json, metadata: Json, name: str) -> list[Part]:
    """The parts of a prompt as it was sent, or as it was typed where only that is kept."""
    made: list[Part] = []
    for field, place in (("renderedGlobalContext", "global"), ("renderedUserMessage", "user")):
        for block in listed(metadata.get(field)):
            text = block.get("text") if isinstance(block, dict) else block
            if not isinstance(text, str):
                continue
            for piece in pieces(text):
                key = f"{name}/{place}-{len(made) + 1}" if piece.tag != "userRequest" else name
                made.append(Part(piece.kind, piece.text, "user", key=key, title=piece.tag))
    message = request.get("message")
    typed = string(message.get("text")) if isinstance(message, dict) else string(message)
    if typed is not None and not any(part.kind == "user_message" for part in made):
        made.append(Part("user_message", typed, "user", key=name))
    return made


def _thinking(thinking: Json, name: str | None) -> list[Part]:
    given = thinking.get("text")
    text = "\n".join(t for t in given if isinstance(t, str)) if isinstance(given, list) else string(given)
    if text:
        return [Part("reasoning", text, "assistant", key=f"{name}/thinking" if name else None)]
    return []


def _called(call: Json) -> Part:
    name = string(call.get("name")) or "tool"
    arguments = parsed(call.get("arguments"))
    text = f"{name} {arguments if isinstance(arguments, str) else canonical(arguments or {})}"
    return Part("tool_call", text, "assistant", key=string(call.get("id")), title=call_title(name, arguments))


def _result(result: Any, call: Part) -> list[Part]:
    """A tool's result: plain text, a tree that the extension renders, or data."""
    made: list[Part] = []
    content = result.get("content") if isinstance(result, dict) else None
    for index, block in enumerate(listed(content)):
        if not isinstance(block, dict):
            continue
        key = f"{call.item}/result{f'/{index}' if index else ''}" if call.item else None
        value = block.get("value")
        if isinstance(value, str):
            made.append(Part("tool_result", value, "tool", key=key, title=call.title))
        elif isinstance(value, dict) and "node" in value:
            text = rendered(value)
            made.append(Part("tool_result", text, "tool", key=key, title=call.title, derived=True))
        elif block.get("data") is not None:
            data = canonical(block["data"])
            made.append(
                Part(
                    "image", None, "tool", key=key, title=call.title, mime_type=string(block.get("mimeType")),
                    version=digest_of(data)[:VERSION_DIGITS],
                )
            )  # fmt: skip
    return made


def _shown(response: Any) -> str:
    """The answer as the panel shows it."""
    made: list[str] = []
    for block in listed(response):
        if not isinstance(block, dict):
            continue
        value = block.get("value")
        if isinstance(value, dict):
            value = value.get("value")
        reference = block.get("inlineReference")
        if isinstance(value, str) and block.get("kind") in (None, "markdownContent"):
            made.append(value)
        elif isinstance(reference, dict) and isinstance(reference.get("name"), str):
            made.append(f"`{reference['name']}`")
    return "".join(made)


def _time(value: Any) -> str | None:
    """Milliseconds since the epoch as RFC 3339."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return (
            datetime.fromtimestamp(value / 1000, UTC)
            .isoformat(timespec="milliseconds")
            .replace("+00:00", "Z")
        )
    except (ValueError, OverflowError, OSError):
        return None


_INITIAL, _SET, _PUSH, _DELETE = range(4)


def final_state(run: Run, source: Source) -> Any:
    """What the store holds after all changes; changes of what is not there are passed over."""
    state: Any = {}
    for record in run.records(source):
        kind = record.get("kind")
        if kind == _INITIAL and isinstance(record.get("v"), dict):
            state = record["v"]
        elif kind in (_SET, _PUSH, _DELETE):
            _change(state, record)
        else:
            run.problem("unknown-record", "no change that is known; skipped")
    return state


def _change(state: Any, record: Json) -> None:
    path = record.get("k")
    if not isinstance(path, list) or not path:
        return
    for name in path[:-1]:
        state = _at(state, name)
    kind, name = record["kind"], path[-1]
    if kind == _PUSH:
        _push(state, name, record)
    elif kind == _SET and "v" in record:
        if (isinstance(state, dict) and isinstance(name, str)) or _index(state, name):
            state[name] = record["v"]
    elif kind == _DELETE and isinstance(state, dict) and isinstance(name, str):
        state.pop(name, None)


def _push(state: Any, name: Any, record: Json) -> None:
    """Cut the list at `i`, if that is given, and put `v` at its end."""
    found = _at(state, name)
    if found is None and isinstance(state, dict) and isinstance(name, str):
        found = state[name] = []
    if not isinstance(found, list):
        return
    at, more = record.get("i"), record.get("v")
    if isinstance(at, int) and 0 <= at < len(found):
        del found[at:]
    if isinstance(more, list):
        found += more


def _at(state: Any, name: Any) -> Any:
    if isinstance(state, dict) and isinstance(name, str):
        return state.get(name)
    return state[name] if _index(state, name) else None


def _index(state: Any, name: Any) -> bool:
    return (
        isinstance(state, list)
        and isinstance(name, int)
        and not isinstance(name, bool)
        and 0 <= name < len(state)
    )
