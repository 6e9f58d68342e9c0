"""Sub-agents that requests name: which thread each has, and which session that thread is in."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ctxctl.formats.wire.threads import Thread
    from ctxctl.record.asking import Agent

_AGENTS: Final = 4096
"""Agents that are remembered, those that were heard of last."""


class Agents:
    """The sub-agents of one recorder; not for several threads at once."""

    def __init__(self) -> None:
        self._threads: OrderedDict[tuple[str | None, str], str] = OrderedDict()
        """By session and agent: its thread."""
        self._roots: OrderedDict[str, str] = OrderedDict()
        """By a sub-agent's own session: that of the first one above it."""

    def root(self, session: str, agent: Agent) -> str:
        """The session that a sub-agent's thread is in, where each agent has a session of its own.

        `session`: that of its parent, which may be a sub-agent itself.
        """
        found = self._roots.get(session, session)
        self._roots[agent.id] = found
        _trim(self._roots)
        return found

    def thread(self, session: str | None, agent: str | None) -> str | None:
        """An agent's thread; None if it has none yet."""
        if agent is None or (session, agent) not in self._threads:
            return None
        self._threads.move_to_end((session, agent))
        return self._threads[session, agent]

    def named(self, session: str | None, agent: str, thread: str) -> None:
        """An agent has a thread from here on."""
        self._threads[session, agent] = thread
        _trim(self._threads)

    def has(self, thread: Thread) -> bool:
        """Whether a thread is a sub-agent's."""
        conversation = thread.conversation
        name = conversation.thread
        return any(
            session == conversation.session and one == name for (session, _), one in self._threads.items()
        )


def _trim(kept: OrderedDict[str, str] | OrderedDict[tuple[str | None, str], str]) -> None:
    while len(kept) > _AGENTS:
        kept.popitem(last=False)
