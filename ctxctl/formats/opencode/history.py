"""The messages in the window of an opencode session, and what of them changes from request to request."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ctxctl.formats.kit.conversation import Conversation
from ctxctl.formats.kit.parts import Part

_PLAN: Final = "plan"
_BUILD: Final = "build"


class Message:
    """A message and its part of the window."""

    __slots__ = ("_thoughts", "agent", "model", "native", "parts", "reminded", "role", "shown")

    def __init__(
        self, native: str | None, role: str, parts: list[Part], *, agent: str | None = None, model: str = ""
    ) -> None:
        self.native = native
        self.role = role
        self.parts = parts
        """As its own model gets it; texts are given up once they were announced."""
        self.shown = parts
        """As the window has it."""
        self.agent = agent
        self.model = model
        self.reminded = False
        """It holds a reminder of the agent's mode as a part of its own."""
        self._thoughts: dict[str, Part | None] = {}

    def keep_thoughts(self) -> None:
        """Keep what another model gets of its reasoning: the text, as if it had been said."""
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
        """What a model gets of it."""
        if model == self.model or not self._thoughts:
            return self.parts
        made = [self._thoughts.get(part.item, part) for part in self.parts]
        return [part for part in made if part is not None]


class History:
    """Keeps messages and window in step: the window is what stands in front, then each message's parts."""

    def __init__(self, conversation: Conversation) -> None:
        self._window = conversation
        self._standing: list[Part] = []
        self._messages: list[Message] = []
        self._reader: str | None = None
        self._reminded: Message | None = None
        self._planned = 0
        """Answers in the window that were given in plan mode."""

    def standing(self, parts: list[Part]) -> None:
        """The tools and the system prompt of the next request."""
        self._window.splice(0, len(self._standing), parts)
        self._standing = parts

    def enter(self, message: Message) -> None:
        """A message at the end."""
        if self._reader is not None:
            message.shown = message.read_by(self._reader)
        self._window.append(*message.shown)
        self._messages.append(message)
        self._planned += _is_planned(message)

    def remove(self, native: str) -> None:
        """A message leaves: the person went back to before it."""
        gone = {part.item for one in self._messages if one.native == native for part in one.shown}
        self._messages = [one for one in self._messages if one.native != native]
        self._planned = sum(map(_is_planned, self._messages))
        if gone:
            self._window.drop(gone.__contains__, cause="branched")

    def clear(self, due: dict[str, Part]) -> None:
        """Put blank results in the place of those that were pruned, by item."""
        for message in self._messages:
            own = message.shown is not message.parts
            message.parts[:] = [due.get(part.item, part) for part in message.parts]
            if own:
                message.shown[:] = [due.get(part.item, part) for part in message.shown]
        for at, row in enumerate(self._window.rows):
            if row[0].item in due:
                self._window.splice(at, 1, [due[row[0].item]], cause="truncated")

    def read_by(self, model: str) -> None:
        """The next request goes to this model: it gets what others reasoned as text."""
        if model == self._reader:
            return
        self._reader = model
        at = len(self._standing)
        for message in self._messages:
            before, message.shown = message.shown, message.read_by(model)
            if message.shown is not before and [p.item for p in before] != [p.item for p in message.shown]:
                self._window.splice(at, len(before), message.shown)
            at += len(message.shown)

    def remind(self, agent: str | None) -> None:
        """The reminder of the agent's mode, which stands in the last user's message of each request.

        opencode writes it anew each time and keeps it nowhere: that it is there is known, its text is not.
        """
        last = next((one for one in reversed(self._messages) if one.role == "user"), None)
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
        at = len(self._standing)
        for message in self._messages:
            at += len(message.shown)
            if message is last:
                break
        self._window.splice(at, 0, [part])
        last.parts.append(part)
        self._reminded = last

    def _forget(self, message: Message) -> None:
        self._reminded = None
        gone = {part.item for part in message.parts if part.derived and part.kind == "policy_note"}
        message.parts[:] = [part for part in message.parts if part.item not in gone]
        self._window.drop(gone.__contains__)

    @contextmanager
    def instead(self, parts: list[Part]) -> Iterator[None]:
        """Another window for one request."""
        before = [*self._standing, *(part for one in self._messages for part in one.shown)]
        self._window.splice(0, len(before), parts)
        yield
        self._window.splice(0, len(parts), before)

    def compact(
        self, summary: Message, text: Part, tail: str | None, *, line: int, tell: bool
    ) -> set[str | None]:
        """A summary: from here on the history is what asked for it, the summary, and what was kept.

        Returns the messages that were kept (their ids).  `tell`: whether it happened in this session.
        """
        question = self._messages.pop() if self._messages else Message(None, "user", [])
        first = next((at for at, one in enumerate(self._messages) if one.native == tail), None)
        kept = self._messages[first:] if tail is not None and first is not None else []
        held = len(self._window.rows)
        self._messages = [question, summary, *kept]
        self._planned = sum(map(_is_planned, self._messages))
        rest = [*self._standing, *(part for one in self._messages for part in one.shown)]
        if tell:
            self._window.compact(rest, summary=text, line=line)
        else:
            self._window.splice(0, held, rest)
        return {one.native for one in kept}


def _is_planned(message: Message) -> bool:
    return message.role == "assistant" and message.agent == _PLAN
