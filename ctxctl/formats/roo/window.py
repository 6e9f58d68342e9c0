"""A task's window: the messages of its history that a request carries, without those that were condensed."""

from __future__ import annotations

from typing import Any, Final

from ctxctl.formats.build import Json
from ctxctl.formats.kit.conversation import Conversation
from ctxctl.formats.kit.parts import Part, string
from ctxctl.formats.kit.run import Run
from ctxctl.formats.kit.usage import clock
from ctxctl.formats.roo.messages import ENVIRONMENT, Cutter, prompts, sealed
from ctxctl.model import vocab

_PARENTS: Final = ("condenseParent", "truncationParent")


def moment(value: Any) -> str | None:
    """A time of the runtime (milliseconds since 1970) as a native timestamp."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return clock(value / 1000)


def milliseconds(value: Any) -> float:
    """A time of the runtime as a number; 0 for what is none."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


class History:
    """Takes the messages of one task, in the order in which they came to be.

    A condensation does not delete: the messages that a summary stands for carry its id (`condenseParent`),
    those that were cut off carry that of a marker (`truncationParent`).  Before these fields, they were
    deleted, and the summary stands behind the first message.
    """

    def __init__(self, run: Run, window: Conversation) -> None:
        self.window = window
        self._run = run
        self._cutter = Cutter()
        self._owners: list[tuple[int, str | None, str | None]] = []
        """Of each row: its message's index, and what stands for it once it was condensed or cut off."""
        self._sealed: list[Part] = []

    def cut(self, message: Json, index: int) -> list[Part]:
        """The items of the message at an index of the history."""
        return self._cutter.cut(message, f"message-{index}")

    def question(self, message: Json, index: int) -> None:
        """A message of the user; what it asks goes out with the next request."""
        self._run.make.at(moment(message.get("ts")))
        parts = self.cut(message, index)
        if message.get("isTruncationMarker") is True:
            self._truncate(message, parts, index)
            return
        if prompts(parts):
            self.window.turn = str(message.get("ts") or index)
        self._append(message, parts, index)

    def answer(self, message: Json, index: int) -> None:
        """What a request was answered with."""
        self._run.make.at(moment(message.get("ts")))
        parts = self.cut(message, index)
        self._append(message, [*self._sealed, *parts], index)
        self._sealed = []

    def reasoning(self, message: Json) -> None:
        """Reasoning that is stored as a message of its own, before the answer."""
        self._sealed.append(sealed(message))

    def condense(self, message: Json, index: int, told: Json | None = None) -> None:
        """A summary takes the place of what it stands for; `told`: what the chat said of it."""
        self._run.make.at(moment(message.get("ts")))
        parts = self.cut(message, index)
        native = string(message.get("condenseId"))
        left = self._drop(lambda row: native is not None and row[1] == native)
        summary = next((part for part in parts if part.kind == "thread_summary"), None)
        self._insert(message, parts, index)
        record: Json = {"compaction_id": native, "metadata": told} if told else {"compaction_id": native}
        into = summary.block().ref if summary is not None else None
        self.window.compacted(left, into, **record)

    def restart(self, messages: list[tuple[int, Json]], summary: Json, told: Json | None) -> None:
        """The window is what a condensation left; what went is what the window held before."""
        self._run.make.at(moment(summary.get("ts")))
        every: list[Part] = []
        into: Part | None = None
        self._owners = []
        for index, message in messages:
            parts = self.cut(message, index)
            if message is summary:
                into = next((part for part in parts if part.kind == "thread_summary"), None)
            every += parts
            self._owners += [_owner(message, index)] * len(parts)
        self.window.compact(every, summary=into, several=frozenset((ENVIRONMENT,)), metadata=told)

    def _truncate(self, message: Json, parts: list[Part], index: int) -> None:
        native = string(message.get("truncationId"))
        left = self._drop(lambda row: native is not None and row[2] == native)
        self._insert(message, parts, index)
        self.window.compacted(left, None, compaction_id=native, method="truncation")

    def _append(self, message: Json, parts: list[Part], index: int) -> None:
        self.window.append(*parts)
        self._owners += [_owner(message, index)] * len(parts)

    def _insert(self, message: Json, parts: list[Part], index: int) -> None:
        """Place a message where the history has it: messages that were kept stand behind their summary."""
        at = sum(1 for owner in self._owners if owner[0] < index)
        self.window.splice(at, 0, parts)
        self._owners[at:at] = [_owner(message, index)] * len(parts)

    def _drop(self, gone: Any) -> list[str]:
        """Take rows out; returns their refs."""
        rows = self.window.rows
        refs = [rows[at][0].ref for at, owner in enumerate(self._owners) if gone(owner)]
        if not refs:
            return []
        keep = [at for at, owner in enumerate(self._owners) if not gone(owner)]
        first = next(at for at, owner in enumerate(self._owners) if gone(owner))
        kept = [rows[at] for at in keep if at > first]
        self.window.splice(first, len(rows) - first, [])
        self.window.rows += kept
        self._owners = [self._owners[at] for at in keep]
        stays = {row[0].ref for row in self.window.rows}
        return [ref for ref in refs if ref not in stays]


def _owner(message: Json, index: int) -> tuple[int, str | None, str | None]:
    condensed, truncated = (string(message.get(name)) for name in _PARENTS)
    return index, condensed, truncated


def opened(run: Run, **told: Any) -> None:
    """Say what is read."""
    fields = {"format": run.name, "session": run.session, **told}
    run.emit(vocab.SOURCE_OPENED, {name: value for name, value in fields.items() if value is not None})
