"""One opencode session: its messages, in order, as the steps of a thread.

The messages in the window may change from request to request.  From 1.18 on, opencode has a summary written
by a request that holds the history as one text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from heapq import heappop, heappush
from typing import Any, Final, NamedTuple

import orjson

from ctxctl.importers.opencode import parts as cut
from ctxctl.importers.opencode.parts import CLEARED, NativePart
from ctxctl.ingest.build import Json, canonical
from ctxctl.ingest.conversation import Conversation
from ctxctl.ingest.parts import Part, count, moment, string
from ctxctl.ingest.run import Run
from ctxctl.model import vocab

_AS_TEXT: Final = (1, 14)
"""The version from which on another model's reasoning goes to a model as text."""
_RENDERED: Final = (1, 18, 15)
"""The version from which on a summary is asked for in one message that renders the history."""
_VERSION: Final = re.compile(r"(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?")


class Session:
    """Takes the messages of one session, each when it is whole.

    Args:
        run: The import.
        conversation: The session's thread.
        version: The client's version, where the capture tells it: what is sent differs by it.
        began: Milliseconds since 1970; what is older was copied from the session that this one branched off.
    """

    def __init__(
        self, run: Run, conversation: Conversation, *, version: Any = None, began: int | None = None
    ) -> None:
        self._run = run
        self._window = conversation
        self._history = History(conversation)
        self._version = _numbers(version)
        self._began = began
        self._runs_tool = False
        """Whether the user's last message runs a tool without a model."""
        self._asked: Json | None = None
        """The compaction that was requested."""
        self._rendered: list[RenderedMessage] = []
        """What the messages say in a request for a summary, from `_RENDERED` on."""
        self._last_summary: str | None = None
        """The text of the last summary."""
        self._cleared: list[tuple[int, int, Part]] = []
        """A heap of the pruned results, each with the time from which on it is blank."""

    def standing(self, parts: list[Part]) -> None:
        """The tools and the system prompt of the next request."""
        self._history.standing(parts)

    def limit(self, tokens: int, request: str) -> None:
        """The context window of the model that the next request goes to."""
        budget = {"budget_id": f"budget-{request}", "target": vocab.MODEL, "max_tokens": tokens}
        self._window.tell(vocab.BUDGET_APPLIED, budget, line=self._run.line.number)

    def message(self, info: Json, parts: list[cut.NativePart]) -> None:
        """Take one message with its parts."""
        self._run.make.at(moment(time_of(info, "created")))
        for part, _ in parts:
            self._run.met(part.get("type"))
        if info.get("role") == "user":
            self._user(info, parts)
        elif info.get("role") == "assistant":
            self._assistant(info, parts)

    def remove(self, native: str) -> None:
        """Take out a message: the person went back to before it."""
        self._rendered = [one for one in self._rendered if one.native != native]
        self._history.remove(native)

    # -- messages -------------------------------------------------------------------------------------------

    def _user(self, info: Json, parts: list[cut.NativePart]) -> None:
        native = string(info.get("id"))
        asked = next((part for part, _ in parts if part.get("type") == "compaction"), None)
        if self._window.turn is None or cut.is_prompt(parts):
            self._window.turn = native or self._window.turn
        if asked is not None:
            self._asked = asked
        self._runs_tool = cut.runs_a_tool(parts)
        message = Message(native, "user", cut.of_user(parts), agent=_agent(info))
        message.reminded = any(_is_reminder(part) for part, _ in parts)
        self._enter(message, info, parts)

    def _enter(self, message: Message, info: Json, parts: list[cut.NativePart]) -> None:
        self._history.enter(message)
        if self._version >= _RENDERED:
            self._rendered.append(rendered_message(info, parts))

    def _assistant(self, info: Json, parts: list[cut.NativePart]) -> None:
        steps, cleared = cut.steps(parts)
        lost = cut.is_lost(info, parts)
        native = string(info.get("id"))
        if self._runs_tool and cut.is_a_tool_alone(parts):
            self._enter(self._answer(info, native, steps), info, parts)
        elif info.get("summary") is True:
            self._compaction(info, native, steps, lost)
        else:
            for at, step in enumerate(steps or [cut.NOTHING]):
                self._prune(count(time_of(info, "created")))
                tokens = info.get("tokens") if step.finish is None and len(steps) < 2 else step.finish
                self._request(info, native if at == 0 else step.native, tokens)
                if not lost:
                    self._history.enter(self._answer(info, native, [step]))
            if not lost and self._version >= _RENDERED:
                self._rendered.append(rendered_message(info, parts))
        for one in () if lost else cleared:
            heappush(self._cleared, (one.time, len(self._cleared), one.part))

    def _answer(self, info: Json, native: str | None, steps: list[cut.AnswerStep]) -> Message:
        parts = [part for step in steps for part in (*step.answer, *step.results)]
        made = Message(native, "assistant", parts, agent=_agent(info), model=_model(info))
        if self._version >= _AS_TEXT:
            made.keep_thoughts()
        return made

    def _request(self, info: Json, name: str | None, tokens: Any, purpose: str | None = None) -> None:
        if self._is_copied(info):
            return
        if purpose is None:
            if self._version >= _AS_TEXT:
                self._history.read_by(_model(info))
            self._history.remind(_agent(info))
        error = info.get("error")
        self._window.request(
            name,
            line=self._run.line.number,
            model=string(info.get("modelID")),
            derived=True,
            outcome=string(error.get("name")) if isinstance(error, dict) else None,
            purpose=purpose,
        )
        self._window.usage(cut.bill(tokens, info), line=self._run.line.number)

    def _is_copied(self, info: Json) -> bool:
        """Whether a message was copied when the session branched off, so that its request was another
        session's."""
        made = count(time_of(info, "created"))
        return made is not None and self._began is not None and made < self._began

    # -- compactions ----------------------------------------------------------------------------------------

    def _compaction(self, info: Json, native: str | None, steps: list[cut.AnswerStep], lost: bool) -> None:
        answer = [part for step in steps for part in step.answer]
        finish = next((step.finish for step in reversed(steps) if step.finish is not None), None)
        self._prune(count(time_of(info, "created")))
        tokens = info.get("tokens") if finish is None else finish
        tail = string(self._asked.get("tail_start_id")) if self._asked is not None else None
        if self._version >= _RENDERED:
            overflow = self._asked is not None and self._asked.get("overflow") is True
            made = count(time_of(info, "created"))
            asked = summary_question(
                self._rendered, self._last_summary, tail, str(info.get("parentID")), overflow, made
            )
            with self._history.instead(asked):
                self._request(info, native, tokens, "compaction")
        else:
            self._request(info, native, tokens, "compaction")
        summary = next((part for part in answer if part.kind == "assistant_message"), None)
        if lost or not info.get("finish") or summary is None:
            return
        self._asked = None
        self._last_summary = (summary.text or "").strip() or None
        summary.kind = "thread_summary"
        made_of = Message(native, "assistant", answer, agent=_agent(info), model=_model(info))
        kept = self._history.compact(
            made_of, summary, tail, line=self._run.line.number, tell=not self._is_copied(info)
        )
        self._rendered = [one for one in self._rendered if one.native in kept]

    def _prune(self, now: int | None) -> None:
        """Blank the results that were pruned before a request."""
        due: dict[str, Part] = {}
        while now is not None and self._cleared and self._cleared[0][0] <= now:
            part = heappop(self._cleared)[2]
            due[part.item] = part
        if due:
            self._history.clear(due)


