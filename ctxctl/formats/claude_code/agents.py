"""The files of a session's sub-agents: `agent-<id>.jsonl` beside it, or under `<session>/subagents/`."""

from __future__ import annotations

from collections.abc import Container, Iterable
from pathlib import Path

import orjson

from ctxctl.errors import CtxctlError
from ctxctl.formats.claude_code.blocks import string
from ctxctl.formats.claude_code.threads import Origin
from ctxctl.formats.lines import Json, Report
from ctxctl.model.problem import Problem
from ctxctl.trace.source import Source, open_source

_HEAD = 256 * 1024


class Agents:
    """Finds sub-agents' files and hands each out once."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._own: dict[str, Path] = {}
        """Files under the session's own directory, by agent id."""
        self._beside: dict[str, Path] = {}
        """Files next to it, which may be other sessions'."""
        self._root: Path | None = None
        self.wanted: list[tuple[str, Origin]] = []
        """Agents whose result was read and whose file is to be read next."""

    def around(self, source: Source) -> None:
        """Look around the opened file; a stream, and a sub-agent's own file, has nothing around it."""
        path = source.path
        if path is None or path.name.startswith("agent-"):
            return
        self._root = path.parent
        try:
            self._own = _agents(path.with_suffix("").joinpath("subagents").rglob("agent-*.jsonl"))
            self._beside = _agents(path.parent.glob("agent-*.jsonl"))
        except OSError as error:
            message = f"the files of sub-agents cannot be listed: {error.strerror or error}"
            self._report(Problem(0, 0, "sub-agents-not-read", message))

    def take(self, agent: str) -> Source | None:
        """The file of an agent, unless there is none or it was handed out before."""
        path = self._own.pop(agent, None) or self._beside.pop(agent, None)
        return self._opened(path) if path is not None else None

    def pass_over(self, agent: str) -> None:
        """An agent that another session started, which its history tells of."""
        self._beside.pop(agent, None)

    def leftover(self, session: str | None, known: Container[str]) -> Source | None:
        """A file of this session that no result named: killed, asynchronous, or a compaction's own call."""
        for agent in sorted(self._own):
            return self.take(agent)
        for agent in sorted(self._beside):
            path = self._beside[agent]
            if _belongs(path, session, known):
                return self.take(agent)
            del self._beside[agent]
        return None

    def relative(self, source: Source) -> str:
        """A file's name as problems and events give it."""
        path = source.path
        if path is not None and self._root is not None and path.is_relative_to(self._root):
            return path.relative_to(self._root).as_posix()
        return source.name.rpartition("/")[2]

    def _opened(self, path: Path) -> Source | None:
        try:
            return open_source(path)
        except CtxctlError as error:
            self._report(Problem(0, 0, error.slug, f"{path.name}: {error.message}"))
            return None


def _agents(paths: Iterable[Path]) -> dict[str, Path]:
    return {path.stem.removeprefix("agent-"): path for path in sorted(paths) if path.is_file()}


def _belongs(path: Path, session: str | None, known: Container[str]) -> bool:
    """Whether the first line of a file is of this session, or follows one of its lines."""
    try:
        with path.open("rb") as file:
            value: Json = orjson.loads(file.readline(_HEAD))
    except (OSError, orjson.JSONDecodeError):
        return False
    if not isinstance(value, dict):
        return False
    parent = string(value.get("parentUuid"))
    ours = session is not None and value.get("sessionId") == session
    return ours or (parent is not None and parent in known)
