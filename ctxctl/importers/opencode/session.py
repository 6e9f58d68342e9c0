"""One opencode session: its messages, in order, as the steps of a thread.

The messages in the window may change from request to request.  From 1.18 on, opencode has a summary written
by a request that holds the history as one text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Any, Final, NamedTuple

import orjson

from ctxctl.importers.opencode import parts as cut
from ctxctl.importers.opencode.history import History, Message
from ctxctl.importers.opencode.parts import CLEARED, NativePart
from ctxctl.ingest.about import IN_USAGE
from ctxctl.ingest.build import Json, canonical
from ctxctl.ingest.conversation import Conversation
from ctxctl.ingest.parts import Part, count, moment, string
from ctxctl.ingest.run import Run, most_work
from ctxctl.model import vocab
from ctxctl.trace.source import Source

_AS_TEXT: Final = (1, 14)
"""The version from which on another model's reasoning goes to a model as text."""
_RENDERED: Final = (1, 18, 15)
"""The version from which on a summary is asked for in one message that renders the history."""
_VERSION: Final = re.compile(r"(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?")


_ROOM: Final = 16 << 20
"""Characters that histories rendered for summaries may have in all, whatever the size of the capture."""
_TIMES: Final = 4
"""Characters more for each of its bytes: a message is rendered once, and again where a summary fails."""


class Bounds:
    """What an import may cost, of which its sessions share one.

    A message of few bytes may ask for a summary of any history, or be taken back from the beginning of one.
    """

    def __init__(self, run: Run, source: Source) -> None:
        self._run = run
        self._work = most_work(source)
        self._room = self._left = _ROOM + _TIMES * source.size

    def rendered(self, characters: int) -> None:
        """Take a history that was rendered."""
        self._left -= characters

    @property
    def over(self) -> bool:
        """Whether the import ends here."""
        return self._left < 0 or self._run.make.work > self._work

    def exceeded(self) -> bool:
        """Whether the import ends here, which is told."""
        if self._left < 0:
            message = (
                "the summaries that are asked for up to here render the history so often that it comes to"
                f" more than {self._room:,} characters: the rest of the capture is not read"
            )
            self._run.problem("windows-too-large", message)
        elif self.over:
            self._run.windows_too_large(self._work)
        return self.over


class Session:
    """Takes the messages of one session, each when it is whole.

    Args:
        run: The import.
        conversation: The session's thread.
        bounds: The import's.
        version: The client's version, where the capture tells it: what is sent differs by it.
        began: Milliseconds since 1970; what is older was copied from the session that this one branched off.
    """

    def __init__(
        self,
        run: Run,
        conversation: Conversation,
        bounds: Bounds,
        *,
        version: Any = None,
        began: int | None = None,
    ) -> None:
        self._run = run
        self._window = conversation
        self._bounds = bounds
        self._history = History(conversation, run.make)
        self._gone: set[str] = set()
        """The messages that were removed since the last one came."""
        self._version = _numbers(version)
        self._began = began
        self.unused = began is not None
        """Whether all of it so far was copied from another session, and nothing was asked in it."""
        self._runs_tool = False
        """Whether the user's last message runs a tool without a model."""
        self._asked: Json | None = None
        """The compaction that was requested."""
        self._rendered: list[RenderedMessage] = []
        """What the messages say in a request for a summary, from `_RENDERED` on."""
        self._last_summary: str | None = None
        """The text of the last summary."""
        self._cleared: list[tuple[int, int, Part]] = []
        """A heap of the pruned results, each with the time from which on it is blank, and its own number."""
        self._pruned = 0

    def standing(self, parts: list[Part]) -> None:
        """The tools and the system prompt of the next request."""
        self._history.standing(parts)

    def limit(self, tokens: int, request: str) -> None:
        """The context window of the model that the next request goes to."""
        budget = {"budget_id": f"budget-{request}", "target": vocab.MODEL, "max_tokens": tokens}
        self._window.tell(vocab.BUDGET_APPLIED, budget, line=self._run.line.number)

    def message(self, info: Json, parts: list[cut.NativePart]) -> None:
        """Take one message with its parts."""
        if self._gone:
            self._take_out()
        self.unused = self.unused and self._is_copied(info)
        self._run.make.at(moment(time_of(info, "created")))
        for part, _ in parts:
            self._run.met(part.get("type"))
        if info.get("role") == "user":
            self._user(info, parts)
        elif info.get("role") == "assistant":
            self._assistant(info, parts)

    def hand_on(self, *, at_end: bool = False) -> Iterator[Json]:
        """Yield what was made; nothing of a session as long as it is unused."""
        if not self.unused:
            yield from self._run.drain()
        elif at_end:
            self._run.out.clear()
            self._run.threads = {
                key: one for key, one in self._run.threads.items() if one is not self._window
            }
            self._run.understood.explained.update(("model", *IN_USAGE))

    def remove(self, native: str) -> None:
        """Take out a message before the next one: the person went back to before it."""
        if self._history.holds(native):
            self._gone.add(native)

    def _take_out(self) -> None:
        passed = self._history.remove(self._gone)
        # Each stands for one message of the history or several, in the same order.
        at = max(0, len(self._rendered) - passed)
        self._rendered[at:] = [one for one in self._rendered[at:] if one.native not in self._gone]
        self._gone.clear()

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
            self._pruned += 1
            heappush(self._cleared, (one.time, self._pruned, one.part))

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
            self._run.make.work += len(self._rendered)
            self._bounds.rendered(len(asked.text or ""))
            with self._history.instead([asked]):
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
) -> Part:
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
    return Part("user_message", made, "user", key=f"{parent}/history", derived=True, native=mark)


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
