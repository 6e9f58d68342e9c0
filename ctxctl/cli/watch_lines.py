"""What ``ctxctl watch`` does as turns become true: it prints the lines of ``ctxctl replay``, and runs the
user's command for each turn that is over.
"""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Final, NamedTuple

from ctxctl.cli.output import abandon_stdout, is_terminal, narrate, note, shows_progress
from ctxctl.cli.run import Run, header, tell_problems
from ctxctl.errors import UsageError
from ctxctl.model.addresses import escaped
from ctxctl.model.results import Step, Turn
from ctxctl.model.vocab import MAIN_THREAD
from ctxctl.report import jsonout
from ctxctl.report.heading import base_name
from ctxctl.report.replay import ReplayReport
from ctxctl.report.totals import Totals
from ctxctl.text import visible

if TYPE_CHECKING:
    from ctxctl.session.live import LiveNews, LiveSession
    from ctxctl.session.live_inspector import LiveInspector

_GOAL: Final = re.compile(r"(?:(?P<thread>[^/]+):)?(?P<turn>[1-9]\d{0,17})", re.ASCII)
_CLEAR: Final = "\r\x1b[2K"
_STATES: Final = {
    "waiting": "waiting for", "reading": "reading", "following": "following", "gone": "gone, waiting for",
    "refused": "may not open", "over": "followed",
}  # fmt: skip

Hook = Callable[[str, dict[str, str], bytes], None]


class Goal(NamedTuple):
    """The turn after which to end; without a thread it is one of the trace's first thread, or of `main`."""

    thread: str | None
    turn: int


def parse_goal(typed: str | None) -> Goal | None:
    """What ``--until`` says; raises UsageError("bad-turn")."""
    if typed is None:
        return None
    match = _GOAL.fullmatch(typed)
    if match is None:
        raise UsageError(
            "bad-turn", f"--until must be a turn, for example 3 or explorer:2, not {typed[:80]!r}"
        )
    return Goal(match["thread"], int(match["turn"]))


class ResultPrinter:
    """Prints results as they come, from the thread that polls."""

    def __init__(self, run: Run, until: Goal | None, hook: Hook | None) -> None:
        self._how = run
        self._until = until
        self._hook = hook
        self.live: LiveSession | None = None
        self.over = False
        """The goal is reached: nothing more is printed."""
        self.status = Status()
        self._epoch = -1
        self._inspector: LiveInspector | None = None
        self._report: ReplayReport | None = None
        self._seen: set[tuple[object, ...]] = set()
        self._again = False
        """A step was printed a second time, as it turned out otherwise."""
        self._totals = Totals()
        self._first_thread: str | None = None
        self._state: tuple[str, str] = ("", "")
        self._told_epoch = 0

    def take(self, result: object) -> None:
        """Print a step or a turn that is over."""
        assert self.live is not None
        assert isinstance(result, Step | Turn)
        if self.over:
            return
        if self._epoch != self.live.epoch or self._inspector is None:
            self._finish_epoch()
            self._begin(self.live.epoch, self.live.inspector)
        if isinstance(result, Step):
            self._step(result)
        self._print(result)
        if isinstance(result, Turn):
            self._turn(result)

    def _begin(self, epoch: int, inspector: LiveInspector | None) -> None:
        assert inspector is not None
        self._epoch, self._inspector = epoch, inspector
        self._seen, self._again, self._totals, self._first_thread = set(), False, Totals(), None
        run, head = self._how, header(inspector)
        if run.json:
            run.out.json(jsonout.trace(head))
        else:
            names = inspector.words.names(ids=run.options.ids)
            self._report = ReplayReport(head, run.out.width, run.out.paint, names, skipped=run.everything)

    def _step(self, step: Step) -> None:
        if self._first_thread is None:
            self._first_thread = step.thread
        key = (step.session, step.thread, step.turn, step.step)
        if key in self._seen:
            self._again = True
        elif self._inspector is not None and self._inspector.rewinds:
            self._seen.add(key)
        if self._how.json:
            self._totals.add(step)

    def _print(self, result: Step | Turn) -> None:
        run = self._how
        if self._report is not None:
            run.out.lines(self._report.feed(result))
        elif isinstance(result, Step):
            run.out.json(jsonout.step(result, skipped=run.everything))
        else:
            run.out.json(jsonout.turn(result, skipped=run.everything))

    def _turn(self, turn: Turn) -> None:
        if self._hook is not None:
            assert self._inspector is not None
            variables = {
                "TRACE": str(self._inspector.name), "SESSION": turn.session or "", "THREAD": turn.thread,
                "TURN": str(turn.turn),
            }  # fmt: skip
            data = jsonout.line(jsonout.turn(turn, skipped=self._how.everything))
            self._hook(f"{escaped(turn.thread)}:{turn.turn}", variables, data)
        wanted = self._until
        if wanted is None or turn.turn != wanted.turn:
            return
        threads = {wanted.thread} if wanted.thread is not None else {MAIN_THREAD, self._first_thread}
        self.over = turn.thread in threads

    def tell(self, news: LiveNews) -> None:
        """Hand on what was printed, and say on standard error what is going on."""
        self.status.clear()
        self._how.out.flush()
        _end_if_nobody_reads()
        name = base_name(news.name)
        if news.epoch != self._told_epoch and news.why is not None:
            self._told_epoch = news.epoch
            note(f"ctxctl: {name}: {news.why.message}")
        state = ("reading" if news.state == "following" else news.state, news.name)
        if state != self._state:
            self._state = state
            if state[0] != "over":
                narrate(f"ctxctl: {_STATES['following' if state[0] == 'reading' else state[0]]} {news.name}")
        self.status.show(
            f"{_STATES[news.state]} {visible(name)}: {news.events:,} events, {news.rate:,.0f}/s"
            + (f", {news.behind:,} bytes behind" if news.behind else "")
        )

    def end(self, news: LiveNews | None) -> None:
        """The problems and the summary; `news` of what was left, if anything was."""
        fresh = news is not None and (self._epoch != news.epoch or self._inspector is None)
        if news is not None and news.inspector is not None and fresh:
            self._finish_epoch()
            self._begin(news.epoch, news.inspector)
        self._finish_epoch()
        self._how.out.flush()

    def _finish_epoch(self) -> None:
        """The view begins afresh, or everything is over: what was printed gets its summary."""
        inspector, run = self._inspector, self._how
        self._inspector = None
        if inspector is None:
            return
        summary = inspector.outline().summary
        totals = self._totals if self._report is None else self._report.totals
        if self._again:
            totals.__init__()  # type: ignore[misc]
            for result in inspector.replay():
                if isinstance(result, Step):
                    totals.add(result)
        if self._report is not None:
            run.out.lines(self._report.end(summary))
            self._report = None
            tell_problems(inspector, run)
        else:
            tell_problems(inspector, run)
            run.out.json(jsonout.summary(totals.narrow(summary)))


