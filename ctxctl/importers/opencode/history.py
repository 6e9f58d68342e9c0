"""The messages of an opencode session, and which rows of the window each of them has."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import groupby
from typing import Final

from ctxctl.ingest.build import Maker
from ctxctl.ingest.conversation import Conversation
from ctxctl.ingest.parts import Part

_PLAN: Final = "plan"
_BUILD: Final = "build"
_NOWHERE: Final = -1


class Message:
    """A message and its part of the window."""

    __slots__ = ("_thoughts", "agent", "model", "native", "parts", "reminded", "role", "row", "seat", "shown")

    def __init__(
        self, native: str | None, role: str, parts: list[Part], *, agent: str | None = None, model: str = ""
    ) -> None:
        self.native = native
        self.role = role
        self.parts = parts
        """Its parts as its own model gets them; texts are dropped once they were announced."""
        self.shown = parts
        """Its parts as the window has them."""
        self.agent = agent
        self.model = model
        self.reminded = False
        """Whether it holds a reminder of the agent's mode as a part of its own."""
        self.seat = _NOWHERE
        """Its place among the messages of the history; `_NOWHERE` where it is not in it."""
        self.row = 0
        """The window's row where it begins, counted from the first message's."""
        self._thoughts: dict[str, Part | None] = {}

    @property
    def is_planned(self) -> bool:
        """Whether it is an answer that was given in plan mode."""
        return self.role == "assistant" and self.agent == _PLAN

    @property
    def thinks(self) -> bool:
        """Whether other models get something else of it."""
        return bool(self._thoughts)

    def keep_thoughts(self) -> None:
        """Keep what another model gets of its reasoning: the text, as if it had been the answer."""
        for part in self.parts:
            if part.kind == "reasoning":
                said = None
                if part.text is not None and part.text.strip():
                    said = Part(
                        "assistant_message", part.text, "assistant", key=f"{part.item}/text", line=part.line,
                        native={"type": "reasoning"},
                    )  # fmt: skip
                self._thoughts[part.item] = said

    def read_by(self, model: str) -> list[Part]:
        """The parts that a model gets of it."""
        if model == self.model or not self._thoughts:
            return self.parts
        made = [self._thoughts.get(part.item, part) for part in self.parts]
        return [part for part in made if part is not None]


