"""Remembers conversations, the sub-agents in them, and the conversations that other writers have left.

All of it is bounded, as a recorder, unlike an import, has no end.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ctxctl.ingest.build import Json
from ctxctl.ingest.parts import Part
from ctxctl.providers.dialects.base import CallTitles
from ctxctl.providers.dialects.threads import INJECTED, SeenAnswers, Thread, Threads
from ctxctl.record.place import Place

if TYPE_CHECKING:
    from ctxctl.ingest.conversation import Conversation
    from ctxctl.providers.dialects.fingerprints import Request
    from ctxctl.record.earlier_writers import Row
    from ctxctl.record.http import Agent
    from ctxctl.record.recorder import Recorder


_SESSIONS: Final = 256
"""Sessions whose earlier conversations are remembered."""
_LOOKED_AT: Final = 32
"""Threads of a session that are read: those that began last, and always the recorder's own."""
_HEADS: Final = frozenset(("system_prompt", "tool_definition"))
_SUMMARY: Final = "thread_summary"


class _Window(NamedTuple):
    rows: list[Row]
    tools: frozenset[str]
    said: frozenset[tuple[str, str]]
    """Keys of its messages: role and version, or the id of a call or result."""


class EarlierConversations:
    """The conversations that other writers of the file left, until this writer goes on with them.

    A client that takes up its last session sends the whole history again.  It is recognised by what it
    repeats, as in `providers.dialects.threads`, but by the digests of the pieces, as the bodies are gone.
    Not safe for several threads at once.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._sessions: OrderedDict[str, dict[str, _Window]] = OrderedDict()

    def has(self, session: str | None, thread: str) -> bool:
        """Whether another writer left this thread and nobody has gone on with it."""
        return thread in self._windows_of(session)

    def find(self, session: str | None, request: Request, *, continues: bool) -> tuple[str | None, bool]:
        """Return the thread that a request goes on with, and whether it only has the history of one.

        `continues`: the request says that it stands for an earlier history.
        """
        names = CallTitles()
        units = request.units[request.start :]
        parts = [part for unit in units for part in request.dialect.parts(unit, names).parts]
        own = {key for part in parts if part.kind not in INJECTED and (key := _row_key(part)) is not None}
        best, most, lent = None, 0, False
        for name, window in self._windows_of(session).items():
            count = len(own & window.said)
            if not _alike(window.tools, request.head.tools):
                lent = lent or count > 1
            elif count > most:
                best, most = name, count
        main = self._windows_of(session).get(self._recorder._thread)
        if best is None and continues and main is not None and _alike(main.tools, request.head.tools):
            best = self._recorder._thread
        return best, lent and best is None

    def hand_over(self, conversation: Conversation) -> Iterable[str]:
        """Make a thread that begins here go on from its last window; return the versions of its summaries."""
        window = self._windows_of(conversation.session).pop(conversation.thread or "", None)
        if window is None:
            return ()
        conversation.go_on_from(window.rows)
        return [block.ref[len(block.item) + 1 :] for block, kind in window.rows if kind == _SUMMARY]

    def _windows_of(self, session: str | None) -> dict[str, _Window]:
        recorder = self._recorder
        if session is None or not recorder._is_shared(Place(session)):
            return {}
        found = self._sessions.get(session)
        if found is None:
            found = self._sessions[session] = {}
            names = recorder._earlier_writers.threads(session)
            for name in names:
                if name == recorder._thread or name in names[-_LOOKED_AT:]:
                    rows = recorder._earlier_writers.rows(Place(session, name))
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


def _row_key(part: Part) -> tuple[str, str] | None:
    if part.kind in _HEADS:
        return None
    if part.kind in ("tool_call", "tool_result"):
        return ("", part.item) if part.item else None
    return (part.role, part.mark) if part.mark else None


def _alike(old: frozenset[str], new: frozenset[str]) -> bool:
    """Whether two sets of tools are about the same; an empty one is only like an empty one."""
    return 2 * len(old & new) >= len(old | new)


_AGENTS: Final = 4096
"""Agents that are remembered: those that asked last."""


class SubAgents:
    """The sub-agents that requests name: the thread of each, and the session of that thread.

    Those of one recorder; not safe for several threads at once.
    """

    def __init__(self) -> None:
        self._threads: OrderedDict[tuple[str | None, str], str] = OrderedDict()
        """By session and agent, the agent's thread."""
        self._roots: OrderedDict[str, str] = OrderedDict()
        """By a sub-agent's own session, the session of its outermost ancestor."""

    def root(self, session: str, agent: Agent) -> str:
        """Return the session of a sub-agent's thread, where each agent has a session of its own.

        `session`: the one of its parent, which may be a sub-agent itself.
        """
        found = self._roots.get(session, session)
        self._roots[agent.id] = found
        _trim(self._roots)
        return found

    def thread(self, session: str | None, agent: str | None) -> str | None:
        """Return an agent's thread; None if it has none yet."""
        if agent is None or (session, agent) not in self._threads:
            return None
        self._threads.move_to_end((session, agent))
        return self._threads[session, agent]

    def named(self, session: str | None, agent: str, thread: str) -> None:
        """Note the thread of an agent."""
        self._threads[session, agent] = thread
        _trim(self._threads)

    def has(self, thread: Thread) -> bool:
        """Whether a thread belongs to a sub-agent."""
        conversation = thread.conversation
        name = conversation.thread
        return any(
            session == conversation.session and one == name for (session, _), one in self._threads.items()
        )


