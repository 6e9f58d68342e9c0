"""From model calls as observability tools record them to steps.

Their requests list pieces of every provider's dialect.  Such a list is no body that went over the wire, so
placements do not say where in a body they stood.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, ClassVar, Final, NamedTuple

from ctxctl.ingest.about import IN_USAGE
from ctxctl.ingest.build import Json, canonical
from ctxctl.ingest.lines import Line
from ctxctl.ingest.parts import Part, listed, string
from ctxctl.ingest.run import Run
from ctxctl.model import vocab
from ctxctl.providers.dialects.anthropic import Anthropic
from ctxctl.providers.dialects.base import CallTitles, Dialect, Unit, message_units
from ctxctl.providers.dialects.exchanges import Exchange, Exchanges
from ctxctl.providers.dialects.gemini import Gemini
from ctxctl.providers.dialects.openai_chat import OpenAIChat
from ctxctl.providers.dialects.openai_responses import OpenAIResponses
from ctxctl.providers.dialects.slots import JSON, Slots
from ctxctl.providers.spans import shapes
from ctxctl.providers.spans.chat_values import NAMED, ChatContent

_ANTHROPIC: Final = Anthropic()
_CHAT: Final = OpenAIChat()
_RESPONSES: Final = OpenAIResponses()
_GEMINI: Final = Gemini()
_BLOCKS: Final = ("tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "document")
_ITEMS: Final = ("input_text", "output_text", "input_image", "input_file")


class CollectedDialect(Dialect):
    """Requests of the shape `{tools, system, messages, model}`, each message in a dialect of its own."""

    name: ClassVar[str] = "kept"
    provider: ClassVar[str] = ""
    section: ClassVar[str] = "messages"

    def detect(self, body: Json) -> int:
        """0: a request of this shape is made by its importer."""
        return 0

    def answers(self, response: Json) -> int:
        """0: an answer of this shape is made by its importer."""
        return 0

    def units(self, body: Json) -> list[Unit]:
        """Tools, system prompt, messages."""
        found = [Unit("tools", value, at, True) for at, value in enumerate(listed(body.get("tools")))]
        found += [Unit("system", value, at, True) for at, value in enumerate(listed(body.get("system")))]
        return found + message_units(listed(body.get("messages")))

    def parts(self, unit: Unit, names: CallTitles, line: int = 0) -> Slots:
        """The items of one piece."""
        if unit.section == "tools":
            slots = _tool(unit.value, names, line)
        elif unit.section == "system":
            slots = _system(unit, line)
        else:
            slots = _message(unit, names, line)
        for part in slots.parts:
            part.wire = ""
        return slots

    def reply(self, response: Json) -> list[Part]:
        """The answer's messages as items."""
        names = CallTitles()
        return [
            part for value in listed(response.get("messages")) for part in self.message(value, 1, names=names)
        ]

    def usage(self, response: Json, model: str | None = None) -> Json | None:
        """The bill, as the importer has read it."""
        bill = response.get("usage")
        if isinstance(bill, dict) and model is not None:
            return {"model": model, **bill}
        return bill if isinstance(bill, dict) else None


def request(talk: ChatContent, model: str | None) -> Json:
    """A request in this dialect."""
    return {"tools": talk.tools, "system": talk.system, "messages": talk.messages, "model": model}


def _tool(value: Any, names: CallTitles, line: int) -> Slots:
    named = value.get(NAMED) if isinstance(value, dict) else None
    if isinstance(named, str):
        # Its name is recorded, its description and parameters are not.
        slots = Slots("tools", line)
        part = Part(
            "tool_definition", None, "system", key=f"tool:{named}", title=named, version="name", line=line
        )
        slots.put(part, JSON)
        return slots
    return _CHAT.parts(Unit("tools", value, 0, True), names, line)


def _system(unit: Unit, line: int) -> Slots:
    slots = Slots("system", line)
    value = unit.value
    cut = isinstance(value, dict)
    text = str(value.get("text")) if isinstance(value, dict) else str(value)
    for part in slots.text("system_prompt", text, "system", key=f"instructions:{unit.at}"):
        part.truncated = cut
    return slots


def _message(unit: Unit, names: CallTitles, line: int) -> Slots:
    value = unit.value
    if not isinstance(value, dict) or shapes.JSON in value:
        slots = _unknown(value, line)
    else:
        bare = {name: inner for name, inner in value.items() if name not in (shapes.DERIVED, shapes.CUT)}
        slots = Slots("messages", line)
        for one in shapes.message(bare):
            made = _unknown(one, line) if shapes.JSON in one else _cut(unit._replace(value=one), names, line)
            slots.marked += [len(slots.parts) + at for at in made.marked]
            slots.parts += made.parts
    if isinstance(value, dict):
        if value.get(shapes.DERIVED):
            for part in slots.parts:
                part.derived = True
        if value.get(shapes.CUT) and slots.parts:
            slots.parts[-1].truncated = True
    return slots


