"""``ctxctl watch``: a session while it is written."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Annotated

from ctxctl.cli import options as opt
from ctxctl.cli.parameters import Argument, Done, Option

if TYPE_CHECKING:
    from ctxctl.cli.run import Run
    from ctxctl.cli.watch_lines import ResultPrinter
    from ctxctl.session.live import LiveNews, LiveSession

_WAIT = 1.0
_TERMINATED = 143
"""Exit code after SIGTERM: 128 and the signal's number, as shells have it."""

PlaceArg = Annotated[
    str | None,
    Argument(
        metavar="[TRACE|DIR]",
        help="File to follow, which need not exist yet; or a directory: its newest session."
        " Default: the newest session here or wherever known clients keep theirs.",
        autocompletion=opt.complete_files,
    ),
]
Until = Annotated[str | None, Option("--until", metavar="[THREAD:]TURN", help="Stop when this turn is over.")]
Exec = Annotated[
    str | None,
    Option(
        "--exec", metavar="CMD", help="Run a shell command after each turn, with the turn's JSON on stdin."
    ),
]
Idle = Annotated[
    float | None,
    Option("--idle", metavar="SECONDS", min=0.0, help="Stop when nothing has been written for this long."),
]
Pin = Annotated[bool, Option("--pin", help="Stay with the first session, even if newer ones appear.")]


@opt.takes(
    opt.PRINTED, "everything ids until exec_ idle pin", opt.COUNTED, "calibration no_learned read_as color"
)
def watch(
    options: opt.CommonOptions,
    place: PlaceArg = None,
    until: Until = None,
    exec_: Exec = None,
    idle: Idle = None,
    pin: Pin = False,
) -> None:
    """Follow a session as it is written: the UI on a terminal; lines in a pipe, or with --plain or --json."""
    import sys

    from ctxctl.cli.output import is_dumb_terminal, is_terminal
    from ctxctl.cli.run import begin
    from ctxctl.cli.selection import whole_trace

    run = begin(options)
    if place is not None:
        place = whole_trace(place, "`ctxctl show {}` shows it; --until TURN stops when a turn is over")
    _check(place, run.settings.calibration, idle)
    lines = (
        options.plain
        or options.json
        or until is not None
        or exec_ is not None
        or idle is not None
        or is_dumb_terminal()
    )
    if not lines and is_terminal(sys.stdin) and is_terminal(sys.stdout):
        raise Done(_interface(place, run, pin=pin))
    raise Done(_lines(place, run, until=until, command=exec_, idle=idle, pin=pin))


def _check(place: str | None, calibration: str, idle: float | None) -> None:
    from math import isfinite

    from ctxctl.errors import UsageError
    from ctxctl.session.calibration import SESSION

    if calibration == SESSION:
        raise UsageError(
            "no-calibration", "--calibration session needs a finished session",
            hint="`ctxctl calibrate OLDER… --save` fits to older sessions, for use with this one",
        )  # fmt: skip

    if idle is not None and not isfinite(idle):
        raise UsageError("bad-time", f"--idle {idle}: not a number of seconds", hint="for example 30, or 0.5")

    if place == "-":
        raise UsageError(
            "cannot-follow", "standard input cannot be followed",
            hint="write it to a file and watch that: COMMAND >> run.jsonl & ctxctl watch run.jsonl",
        )  # fmt: skip


def _interface(place: str | None, run: Run, *, pin: bool) -> int:
    """Open the terminal UI; its exit code."""
    from ctxctl.cli.run import inspector_of
    from ctxctl.tui import app

    def live() -> LiveSession:
        return _live(place, run, pin=pin)

    return app.run(
        lambda: inspector_of(place or ".", run), place or "watch", live=live, settings=run.settings
    )


def _live(
    place: str | None, run: Run, *, pin: bool, take: Callable[[object], None] | None = None
) -> LiveSession:
    from ctxctl.session.live import LiveSession

    settings = run.settings
    return LiveSession(
        place, target=settings.target, model=settings.model, encoding=settings.encoding,
        policy=settings.policy, format=settings.read_as, limits=run.limits, take=take, pin=pin,
        skipped=run.everything, seeks=take is None, calibration=settings.calibration,
        learned=settings.learned, own_models=settings.models,
    )  # fmt: skip


class _Signals:
    """SIGINT and SIGTERM ask to come to an end; the second one is obeyed at once."""

    def __init__(self) -> None:
        self.number = 0

    @contextmanager
    def caught(self) -> Iterator[None]:
        """For as long as the block runs."""
        before = {number: signal.signal(number, self._note) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _note(self, number: int, _frame: object) -> None:
        if self.number:
            raise KeyboardInterrupt
        self.number = number

    @property
    def code(self) -> int:
        """The exit code that they call for."""
        return 130 if self.number == signal.SIGINT else _TERMINATED


def _lines(
    place: str | None, run: Run, *, until: str | None, command: str | None, idle: float | None, pin: bool
) -> int:
    """Print what is over until something ends it; the exit code."""
    from ctxctl.cli.watch_lines import Hooks, ResultPrinter, parse_goal
    from ctxctl.session.live import PollStopped

    signals = _Signals()
    hooks = Hooks(command) if command is not None else None
    lines = ResultPrinter(run, parse_goal(until), hooks.turn if hooks is not None else None)
    with _live(place, run, pin=pin, take=lines.take) as live, signals.caught():
        lines.live = live
        with suppress(PollStopped):
            _follow(live, lines, signals, idle)
        _end(live, lines, signals)
    if hooks is not None:
        hooks.close(patient=not signals.number)
    if signals.number:
        from ctxctl.cli.output import note

        note("ctxctl: interrupted" if signals.code == 130 else "ctxctl: terminated")
        return signals.code
    return 0


def _follow(live: LiveSession, lines: ResultPrinter, signals: _Signals, idle: float | None) -> None:
    quiet_since = time.monotonic()

    def stop() -> bool:
        return bool(signals.number) or lines.over

    while not stop():
        wait = _WAIT if idle is None else min(_WAIT, max(0.0, quiet_since + idle - time.monotonic()))
        news = live.poll(wait, stop)
        lines.tell(news)
        if news.changed or news.state == "reading":
            quiet_since = time.monotonic()
        elif idle is not None and time.monotonic() - quiet_since >= idle:
            return


def _end(live: LiveSession, lines: ResultPrinter, signals: _Signals) -> None:
    """Take what is open for over, and say what it came to."""
    from ctxctl.errors import UnreadableError

    news: LiveNews | None = None
    try:
        if not lines.over:
            news = live.finish()
    except UnreadableError:
        lines.status.clear()
        if not signals.number:
            raise
    lines.end(news)