class History:
    """Keeps messages and window in step: the window is what stands in front, then each message's parts.

    What changes costs no more than what stands behind it, which is added to the import's work.
    """

    def __init__(self, conversation: Conversation, make: Maker) -> None:
        self._window = conversation
        self._make = make
        self._standing: list[Part] = []
        self._messages: list[Message] = []
        self._reader: str | None = None
        self._reminded: Message | None = None
        self._planned = 0
        """The number of answers in the window that were given in plan mode."""
        self._named: dict[str, list[Message]] = {}
        """By id; an answer of several steps is several messages."""
        self._asked: list[Message] = []
        """The user's messages in order; some of them may have been taken out."""
        self._thinking: list[Message] = []
        """Those of which other models get something else, likewise."""
        self._given: dict[str, list[Message]] = {}
        """By item, the messages that hold what a tool gave back, likewise."""

    def standing(self, parts: list[Part]) -> None:
        """The tools and the system prompt of the next request."""
        self._make.work += len(parts)
        if [(one.item, one.mark) for one in parts] != [(one.item, one.mark) for one in self._standing]:
            self._window.splice(0, len(self._standing), parts)
            self._standing = parts

    def enter(self, message: Message) -> None:
        """Append a message to the history."""
        if self._reader is not None:
            message.shown = message.read_by(self._reader)
        message.row = len(self._window.rows) - len(self._standing)
        self._window.append(*message.shown)
        message.seat = len(self._messages)
        self._messages.append(message)
        self._know(message)

    def _know(self, message: Message) -> None:
        """Note what an entered message is looked for by."""
        self._planned += message.is_planned
        if message.native is not None:
            self._named.setdefault(message.native, []).append(message)
        if message.role == "user":
            self._asked.append(message)
        if message.thinks:
            self._thinking.append(message)
        for part in message.parts:
            if part.role == "tool":
                holders = self._given.setdefault(part.item, [])
                if not holders or holders[-1] is not message:
                    holders.append(message)

    def _set_rows(self, first: int) -> None:
        """Give the messages from seat `first` on their seats and rows, as some before them went or grew."""
        before = self._messages[first - 1] if first else None
        row = before.row + len(before.shown) if before is not None else 0
        for seat in range(first, len(self._messages)):
            message = self._messages[seat]
            message.seat, message.row = seat, row
            row += len(message.shown)
        self._make.work += len(self._messages) - first

    def holds(self, native: str) -> bool:
        """Whether a message with that id is in the history."""
        return native in self._named

    def remove(self, natives: Collection[str]) -> int:
        """Remove messages: the person went back to before them.

        Returns how many messages stood from the first of them on.
        """
        gone = [one for native in natives for one in self._named.pop(native, ())]
        if not gone:
            return 0
        gone.sort(key=lambda one: one.seat)
        first = gone[0].seat
        passed = len(self._messages) - first
        for run in reversed(_runs(gone)):
            rows = run[-1].row + len(run[-1].shown) - run[0].row
            self._window.splice(len(self._standing) + run[0].row, rows, cause="branched")
        for one in gone:
            one.seat = _NOWHERE
            self._planned -= one.is_planned
        self._messages[first:] = [one for one in self._messages[first:] if one.seat != _NOWHERE]
        self._set_rows(first)
        return passed

    def clear(self, due: dict[str, Part]) -> None:
        """Put blank results in the place of those that were pruned, by item."""
        holders = {id(one): one for item in due for one in self._given.get(item, ()) if one.seat != _NOWHERE}
        for message in sorted(holders.values(), key=lambda one: one.seat):
            first = len(self._standing) + message.row
            for at, part in enumerate(message.shown):
                if part.item in due:
                    self._window.put(first + at, due[part.item], cause="truncated")
            own = message.shown is not message.parts
            message.parts[:] = [due.get(part.item, part) for part in message.parts]
            if own:
                message.shown[:] = [due.get(part.item, part) for part in message.shown]
            self._make.work += len(message.parts)

    def read_by(self, model: str) -> None:
        """Make the window what a model gets: others' reasoning as text."""
        if model == self._reader:
            return
        self._reader = model
        self._make.work += len(self._thinking)
        self._thinking = [one for one in self._thinking if one.seat != _NOWHERE]
        moved, first = 0, None
        for message in self._thinking:
            before, message.shown = message.shown, message.read_by(model)
            if message.shown is not before and [p.item for p in before] != [p.item for p in message.shown]:
                at = len(self._standing) + message.row + moved
                self._window.splice(at, len(before), message.shown)
                moved += len(message.shown) - len(before)
                first = message.seat if first is None else first
        if first is not None:
            self._set_rows(first)

    def remind(self, agent: str | None) -> None:
        """Put the reminder of the agent's mode into the last user message of the request.

        opencode writes it anew each time and keeps it nowhere: that it is there is known, its text is not.
        """
        last = self._last_asked()
        mode = None
        if last is not None and not last.reminded:
            mode = _PLAN if agent == _PLAN else _BUILD if agent == _BUILD and self._planned else None
        key = f"{last.native}/{mode}" if last is not None and mode is not None else None
        old = self._reminded
        if old is not None and (old is not last or all(part.item != key for part in old.parts)):
            self._forget(old)
        if last is None or key is None or self._reminded is not None:
            return
        title = "Plan mode" if mode == _PLAN else "From plan to build mode"
        part = Part("policy_note", None, "user", key=key, version=mode, title=title, derived=True)
        self._window.splice(len(self._standing) + last.row + len(last.shown), 0, [part])
        last.parts.append(part)
        self._reminded = last
        self._set_rows(last.seat)

    def _last_asked(self) -> Message | None:
        """The user's last message."""
        while self._asked and self._asked[-1].seat == _NOWHERE:
            self._asked.pop()
        return self._asked[-1] if self._asked else None

    def _forget(self, message: Message) -> None:
        self._reminded = None
        for at in range(len(message.parts) - 1, -1, -1):
            part = message.parts[at]
            if part.derived and part.kind == "policy_note":
                del message.parts[at]
                if message.seat != _NOWHERE:
                    self._window.splice(len(self._standing) + message.row + at, 1)
        if message.seat != _NOWHERE:
            self._set_rows(message.seat)

    @contextmanager
    def instead(self, parts: list[Part]) -> Iterator[None]:
        """Use another window for one request."""
        before = self._all()
        self._window.splice(0, len(before), parts)
        yield
        self._window.splice(0, len(parts), before)

    def _all(self) -> list[Part]:
        return [*self._standing, *(part for one in self._messages for part in one.shown)]

    def compact(
        self, summary: Message, text: Part, tail: str | None, *, line: int, tell: bool
    ) -> set[str | None]:
        """Compact the history to what asked for the summary, the summary, and what was kept.

        Returns the messages that were kept (their ids).  `tell`: whether it happened in this session.
        """
        question = self._messages[-1] if self._messages else Message(None, "user", [])
        first = next((at for at, one in enumerate(self._messages[:-1]) if one.native == tail), None)
        kept = self._messages[first:-1] if tail is not None and first is not None else []
        held = len(self._window.rows)
        self._hold([question, summary, *kept])
        if tell:
            self._window.compact(self._all(), summary=text, line=line)
        else:
            self._window.splice(0, held, self._all())
        return {one.native for one in kept}

    def _hold(self, messages: Iterable[Message]) -> None:
        """Have these messages and no others."""
        for one in self._messages:
            one.seat = _NOWHERE
        self._make.work += len(self._messages)
        self._messages = [*messages]
        self._set_rows(0)
        self._planned = 0
        self._named, self._given, self._asked, self._thinking = {}, {}, [], []
        for one in self._messages:
            self._know(one)


def _runs(messages: list[Message]) -> list[list[Message]]:
    """Messages in order, those together that stand side by side."""
    found = groupby(enumerate(messages), lambda one: one[1].seat - one[0])
    return [[one for _, one in run] for _, run in found]
