"""What threads and sessions are called where somebody reads: by the type of a sub-agent, or by first words.
Nobody knows an agent by its id.  Plain Python.

An id stands in addresses, which are typed, and where ids are asked for; a name that somebody gave stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from ctxctl.item_names import both_ends
from ctxctl.model.vocab import MAIN_THREAD
from ctxctl.text import cells, clip, preview

if TYPE_CHECKING:
    from ctxctl.model.annotations import Origin
    from ctxctl.model.outline import Row

ThreadName = tuple[str | None, str]
"""Session and thread."""

_PARTS: Final = re.compile(r"[-_./:#@\s]+")
_HEX: Final = re.compile(r"(?=.*\d)(?=.*[a-f])[0-9a-f]{6,}", re.IGNORECASE)
_RANDOM: Final = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[0-9A-Za-z]{10,}")
_COUNTED: Final = re.compile(r"\d{10,}")
_DATE: Final = re.compile(r"(?:19|20)\d{6}")
_SAYS_NOTHING: Final = frozenset(
    {"agent", "call", "chat", "conversation", "msg", "run", "ses", "sess", "session", "sub", "subagent"}
    | {"task", "thread", "toolu"}
)
"""Words in front of an id that say what it is of, and nothing of what it does."""
_SUB_AGENT: Final = "sub-agent"
_THREAD: Final = "thread"
_LONG: Final = 200


def is_id(part: str) -> bool:
    """Whether a word, without separators, was drawn by chance or counted: nobody reads it."""
    if _DATE.fullmatch(part):
        return False
    return any(pattern.fullmatch(part) for pattern in (_HEX, _RANDOM, _COUNTED))


def holds_id(name: str) -> bool:
    """Whether some part of a name is an id."""
    return any(is_id(part) for part in _PARTS.split(name))


def _called(name: str, origin: Origin | None) -> str:
    """What a thread is called, whatever others are."""
    if name == MAIN_THREAD or not holds_id(name):
        return name
    if origin is not None and origin.agent_type and not holds_id(origin.agent_type):
        return origin.agent_type
    words = [part for part in _PARTS.split(name) if part and not is_id(part) and not _is_rest(part)]
    said = [word for word in words if word.lower() not in _SAYS_NOTHING]
    if said:
        return "-".join(said)
    return _SUB_AGENT if origin is not None or _begins_with_agent(words) else _THREAD


def _is_rest(part: str) -> bool:
    """Whether a part is what the hyphens of a UUID leave over."""
    return len(part) <= 4 and any(letter.isdigit() for letter in part)


def _begins_with_agent(words: list[str]) -> bool:
    return bool(words) and "agent" in words[0].lower()


class ThreadNames:
    """What each thread of a trace is called: the same for good, and unlike the others of its session.

    Threads are told in the order of their first steps, so whoever reads the same rows says the same.
    """

    def __init__(self) -> None:
        self._called: dict[ThreadName, str] = {}
        self._count: dict[tuple[str | None, str], int] = {}
        self._sessions: dict[str | None, int] = {}
        """The numbers of sessions, from 1 on."""

    def take(self, session: str | None, thread: str, origin: Origin | None) -> None:
        """A thread has begun."""
        if (session, thread) in self._called:
            return
        self._sessions.setdefault(session, len(self._sessions) + 1)
        called = _called(thread, origin)
        if called != thread:
            count = self._count[session, called] = self._count.get((session, called), 0) + 1
            called = called if count == 1 else f"{called}-{count}"
        self._called[session, thread] = called

    def of(self, session: str | None, thread: str) -> str:
        """What a thread is called."""
        found = self._called.get((session, thread))
        return _called(thread, None) if found is None else found

    def session(self, session: str | None, title: str | None, room: int) -> str:
        """What a session is called in so many cells: by its number and the first words of its first prompt
        where its name is an id.
        """
        if session is None:
            return clip("no session id", room)
        if not holds_id(session):
            shown = preview(session, _LONG)
            return f"session {shown}" if cells(shown) + 8 <= room else both_ends(shown, room)
        number = str(self._sessions.get(session, 0) or "?")
        words = preview(title or "", _LONG)
        whole = f"session {number} “{words}”" if words else f"session {number}"
        if cells(whole) <= room or len(number) + 12 <= room:
            return whole if cells(whole) <= room else f"{clip(whole.removesuffix('”'), room - 1)}”"
        return f"session {number}" if len(number) + 8 <= room else clip(f"#{number}", room)

    def place(self, session: str | None, thread: str, turn: int, step: int | None) -> str:
        """A step of it in words, such as ``Explore 2.1``; of the main thread, only ``2.1``."""
        whose = "" if thread == MAIN_THREAD else f"{self.of(session, thread)} "
        return f"{whose}{turn}.{step}"


def named_by(rows: Iterable[Row]) -> ThreadNames:
    """What the threads of these rows are called."""
    found = ThreadNames()
    for row in rows:
        found.take(row.session, row.thread, row.origin)
    return found
