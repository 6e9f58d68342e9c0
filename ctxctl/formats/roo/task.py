"""The files of a task: its history, its chat, or both together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ctxctl.formats.build import Json
from ctxctl.formats.kit.document import document
from ctxctl.formats.kit.folder import Folder
from ctxctl.formats.kit.parts import string
from ctxctl.formats.kit.run import Run
from ctxctl.formats.lines import Report
from ctxctl.formats.roo.chat import Chat, condensations, model_of, requests
from ctxctl.formats.roo.kept import Kept
from ctxctl.formats.roo.window import History, milliseconds, moment, opened
from ctxctl.trace.source import Source

_NAME = "roo"
HISTORY: Final = "api_conversation_history.json"
CHAT: Final = "ui_messages.json"
FILES: Final = "task_metadata.json"
_TOLD: Final = ("prevContextTokens", "newContextTokens", "cost", "messagesRemoved")


def read(source: Source, report: Report) -> Iterator[Json]:
    """One of a task's files by itself; one document."""
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
    """Every task below a directory, each a session named as its directory."""
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
    return value if isinstance(value, list) or path.endswith(FILES) else None


def _is_chat(value: list[Any]) -> bool:
    return any(isinstance(m, dict) and ("say" in m or "ask" in m) and "role" not in m for m in value[:20])


def _files(run: Run, metadata: Json) -> None:
    """`task_metadata.json`: which files the runtime took to be in context, and whether they still were."""
    held = metadata.get("files_in_context")
    files = [one for one in held if isinstance(one, dict)] if isinstance(held, list) else []
    opened(run, files_in_context=[{k: v for k, v in one.items() if v is not None} for one in files][:500])


# -- the history, with the chat beside it if there is one ----------------------------------------------


def _task(run: Run, messages: list[Any], chat: list[Any] | None) -> None:
    opened(run)
    _Walk(run, History(run, run.thread()), chat or []).walk(messages)


class _Walk:
    """Goes through the history and says which of its messages went out with which request.

    Without the chat, each answer stands for a request.  With it, requests are told by their time: one carries
    what is stored before its answer, the message that was stored right after it was announced included.
    """

    def __init__(self, run: Run, history: History, chat: list[Any]) -> None:
        self._run = run
        self._history = history
        self._chat = chat
        self._asks = requests(chat)
        self._told = condensations(chat)
        self._model = model_of(chat)
        self._next = 0

    def walk(self, messages: list[Any]) -> None:
        """The whole history."""
        known = [(i, m) for i, m in enumerate(messages) if isinstance(m, dict)]
        known = self._without_lost(known)
        for index, message in sorted(known, key=lambda one: self._when(*one)):
            role, time = message.get("role"), milliseconds(message.get("ts"))
            if message.get("isSummary") is True:
                told = self._of_chat(message)
                self._seal_before(milliseconds(told.get("ts")) if told is not None else time, open_last=True)
                self._history.condense(message, index, _told(told))
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

    def _when(self, index: int, message: Json) -> tuple[float, int]:
        """When it happened: a summary is stored in front of messages that were there before it."""
        if not self._asks:
            return 0.0, index
        told = self._of_chat(message) if message.get("isSummary") is True else None
        return milliseconds((told or message).get("ts")), index

    def _of_chat(self, summary: Json) -> Json | None:
        """What the chat says of the condensation that made a summary: told by its id, or by its text."""
        text, native = summary.get("content"), summary.get("condenseId")
        for told in self._told:
            if (native is not None and told.get("condenseId") == native) or (text and told["text"] == text):
                return told
        return None

    def _without_lost(self, known: list[tuple[int, Json]]) -> list[tuple[int, Json]]:
        """Versions without `condenseId` deleted what they condensed: the chat tells of the requests before.

        Returns the messages that came after the last such condensation, the window being what it left.
        """
        cuts = [
            (told, message)
            for _, message in known
            if message.get("isSummary") is True and string(message.get("condenseId")) is None
            if (told := self._of_chat(message)) is not None
        ]
        if not cuts:
            return known
        told, summary = cuts[-1]
        done = milliseconds(told["ts"])
        before = [ask for ask in self._asks if ask.time < done]
        if not before:
            return known
        # The request during which it was done carries what it left.
        self._next = len(before) - 1
        left = [(i, m) for i, m in known if m is summary or milliseconds(m.get("ts")) < done]
        kept = Kept([ask.time for ask in self._asks], self._chat, left, self._history.cut)
        Chat(self._run, self._history.window, self._model, kept).walk(self._chat, before[-1].time)
        self._history.restart(left, summary, _told(told))
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
        """Seal the requests sent before a time; `open_last`: but for the last one, which is still open."""
        end = self._next
        while end < len(self._asks) and self._asks[end].time < time:
            end += 1
        end -= open_last
        for ask in self._asks[self._next : max(end, self._next)]:
            self._run.make.at(moment(ask.native))
            self._history.window.request(str(ask.native), model=self._model, derived=True)
            self._history.window.usage(ask.bill)
            self._next += 1


def _told(told: Json | None) -> Json | None:
    """Counts that the chat gives of a condensation."""
    if told is None:
        return None
    return {"native": {name: told[name] for name in _TOLD if told.get(name) is not None}}


# -- the chat alone ---------------------------------------------------------------------------------------


def _chat(run: Run, messages: list[Any]) -> None:
    opened(run, shown_only=True)
    Chat(run, run.thread(), model_of(messages)).walk(messages, float("inf"))
