"""Which session and thread a line belongs to."""

from __future__ import annotations

from typing import Any, NamedTuple

from ctxctl.formats.claude_code import blocks
from ctxctl.formats.claude_code.blocks import string
from ctxctl.formats.claude_code.graph import Graph
from ctxctl.formats.claude_code.threads import Origin, Thread
from ctxctl.formats.lines import Json
from ctxctl.model.vocab import MAIN_THREAD

_TASK_TOOLS = frozenset({"Task", "Agent"})


class Task(NamedTuple):
    """An open call that starts a sub-agent."""

    thread: str
    prompt: str
    agent: str | None


class Routing:
    """The threads of an import."""

    def __init__(self, graph: Graph, own: str | None = None) -> None:
        self._graph = graph
        self._own = own
        """The session of every line, whatever it says: known where a file begins with another's lines."""
        self.threads: dict[tuple[str | None, str], Thread] = {}
        self.session: str | None = None
        """The session that is being read."""
        self.file: tuple[str, Origin] | None = None
        """The sub-agent's file that is being read: its name, and where the sub-agent was started."""
        self.tasks: dict[str, Task] = {}
        """Open calls that start a sub-agent, by tool use id."""
        self._joined: dict[str, str | None] = {}
        """Native session ids, and the session whose conversation each carries on."""

    def thread(self, value: Json, uuid: str) -> Thread:
        """The thread of a line; a new one where the line begins a sub-agent's conversation."""
        parent = value.get("parentUuid")
        above = self._graph.nodes.get(parent) if isinstance(parent, str) else None
        owner = self._graph.owner.get(above) if above is not None else None
        session = self._session(value, owner)
        if owner is not None and self.file is None and value.get("isSidechain") is not True:
            return self.threads.get((session, MAIN_THREAD)) or self._open(session, MAIN_THREAD, None)
        agent = string(value.get("agentId"))
        if self.file is not None:
            name, origin = self.file
            if agent is not None:
                return self._open(session, f"agent-{agent}", origin)
            return self._open(session, name.rpartition("/")[2].removesuffix(".jsonl"), origin)
        if value.get("isSidechain") is not True:
            return self._open(session, MAIN_THREAD, None)
        if agent is not None:
            return self._open(session, f"agent-{agent}", None)
        if owner is not None and owner.name != MAIN_THREAD:
            return owner
        return self._sidechain(value, session, uuid)

    def _sidechain(self, value: Json, session: str | None, uuid: str) -> Thread:
        """An inline conversation of a sub-agent (1.0.x), named for its first line."""
        message = value.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        texts = [b.get("text") for b in blocks.blocks_of(content) if isinstance(b, dict)]
        origin = Origin(MAIN_THREAD)
        for tool, task in self.tasks.items():
            if task.prompt in texts:
                origin = Origin(task.thread, tool, task.agent)
        return self._open(session, f"sidechain-{uuid[:8]}", origin)

    def _open(self, session: str | None, name: str, origin: Origin | None) -> Thread:
        thread = self.threads.get((session, name))
        if thread is None:
            graph = self._graph
            thread = Thread(session, name, origin, graph.nodes.get, graph.tools.get)
            self.threads[session, name] = thread
        return thread

    def _session(self, value: Json, owner: Thread | None) -> str | None:
        """A conversation keeps the session it began in, also where a later session carries it on."""
        if self._own is not None:
            self.session = self._own
            return self._own
        native = value.get("sessionId")
        if not isinstance(native, str) or not native:
            native = string(value.get("session_id"))
        if owner is not None:
            if native is not None and native not in self._joined:
                self._joined[native] = owner.session
            return owner.session
        if self.file is not None or native is None:
            return self.session
        self.session = self._joined.setdefault(native, native)
        return self.session

    def note_task(self, thread: Thread, tool: str, content: list[Any]) -> None:
        """Remember a call of a message if it starts a sub-agent."""
        for block in content:
            if isinstance(block, dict) and block.get("id") == tool and block.get("name") in _TASK_TOOLS:
                arguments = block.get("input")
                if isinstance(arguments, dict):
                    prompt = string(arguments.get("prompt")) or ""
                    self.tasks[tool] = Task(thread.name, prompt, string(arguments.get("subagent_type")))