def _trim(kept: OrderedDict[str, str] | OrderedDict[tuple[str | None, str], str]) -> None:
    while len(kept) > _AGENTS:
        kept.popitem(last=False)


_FEW_TOKENS: Final = 64
_SCHEMAS: Final = ("response_format", "output_config", "output_format", "text", "generationConfig")
_ASIDE: Final = ("title", "topic", "summar", "classif", "quota")


class RememberedThreads(Threads):
    """Threads with the branches that a recorder makes of them."""

    def __init__(self) -> None:
        super().__init__()
        self._by_branch: dict[tuple[str | None, str], list[Thread]] = {}
        self.mark = ""
        """The end of new threads' names, where another writer of the file may give the same names."""

    def name(self, kind: str, about: str) -> str:
        """Name a thread as importers do; side questions of one kind share a thread, whoever records them."""
        made = super().name(kind, about)
        return made if kind == "side" and self._used[made] == 1 else f"{made}{self.mark}"

    def threads(self) -> list[Thread]:
        """Return all threads that are remembered."""
        return self._all

    def forget_oldest(self, busy: Mapping[int, Any], chains: SeenAnswers) -> list[Thread]:
        """As in `Threads`; the answers of branches are forgotten too."""
        gone = super().forget_oldest(busy, chains)
        if gone:
            self._by_branch = {}
        return gone

    # -- branches -------------------------------------------------------------------------------------------

    def branch(self, name: str) -> str:
        """Return a name for another branch of a thread."""
        base = name.partition("~")[0]
        self._used[f"{base}~"] += 1
        return f"{base}~{self._used[f'{base}~'] + 1}{self.mark}"

    def remember_answer(self, thread: Thread, parts: Iterable[Part]) -> None:
        """Remember a branch's answer; other branches may have been given the same."""
        for part in parts:
            self._by_branch.setdefault((thread.conversation.session, _key(part)), []).append(thread)

    def thread_that_said(
        self, session: str | None, parts: Iterable[Part], family: list[Thread]
    ) -> Thread | None:
        """Return the branch that was given one of the answers that are sent back; None if none was."""
        for part in parts:
            for thread in reversed(self._by_branch.get((session, _key(part)), ())):
                if thread in family:
                    return thread
        return None


def _key(part: Part) -> str:
    """Return the key that tells the items of branches' answers apart."""
    return part.item if part.kind == "tool_call" and part.item else f"{part.kind}:{part.mark}"


def is_aside(body: Json) -> bool:
    """Whether a request without tools is likely one that a product sends beside its conversation.

    Such requests come before the first prompt: a check of the quota, a title, a classification.
    """
    limits = (body.get("max_tokens"), body.get("max_completion_tokens"), body.get("max_output_tokens"))
    if any(isinstance(limit, int) and limit <= _FEW_TOKENS for limit in limits):
        return True
    head = body.get("system") or body.get("instructions") or body.get("systemInstruction")
    messages = body.get("messages")
    if head is None and isinstance(messages, list) and messages and isinstance(messages[0], dict):
        head = messages[0].get("content") if messages[0].get("role") in ("system", "developer") else None
    start = str(head)[:400].lower() if head is not None else ""
    if "title" in start and "generat" in start:
        return True
    return any(word in start for word in _ASIDE) and any(body.get(name) for name in _SCHEMAS)
