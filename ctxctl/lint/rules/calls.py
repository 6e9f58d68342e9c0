"""Tool calls that the model never got an answer to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ctxctl.lint.rule import Hit, Rule
from ctxctl.lint.rules import names

if TYPE_CHECKING:
    from ctxctl.engine.replay.step_tracker import ThreadKey
    from ctxctl.lint.context import StepContext
    from ctxctl.model.results import Placement

_SPEAKS: Final = frozenset({"user_message", "assistant_message"})
_MOST: Final = 4096


class _Call:
    """A call without a result so far."""

    def __init__(self, hit: Hit, tool: str | None, title: str | None) -> None:
        self.hit = hit
        self.tool = tool
        self.title = title
        self.passed = False
        """The conversation went on without one."""


class CallWithoutResult(Rule):
    """A tool call stands in the window, the conversation went on, and there is no result of it.

    Providers refuse such a request, or the model takes it that the tool did what it was asked.  It happens
    where a result is dropped or compacted without its call, or a run is interrupted.
    """

    code = "CTX018"
    name = "call-without-result"
    needs = "tool calls and results"
    fix = "Keep call and result together, and put in a result that says so where there is none."

    def __init__(self) -> None:
        self._open: dict[ThreadKey, dict[str, _Call]] = {}
        self._answered: dict[ThreadKey, set[str]] = {}
        """Tools that had a result at some time: of others the trace may hold none."""

    def step(self, look: StepContext) -> Iterator[Hit]:
        """Calls and results that came, in the order of the frame."""
        calls = self._open.setdefault(look.key, {})
        for gone in look.left:
            if gone.kind == "tool_call":
                calls.pop(gone.item, None)
        for came in look.came:
            if came.kind == "tool_call":
                if len(calls) < _MOST and came.item not in calls:
                    calls[came.item] = _call(look, came)
            elif came.kind == "tool_result":
                tool = _answer(calls, came)
                if tool is not None:
                    self._answered.setdefault(look.key, set()).add(tool)
            elif came.kind in _SPEAKS and calls:
                for call in calls.values():
                    call.passed = True
        return iter(())

    def end(self) -> Iterator[Hit]:
        """Calls that were never answered, of tools that do have results in the thread."""
        for key, calls in self._open.items():
            answered = self._answered.get(key, set())
            yield from (c.hit for c in calls.values() if c.passed and c.tool in answered)


def _call(look: StepContext, came: Placement) -> _Call:
    text = look.text(came)
    tool = names.called(text) if text is not None else None
    message = f"{came.title or came.item}: a call without a result, and the conversation went on"
    hit = Hit(came.item, message, look.place(came.line), came.item, came.tokens)
    return _Call(hit, tool or came.title, came.title)


def _answer(calls: dict[str, _Call], result: Placement) -> str | None:
    """A result closes the call that its id or its title names, else the oldest one; the tool's name."""
    item = result.item
    while item:
        call = calls.pop(item, None)
        if call is not None:
            return call.tool
        item = item.rpartition("/")[0]
    if not calls:
        return None
    swapped = result.item.replace("result", "call")
    if swapped not in calls:
        same = (name for name, call in calls.items() if result.title and call.title == result.title)
        swapped = next(same, next(iter(calls)))
    return calls.pop(swapped).tool
