"""One opencode session: its messages, in order, as the steps of a thread."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

from ctxctl.formats.build import Json
from ctxctl.formats.calls.times import moment
from ctxctl.formats.kit.conversation import Conversation
from ctxctl.formats.kit.parts import Part, count, string
from ctxctl.formats.kit.run import Run
from ctxctl.formats.opencode import parts as cut
from ctxctl.model import vocab


class Session:
    """Takes the messages of one session when they are whole."""

    def __init__(self, run: Run, conversation: Conversation) -> None:
        self._run = run
        self._window = conversation
        self._messages: list[tuple[str | None, list[Part]]] = []
        """What each message has in the window, by its id; texts are given up once they were announced."""
        self._tail: str | None = None
        """The first message that the compaction under way keeps."""
        self._cleared: list[tuple[int, int, Part]] = []
        """A heap: when a result was pruned, and what it is then."""
        self._standing: list[Part] = []
        """Tools and system prompt, in front of the messages."""

    def standing(self, parts: list[Part]) -> None:
        """The tools and the system prompt of the next request."""
        self._window.splice(0, len(self._standing), parts)
        self._standing = parts

    def limit(self, tokens: int, request: str) -> None:
        """The context window of the model that the next request goes to."""
        budget = {"budget_id": f"budget-{request}", "target": vocab.MODEL, "max_tokens": tokens}
        self._window.tell(vocab.BUDGET_APPLIED, budget, line=self._run.line.number)

    def message(self, info: Json, parts: list[cut.Native]) -> None:
        """One message with its parts."""
        self._run.make.at(moment(time_of(info, "created")))
        if info.get("role") == "user":
            self._user(info, parts)
        elif info.get("role") == "assistant":
            self._assistant(info, parts)

    def remove(self, native: str) -> None:
        """A message was taken out: the person went back to before it."""
        gone = {part.item for one, parts in self._messages if one == native for part in parts}
        self._messages = [one for one in self._messages if one[0] != native]
        if gone:
            self._window.drop(gone.__contains__, cause="branched")

    def _user(self, info: Json, parts: list[cut.Native]) -> None:
        native = string(info.get("id"))
        asked = next((part for part, _ in parts if part.get("type") == "compaction"), None)
        if self._window.turn is None or cut.is_prompt(parts):
            self._window.turn = native or self._window.turn
        if asked is not None:
            self._tail = string(asked.get("tail_start_id"))
        self._enter(native, cut.of_user(parts))

    def _enter(self, native: str | None, parts: list[Part]) -> None:
        self._window.append(*parts)
        self._messages.append((native, parts))

    def _assistant(self, info: Json, parts: list[cut.Native]) -> None:
        steps, cleared = cut.steps(parts)
        lost = cut.is_lost(info, parts)
        native = string(info.get("id"))
        for at, step in enumerate(steps or [cut.Step(None, [], [], None)]):
            self._prune(count(time_of(info, "created")))
            tokens = info.get("tokens") if step.finish is None and len(steps) < 2 else step.finish
            self._request(info, native if at == 0 else step.native, tokens)
            if info.get("summary") is True:
                if not lost and info.get("finish"):
                    self._summary(native, step.answer)
            elif not lost:
                self._enter(native, [*step.answer, *step.results])
        for one in () if lost else cleared:
            heappush(self._cleared, (one.time, len(self._cleared), one.part))

    def _request(self, info: Json, name: str | None, tokens: Any) -> None:
        error = info.get("error")
        self._window.request(
            name,
            line=self._run.line.number,
            model=string(info.get("modelID")),
            derived=True,
            outcome=string(error.get("name")) if isinstance(error, dict) else None,
            purpose="compaction" if info.get("summary") is True else None,
        )
        self._window.usage(cut.bill(tokens, info), line=self._run.line.number)

    def _summary(self, native: str | None, answer: list[Part]) -> None:
        """A summary: from here on the history is what asked for it, the summary, and what was kept."""
        summary = next((part for part in answer if part.kind == "assistant_message"), None)
        if summary is None:
            return
        summary.kind = "thread_summary"
        question = self._messages.pop() if self._messages else (None, [])
        first = next((at for at, one in enumerate(self._messages) if one[0] == self._tail), None)
        kept = self._messages[first:] if self._tail is not None and first is not None else []
        self._tail = None
        self._messages = [question, (native, answer), *kept]
        rest = [part for _, parts in self._messages for part in parts]
        self._window.compact([*self._standing, *rest], summary=summary, line=self._run.line.number)

    def _prune(self, now: int | None) -> None:
        """Blank the results that were pruned before a request."""
        due: dict[str, Part] = {}
        while now is not None and self._cleared and self._cleared[0][0] <= now:
            part = heappop(self._cleared)[2]
            due[part.item] = part
        if not due:
            return
        for _, parts in self._messages:
            parts[:] = [due.get(part.item, part) for part in parts]
        for at, row in enumerate(self._window.rows):
            if row[0].item in due:
                self._window.splice(at, 1, [due[row[0].item]], cause="truncated")


def time_of(info: Json, name: str) -> Any:
    """One of a message's times, milliseconds since 1970."""
    time = info.get("time")
    return time.get(name) if isinstance(time, dict) else None
