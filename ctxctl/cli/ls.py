"""``ctxctl ls``: the sessions of this machine, or of a directory."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Final

from ctxctl.cli import options as opt
from ctxctl.cli.parameters import Argument, Done, Option

if TYPE_CHECKING:
    from ctxctl.cli.run import Run
    from ctxctl.cli.sessions import Sessions
    from ctxctl.model.session_list import ListedSession

_PACE: Final = 0.25
"""Seconds between two times that lines are handed over."""
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_AGO: Final = re.compile(r"(\d{1,6}) ?(s|m|min|h|d|w)")

Place = Annotated[
    str | None,
    Argument(
        metavar="[DIR]",
        help="A directory of captures. Default: wherever known clients keep their sessions.",
        autocompletion=opt.complete_files,
    ),
]
Since = Annotated[
    str | None,
    Option(
        "--since",
        metavar="TIME",
        help="Only sessions written since then: 2d, 12h, 30m ago, or a date: 2026-11-01.",
    ),
]
Here = Annotated[
    bool,
    Option("--here", help="Only sessions recorded in the current directory or below it, or stored in it."),
]
Quick = Annotated[
    bool,
    Option(
        "--quick",
        help="Do not read sessions: show turns, tokens, cost and prompt only for those read before.",
    ),
]


@opt.takes(opt.PRINTED, "model calibration no_learned read_as color")
def ls(
    options: opt.CommonOptions,
    place: Place = None,
    since: Since = None,
    here: Here = False,
    quick: Quick = False,
) -> None:
    """List sessions, newest first: client, project, turns, tokens sent, cost, first prompt.

    ctxctl reads each session when it first lists it, which takes a moment; lines appear as they are ready.
    A dot marks live sessions: written to in the last two minutes, or open for writing. In a pipe, each line
    ends with its path.
    """
    from ctxctl.cli.run import begin

    earliest = None if since is None else moment_since(since, time.time())
    list_sessions(place, begin(options), earliest, here=here, quick=quick)
    raise Done(0)


def list_sessions(
    place: str | None, run: Run, earliest: float | None = None, *, here: bool = False, quick: bool = False
) -> None:
    """Print the sessions of a place, or of this machine, that were written since a time."""
    from ctxctl.cli.sessions import current_directory, directory_sessions, is_here, machine_sessions

    now = time.time()
    with machine_sessions(run) if place is None else directory_sessions(place, run) as sessions:
        found = sessions.listed.scan(now)
        if run.settings.read_as is not None:
            found = [one for one in found if one.format == run.settings.read_as]
        if earliest is not None:
            found = [one for one in found if one.written >= earliest]
        if here:
            where = current_directory()
            found = [one for one in found if where is not None and is_here(one, where)]
        _print(sessions, found, run, place, now, quick=quick)


def _print(
    sessions: Sessions,
    found: Sequence[ListedSession],
    run: Run,
    place: str | None,
    now: float,
    *,
    quick: bool,
) -> None:
    import os
    import sys

    from ctxctl import __version__
    from ctxctl.cli.output import is_terminal, note
    from ctxctl.report import session_list as report
    from ctxctl.text import visible
    from ctxctl.trace.inputs import absolute_path

    out = run.out
    top = "" if place is None else absolute_path(place)

    def path_of(one: ListedSession) -> str:
        """As it was typed where a directory was."""
        if place is not None and one.path == top:
            return place
        inside = place is not None and one.path.startswith(f"{top.rstrip('/')}/")
        return os.path.join(place or "", one.path[len(top) :].lstrip("/")) if inside else one.path

    terminal = is_terminal(sys.stdout)
    if run.json:
        out.json(report.list_object(sessions.listed.places, len(found), __version__))
    elif found:
        out.lines([report.heading(out.width) if terminal else report.plain_heading()])
    told_at = time.monotonic()
    with out.progress("reading sessions"):
        for one in found if quick else _read(sessions, found, now):
            if run.json:
                out.json(report.session_object(one, path_of(one)))
            elif terminal:
                out.lines([report.terminal_line(one, now, out.width)])
            else:
                out.lines([report.plain_line(one, now, path_of(one))])
            if time.monotonic() - told_at > _PACE:
                out.flush()
                told_at = time.monotonic()
    out.flush()
    for path, why in sessions.listed.not_read.items():
        note(f"ctxctl: not read: {visible(path)}: {why}")
    if not found and not run.json:
        for line in ("no session found", *report.nothing_lines(sessions.listed.places)):
            note(line)


def _read(sessions: Sessions, found: Sequence[ListedSession], now: float) -> Iterator[ListedSession]:
    """All sessions in order, each as soon as it and those before it are read."""
    unread = sessions.listed.unread(found, now)
    waited = {one.path for one in unread}
    coming = sessions.listed.read(sessions.asker, unread)
    early: dict[str, ListedSession] = {}
    for one in found:
        while one.path in waited and one.path not in early:
            done = next(coming)
            early[done.path] = done
        made = early.pop(one.path, one)
        yield made if not one.live else _as_live(made, one)
    coming.close()


def _as_live(made: ListedSession, one: ListedSession) -> ListedSession:
    from msgspec.structs import replace

    return replace(made, live=one.live)


def moment_since(text: str, now: float, flag: str = "--since") -> float:
    """Seconds since the epoch of `2d` ago, or of the beginning of a day, in this machine's time.

    Raises UsageError (`bad-time`).
    """
    from datetime import datetime

    from ctxctl.errors import UsageError

    ago = _AGO.fullmatch(text.strip())
    if ago is not None:
        return now - int(ago[1]) * _UNITS[ago[2][0]]
    try:
        return datetime.fromisoformat(text.strip()).timestamp()
    except (ValueError, OverflowError, OSError):
        raise UsageError(
            "bad-time", f"{flag} {text}: not a time", hint="for example 2d, 12h, 30m or 2026-11-01"
        ) from None