def _unknown(value: Any, line: int) -> Slots:
    """What no shape fits, as its JSON."""
    slots = Slots("messages", line)
    inner = value.get(shapes.JSON) if isinstance(value, dict) else value
    slots.put(Part("custom", canonical(inner), "user", line=line, native={"type": "unknown"}), JSON)
    return slots


def _cut(unit: Unit, names: CallTitles, line: int) -> Slots:
    """A message in the dialect that its shape is of."""
    value = unit.value
    role = value.get("role")
    if isinstance(value.get("parts"), list):
        return _GEMINI.parts(unit._replace(section="contents"), names, line)
    if role is None or (string(value.get("type")) not in (None, "message")):
        return _RESPONSES.parts(unit._replace(section="input"), names, line)
    content = value.get("content")
    kinds = {string(block.get("type")) for block in listed(content) if isinstance(block, dict)}
    sourced = any(isinstance(block, dict) and "source" in block for block in listed(content))
    if role in ("user", "assistant") and not value.get("tool_calls") and (kinds & set(_BLOCKS) or sourced):
        return _ANTHROPIC.parts(unit._replace(value={"role": role, "content": content}), names, line)
    if kinds & set(_ITEMS) and not value.get("tool_calls"):
        return _RESPONSES.parts(unit._replace(section="input"), names, line)
    return _CHAT.parts(unit, names, line)


_DIALECT: Final = CollectedDialect()
_SHOWN: Final = 160


class Inference(NamedTuple):
    """One call of a model."""

    asked: ChatContent
    answer: list[Json]
    """Messages; empty where none is recorded."""
    usage: Json | None
    model: str | None
    line: int
    time: str | None
    native_id: str | None
    session: str | None
    turn: str | None
    """Of the trace that it is in."""
    agent: str | None = None
    """Thread of the agent that asked, where the spans tell it; `main` for the outermost one."""
    origin: Json | None = None
    """Of that thread: `parent_thread`, `parent_tool_call`, `agent_type`."""
    error: str | None = None
    answer_line: int = 0
    """Line of the answer, where it is another one."""


class Inferences:
    """Makes steps of calls that come in the order in which they were begun."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.exchanges = Exchanges(run)
        self.count = 0

    def add(self, call: Inference) -> None:
        """The next call; where neither agent nor content tells its thread, it is the main one's."""
        self.count += 1
        thread = call.agent
        if thread is None and not call.asked.messages:
            thread = vocab.MAIN_THREAD
        self.exchanges.add(
            Exchange(
                request=request(call.asked, call.model),
                response={"messages": call.answer, "usage": call.usage},
                line=call.line,
                time=call.time,
                native_id=call.native_id,
                session=call.session,
                thread=thread,
                turn=call.turn,
                error=call.error,
                answer_line=call.answer_line,
                dialect=_DIALECT,
                origin=call.origin,
            )
        )

    def summed(self, runs: int) -> None:
        """Say that the bills of agents' runs are sums, which are no call's (`summed-usage`)."""
        if runs:
            whose = (
                "the bill of an agent's run is the sum" if runs == 1 else f"bills of {runs:,} runs are sums"
            )
            message = f"{whose} of calls that are not in the file: given to none of them"
            self.run.problem("summed-usage", message, Line(0, 0, b""))
            self.run.understood.explained.update(IN_USAGE)

    def unpaired(self, answers: int) -> None:
        """Say that answers in spans of their own were left out (`unpaired-answers`)."""
        if answers:
            whose = "an answer" if answers == 1 else f"{answers:,} answers"
            message = (
                f"{whose} in a span apart from the call: without its beginning, or of no call for certain"
            )
            self.run.problem("unpaired-answers", f"{message}; left out", Line(0, 0, b""))

    def finish(self, held: str) -> Iterator[Json]:
        """Hand on the rest; `held`: what there is, where no call is (`no-model-calls`)."""
        self.exchanges.finish()
        if not self.count:
            self.run.problem("no-model-calls", f"no call of a model in it: {held}"[:_SHOWN])
        yield from self.run.finish()


_NO_DAY: Final = 10**24


def moment(value: Any) -> str | None:
    """A time as RFC 3339: text, nanoseconds, milliseconds or seconds since 1970, or a pair of the SDK's.

    None for what is no time.
    """
    if isinstance(value, list) and len(value) == 2:
        # Later than any day there is would overflow below, too.
        fits = all(_number(part) and abs(part) < _NO_DAY for part in value)
        value = value[0] + value[1] / 1e9 if fits else None
    elif isinstance(value, str) and value.isdigit() and len(value) < 24:
        value = int(value)
    if isinstance(value, str):
        return value.replace(" ", "T", 1) if len(value) >= 19 and value[4:5] == "-" else None
    if not _number(value) or abs(value) >= _NO_DAY:
        return None
    for scale in (1e9, 1e6, 1e3, 1):
        seconds = value / scale
        if 1e8 < seconds < 2**33:
            return datetime.fromtimestamp(seconds, UTC).isoformat()
    return None


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value
