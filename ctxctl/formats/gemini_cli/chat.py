"""A chat as Gemini CLI records it: the messages, in order, as steps."""

from __future__ import annotations

from typing import Any

from ctxctl.formats.build import Json
from ctxctl.formats.gemini_cli.contents import Cutter, bill, is_billed
from ctxctl.formats.kit.parts import Part, string
from ctxctl.formats.kit.run import Run


class Chat:
    """Takes the messages of one chat when they are whole."""

    def __init__(self, run: Run, *, kind: str | None = None) -> None:
        self._run = run
        origin = {"agent_type": "subagent"} if kind == "subagent" else None
        self._window = run.thread(origin=origin)
        self._cutter = Cutter()
        self._messages: list[tuple[str | None, int]] = []
        """The messages in the window, by id, and how many rows each has."""
        self._waiting = False
        """Whether the last answer had no calls yet."""
        self._told: set[str] = set()
        """Ids of calls in the window, and `id/result` of those that have results."""

    def message(self, message: Json) -> None:
        """One message; what the CLI told the person (`info`, `error`, `warning`) is passed over."""
        self._run.make.at(message.get("timestamp"))
        kind = message.get("type")
        if kind == "user":
            native = string(message.get("id"))
            self._window.turn = native or self._window.turn
            self._waiting = False
            self._enter(native, self._cutter.user(message.get("content"), native))
        elif kind == "gemini":
            self._answer(message)

    def again(self, message: Json) -> None:
        """A message that was taken already: calls and results that are new."""
        parts = self._called(message)
        if parts:
            self._enter(None, parts)

    def rewind(self, native: str) -> bool:
        """Take a message out, and all that follow it; whether it was there."""
        at = next((at for at, one in enumerate(self._messages) if one[0] == native), None)
        if at is None:
            return False
        gone = sum(rows for _, rows in self._messages[at:])
        del self._messages[at:]
        self._window.splice(len(self._window) - gone, gone, cause="branched")
        self._waiting = False
        return True

    def restart(self, messages: list[Any]) -> None:
        """The history was replaced by another one: nothing of it is asked again."""
        self._window.splice(0, len(self._window), cause="unrecorded")
        self._messages.clear()
        self._cutter = Cutter()
        self._told.clear()
        for message in messages:
            if isinstance(message, dict):
                native = string(message.get("id"))
                if message.get("type") == "user":
                    self._enter(native, self._cutter.user(message.get("content"), native))
                elif message.get("type") == "gemini":
                    self._enter(native, self._parts(message))

    def _answer(self, message: Json) -> None:
        calls = message.get("toolCalls")
        if not self._goes_on(message):
            model = string(message.get("model"))
            line = self._run.line.number
            self._window.request(string(message.get("id")), line=line, model=model, derived=True)
            self._window.usage(bill(message.get("tokens"), model), line=line)
        self._waiting = not calls
        self._enter(string(message.get("id")), self._parts(message))

    def _goes_on(self, message: Json) -> bool:
        """Whether a message holds no answer of its own, but the calls of the one before.

        The CLI begins a new message for calls where something else was recorded after the answer.
        """
        empty = not message.get("content") and not message.get("thoughts")
        return (
            empty
            and self._waiting
            and bool(message.get("toolCalls"))
            and not is_billed(message.get("tokens"))
        )

    def _parts(self, message: Json) -> list[Part]:
        """A model's message: its text, its calls, and the results that are kept with them."""
        made = self._cutter.model(message.get("content"), string(message.get("id")))
        return made + self._called(message)

    def _called(self, message: Json) -> list[Part]:
        """The calls of a message, then their results, but for those that were told of before."""
        found = message.get("toolCalls")
        calls = [call for call in found if isinstance(call, dict)] if isinstance(found, list) else []
        made: list[Part] = []
        for call in calls:
            if self._is_new(call.get("id")):
                made.append(self._cutter.call(call.get("id"), call.get("name"), call.get("args")))
        for call in calls:
            result = call.get("result")
            if result is not None and self._is_new(call.get("id"), "/result"):
                failed = call.get("status") in ("error", "cancelled")
                made += self._cutter.result(call.get("id"), call.get("name"), result, failed=failed)
        return made

    def _is_new(self, native: object, what: str = "") -> bool:
        if not isinstance(native, str):
            return True
        known = f"{native}{what}" in self._told
        self._told.add(f"{native}{what}")
        return not known

    def _enter(self, native: str | None, parts: list[Part]) -> None:
        for part in parts:
            part.line = self._run.line.number
        self._window.append(*parts)
        self._messages.append((native, len(parts)))
