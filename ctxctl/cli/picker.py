"""Choosing a session on a terminal, and the list of a directory's where there is none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctxctl.cli.run import Run
    from ctxctl.fleet.asking import Asker
    from ctxctl.fleet.session_list import SessionList


def at_terminal() -> bool:
    """Whether there is a terminal with keys and a screen."""
    import sys

    from ctxctl.cli.output import is_dumb_terminal, is_terminal

    return is_terminal(sys.stdin) and is_terminal(sys.stdout) and not is_dumb_terminal()


def from_all() -> int:
    """``ctxctl`` alone: the sessions of this machine; the exit code."""
    from ctxctl.cli.options import CommonOptions
    from ctxctl.cli.run import begin

    return picked(begin(CommonOptions()))


def picked(run: Run, directory: str | None = None) -> int:
    """Let the user choose, open what was chosen, and come back to the list; the exit code at the end."""
    from ctxctl.cli.run import inspector_of
    from ctxctl.tui import picker

    pick = picker.Pick()
    while True:
        code = picker.pick_session(lambda: _sessions(run, directory), pick, run.settings)
        chosen = pick.chosen
        if chosen is None:
            return code
        from ctxctl.tui import app

        back = app.Return()
        code = app.run(partial(inspector_of, chosen, run), chosen, settings=run.settings, came_from=back)
        if not back.back:
            return code
        pick.lines = back.lines


@contextmanager
def _sessions(run: Run, directory: str | None) -> Iterator[tuple[SessionList, Asker]]:
    from ctxctl.cli.sessions import directory_sessions, machine_sessions

    with machine_sessions(run) if directory is None else directory_sessions(directory, run) as found:
        yield found.listed, found.asker


def listed(run: Run, directory: str) -> int:
    """Print the list of a directory's sessions, where there is no terminal to choose on."""
    from ctxctl.cli.ls import list_sessions
    from ctxctl.errors import Exit

    list_sessions(directory, run)
    return Exit.OK
