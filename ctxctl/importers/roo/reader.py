"""Reads the files of a task: its history, its chat (`ui_messages.json`), or both together.

The chat tells what was shown and what it knows of each request; messages of the history that a condensation
kept stand at the requests that they belong to.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import orjson

from ctxctl.importers.roo.parts import History, milliseconds, moment, shown_parts
from ctxctl.ingest.build import Json, canonical
from ctxctl.ingest.conversation import Conversation
from ctxctl.ingest.document import document
from ctxctl.ingest.folder import Folder
from ctxctl.ingest.lines import Report
from ctxctl.ingest.parts import Part, call_title, count, parsed, string
from ctxctl.ingest.run import Run
from ctxctl.model.billed import dollars
from ctxctl.providers.usage import stated_total, usage_record
from ctxctl.trace.source import Source

_NAME = "roo"
HISTORY: Final = "api_conversation_history.json"
CHAT: Final = "ui_messages.json"
FILES: Final = "task_metadata.json"
ITEM: Final = "history_item.json"
"""A task as the list of tasks has it."""
_TOLD: Final = ("prevContextTokens", "newContextTokens", "cost", "messagesRemoved")


def read(source: Source, report: Report) -> Iterator[Json]:
    """Read one of a task's files by itself, which is one document."""
    run = Run(_NAME, report)
    value = document(source, run.report)
    if isinstance(value, dict):
        _files(run, value)
    elif isinstance(value, list):
        if _is_chat(value):
            _chat(run, value)
        else:
            _task(run, value, None)
    yield from run.finish()


def tasks(folder: Folder) -> dict[str, set[str]]:
    """The directories that hold a task's files, and which of them."""
    found: dict[str, set[str]] = {}
    for path in folder.files:
        top, _, base = path.rpartition("/")
        if base in (HISTORY, CHAT, FILES):
            found.setdefault(top, set()).add(base)
    return {top: names for top, names in found.items() if names & {HISTORY, CHAT}}


def read_folder(folder: Folder, report: Report) -> Iterator[Json]:
    """Read every task below a directory; each is a session with its directory's name."""
    run = Run(_NAME, report)
    for top, names in sorted(tasks(folder).items()):
        run.session = (top or str(folder.path.resolve())).rpartition("/")[2]
        prefix = f"{top}/" if top else ""
        history, chat = (
            _read(run, folder, f"{prefix}{base}") if base in names else None for base in (HISTORY, CHAT)
        )
        run.make.file = f"{prefix}{HISTORY if history is not None else CHAT}"
        if FILES in names and isinstance(files := _read(run, folder, f"{prefix}{FILES}"), dict):
            _files(run, files)
        if history is not None:
            _task(run, history, chat)
        elif chat is not None:
            _chat(run, chat)
        if f"{prefix}{ITEM}" in folder.files and isinstance(
            item := _read(run, folder, f"{prefix}{ITEM}"), dict
        ):
            _totals(run, item, requests(chat or []))
        run.make.file = None
        yield from run.drain()
    yield from run.finish()


def _read(run: Run, folder: Folder, path: str) -> Any:
    before, run.make.file = run.make.file, path
    try:
        with folder.open(path) as source:
            value = document(source, run.report)
    except OSError:
        value = None
    run.make.file = before
    return value if isinstance(value, list) or path.endswith((FILES, ITEM)) else None


def _is_chat(value: list[Any]) -> bool:
    return any(isinstance(m, dict) and ("say" in m or "ask" in m) and "role" not in m for m in value[:20])


def _files(run: Run, metadata: Json) -> None:
    """Tell of the files in `task_metadata.json`, which the runtime took to be in context, and whether they
    still were."""
    held = metadata.get("files_in_context")
    files = [one for one in held if isinstance(one, dict)] if isinstance(held, list) else []
    run.opened(
        session=run.session,
        files_in_context=[{k: v for k, v in one.items() if v is not None} for one in files][:500],
    )


def _totals(run: Run, item: Json, asks: Sequence[ChatRequest]) -> None:
    """Report a task's totals in the list of tasks."""
    total = stated_total(
        "session", usd=item.get("totalCost"), input_tokens=item.get("tokensIn"),
        cached=item.get("cacheReads"), cache_write=item.get("cacheWrites"),
        output_tokens=item.get("tokensOut"),
        excludes_cache=all(ask.fields.get("apiProtocol") != "openai" for ask in asks),
    )  # fmt: skip
    run.thread().stated(total)


