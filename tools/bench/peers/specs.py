"""Other tools that answer one of our questions about the same captures: how each is installed and asked."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

COSTS = "what did the sessions of a directory cost?"
WINDOW = "what fills the window of a 50 MB session?"
PAGE = "a 50 MB session as an HTML page"
QUESTIONS = (COSTS, WINDOW, PAGE)


@dataclass(frozen=True)
class Peer:
    """One tool.

    Attributes:
        name: The tool's, and its folder's.
        npm: Packages of npm with their versions.
        pip: Packages of PyPI.
        asks: By question its arguments, with `{session}`, `{id}` and `{out}` filled in.
        env: Further variables, with `{projects}` and `{home}` filled in.
        ready: Commands that must run before it can be asked; what they do is not measured.
        keeps: Whether it keeps something between runs, so that the first question costs more.
        note: What a reader of the numbers must know.
    """

    name: str
    asks: Mapping[str, tuple[str, ...]]
    npm: tuple[str, ...] = ()
    pip: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    ready: tuple[tuple[str, ...], ...] = ()
    keeps: bool = True
    note: str = ""

    def path(self, folder: Path) -> str:
        """The `PATH` that it runs with: its own folder's programs before the machine's."""
        own = folder / self.name / ("node_modules/.bin" if self.npm else "bin")
        return os.pathsep.join((str(own.resolve()), os.environ.get("PATH", os.defpath)))

    def program(self, folder: Path) -> str | None:
        """Where it is, in its folder or in `PATH`; None: nowhere."""
        return shutil.which(self.name, path=self.path(folder))

    def installed(self, folder: Path) -> bool:
        """Whether it is here."""
        return self.program(folder) is not None


PEERS = (
    Peer(
        "ccusage",
        {COSTS: ("claude", "session", "--offline", "--json")},
        npm=("ccusage@20.0.24",),
        keeps=False,
    ),
    Peer(
        "codeburn",
        {
            COSTS: ("overview", "--period", "all", "--no-color"),
            WINDOW: ("context", "{id}", "--json"),
        },
        npm=("codeburn@0.9.15", "node@22"),
        note="estimates tokens from characters",
    ),
    Peer(
        "tokscale",
        {COSTS: ("models", "--json", "--claude")},
        npm=("tokscale@1.4.3", "bun"),
        note="has no offline switch: without a network it ends before it answers",
    ),
    Peer(
        "agentsview",
        {COSTS: ("usage", "daily", "--all", "--json", "--offline", "--no-sync")},
        pip=("agentsview",),
        env={"CLAUDE_PROJECTS_DIR": "{projects}", "AGENTSVIEW_DATA_DIR": "{home}/agentsview"},
        ready=(("sync",), ("daemon", "stop")),
        note="reads the files in a server of its own, which is not measured; its answer from its database is",
    ),
    Peer(
        "claude-code-log",
        {PAGE: ("{session}", "-o", "{out}")},
        pip=("claude-code-log",),
    ),
)
BY_NAME = {peer.name: peer for peer in PEERS}
OURS = {
    COSTS: ("cost", "--json", "{projects}"),
    WINDOW: ("show", "--json", "{session}@-1"),
    PAGE: ("export", "--format", "html", "--force", "-o", "{out}", "{session}"),
}
"""The same questions for ctxctl."""
