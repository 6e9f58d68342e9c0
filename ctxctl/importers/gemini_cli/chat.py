"""A chat as Gemini CLI records it: the messages, in order, as steps."""

from __future__ import annotations

from typing import Any

from ctxctl.importers.gemini_cli.parts import PartCutter, bill, is_billed, is_blob, pieces
from ctxctl.ingest.build import Json
from ctxctl.ingest.parts import Part, string
from ctxctl.ingest.run import Run


class Chat:
    """Takes the messages of one chat when they are whole."""

    def __init__(self, run: Run, *, kind: str | None = None) -> None:
        self._run = run
        origin = {"agent_type": "subagent"} if kind == "subagent" else None
        self._window = run.thread(origin=origin)
        self._cutter = PartCutter()
        self._messages: list[tuple[str | None, int]] = []
        """The messages in the window, by id, and how many rows each has."""
        self._waiting = False
        """Whether the last answer had no calls yet."""
        self._results: list[Part] = []
        """Results that were kept with the last answer's calls."""
        self._told: set[str] = set()
        """Ids of calls in the window, and `id/result` of those that have results."""

    def message(self, message: Json) -> None:
        """One message; what the CLI told the person (`info`, `error`, `warning`) is passed over."""
        self._run.make.at(message.get("timestamp"))
        kind = message.get("type")
        if kind == "user":
            self._waiting = False
            native, parts = string(message.get("id")), self._asked(message)
            if any(part.kind == "user_message" for part in parts) and not _answers_calls(message):
                self._window.turn = native or self._window.turn
            self._enter(native, parts)
        elif kind == "gemini":
            self._answer(message)
        elif is_sent(message):
            native = string(message.get("id"))
            self._enter(native, self._cutter.user(message.get("content"), native))

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
        """The history was replaced by another one: nothing of it is asked again.

        The CLI does so when it compressed the history, when it masked results, and when it took an
        unanswered prompt back.
        """
        before = [native for native, _ in self._messages]
        self._messages.clear()
        self._cutter = PartCutter()
        self._told.clear()
        self._waiting = False
        made: list[Part] = []
        for message in messages:
            if not isinstance(message, dict):
                continue
            native, parts = string(message.get("id")), self._of(message)
            if parts:
                self._messages.append((native, len(parts)))
                made += parts
        for part in made:
            part.line = self._run.line.number
        after = [native for native, _ in self._messages]
        summary = next((part for part in made if part.kind == "thread_summary"), None)
        if summary is not None and summary.item not in {row[0].item for row in self._window.rows}:
            marks = {"ctxctl": {"derived": True}}
            self._window.compact(made, summary=summary, line=self._run.line.number, metadata=marks)
            return
        taken_back = len(after) < len(before) and before[: len(after)] == after
        self._window.replace(made, cause="branched" if taken_back else "unrecorded")

    def _of(self, message: Json) -> list[Part]:
        """What of a message is sent."""
        if message.get("type") == "user":
            return self._asked(message)
        if message.get("type") == "gemini":
            return self._parts(message)
        content = message.get("content")
        return self._cutter.user(content, string(message.get("id"))) if is_sent(message) else []

    def _asked(self, message: Json) -> list[Part]:
        """A user's message; of one that answers calls, what was not kept with the calls already."""
        native, content = string(message.get("id")), message.get("content")
        if not _answers_calls(message):
            return self._cutter.user(content, native)
        made: list[Part] = []
        beside: list[Json] = []
        for piece in pieces(content):
            response = piece.get("functionResponse")
            if not isinstance(response, dict):
                beside.append(piece)
            elif self._is_new(response.get("id"), "/result"):
                made += self._cutter.result(response.get("id"), response.get("name"), [piece])
                self._is_new(response.get("id"), "/answered")
            elif self._is_new(response.get("id"), "/answered"):
                self._set_result(self._cutter.told(piece))
            else:
                # A chat that is taken up again has the results of a message's calls twice, and sends both.
                made += self._cutter.result(response.get("id"), response.get("name"), [piece])
        known = {part.mark for part in self._results}
        return made + [part for part in self._cutter.user(beside, native) if part.mark not in known]

    def _set_result(self, part: Part) -> None:
        """What was sent as a result, where it is another text than was kept with the call."""
        rows = self._window.rows
        at = next((at for at in range(len(rows) - 1, -1, -1) if rows[at][0].item == part.item), None)
        if at is not None and rows[at][0].ref != part.block().ref:
            part.line = self._run.line.number
            self._window.put(at, part)

    def _answer(self, message: Json) -> None:
        calls = message.get("toolCalls")
        if not self._goes_on(message) and not _is_made_up(message):
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
        found = message.get("toolCalls")
        called = {
            value
            for call in (found if isinstance(found, list) else [])
            if isinstance(call, dict)
            for value in (call.get("id"), call.get("name"))
            if isinstance(value, str)
        }
        said: list[Json] = []
        for piece in pieces(message.get("content")):
            call = piece.get("functionCall")
            native = (call.get("id") or call.get("name")) if isinstance(call, dict) else None
            if native is None or (native not in called if isinstance(native, str) else True):
                said.append(piece)
                if isinstance(call, dict):
                    self._is_new(call.get("id"))
        return self._cutter.model(said, string(message.get("id"))) + self._called(message)

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
                results = self._cutter.result(call.get("id"), call.get("name"), result, failed=failed)
                self._results = [*self._results, *results] if made else results
                made += results
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


def is_sent(message: Json) -> bool:
    """Whether a notice is none, but the files that came with a tool's result: the CLI keeps them so."""
    content = message.get("content")
    return message.get("type") == "info" and isinstance(content, list) and any(map(is_blob, pieces(content)))


def _answers_calls(message: Json) -> bool:
    """Whether a user's message is the CLI's, with what tools gave back (newer versions record it)."""
    return any(isinstance(piece.get("functionResponse"), dict) for piece in pieces(message.get("content")))


def _is_made_up(message: Json) -> bool:
    """Whether the CLI put words into the model's mouth: nobody was asked."""
    return (
        isinstance(message.get("content"), list)
        and string(message.get("model")) is None
        and not message.get("toolCalls")
        and not is_billed(message.get("tokens"))
    )