# -- the history, with the chat beside it if there is one ----------------------------------------------


def _task(run: Run, messages: list[Any], chat: list[Any] | None) -> None:
    run.opened(session=run.session)
    _HistoryWalk(run, History(run, run.thread()), chat or []).walk(messages)


class _HistoryWalk:
    """Goes through the history and decides which of its messages went out with which request.

    Without the chat, each answer stands for a request.  With it, requests are told by their time: one carries
    what is stored before its answer, the message that was stored right after it was announced included.
    """

    def __init__(self, run: Run, history: History, chat: list[Any]) -> None:
        self._run = run
        self._history = history
        self._chat = chat
        self._asks = requests(chat)
        self._condensations: dict[tuple[str, object], tuple[int, Json]] = {}
        """What the chat says of each condensation, by its id and by its text, with its number."""
        for told in enumerate(condensations(chat)):
            for kind, name in (("id", "condenseId"), ("text", "text")):
                self._condensations.setdefault((kind, _comparable(told[1].get(name))), told)
        self._model = model_of(chat)
        self._next = 0

    def walk(self, messages: list[Any]) -> None:
        """Read the whole history."""
        known = [(i, m) for i, m in enumerate(messages) if isinstance(m, dict)]
        known = self._without_lost(known)
        for index, message in sorted(known, key=lambda one: self._time_of(*one)):
            role, time = message.get("role"), milliseconds(message.get("ts"))
            if message.get("isSummary") is True:
                told = self._condensation_in_chat(message)
                self._seal_before(milliseconds(told.get("ts")) if told is not None else time, open_last=True)
                self._history.condense(message, index, _counts_in_chat(told))
            elif role == "user":
                self._seal_before(time, open_last=True)
                self._history.question(message, index)
            elif role == "assistant" and message.get("type") == "reasoning":
                self._history.reasoning(message)
            elif role == "assistant":
                self._answered(message, index, time)
            else:
                self._run.problem("unknown-record", "a message of neither user nor assistant; skipped")
        self._seal_before(float("inf"))

    def _time_of(self, index: int, message: Json) -> tuple[float, int]:
        """When a message came to be: a summary is stored in front of messages that were there before it."""
        if not self._asks:
            return 0.0, index
        told = self._condensation_in_chat(message) if message.get("isSummary") is True else None
        return milliseconds((told or message).get("ts")), index

    def _condensation_in_chat(self, summary: Json) -> Json | None:
        """What the chat says of the condensation that made a summary, found by its id or by its text."""
        text, native = summary.get("content"), summary.get("condenseId")
        keys = [("id", _comparable(native))] if native is not None else []
        keys += [("text", _comparable(text))] if text else []
        found = [self._condensations[key] for key in keys if key in self._condensations]
        return min(found, key=lambda one: one[0])[1] if found else None

    def _without_lost(self, known: list[tuple[int, Json]]) -> list[tuple[int, Json]]:
        """Tell the requests before a condensation from the chat, as versions without `condenseId` deleted
        what they condensed.

        Returns the messages that came after the last such condensation, the window being what it left.
        """
        cuts = [
            (told, message)
            for _, message in known
            if message.get("isSummary") is True and string(message.get("condenseId")) is None
            if (told := self._condensation_in_chat(message)) is not None
        ]
        if not cuts:
            return known
        told, summary = cuts[-1]
        done = milliseconds(told["ts"])
        before = [ask for ask in self._asks if ask.time < done]
        if not before:
            return known
        # The request during which it was done carries what the condensation left.
        self._next = len(before) - 1
        left = [(i, m) for i, m in known if m is summary or milliseconds(m.get("ts")) < done]
        kept = KeptHistory([ask.time for ask in self._asks], self._chat, left, self._history.cut)
        Chat(self._run, self._history.window, self._model, kept).walk(self._chat, before[-1].time)
        self._history.restart(left, summary, _counts_in_chat(told))
        gone = {index for index, _ in left}
        return [one for one in known if one[0] not in gone]

    def _answered(self, message: Json, index: int, time: float) -> None:
        if self._asks:
            self._seal_before(time)
        else:
            self._run.make.at(moment(message.get("ts")))
            self._history.window.request(model=self._model, derived=True)
        self._history.answer(message, index)

    def _seal_before(self, time: float, *, open_last: bool = False) -> None:
        """Seal the requests sent before a time; with `open_last` all but the last one, which is still
        open."""
        end = self._next
        while end < len(self._asks) and self._asks[end].time < time:
            end += 1
        end -= open_last
        for ask in self._asks[self._next : max(end, self._next)]:
            self._run.make.at(moment(ask.native))
            self._history.window.request(str(ask.native), model=self._model, derived=True)
            self._history.window.usage(ask.bill)
            self._next += 1