class Status:
    """A line on standard error that says what is going on, if that is a terminal."""

    def __init__(self) -> None:
        self._stream = sys.stderr if shows_progress() else None
        self._shown = False
        self._mixed = is_terminal(sys.stdout)

    def show(self, text: str) -> None:
        """Put the line there."""
        if self._stream is None:
            return
        try:
            self._stream.write(f"{_CLEAR}{text}")
            self._stream.flush()
            self._shown = True
        except (OSError, ValueError):
            self._stream = None

    def clear(self) -> None:
        """Take the line away, before something else is written."""
        if self._stream is None or not self._shown:
            return
        self._shown = False
        try:
            self._stream.write(_CLEAR)
            self._stream.flush()
        except (OSError, ValueError):
            self._stream = None


def _end_if_nobody_reads() -> None:
    """Whoever waits for the next line of a pipe that is closed waits for ever."""
    try:
        watch = select.poll()
        watch.register(sys.stdout.fileno(), 0)
        gone = any(what & (select.POLLERR | select.POLLNVAL) for _, what in watch.poll(0))
    except (OSError, ValueError, AttributeError):
        return
    if gone:
        abandon_stdout()
        raise SystemExit(0)


_GRACE: Final = 5.0
"""Seconds for the commands that are still to be run, after an interrupt."""

_Job = tuple[str, dict[str, str], bytes]


class Hooks:
    """Runs one shell command a turn, one after the other, in a thread: watching never waits for them.

    The command line is the user's alone.  What the trace says comes on standard input and in variables; the
    command's standard output goes to our standard error, because ours is data.
    """

    def __init__(self, command: str) -> None:
        self._command = command
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name="ctxctl-exec", daemon=True)
        self._thread.start()

    def turn(self, name: str, variables: dict[str, str], data: bytes) -> None:
        """Run the command for one turn; `name` is for messages."""
        self._jobs.put((name, variables, data))

    def close(self, *, patient: bool) -> None:
        """Wait for the commands; `patient`: for as long as they take."""
        self._jobs.put(None)
        self._thread.join(None if patient else _GRACE)
        if self._thread.is_alive():
            left = 0
            try:
                while self._jobs.get_nowait() is not None:
                    left += 1
            except Empty:
                pass
            note(f"ctxctl: --exec: still running; {left} more were not started")

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            name, variables, data = job
            try:
                self._one(name, variables, data)
            except (OSError, ValueError) as error:
                note(f"ctxctl: --exec: turn {name}: {error}")

    def _one(self, name: str, variables: dict[str, str], data: bytes) -> None:
        env = dict(os.environb)
        for key, value in variables.items():
            env[f"CTXCTL_{key}".encode()] = value.replace("\0", "").encode("utf-8", "replace")
        process = subprocess.Popen(
            self._command, shell=True, stdin=subprocess.PIPE, stdout=2, env=env, start_new_session=True
        )
        try:
            process.communicate(data)
        except BrokenPipeError:  # it does not care for the turn
            process.wait()
        if process.returncode:
            ended = f"exit code {process.returncode}" if process.returncode > 0 else "ended by a signal"
            note(f"ctxctl: --exec: turn {name}: {ended}")
