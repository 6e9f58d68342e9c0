"""`ctxctl record -- COMMAND` and `ctxctl record --proxy`: runs the proxy, and says what came of it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ctxctl.record.clients import Setup, set_up
from ctxctl.record.guard import room_for_connections
from ctxctl.record.proxy import child
from ctxctl.record.proxy.child import Child, Signals
from ctxctl.record.proxy.server import Proxy
from ctxctl.record.proxy.upstreams import Route, bases, routes
from ctxctl.record.proxy.writer_client import Totals, WriterClient
from ctxctl.wording import plural

if TYPE_CHECKING:
    from ctxctl.record.options import Options


_SILENCE: Final = 10.0
"""Seconds without any request after which the user is told so."""
_PAGE: Final = "docs/recording.md"


def _leading(setup: Setup) -> str:
    """Return in words what is redirected: the known programs, and the names of variables and settings."""
    names = ", ".join(way.variable for way in setup.ways)
    known = " and ".join(found.client.name for found in setup.found)
    return f"{known}: {names}" if known else names


def _nothing_came(setup: Setup | None, *, so_far: bool = False) -> list[str]:
    """Return what to say where no request came: what was set, and what to do for this program.

    Args:
        setup: The program's setup; None: programs were started elsewhere.
        so_far: Whether the program is still running.
    """
    when = f" in {_SILENCE:.0f} seconds" if so_far else ""
    if setup is None:
        return [f"nothing came by: are the variables above set where the program is started? See {_PAGE}"]
    if setup.found:
        return [
            f"nothing came by{when} from {found.client.name}: {found.client.advice} (see {_PAGE})"
            for found in setup.found
        ]
    names = ", ".join(way.variable for way in setup.ways if way.exported)
    return [
        f"nothing came by{when}: {names} were set, and the program may read another setting",
        "if it reads another variable, give that as --upstream NAME=URL; if it reads a file or a flag, run "
        f"`ctxctl record --proxy` and write the address there (see {_PAGE})",
    ]


def _on_terminal() -> bool:
    """Whether the program uses the terminal that stderr goes to."""
    try:
        return os.isatty(2) and (os.isatty(1) or os.isatty(0))
    except OSError:
        return False


_ENDS: Final = frozenset((signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
_TICK: Final = 0.05
_QUEUED: Final = 2.0
"""Seconds after which the user is told that the recorder is still writing."""


def run_command(command: list[str], options: Options, upstreams: Iterable[str] = ()) -> int:
    """Run a program with its API addresses redirected to the proxy; return its exit code.

    Args:
        command: The program and its arguments.
        options: The options that all modes share.
        upstreams: `NAME=URL` for programs that read other variables, or go elsewhere.

    Raises:
        CtxctlError: before the program is started: the trace cannot be written, or an address is wrong.
    """
    setup = set_up(command, os.environ, upstreams)
    with Signals() as signals:
        recording = _Recording(options, setup.ways, signals, setup=setup)
        program: Child | None = None
        with setup.start(recording.ports) as start:
            options.begin(*setup.notes, f"{_leading(setup)} lead to the recorder for `{_shown(command)}`")
            try:
                program = Child(start.command, start.environment, signals)
                status = child.exit_code(code := program.wait(recording.silence(time.monotonic())))
            except OSError as error:
                code = status = child.start_failure_code(error)
                options.say(f"ctxctl: error: {command[0]}: {error.strerror}")
        recording.end(signals, over=True)
        died_of_key = code == -signal.SIGINT and program is not None and signal.SIGINT in program.by_terminal
    if died_of_key:
        # A shell ends its loop only if the command that it ran has died of Ctrl-C too.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    return status


def serve(options: Options, port: int, upstreams: Iterable[str] = ()) -> int:
    """Run the proxy until SIGINT, SIGTERM or SIGHUP.

    Args:
        options: The options that all modes share.
        port: The port for the first API, the others follow; 0: any.
        upstreams: `NAME=URL`, as for `run_command`.

    Raises:
        CtxctlError: the trace cannot be written, an address is wrong, a port is taken.
    """
    room_for_connections(each=2)  # to the program and to the provider
    ways, notes = routes(os.environ, upstreams)
    with Signals() as signals:
        recording = _Recording(options, ways, signals, port)
        lines = [f"{way.variable}={way.pointed(to)}" for way, to in recording.ports.items()]
        options.begin(*notes, "set, for the programs that are to be recorded (Ctrl-C ends):", *lines)
        # A signal that was ignored at the start (`nohup`) stays ignored.
        ends = frozenset(n for n in _ENDS if signal.getsignal(n) is not signal.SIG_IGN)
        child.wait_until(signals, lambda: False, ends)
        recording.end(signals)
    return 0


class _Recording:
    """A running proxy and its writer process."""

    def __init__(
        self, options: Options, ways: Sequence[Route], signals: Signals, port: int = 0, *,
        setup: Setup | None = None,
    ) -> None:  # fmt: skip
        self._options = options
        self._setup = setup
        self._writer = WriterClient(options)
        try:
            upstreams = list(dict.fromkeys(way.upstream for way in ways))
            self._proxy = Proxy(upstreams, port, self._writer.connection, bases(ways))
        except BaseException:
            self._writer.connection.close()
            self._writer.abandon()
            raise
        try:
            while not self._writer.ready(_TICK):
                # It may hang with a disk that hangs, and signals are blocked.
                taken = signals.take(0.0)
                if taken is not None and taken[0] in _ENDS:
                    raise KeyboardInterrupt
        except BaseException:
            self._proxy.stop()
            raise
        self.ports: Mapping[Route, int] = {way: self._proxy.listeners[way.upstream].port for way in ways}

    def silence(self, began: float) -> Callable[[], None] | None:
        """Return a function that says, once, that no request has come so far; None: it is said at the end.

        A program that draws on the terminal, or waits there for its user, has nothing to send yet, and a line
        in between would disturb it.
        """
        if self._options.quiet or self._setup is None or _on_terminal():
            return None
        setup, said = self._setup, False

        def look() -> None:
            nonlocal said
            if not said and time.monotonic() - began >= _SILENCE and not self._proxy.requests:
                said = True
                for line in _nothing_came(setup, so_far=True):
                    self._say(line)

        return look

    def end(self, signals: Signals, *, over: bool = False) -> None:
        """Wait for unfinished answers, end the proxy and the writer process, and say the summary."""
        if self._proxy.busy:
            self._say(f"waiting for {self._proxy.busy} answers that are still coming (Ctrl-C ends)")
            child.wait_until(signals, lambda: not self._proxy.busy, _ENDS)
        self._proxy.stop(over=over)
        totals = self._writer.finish(_QUEUED)
        if totals is None:
            self._options.say("ctxctl: still writing (Ctrl-C: do not wait for it)")
            if child.wait_until(signals, self._finished, _ENDS) is not None:
                self._writer.abandon()
                return
            totals = self._totals
        self._conclude(totals)

    _totals = Totals(kept=False)

    def _finished(self) -> bool:
        totals = self._writer.finish(0.0)
        if totals is not None:
            self._totals = totals
        return totals is not None

    def _conclude(self, totals: Totals) -> None:
        proxy, lost = self._proxy, self._proxy.copies.lost
        if not totals.kept:
            self._options.say(
                "ctxctl: the recorder has died: the trace ends where it did; the program was not affected"
            )
        else:
            self._options.conclude(totals, *self._came(totals))
        if lost:
            self._options.say(
                f"ctxctl: {plural(lost, 'call')} not recorded, or in part: the recorder was too slow"
            )
        for origin, why in proxy.unreachable.items():
            self._say(f"{origin} could not be reached: {why}")
        if proxy.refusals:
            self._say(f"{plural(proxy.refusals, 'request')} of web pages or for other servers refused")

    def _came(self, totals: Totals) -> list[str]:
        lines = []
        others = [f"{plural(totals.passed, 'other request')}"] if totals.passed else []
        if self._proxy.tunnels:
            others.append(plural(self._proxy.tunnels, "WebSocket"))
        more = f", {' and '.join(others)} passed on unrecorded" if others else ""
        lines.append(f"{plural(totals.recorded, 'call')} of a model{more}")
        for why, number in totals.unread.items():
            lines.append(f"{plural(number, 'WebSocket')} not recorded, or in part: {why}")
        if not totals.recorded and not others and not totals.unread:
            lines += _nothing_came(self._setup)
        if self._proxy.respelled:
            lines.append(
                f"{plural(self._proxy.respelled, 'path')} put right: the provider has a version in it"
            )
        return lines

    def _say(self, line: str) -> None:
        if not self._options.quiet:
            self._options.say(f"ctxctl: {line}")


def _shown(command: Sequence[str]) -> str:
    name = " ".join(command)
    return name if len(name) <= 60 else f"{name[:59]}…"
