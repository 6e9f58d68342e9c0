"""The files of a task: its history, its chat, or both together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import orjson

from ctxctl.formats.build import Json
from ctxctl.formats.kit.document import document
from ctxctl.formats.kit.folder import Folder
from ctxctl.formats.kit.parts import Part, string
from ctxctl.formats.kit.run import Run
from ctxctl.formats.lines import Report
from ctxctl.formats.roo.chat import Asked, asked, bill, condensations, model_of, requests
from ctxctl.formats.roo.messages import prompts, shown
from ctxctl.formats.roo.window import History, milliseconds, moment, opened
from ctxctl.model import vocab
from ctxctl.trace.source import Source

HISTORY: Final = "api_conversation_history.json"
CHAT: Final = "ui_messages.json"
FILES: Final = "task_metadata.json"
_TOLD: Final = ("prevContextTokens", "newContextTokens", "cost", "messagesRemoved")


def events(name: str, source: Source, report: Report) -> Iterator[Json]:
    """One of a task's files by itself; one document."""
    run = Run(name, report)
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


def folder_events(name: str, folder: Folder, report: Report) -> Iterator[Json]:
    """Every task below a directory, each a session named as its directory."""
    run = Run(name, report)
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
    history = History(run, run.thread())
    opened(run, cwd=None)
    asks = requests(chat) if chat is not None else []
    told = condensations(chat) if chat is not None else []
    model = model_of(chat) if chat is not None else None
    _Walk(run, history, asks, told, model).walk(messages)


class _Walk:
    """Goes through the history and says which of its answers were given to which request.

    A request is known by its time: the answer is the first one after it, before the next request.
    """

    def __init__(
        self, run: Run, history: History, asks: list[Asked], told: list[Json], model: str | None
    ) -> None:
        self._run = run
        self._history = history
        self._asks = asks
        self._told = told
        self._model = model
        self._next = 0
        self._timed = bool(asks)

    def walk(self, messages: list[Any]) -> None:
        """The whole history."""
        known = [(i, m) for i, m in enumerate(messages) if isinstance(m, dict)]
        for index, message in sorted(known, key=lambda one: self._when(one[1], one[0])):
            role = message.get("role")
            if message.get("isSummary") is True:
                self._before(milliseconds(message.get("ts")))
                self._history.condense(message, index, self._of_chat(message))
            elif role == "user":
                self._before(milliseconds(message.get("ts")))
                self._history.question(message, index)
            elif role == "assistant" and message.get("type") == "reasoning":
                self._history.reasoning(message)
            elif role == "assistant":
                self._answered(message, index)
            else:
                self._run.problem("unknown-record", "a message of neither user nor assistant; skipped")
        self._before(float("inf"))

    def _when(self, message: Json, index: int) -> float:
        """The order in which things happened: a summary was put in front of messages that were there."""
        if message.get("isSummary") is True and (told := self._of_chat(message)) is not None:
            following = milliseconds(told.get("ts"))
            return max(0.0, following) or float(index)
        return milliseconds(message.get("ts")) or float(index)

    def _of_chat(self, summary: Json) -> Json | None:
        """What the chat says of the condensation that made a summary: told by its id, or by its text."""
        text = summary.get("content")
        for told in self._told:
            native = told.get("condenseId")
            if native is not None and native == summary.get("condenseId"):
                return told
            if isinstance(text, str) and told.get("text") == text:
                return told
        return None

    def _answered(self, message: Json, index: int) -> None:
        time = milliseconds(message.get("ts"))
        if not self._timed:
            self._run.make.at(moment(message.get("ts")))
            self._history.window.request(model=self._model, derived=True)
        else:
            self._before(time)
        self._history.answer(message, index)

    def _before(self, time: float) -> None:
        """Seal the requests that were sent before a time: they carried what there is by now."""
        # A message of the user is stored right after its request was announced.
        while self._next < len(self._asks) and self._asks[self._next].time < time:
            ask = self._asks[self._next]
            following = self._asks[self._next + 1].time if self._next + 1 < len(self._asks) else None
            if following is not None and following <= time or True:
                self._seal(ask)
            self._next += 1

    def _seal(self, ask: Asked) -> None:
        self._run.make.at(moment(ask.native))
        place = self._history.window.request(str(ask.native), model=self._model, derived=True)
        self._history.window.usage(ask.bill, place=place)
