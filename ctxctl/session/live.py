"""Watch a session while it is written: each poll looks at the files, reads on, and reports what is new.

One thread owns a `LiveSession` and calls `poll` repeatedly; any thread may use its inspector. One engine
reads only what is new, so a poll costs what is new.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec

from ctxctl.importers.capture import NATIVE
from ctxctl.model import vocab
from ctxctl.model.problem import Problem
from ctxctl.model.whatif import AS_RECORDED, Limits
from ctxctl.session.live_capture import ANEW, LATER, CaptureFeed, Feed, FeedLook, NativeFeed, is_companion
from ctxctl.session.live_choice import SessionChoice, kind_of, no_session_error, warm_up
from ctxctl.session.live_inspector import LiveInspector, LiveRows, Take
from ctxctl.session.opening import Opened
from ctxctl.session.params import OwnModels, first_model, resolve_params
from ctxctl.trace.file_events import LOOK, FileWaiter

SLICE: Final = (0.1, 0.25)
"""Seconds after which a poll returns although there is more to read: the first, and later ones."""
_MAX_PEEK: Final = 4 << 20
_MODEL: Final = re.compile(rb'"model(?:_ref)?"\s*:')
_OPEN_SHARE: Final = 0.25
"""Largest share of the time for showing steps that are not over."""
_LOOK_INTERVALS: Final = (0.02, 0.05)
"""Shortest seconds between two looks; the larger if each look is shown. A busy writer is batched."""
_FREE_SECONDS: Final = 0.02
"""Seconds that showing unfinished steps may always take."""
_LASTING: Final = frozenset({"trace-truncated", "trace-rewritten", "unfinished-line", "trace-rotated"})
_RATE_SECONDS: Final = 2.0
"""Seconds over which the rate of events is measured."""

State = Literal["waiting", "reading", "following", "gone", "refused", "over"]


class LiveNews(NamedTuple):
    """What is known after a poll. It is immutable, so any thread may use it."""

    state: State
    """`waiting`: nothing exists yet. `reading`: more can be read at once. `following`. `gone`: the file was
    deleted or renamed. `refused`: it may not be opened. `over`: nothing more is expected."""
    name: str
    """The file or directory that is followed now. It is untrusted text."""
    changed: bool
    """Whether anything but the rate differs from the last poll."""
    epoch: int
    """Grows when the view begins again, with another inspector and no earlier row."""
    why: Problem | None
    """Why the epoch began; None for the first."""
    inspector: LiveInspector | None
    """This epoch's inspector; None before there is anything. The last one works until the next epoch."""
    rows: LiveRows
    """All steps: first the finished ones (`rows.settled`), then the unfinished ones."""
    kept: int
    """Number of leading rows that are identical to those of the last poll, for `Grouping.take`."""
    events: int
    """Number of events read in this epoch."""
    behind: int
    """Bytes that exist and are not read yet."""
    rate: float
    """Recent events per second."""
    problems: int