def time_of(info: Json, name: str) -> Any:
    """One of a message's times, milliseconds since 1970."""
    time = info.get("time")
    return time.get(name) if isinstance(time, dict) else None


def _agent(info: Json) -> str | None:
    return string(info.get("agent")) or string(info.get("mode"))


def _model(info: Json) -> str:
    return f"{info.get('providerID')}/{info.get('modelID')}"


def _is_reminder(part: Json) -> bool:
    """Whether a user's message holds a reminder of the mode, as an option of opencode has it."""
    text = part.get("text")
    return part.get("synthetic") is True and isinstance(text, str) and text.startswith("<system-reminder>")


def _numbers(version: Any) -> tuple[int, ...]:
    found = _VERSION.match(version) if isinstance(version, str) else None
    return tuple(int(one or 0) for one in found.groups()) if found is not None else ()


_RESULT: Final = 2000
"""The most UTF-16 units of a tool's result that are kept."""


class Line(NamedTuple):
    """A piece of a message as the history has it."""

    text: str
    cleared: int | None = None
    """Milliseconds since 1970: from then on the result is blank."""


class RenderedMessage(NamedTuple):
    """A message as the rendered history has it."""

    native: str | None
    role: str
    compaction: bool
    """Whether it asked for a summary."""
    lines: list[Line]


def rendered_message(info: Json, parts: list[NativePart]) -> RenderedMessage:
    """What a message says in the rendered history."""
    compaction = any(part.get("type") == "compaction" for part, _ in parts)
    role = str(info.get("role"))
    own = [part for part, _ in parts]
    lines = _of_user(own) if role == "user" else [line for part in own for line in _of_assistant(part)]
    return RenderedMessage(string(info.get("id")), role, compaction, lines)


