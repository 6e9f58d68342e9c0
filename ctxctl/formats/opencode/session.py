"""One opencode session: its messages, in order, as the steps of a thread."""

from __future__ import annotations

import re
from heapq import heappop, heappush
from typing import Any, Final

from ctxctl.formats.build import Json
from ctxctl.formats.kit.conversation import Conversation
from ctxctl.formats.kit.parts import Part, count, moment, string
from ctxctl.formats.kit.run import Run
from ctxctl.formats.opencode import parts as cut
from ctxctl.formats.opencode.history import History, Message
from ctxctl.formats.opencode.rendered import Told, question, told
from ctxctl.model import vocab

_AS_TEXT: Final = (1, 14)
"""From this version on, another model's reasoning goes to a model as text."""
_RENDERED: Final = (1, 18, 15)
"""From this version on, a summary is asked for in one message that renders the history."""
_VERSION: Final = re.compile(r"(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?")


class Session:
    """Takes the messages of one session when they are whole.

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
        self._by_hand = False
        """The last message of the user's runs a tool without a model."""
        self._asked: Json | None = None
        """The compaction that was asked for."""
        self._told: list[Told] = []
        """What the messages say where a summary is asked for, from `_RENDERED` on."""
        self._summed: str | None = None
        """The last summary."""
        self._cleared: list[tuple[int, int, Part]] = []
        """A heap: when a result was pruned, and what it is then."""

    def standing(self, parts: list[Part]) -> None:
        """The tools and the system prompt of the next request."""
        self._history.standing(parts)

    def limit(self, tokens: int, request: str) -> None:
        """The context window of the model that the next request goes to."""
        budget = {"budget_id": f"budget-{request}", "target": vocab.MODEL, "max_tokens": tokens}
        self._window.tell(vocab.BUDGET_APPLIED, budget, line=self._run.line.number)

    def message(self, info: Json, parts: list[cut.Native]) -> None:
        """One message with its parts."""
        self._run.make.at(moment(time_of(info, "created")))
        for part, _ in parts:
            self._run.met(part.get("type"))
        if info.get("role") == "user":
            self._user(info, parts)
        elif info.get("role") == "assistant":
            self._assistant(info, parts)

    def remove(self, native: str) -> None:
        """A message was taken out: the person went back to before it."""
        self._told = [one for one in self._told if one.native != native]
        self._history.remove(native)

    # -- messages -------------------------------------------------------------------------------------------

    def _user(self, info: Json, parts: list[cut.Native]) -> None:
        native = string(info.get("id"))
        asked = next((part for part, _ in parts if part.get("type") == "compaction"), None)
        if self._window.turn is None or cut.is_prompt(parts):
            self._window.turn = native or self._window.turn
        if asked is not None:
            self._asked = asked
        self._by_hand = cut.runs_a_tool(parts)
        message = Message(native, "user", cut.of_user(parts), agent=_agent(info))
        message.reminded = any(_is_reminder(part) for part, _ in parts)
        self._enter(message, info, parts)

    def _enter(self, message: Message, info: Json, parts: list[cut.Native]) -> None:
        self._history.enter(message)
        if self._version >= _RENDERED:
            self._told.append(told(info, parts))

    def _assistant(self, info: Json, parts: list[cut.Native]) -> None:
        steps, cleared = cut.steps(parts)
        lost = cut.is_lost(info, parts)
        native = string(info.get("id"))
        if self._by_hand and cut.is_a_tool_alone(parts):
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
                self._told.append(told(info, parts))
        for one in () if lost else cleared:
            heappush(self._cleared, (one.time, len(self._cleared), one.part))

    def _answer(self, info: Json, native: str | None, steps: list[cut.Step]) -> Message:
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
        """Whether a message came with a session's branching off: its request was another session's."""
        made = count(time_of(info, "created"))
        return made is not None and self._began is not None and made < self._began

    # -- compactions ----------------------------------------------------------------------------------------

    def _compaction(self, info: Json, native: str | None, steps: list[cut.Step], lost: bool) -> None:
        answer = [part for step in steps for part in step.answer]
        finish = next((step.finish for step in reversed(steps) if step.finish is not None), None)
        self._prune(count(time_of(info, "created")))
        tokens = info.get("tokens") if finish is None else finish
        tail = string(self._asked.get("tail_start_id")) if self._asked is not None else None
        if self._version >= _RENDERED:
            overflow = self._asked is not None and self._asked.get("overflow") is True
            made = count(time_of(info, "created"))
            asked = question(self._told, self._summed, tail, str(info.get("parentID")), overflow, made)
            with self._history.instead(asked):
                self._request(info, native, tokens, "compaction")
        else:
            self._request(info, native, tokens, "compaction")
        summary = next((part for part in answer if part.kind == "assistant_message"), None)
        if lost or not info.get("finish") or summary is None:
            return
        self._asked = None
        self._summed = (summary.text or "").strip() or None
        summary.kind = "thread_summary"
        made_of = Message(native, "assistant", answer, agent=_agent(info), model=_model(info))
        kept = self._history.compact(
            made_of, summary, tail, line=self._run.line.number, tell=not self._is_copied(info)
        )
        self._told = [one for one in self._told if one.native in kept]

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