class LiveSession:
    """One session, or the newest of several, followed as it grows."""

    def __init__(
        self,
        path: str | Path | None,
        *,
        target: str = vocab.MODEL,
        model: str | None = None,
        encoding: str | None = None,
        policy: str | None = None,
        format: str | None = None,  # noqa: A002 - the name users type
        limits: Limits = AS_RECORDED,
        take: Take | None = None,
        pin: bool = False,
        skipped: bool = False,
        seeks: bool = True,
        calibration: str | None = "none",
        learned: str = "none",
        own_models: OwnModels | None = None,
    ) -> None:
        """Follow a file (which need not exist yet), or a directory; with None, wherever runtimes write.

        `take` is called in the polling thread with each finished step and turn, and again if it changes.
        `pin` stays with the first session found. With `skipped`, changes include the skipped items. Without
        `seeks`, only `take` is served: no steps can be opened, or seen unfinished, before the end.
        """
        self._sessions = SessionChoice(path, format, pin=pin)
        self._asked = (target, model, encoding, policy, calibration, own_models)
        self._learned, self._limits = learned, limits
        self._skipped = skipped
        self._seeks = seeks
        self._format = format
        self._take = take
        self._stop: Callable[[], bool] = _never
        self._waker = FileWaiter()
        self._feed: Feed | None = None
        self._path: Path | None = None
        self._decided = False
        """Whether the kind of the file is final."""
        self._inspector: LiveInspector | None = None
        self._older: list[LiveInspector] = []
        self._epoch = 0
        self._why: Problem | None = None
        self._told: list[Problem] = []
        self._passing: list[Problem] = []
        """Problems that end with the next look that finds something."""
        self._peeked: int | None = 0
        """Bytes searched for a model without success; None once that is settled."""
        self._state: State = "waiting"
        self._rates: deque[tuple[float, int]] = deque()
        self._rated = 0
        """The sum of the rated events."""
        self._counted = 0
        self._open_free_at = 0.0
        self._unshown = False

    @property
    def epoch(self) -> int:
        """The current inspector's epoch."""
        return self._epoch

    @property
    def inspector(self) -> LiveInspector | None:
        """The current inspector."""
        return self._inspector

    def poll(self, wait: float = LOOK, stop: Callable[[], bool] | None = None) -> LiveNews:
        """Wait until there is something new, at most `wait` seconds or until `stop`. Return what is known.

        Reads for a tenth of a second at most: while the state is `reading`, poll again at once. Raises
        CtxctlError for lasting errors: wrong options, a directory that is no session.
        """
        self._stop = stop or _never
        end = time.monotonic() + wait
        while True:
            self._waker.pace(0.0 if self._state == "reading" else _LOOK_INTERVALS[self._seeks], wait)
            with self._named():
                changed = self._once()
            left = end - time.monotonic()
            if changed or left <= 0 or self._stop():
                return self._news(changed)
            due = self._feed.due(time.monotonic()) if self._feed is not None else LOOK
            shown = max(0.01, self._open_free_at - time.monotonic()) if self._unshown else LOOK
            self._waker.wait(min(left, due, shown, LOOK), self._stop)

    def finish(self) -> LiveNews:
        """Read what is left, and finish what is open.

        Raises UnreadableError (`no-events`, `no-such-file`) if nothing was ever found to follow.
        """
        self._stop = _never
        with self._named():
            self._read_rest()
        inspector = self._inspector
        if inspector is not None:
            self._state = "over"
        if inspector is None or not inspector.events:
            raise no_session_error(self._path, self._sessions.name, self._sessions.not_read)
        return self._news(True)

    def _read_rest(self) -> None:
        while self._once() and self._state == "reading":
            pass
        if self._feed is not None:
            self._accept(self._feed.look(inf))  # whatever the pace, and even if it is not settled
            self._accept(self._feed.last())
        inspector = self._inspector
        if inspector is not None:
            while inspector.feed(_never):
                pass
            inspector.finish()

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Add the file's name to an OSError."""
        try:
            yield
        except OSError as error:
            if error.filename is not None or not error.errno:
                raise
            name = str(self._path or self._sessions.name)
            raise OSError(error.errno, error.strerror, name) from None

    def close(self) -> None:
        """Close all files. The inspectors cannot be used afterwards."""
        self._waker.close()
        if self._feed is not None:
            self._feed.close()
        for inspector in (*self._older, *((self._inspector,) if self._inspector is not None else ())):
            inspector.close()
        self._older, self._inspector = [], None

    def __enter__(self) -> LiveSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _once(self) -> bool:
        """Look at the files and read for a while. Return whether anything is new."""
        now = time.monotonic()
        changed = self._choose(now)
        if self._feed is None and not self._recognise():
            return changed
        assert self._feed is not None
        state = self._state
        if state != "reading":
            changed |= self._undecided()
            changed |= self._accept(self._feed.look(now))
        if self._inspector is not None:
            changed = self._read(self._inspector, changed)
            if self._take is not None and self._state == "following" and self._feed.turn_over(now):
                self._inspector.settle(self._feed.aside)
                changed = True
        return changed or self._state != state

    def _read(self, inspector: LiveInspector, changed: bool) -> bool:
        """Feed the engine, and publish the result."""
        if not changed and self._state != "reading" and not self._owing(now_open=inspector):
            return False
        if changed and (self._better_params(inspector) or inspector.lookahead_changed()):
            self._anew(inspector)
            return True
        began = time.monotonic()
        until = began + SLICE[self._state == "reading"]
        more = inspector.feed(lambda: time.monotonic() > until or self._stop())
        self._state = "reading" if more else self._state if self._state != "reading" else "following"
        self._publish(inspector)
        self._count(inspector)
        return True

    def _owing(self, now_open: LiveInspector) -> bool:
        """Return whether unfinished steps were not shown when they came, and can be now."""
        there = now_open.events or (self._feed is not None and self._feed.aside)
        return bool(self._unshown and there) and time.monotonic() >= self._open_free_at

    def _publish(self, inspector: LiveInspector) -> None:
        began = time.monotonic()
        feed = self._feed
        assert feed is not None
        show = self._seeks and self._state != "reading" and began >= self._open_free_at
        inspector.publish(feed.aside if show else b"", line=feed.whole, open_too=show)
        self._unshown = self._seeks and not show
        if show:
            cost = time.monotonic() - began
            late = cost > _FREE_SECONDS
            self._open_free_at = began + cost / _OPEN_SHARE if late else 0.0

    def _accept(self, look: FeedLook) -> bool:
        """Process the result of a look."""
        if self._state != "reading":
            self._state = look.state
        if look.changed:
            self._passing = []
        for problem in look.problems:
            there = self._told if problem.slug in _LASTING else self._passing
            if problem not in there:
                there.append(problem)
        if look.restart is not None and look.restart.slug in _LASTING:
            self._told.append(look.restart)
        if look.opened is not None and (look.restart is not None or self._inspector is None):
            self._begin(look.opened, look.restart)
        elif look.restart is not None:
            self._drop(look.restart)
        inspector = self._inspector
        if inspector is not None:
            if look.opened is not None:
                inspector.opened_anew(look.opened)
            if look.rollback is not None:
                inspector.go_back(look.rollback.at, look.rollback.next)
            inspector.told = [*self._told, *self._passing]
        return look.changed or bool(look.problems)

    def _begin(self, opened: Opened, why: Problem | None) -> None:
        params, strategy = resolve_params(opened, *self._asked)
        params = msgspec.structs.replace(params, limits=self._limits)
        if self._inspector is not None or why is not None:
            self._drop(why)
        feed = self._feed
        assert feed is not None
        self._inspector = LiveInspector(
            opened,
            params,
            strategy,
            self._take,
            rewinds=feed.rewinds,
            skipped=self._skipped,
            seeks=self._seeks,
        )
        self._inspector.told = [*self._told, *self._passing]
        self._peeked = None if self._asked[1] is not None or params.first_model is not None else 0
        self._counted = 0

    def _drop(self, why: Problem | None) -> None:
        """Begin a new view. What was open is finished, unless the same lines are read again."""
        if self._inspector is not None and (why is None or why.slug != ANEW):
            self._inspector.finish()
        self._epoch += 1
        self._why = why
        if self._inspector is not None:
            self._older.append(self._inspector)
            while len(self._older) > 1:
                self._older.pop(0).close()
        self._inspector = None
        self._rates.clear()
        self._rated = 0
        self._counted = 0

    def _anew(self, inspector: LiveInspector) -> None:
        """Replay the same bytes with current knowledge."""
        assert self._feed is not None
        self._begin(self._feed.again(), Problem(0, 0, ANEW, LATER))
        self._state = "reading"

    def _better_params(self, inspector: LiveInspector) -> bool:
        """Return whether the head of the trace now names a model, by which tokens are to be counted."""
        source, at = inspector.trace.source, self._peeked
        if at is None or at >= source.size:
            return False
        overlap = max(0, at - 16)
        head = source.read(overlap, min(source.size, _MAX_PEEK) - overlap)
        self._peeked = None if source.size >= _MAX_PEEK else source.size
        if not _MODEL.search(head):
            return False
        return first_model(inspector.trace) is not None

    def _count(self, inspector: LiveInspector) -> None:
        now, events = time.monotonic(), inspector.events
        if events > self._counted:
            self._rates.append((now, events - self._counted))
            self._rated += events - self._counted
        self._counted = events
        self._forget_rates(now)

    def _forget_rates(self, now: float) -> None:
        while self._rates and self._rates[0][0] < now - _RATE_SECONDS:
            self._rated -= self._rates.popleft()[1]

    def _news(self, changed: bool) -> LiveNews:
        inspector = self._inspector
        self._forget_rates(time.monotonic())
        rate = self._rated / _RATE_SECONDS
        name = str(self._path or self._sessions.name)
        if inspector is None:
            return LiveNews(
                self._state, name, changed, self._epoch, self._why, None, LiveRows((), 0, (), {}), 0, 0, 0,
                0.0, len(self._told) + len(self._passing),
            )  # fmt: skip
        behind = inspector.trace.source.size - inspector.read
        return LiveNews(
            self._state, name, changed, self._epoch, self._why, inspector, inspector.rows, inspector.kept,
            inspector.events, max(0, behind), rate, inspector.problem_count,
        )  # fmt: skip

    # What is followed.

    def _choose(self, now: float) -> bool:
        """Switch to a newer session, if there is one."""
        path = self._sessions.newest(now, self._path)
        if path == self._path or (path is None and self._inspector is not None):
            return False
        before, self._path = self._path, path
        if self._feed is not None:
            self._feed.close()
        self._feed, self._decided, self._state = None, False, "waiting"
        if before is not None and path is not None and self._inspector is not None:
            self._drop(Problem(0, 0, "newer-session", f"now following a newer session: {path.name}"))
        return before is not None

    def _recognise(self) -> bool:
        """Determine the kind of the file, once it exists."""
        path = self._path
        self._watch()
        if path is None:
            return False
        if path.is_dir():
            self._feed, self._decided = self._capture(path), True
            return True
        if self._format == NATIVE:
            self._feed, self._decided = NativeFeed(str(path), path), True
            return True
        kind = kind_of(path, self._format)
        if kind is None:
            self._state = "waiting"
            warm_up(self._asked[2])
            return False
        self._decided = kind != "unknown"
        self._feed = self._capture(path) if kind == "capture" else NativeFeed(str(path), path)
        return True

    def _undecided(self) -> bool:
        """Return whether the kind of a file that was too short is now known."""
        if self._decided or self._path is None:
            return False
        kind = kind_of(self._path, self._format)
        if kind in (None, "unknown"):
            return False
        self._decided = True
        if kind == "capture":
            assert self._feed is not None
            self._feed.close()
            self._feed = self._capture(self._path)
            self._told = []
            if self._inspector is not None:
                self._drop(Problem(0, 0, ANEW, "it turned out to be a capture of a known format"))
        return True

    def _capture(self, path: Path) -> CaptureFeed:
        return CaptureFeed(str(path), path, self._format, self._pause, self._learned)

    def _pause(self) -> None:
        if self._stop():
            raise PollStopped

    def _watch(self) -> None:
        path = self._path
        if path is None:
            return
        if path.is_dir():
            self._waker.at([str(path)], lambda name: True, deep=True)
            return
        beside = str(path.with_suffix(""))
        parent = str(path.parent)

        def relevant(name: str) -> bool:
            at = Path(name)
            return at.name == path.name or name.startswith(beside + "/") or is_companion(path, at.name)

        self._waker.at([parent], relevant, deep=False)


class PollStopped(BaseException):
    """Raised from `poll` when `stop` returned True during an import."""


__all__ = ["LiveNews", "LiveSession", "PollStopped"]


def _never() -> bool:
    return False