def summary_question(
    messages: list[RenderedMessage],
    summed: str | None,
    tail: str | None,
    parent: str,
    overflow: bool,
    now: int | None,
) -> list[Part]:
    """The request for a summary, but for its system prompt and the instructions at its end.

    Args:
        messages: The history.
        summed: The summary before, if there is one.
        tail: The first message that is kept, and not told.
        parent: The message that asks for the summary.
        overflow: It is asked for because the last message was too large: that message is not told either.
        now: When; milliseconds since 1970.
    """
    before = [one for one in messages if not one.compaction and one.native != parent]
    first = next((at for at, one in enumerate(before) if one.native == tail), None)
    if tail is not None and first is not None:
        before = before[:first]
    elif overflow:
        before = _without_last(before)
    texts = []
    for one in before:
        text = "\n".join(_text(line, now) for line in one.lines)
        if text:
            texts.append(text)
    told_so_far = "\n\n".join(texts)
    made = f"Here is the conversation so far:\n\n<conversation>\n{told_so_far}\n</conversation>"
    if summed is not None:
        made += (
            "\n\nHere is the summary of the conversation before the <conversation> above:\n\n"
            f"<prior-summary>\n{summed}\n</prior-summary>"
        )
    mark = {"type": "compaction"}
    return [Part("user_message", made, "user", key=f"{parent}/history", derived=True, native=mark)]


def _without_last(messages: list[RenderedMessage]) -> list[RenderedMessage]:
    """All before the last message of the user's, if the user said something before that."""
    asked = [at for at, one in enumerate(messages) if one.role == "user"]
    return messages[: asked[-1]] if len(asked) > 1 else messages


def _text(line: Line, now: int | None) -> str:
    if line.cleared is not None and now is not None and line.cleared <= now:
        return f"[Tool result]: {CLEARED}"
    return line.text


def _of_user(parts: list[Json]) -> list[Line]:
    said = [
        str(part["text"])
        for part in parts
        if part.get("type") == "text" and not part.get("ignored") and string(part.get("text"))
    ]
    lines = [Line("[User]: " + "\n".join(said))] if said else []
    return lines + [Line(_attached(part)) for part in parts if part.get("type") == "file"]


def _of_assistant(part: Json) -> list[Line]:
    kind, text = part.get("type"), string(part.get("text"))
    if kind == "text":
        return [Line(f"[Assistant]: {text}")] if text is not None else []
    if kind == "reasoning":
        return [Line(f"[Assistant reasoning]: {text}")] if text is not None else []
    state = part.get("state")
    if kind != "tool" or not isinstance(state, dict):
        return []
    made = [Line(f"[Assistant tool call]: {part.get('tool')}({_json(state.get('input'))})")]
    if state.get("status") == "completed":
        files = state.get("attachments")
        told = [_attached(one) for one in files if isinstance(one, dict)] if isinstance(files, list) else []
        time = state.get("time")
        cleared = count(time.get("compacted")) if isinstance(time, dict) else None
        result = _cut("\n".join([str(state.get("output")), *told]))
        made.append(Line(f"[Tool result]: {result}", cleared))
    elif state.get("status") == "error":
        made.append(Line(f"[Tool error]: {state.get('error')}"))
    return made


def _attached(part: Json) -> str:
    return f"[Attached {part.get('mime')}: {string(part.get('filename')) or 'file'}]"


def _cut(text: str) -> str:
    if len(text) * 2 <= _RESULT:
        return text
    units = text.encode("utf-16-le", "surrogatepass")
    if len(units) <= _RESULT * 2:
        return text
    return units[: _RESULT * 2].decode("utf-16-le", "replace") + "\n[truncated]"


def _json(value: Any) -> str:
    try:
        return orjson.dumps(value).decode("utf-8", "replace")
    except TypeError:  # nested too deep
        return canonical(value)


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
        """Its parts as its own model gets them; texts are dropped once they were announced."""
        self.shown = parts
        """Its parts as the window has them."""
        self.agent = agent
        self.model = model
        self.reminded = False
        """Whether it holds a reminder of the agent's mode as a part of its own."""
        self._thoughts: dict[str, Part | None] = {}

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
    """Keeps messages and window in step: the window is what stands in front, then each message's parts."""

    def __init__(self, conversation: Conversation) -> None:
        self._window = conversation
        self._standing: list[Part] = []
        self._messages: list[Message] = []
        self._reader: str | None = None
        self._reminded: Message | None = None
        self._planned = 0
        """The number of answers in the window that were given in plan mode."""

    def standing(self, parts: list[Part]) -> None:
        """The tools and the system prompt of the next request."""
        self._window.splice(0, len(self._standing), parts)
        self._standing = parts

    def enter(self, message: Message) -> None:
        """Append a message to the history."""
        if self._reader is not None:
            message.shown = message.read_by(self._reader)
        self._window.append(*message.shown)
        self._messages.append(message)
        self._planned += _is_planned(message)

    def remove(self, native: str) -> None:
        """Remove a message: the person went back to before it."""
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
        """Make the window what a model gets: others' reasoning as text."""
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
        """Put the reminder of the agent's mode into the last user message of the request.

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
        """Use another window for one request."""
        before = [*self._standing, *(part for one in self._messages for part in one.shown)]
        self._window.splice(0, len(before), parts)
        yield
        self._window.splice(0, len(parts), before)

    def compact(
        self, summary: Message, text: Part, tail: str | None, *, line: int, tell: bool
    ) -> set[str | None]:
        """Compact the history to what asked for the summary, the summary, and what was kept.

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