def _comparable(value: Any) -> object:
    return canonical(value) if isinstance(value, dict | list) else value


def _counts_in_chat(told: Json | None) -> Json | None:
    """The counts that the chat gives of a condensation."""
    if told is None:
        return None
    native = {name: told[name] for name in _TOLD if told.get(name) is not None}
    cost = dollars(told.get("cost"))
    return {"native": native, **({"ctxctl": {"request": {"stated_usd": cost}}} if cost else {})}


# -- the chat alone ---------------------------------------------------------------------------------------


def _chat(run: Run, messages: list[Any]) -> None:
    run.opened(session=run.session, shown_only=True)
    Chat(run, run.thread(), model_of(messages)).walk(messages, float("inf"))


Cut = Callable[[Json, int], list[Part]]
"""Makes the items of a stored message, given where it stands in the history."""
_Stored = tuple[int, Json]
_NEVER: Final = float("inf")


class KeptHistory:
    """What the history still has of requests that are told from the chat; its own items are shown there.

    A message belongs to a request if it was stored at its time and says what the chat shows of it.  Anything
    else stays what the chat shows, derived.

    Args:
        times: When each request was sent, ascending.
        chat: The chat's messages.
        left: The history's messages, each with its index.
        cut: Cuts one of them.
    """

    def __init__(self, times: Sequence[float], chat: list[Any], left: list[_Stored], cut: Cut) -> None:
        self._times = times
        self._cut = cut
        stored = [(i, m) for i, m in left if m.get("isSummary") is not True and m.get("type") != "reasoning"]
        self._asked = _by_time([one for one in stored if one[1].get("role") == "user"])
        self._answers = _by_time([one for one in stored if one[1].get("role") == "assistant"])
        self._shown = _by_time([(i, m) for i, m in enumerate(chat) if _is_prose(m)])
        self._used: set[int] = set()

    def question(self, time: float, text: str | None) -> list[Part] | None:
        """The items of the message that went out with the request sent at a time; None where it is not
        kept."""
        at = bisect_left(self._times, time)
        before, after = self._times[at - 1] if at else -_NEVER, self._end(time)
        # Most are stored right after the request is announced, some before.
        for index, message in _between(self._asked, time, after) + _between(self._asked, before, time):
            parts = self._cut(message, index) if index not in self._used else []
            texts = [part.text.strip() for part in parts if part.text is not None]
            if text is not None and any(texts) and all(one in text for one in texts):
                self._used.add(index)
                return parts
        return None

    def answers(self, time: float) -> list[tuple[Any, list[Part]]]:
        """The messages that the request sent at a time was answered with, each with its own time as stored;
        none if they are not kept."""
        end = self._end(time)
        found = _between(self._answers, time, end)
        said = [str(message["text"]).strip() for _, message in _between(self._shown, time, end)]
        text = "\n".join(_text(message) for _, message in found)
        if not all(one in text for one in said):
            return []
        return [(message.get("ts"), self._cut(message, index)) for index, message in found]

    def _end(self, time: float) -> float:
        at = bisect_right(self._times, time)
        return self._times[at] if at < len(self._times) else _NEVER


_Timed = list[tuple[float, int, Json]]


def _by_time(stored: list[_Stored]) -> _Timed:
    return sorted(((milliseconds(m.get("ts")), i, m) for i, m in stored), key=lambda one: one[:2])


def _between(timed: _Timed, start: float, end: float) -> list[_Stored]:
    """The messages that were stored from a time on and before another."""
    first = bisect_left(timed, start, key=lambda one: one[0])
    last = bisect_left(timed, end, key=lambda one: one[0])
    return [(index, message) for _, index, message in timed[first:last]]


def _is_prose(message: Any) -> bool:
    """Whether a message of the chat shows the model's own words."""
    said = isinstance(message, dict) and message.get("type") != "ask" and message.get("say") == "text"
    return said and message.get("partial") is not True and string(message.get("text")) is not None


