"""Conversations that another writer of the file has recorded: which of them a request goes on with.

A client that takes up its last session sends the whole history again.  It is known by what it repeats, as in
`formats.wire.threads`; as no bodies are left to compare, the digests of its pieces are.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple

from ctxctl.formats.wire.dialect import Names
from ctxctl.formats.wire.threads import INJECTED
from ctxctl.record.place import Place

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ctxctl.formats.kit.conversation import Conversation
    from ctxctl.formats.kit.parts import Part
    from ctxctl.formats.wire.prints import Request
    from ctxctl.record.left import Row
    from ctxctl.record.recorder import Recorder

_SESSIONS: Final = 256
"""Sessions of which this is remembered."""
_THREADS: Final = 32
"""Threads of a session that are looked at, those that began last; the recorder's own is always among them."""
_HEADS: Final = frozenset(("system_prompt", "tool_definition"))
_SUMMARY: Final = "thread_summary"


class _Window(NamedTuple):
    rows: list[Row]
    tools: frozenset[str]
    said: frozenset[tuple[str, str]]
    """What tells its messages."""


class Ended:
    """The conversations that others left, until this writer goes on with them; not for several threads."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._sessions: OrderedDict[str, dict[str, _Window]] = OrderedDict()

    def has(self, session: str | None, thread: str) -> bool:
        """Whether a thread was left and nobody has gone on with it."""
        return thread in self._of(session)

    def find(self, session: str | None, request: Request, *, told: bool) -> tuple[str | None, bool]:
        """The thread that a request goes on with, and whether it only has the history of one.

        `told`: it says that it stands for an earlier history.
        """
        names = Names()
        units = request.units[request.start :]
        parts = [part for unit in units for part in request.dialect.parts(unit, names).parts]
        own = {key for part in parts if part.kind not in INJECTED and (key := _key(part)) is not None}
        best, most, lent = None, 0, False
        for name, window in self._of(session).items():
            count = len(own & window.said)
            if not _alike(window.tools, request.head.tools):
                lent = lent or count > 1
            elif count > most:
                best, most = name, count
        main = self._of(session).get(self._recorder._thread)
        if best is None and told and main is not None and _alike(main.tools, request.head.tools):
            best = self._recorder._thread
        return best, lent and best is None

    def hand_over(self, conversation: Conversation) -> Iterable[str]:
        """Have a thread that begins here go on from its last window; gives the versions of its summaries."""
        window = self._of(conversation.session).pop(conversation.thread or "", None)
        if window is None:
            return ()
        conversation.go_on_from(window.rows)
        return [block.ref[len(block.item) + 1 :] for block, kind in window.rows if kind == _SUMMARY]

    def _of(self, session: str | None) -> dict[str, _Window]:
        recorder = self._recorder
        if session is None or not recorder._is_shared(Place(session)):
            return {}
        found = self._sessions.get(session)
        if found is None:
            found = self._sessions[session] = {}
            names = recorder._left.threads(session)
            for name in names:
                if name == recorder._thread or name in names[-_THREADS:]:
                    rows = recorder._left.rows(Place(session, name))
                    if rows:
                        found[name] = _window(rows)
            if len(self._sessions) > _SESSIONS:
                self._sessions.popitem(last=False)
        return found


def _window(rows: list[Row]) -> _Window:
    said = set()
    for block, kind in rows:
        if kind in _HEADS or kind in INJECTED:
            continue
        mark = block.ref[len(block.item) + 1 :]
        said.add(("", block.item) if kind in ("tool_call", "tool_result") else (block.role, mark))
    tools = frozenset(block.item.removeprefix("tool:") for block, kind in rows if kind == "tool_definition")
    return _Window(rows, tools, frozenset(said))


def _key(part: Part) -> tuple[str, str] | None:
    if part.kind in _HEADS:
        return None
    if part.kind in ("tool_call", "tool_result"):
        return ("", part.item) if part.item else None
    return (part.role, part.mark) if part.mark else None


def _alike(old: frozenset[str], new: frozenset[str]) -> bool:
    """Whether about the same tools are there; no tools are only like no tools."""
    return 2 * len(old & new) >= len(old | new)
