"""One session of Amplifier: its turns, tool calls and answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ctxctl.formats.amplifier import parts as shapes
from ctxctl.formats.amplifier.records import Record, body
from ctxctl.formats.amplifier.requests import Requests
from ctxctl.formats.amplifier.usage import reported
from ctxctl.formats.build import Json, canonical
from ctxctl.formats.kit.parts import Part, call_title, string

if TYPE_CHECKING:
    from ctxctl.formats.wire.dialect import Dialect


class Session(Requests):
    """The state of one session while its log is read."""

    def turn(self, text: Any, line: int) -> None:
        """A person's prompt begins a turn."""
        self.turns += 1
        self.submitted = True
        self.conversation.turn = f"turn-{self.turns}"
        self.stage = "idle"
        self.settle()
        self.waiting.append(shapes.prompt(shapes.plain(text), line))

    def call(self, found: Record) -> None:
        """A tool is about to run; loops that log no content blocks tell of the call here alone."""
        name = string(found.field("tool_name")) or "tool"
        key = string(found.data.get("tool_call_id"))
        if self.replied or (key is None and self.said) or (key is not None and key in self.calls):
            return
        if key is not None:
            self.calls[key] = len(self.calls)
        self.waiting.append(shapes.called(key, name, found.data.get("tool_input"), found.line.number))

    def result(self, found: Record) -> None:
        """A tool has run; results join in the order of their calls, whichever finished first."""
        given = found.field("result")
        if given is None:
            given = found.field("error")
        key = string(found.data.get("tool_call_id")) or self._answered_call(found)
        structured = not isinstance(given, str)
        part = shapes.result(key, None, given, found.line.number, derived=structured)
        part.title = call_title(string(found.field("tool_name")) or "tool", found.data.get("tool_input"))
        order = self.calls.get(key, len(self.calls)) if key is not None else len(self.calls)
        self.results.append((order, part))
        if part.item:
            self.stored[part.item] = shapes.stored(given)
        self._delegated(key, found)

    def _answered_call(self, found: Record) -> str | None:
        """The call that a result is of where the loop names none: the first of its words without a result."""
        name, given = string(found.field("tool_name")), found.data.get("tool_input")
        wanted = name, canonical(given)
        for part in self.waiting:
            waits = part.kind == "tool_call" and part.item and f"{part.item}/result" not in self.stored
            if waits and part.text is not None and shapes.spoken(part.text) == wanted:
                return part.item
        return None

    def _delegated(self, key: str | None, found: Record) -> None:
        given, asked = found.field("result"), found.data.get("tool_input")
        output = given.get("output") if isinstance(given, dict) else None
        child = string(output.get("session_id")) if isinstance(output, dict) else None
        if child is not None and key is not None:
            self.children[child] = (key, string(asked.get("agent")) if isinstance(asked, dict) else None)

    # -- answers -----------------------------------------------------------------------------------------

    def answered(self, found: Record) -> None:
        """The provider's answer: its usage, and its text where the log holds it."""
        if self.stage == "idle" or self.responded:
            self.request(found, None)
        sent = body(found)
        model = string(found.field("model")) or self.model
        if not self.billed:
            own, told = _own_bill(sent, model), self._reported(found.field("usage"), model)
            if own is not None and told is not None and "stated_usd" in told:
                own.setdefault("stated_usd", told["stated_usd"])
            self._bill(own or told, found)
        if found.field("status") != "error" and not found.field("error"):
            self.stage = "answered"
            self.responded = True
            wire = _dialect(sent)
            if wire is not None and sent is not None and not self.said:
                self._reply(wire.reply(sent), found)

    def raw_answer(self, found: Record) -> None:
        """The provider's answer in an event of its own, beside `llm:response`."""
        sent = body(found)
        wire = _dialect(sent)
        if self.stage != "idle" and not self.replied and not self.said and wire and sent:
            self._reply(wire.reply(sent), found)

    def block(self, found: Record) -> None:
        """A content block as the loop tells it; usage is repeated on each one."""
        if self.stage == "idle":
            self.request(found, None)
        self.stage = "answered"
        if not self.billed:
            self._bill(self._reported(found.field("usage"), self.model), found)
        one = found.data.get("block")
        if isinstance(one, dict) and not self.replied:
            part = shapes.block(one, found.line.number)
            if part is not None:
                self.said = True
                self._add(part)

    def loop_answer(self, found: Record) -> None:
        """The loop's own record of an answer, with the usage in print."""
        if self.stage == "idle":
            self.request(found, None)
        self.stage = "answered"
        if not self.billed:
            self._bill(self._reported(found.field("usage"), self.model), found)

    def completed(self, found: Record) -> None:
        """The turn's last answer, where nothing else holds its text."""
        text = string(found.data.get("response"))
        preview = string(found.data.get("response_preview"))
        if text is None and preview is not None and found.data.get("length") == len(preview):
            text = preview
        said = any(part.kind == "assistant_message" for part in self.waiting)
        if text is not None and not said and not self.replied:
            self.say(Part("assistant_message", text, "assistant", line=found.line.number))

    def _reported(self, usage: Any, model: str | None) -> Json | None:
        return reported(usage, self.provider, model)

    def _bill(self, record: Json | None, found: Record) -> None:
        if record is not None:
            self.billed = True
            self.told.usage(record, line=found.line.number)

    def _reply(self, made: list[Part], found: Record) -> None:
        for part in shapes.spread(made, self.origins.of):
            part.line = found.line.number
            self._add(part)
        self.replied = True

    def _add(self, part: Part) -> None:
        if self.told is not self.conversation:
            return
        if part.kind == "tool_call" and part.item:
            self.calls[part.item] = len(self.calls)
        self.waiting.append(part)

    def finish(self) -> None:
        """The log ends: the last answer is known, and no request carried it."""
        self.seal()
        self.settle()
        self.read_script()
        self.conversation.append(*self.waiting)
        self.waiting.clear()


def _dialect(sent: Json | None) -> Dialect | None:
    """The API that a response's body speaks; None if the log holds none, or one that nobody knows."""
    if sent is None:
        return None
    # The dialects are slow to import, and many logs hold no body.
    from ctxctl.formats import wire

    return wire.of_response(sent)


def _own_bill(sent: Json | None, model: str | None) -> Json | None:
    """The provider's own bill in its own words: no convention of Amplifier's can shift it."""
    wire = _dialect(sent)
    return wire.usage(sent, model) if wire is not None and sent is not None else None
