"""`ui_messages.json`: what the chat showed, and what it knows of each request."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import orjson

from ctxctl.formats.build import Json, canonical
from ctxctl.formats.kit.conversation import Conversation
from ctxctl.formats.kit.parts import Part, call_title, count, parsed, string
from ctxctl.formats.kit.run import Run
from ctxctl.formats.kit.usage import usage_record
from ctxctl.formats.roo.kept import Kept
from ctxctl.formats.roo.messages import shown
from ctxctl.formats.roo.window import milliseconds, moment

_CONDENSED: Final = ("contextCondense", "contextTruncation")
_CALLS: Final = {"tool": "tool", "command": "execute_command", "use_mcp_server": "use_mcp_tool"}
"""What the chat asks leave for, and the tool that it stands for where it does not say."""


class Asked(NamedTuple):
    """One request as the chat knows it (`api_req_started`)."""

    time: float
    """Milliseconds since 1970, when it was sent."""
    native: Any
    """The time as stored: the request's id."""
    text: str | None
    """What was new in it, in one string; later versions do not keep it."""
    bill: Json | None
    fields: Json
    """As stored, without the text."""


def requests(chat: list[Any]) -> list[Asked]:
    """The requests in the order in which they were sent."""
    found = []
    for message in chat:
        if isinstance(message, dict) and message.get("say") == "api_req_started":
            found.append(asked(message))
    return sorted(found, key=lambda one: one.time)


def asked(message: Json) -> Asked:
    """One request; its fields are JSON in the message's text."""
    text = message.get("text")
    try:
        fields = orjson.loads(text) if isinstance(text, str) else None
    except orjson.JSONDecodeError:
        fields = None
    fields = fields if isinstance(fields, dict) else {}
    sent = string(fields.get("request"))
    # What the chat shows until the request is put together.
    sent = None if sent is not None and sent.endswith("Loading...") else sent
    kept = {name: value for name, value in fields.items() if name != "request"}
    native = message.get("ts")
    return Asked(milliseconds(native), native, sent, bill(kept), kept)


def bill(fields: Json) -> Json | None:
    """What a request was billed.

    `apiProtocol` says whether `tokensIn` leaves out what the cache held ("anthropic") or not ("openai").
    Versions that do not say so add cache reads and writes to it themselves.
    """
    read, written = count(fields.get("cacheReads")), count(fields.get("cacheWrites"))
    given = count(fields.get("tokensIn"))
    if given == 0 and not read and not written and not count(fields.get("tokensOut")):
        # A request that failed before anything was billed.
        return None
    names = ("apiProtocol", "cost", "cancelReason", "inferenceProvider")
    return usage_record(
        input_tokens=given,
        output_tokens=fields.get("tokensOut"),
        cached=read,
        cache_write=written,
        excludes_cache=fields.get("apiProtocol") != "openai",
        native={name: fields[name] for name in names if fields.get(name) is not None},
    )


def condensations(chat: list[Any]) -> list[Json]:
    """What the chat says of each condensation, in order; `ts` is when it was done."""
    found = []
    for message in chat:
        if not isinstance(message, dict):
            continue
        for name in _CONDENSED:
            told = message.get(name)
            if isinstance(told, dict):
                fields = {field: value for field, value in told.items() if field != "summary"}
                found.append({"ts": message.get("ts"), "kind": name, "text": told.get("summary"), **fields})
    return sorted(found, key=lambda one: milliseconds(one["ts"]))


def model_of(chat: list[Any]) -> str | None:
    """The model, where the chat names it (Cline's `modelInfo`)."""
    for message in chat:
        info = message.get("modelInfo") if isinstance(message, dict) else None
        if isinstance(info, dict):
            return string(info.get("modelId"))
    return None


class Chat:
    """Rebuilds requests from what the chat showed: their own text, prose of the answers, the calls.

    What it did not show (the wording of calls, reasoning that was sent back, what a condensation kept) is not
    there; everything is marked as derived.  `kept`: the messages that the history has, which stand for what
    the chat shows of them.
    """

    def __init__(self, run: Run, window: Conversation, model: str | None, kept: Kept | None = None) -> None:
        self._run = run
        self._window = window
        self._model = model
        self._typed: list[Part] = []
        """What the person typed since the last request."""
        self._asked = False
        self._kept = kept
        self._answered = False
        """Whether the answer to the last request is told, from the history."""

    def walk(self, chat: list[Any], until: float) -> None:
        """The messages that came before a time."""
        for index, message in enumerate(chat):
            if not isinstance(message, dict):
                self._run.problem("not-a-record", "not a JSON object; skipped")
            elif milliseconds(message.get("ts")) < until:
                self._run.make.at(moment(message.get("ts")))
                self._message(message, f"chat-{index}")

    def _message(self, message: Json, place: str) -> None:
        said = message.get("say") if message.get("type") != "ask" else message.get("ask")
        if said == "api_req_started":
            self._request(message, place)
        elif isinstance(message.get("contextCondense"), dict):
            self._condense(message["contextCondense"], place)
        else:
            text = string(message.get("text"))
            if text is not None and isinstance(said, str):
                self._said(said, message.get("type") == "ask", text, place)

    def _request(self, message: Json, place: str) -> None:
        one = asked(message)
        parts = self._kept.question(one.time, one.text) if self._kept is not None else None
        if parts is None:
            parts = shown(one.text, place) if one.text is not None else self._typed
            for part in parts:
                part.derived = True
        if any(part.kind == "user_message" for part in parts):
            self._window.turn = str(one.native)
        self._window.append(*parts)
        self._typed = []
        self._asked = True
        self._window.request(str(one.native), model=self._model, derived=True)
        self._window.usage(one.bill)
        answers = self._kept.answers(one.time) if self._kept is not None else []
        for time, answer in answers:
            self._run.make.at(moment(time))
            self._window.append(*answer)
        self._answered = bool(answers)

    def _said(self, said: str, is_ask: bool, text: str, place: str) -> None:
        if said == "user_feedback" or (said == "text" and not self._asked):
            self._typed.append(_derived("user_message", text, "user", place))
        elif self._answered:
            return
        elif said in ("text", "completion_result") and not is_ask:
            self._window.append(_derived("assistant_message", text, "assistant", place))
        elif is_ask and said in _CALLS:
            self._window.append(_called(said, text, place))

    def _condense(self, told: Json, place: str) -> None:
        text = string(told.get("summary"))
        if text is None:
            self._window.compacted([], None, method="abstractive_summary")
            return
        summary = _derived("thread_summary", text, "assistant", place)
        notes = ["The chat does not tell which messages stayed beside the summary."]
        self._window.compact([summary], summary=summary, loss_notes=notes)


def _derived(kind: str, text: str, role: str, place: str) -> Part:
    part = Part(kind, text, role, derived=True)
    part.place = place
    return part


def _called(said: str, text: str, place: str) -> Part:
    """A call as the chat shows it: not in the words in which the model made it."""
    value = parsed(text)
    name, arguments = _CALLS[said], {"command": text} if said == "command" else value
    if isinstance(value, dict):
        name = string(value.get("tool")) or string(value.get("toolName")) or name
    part = _derived("tool_call", f"{name} {canonical(arguments)}", "assistant", place)
    part.title = call_title(name, arguments)
    return part
