"""Messages of a history that a condensation kept, at the requests of the chat that they belong to."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import Any, Final

from ctxctl.formats.build import Json
from ctxctl.formats.kit.parts import Part, string
from ctxctl.formats.roo.window import milliseconds

Cut = Callable[[Json, int], list[Part]]
"""Makes the items of a stored message, given where it stands in the history."""
_Stored = tuple[int, Json]
_NEVER: Final = float("inf")


class Kept:
    """What the history still has of requests that are told from the chat: there, its own items are shown.

    A message is one of a request if it was stored at its time and says what the chat shows of it.  Anything
    else stays what the chat shows, derived.

    Args:
        times: When each request was sent, ascending.
        chat: The chat's messages.
        left: The history's messages, each with its index.
        cut: Cuts one of them.
    """

    def __init__(self, times: Sequence[float], chat: list[Any], left: list[_Stored], cut: Cut) -> None:
        self._times = times
        self._cut = cut
        stored = [(i, m) for i, m in left if m.get("isSummary") is not True and m.get("type") != "reasoning"]
        self._asked = _by_time([one for one in stored if one[1].get("role") == "user"])
        self._answers = _by_time([one for one in stored if one[1].get("role") == "assistant"])
        self._shown = _by_time([(i, m) for i, m in enumerate(chat) if _is_prose(m)])
        self._used: set[int] = set()

    def question(self, time: float, text: str | None) -> list[Part] | None:
        """The items of the message that went out with the request sent at a time; None: it is not kept."""
        at = bisect_left(self._times, time)
        before, after = self._times[at - 1] if at else -_NEVER, self._end(time)
        # Most are stored right after the request is announced, some before.
        for index, message in _between(self._asked, time, after) + _between(self._asked, before, time):
            parts = self._cut(message, index) if index not in self._used else []
            texts = [part.text.strip() for part in parts if part.text is not None]
            if text is not None and any(texts) and all(one in text for one in texts):
                self._used.add(index)
                return parts
        return None

    def answers(self, time: float) -> list[tuple[Any, list[Part]]]:
        """The messages that the request sent at a time was answered with, each with its own time as stored;
        none if they are not kept."""
        end = self._end(time)
        found = _between(self._answers, time, end)
        said = [str(message["text"]).strip() for _, message in _between(self._shown, time, end)]
        text = "\n".join(_text(message) for _, message in found)
        if not all(one in text for one in said):
            return []
        return [(message.get("ts"), self._cut(message, index)) for index, message in found]

    def _end(self, time: float) -> float:
        at = bisect_right(self._times, time)
        return self._times[at] if at < len(self._times) else _NEVER


_Timed = list[tuple[float, int, Json]]


def _by_time(stored: list[_Stored]) -> _Timed:
    return sorted(((milliseconds(m.get("ts")), i, m) for i, m in stored), key=lambda one: one[:2])


def _between(timed: _Timed, start: float, end: float) -> list[_Stored]:
    """What was stored from a time on and before another."""
    first = bisect_left(timed, start, key=lambda one: one[0])
    last = bisect_left(timed, end, key=lambda one: one[0])
    return [(index, message) for _, index, message in timed[first:last]]


def _is_prose(message: Any) -> bool:
    """What the chat shows of an answer in the model's own words."""
    said = isinstance(message, dict) and message.get("type") != "ask" and message.get("say") == "text"
    return said and message.get("partial") is not True and string(message.get("text")) is not None


def _text(message: Json) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    texts = [block.get("text") for block in blocks if isinstance(block, dict)]
    return "\n".join(text for text in texts if isinstance(text, str))