def _text(message: Json) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    texts = [block.get("text") for block in blocks if isinstance(block, dict)]
    return "\n".join(text for text in texts if isinstance(text, str))


_CONDENSED: Final = ("contextCondense", "contextTruncation")
_CALLS: Final = {"tool": "tool", "command": "execute_command", "use_mcp_server": "use_mcp_tool"}
"""By what the chat asks leave for, the tool that it stands for where the chat does not name one."""


class ChatRequest(NamedTuple):
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


def requests(chat: list[Any]) -> list[ChatRequest]:
    """The requests in the order in which they were sent."""
    found = []
    for message in chat:
        if isinstance(message, dict) and message.get("say") == "api_req_started":
            found.append(chat_request(message))
    return sorted(found, key=lambda one: one.time)


def chat_request(message: Json) -> ChatRequest:
    """One request; its fields are JSON in the message's text."""
    text = message.get("text")
    try:
        fields = orjson.loads(text) if isinstance(text, str) else None
    except orjson.JSONDecodeError:
        fields = None
    fields = fields if isinstance(fields, dict) else {}
    sent = string(fields.get("request"))
    # The chat shows this until the request is put together.
    sent = None if sent is not None and sent.endswith("Loading...") else sent
    kept = {name: value for name, value in fields.items() if name != "request"}
    native = message.get("ts")
    return ChatRequest(milliseconds(native), native, sent, bill(kept), kept)


def bill(fields: Json) -> Json | None:
    """The bill of a request.

    `apiProtocol` says whether `tokensIn` leaves out what the cache held ("anthropic") or not ("openai").
    Versions that do not say so add cache reads and writes to it themselves.
    """
    read, written = count(fields.get("cacheReads")), count(fields.get("cacheWrites"))
    given = count(fields.get("tokensIn"))
    if given == 0 and not read and not written and not count(fields.get("tokensOut")):
        # The request failed before anything was billed.
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

    def __init__(
        self, run: Run, window: Conversation, model: str | None, kept: KeptHistory | None = None
    ) -> None:
        self._run = run
        self._window = window
        self._model = model
        self._typed: list[Part] = []
        """The texts that the person typed since the last request."""
        self._asked = False
        self._kept = kept
        self._answered = False
        """Whether the answer to the last request was told from the history."""

    def walk(self, chat: list[Any], until: float) -> None:
        """Take the messages of the chat that came before a time.

        A request is shown before a condensation for it is made, so one that follows at once belongs first.
        """
        rows = list(enumerate(chat))
        for at in range(len(rows) - 1, 0, -1):
            if _is_condensation(rows[at][1]) and _is_request(rows[at - 1][1]):
                rows[at - 1 : at + 1] = rows[at], rows[at - 1]
        for index, message in rows:
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
        one = chat_request(message)
        parts = self._kept.question(one.time, one.text) if self._kept is not None else None
        if parts is None:
            parts = shown_parts(one.text, place) if one.text is not None else self._typed
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
        cost, before = dollars(told.get("cost")), count(told.get("prevContextTokens"))
        request = {"stated_usd": cost} if cost else self._window.unbilled(before)
        if text is None:
            self._window.compacted([], None, method="abstractive_summary", request=request)
            return
        summary = _derived("thread_summary", text, "assistant", place)
        notes = ["The chat does not tell which messages stayed beside the summary."]
        self._window.compact([summary], summary=summary, loss_notes=notes, request=request)


def _is_request(message: Any) -> bool:
    return isinstance(message, dict) and message.get("say") == "api_req_started"


def _is_condensation(message: Any) -> bool:
    return isinstance(message, dict) and isinstance(message.get("contextCondense"), dict)


def _derived(kind: str, text: str, role: str, place: str) -> Part:
    part = Part(kind, text, role, derived=True)
    part.place = place
    return part


def _called(said: str, text: str, place: str) -> Part:
    """The part of a call as the chat shows it, which is not how the model worded it."""
    value = parsed(text)
    name, arguments = _CALLS[said], {"command": text} if said == "command" else value
    if isinstance(value, dict):
        name = string(value.get("tool")) or string(value.get("toolName")) or name
    part = _derived("tool_call", f"{name} {canonical(arguments)}", "assistant", place)
    part.title = call_title(name, arguments)
    return part
