"""`ctxctl record --watch`: keeps importing what another tool writes, for as long as it writes."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ctxctl.errors import CtxctlError, UnreadableError
from ctxctl.record.append_target import AppendTarget
from ctxctl.record.capture_mirror import CaptureMirror, RecordedCaptures
from ctxctl.record.end_signals import EndSignals
from ctxctl.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ctxctl.importers.capture import Capture
    from ctxctl.ingest.folder import Folder
    from ctxctl.model.problem import Problem
    from ctxctl.record.options import Options
    from ctxctl.session.live_capture import Marks
    from ctxctl.trace.source import Source

_SHARE: Final = 0.3
"""Share of the time that repeated imports of one capture may take."""
_SETTLED: Final = 1.0
"""Seconds that a capture which has lost much must stay unchanged: it may be half written."""
_EVERY: Final = 2.0
"""Seconds between two searches for captures at least; searches take at most a twentieth of the time."""
_LOOK: Final = 0.25
_QUIET: Final = 3.0
"""Seconds without a change after which an answer counts as complete."""
_AWAKE: Final = 600.0
"""Seconds after its last change for which a capture is checked between searches as well."""


def watch(directory: Path, options: Options, *, format_name: str | None = None) -> int:
    """Keep importing every capture under a directory, or one file, until a signal; return the exit code.

    Existing captures are imported first, beginning with the session written last.  Traces are passed over.
    After a restart with the same trace nothing is written twice.
    """
    if not directory.exists():
        raise UnreadableError(
            "no-such-file", f"no such directory: {directory}",
            hint="give the directory into which the tool writes its sessions",
        )  # fmt: skip
    with EndSignals() as ending:
        target = AppendTarget(options)
        try:
            options.begin(f"recording what is written under {directory}; Ctrl-C ends it")
            watching = Watching(directory, target, options, format_name)
            while not ending.asked:
                watching.look(time.monotonic(), ending.is_asked)
                ending.wait(_LOOK)
            watching.finish()
        finally:
            target.close()
    options.conclude(target, watching.summary())
    return 0


class Watching:
    """The captures under one directory, and their mirrors in the trace."""

    def __init__(
        self, directory: Path, target: AppendTarget, options: Options, format_name: str | None
    ) -> None:
        from ctxctl.session.live_choice import SessionChoice

        self._target = target
        self._options = options
        self._format = format_name
        self._known = RecordedCaptures(target)
        self._directory = directory
        self._sessions = SessionChoice(directory, format_name, pin=False)
        self._captures: dict[Path, _Watched] = {}
        self._search_at = 0.0
        self._complained = ""
        self._not_read: dict[str, str] = {}
        """Directories that the last search could not list; each is told of once."""

    def look(self, now: float, stop: Callable[[], bool]) -> None:
        """Bring the trace up to date with the captures."""
        if now >= self._search_at:
            began = time.monotonic()
            self._search(stop)
            cost = time.monotonic() - began
            self._search_at = time.monotonic() + max(_EVERY, 20 * cost)
            return
        for found in self._captures.values():
            if found.is_awake(now) and not stop():
                self._update(found, now)

    def _search(self, stop: Callable[[], bool]) -> None:
        for path in self._sessions.every():
            if stop():
                return
            found = self._captures.get(path)
            if found is None:
                if self._is_own(path):
                    continue
                found = self._captures[path] = self._watched(path)
            self._update(found, time.monotonic())
        for name, why in self._sessions.not_read.items():
            if name not in self._not_read:
                self._options.say(f"ctxctl: {name}: cannot be listed: {why}; it is tried further")
        self._not_read = dict(self._sessions.not_read)

    def _watched(self, path: Path) -> _Watched:
        inside = path.name
        with suppress(ValueError):
            inside = str(path.relative_to(self._directory))
        identity = os.fsencode(os.path.realpath(path))
        name = inside if inside != "." else path.name or str(path)
        mirror = CaptureMirror(self._target, self._known, identity, name, self._tell)
        return _Watched(path, mirror, self._format)

    def _is_own(self, path: Path) -> bool:
        """Whether a path is the trace that is being written."""
        try:
            return os.path.samefile(path, self._target.path)
        except OSError:
            return False

    def _update(self, found: _Watched, now: float) -> None:
        try:
            before = self._target.written
            found.update(now)
        except CtxctlError as error:
            self._say(f"{found.path}: {error.message}")
        except OSError as error:
            self._say(f"{self._target.path}: cannot be written: {error.strerror}; it is tried further")
            found.again()
        else:
            if self._target.written != before and self._complained.startswith(self._target.path):
                self._complained = ""

    def _tell(self, problem: Problem) -> None:
        self._say(problem.message)

    def _say(self, line: str) -> None:
        if line != self._complained:
            self._complained = line
            self._options.say(f"ctxctl: {line}")

    def finish(self) -> None:
        """Import everything once more, with the events that waited for the captures' ends."""
        for found in self._captures.values():
            self._update(found, float("inf"))
            try:
                found.finish()
            except OSError as error:
                self._say(f"{self._target.path}: cannot be written: {error.strerror}")
                return

    def summary(self) -> str:
        """Return how many captures were imported, in words."""
        count = sum(found.imported for found in self._captures.values())
        return f"{plural(count, 'session')} of other tools"


class _Watched:
    """A capture and its mirror in the trace."""

    def __init__(self, path: Path, mirror: CaptureMirror, format_name: str | None) -> None:
        self.path = path
        self.imported = False
        self._mirror = mirror
        self._format = format_name
        self._marks: Marks = {}
        self._changed = float("-inf")
        self._free_at = float("-inf")
        self._doubted: tuple[Marks, float] | None = None

    def is_awake(self, now: float) -> bool:
        """Whether it is to be checked between two searches."""
        return now - self._changed < _AWAKE or self._doubted is not None

    def again(self) -> None:
        """Import it again at the next check, changed or not."""
        self._marks = {}

    def update(self, now: float) -> None:
        """Import it if it has changed and is due.  Raises CtxctlError, and OSError for the trace."""
        from ctxctl.session.live_capture import marks_of

        marks = marks_of(self.path)
        quiet = marks == self._marks and self._mirror.waits and now - self._changed >= _QUIET
        if not marks or (marks == self._marks and not quiet) or now < self._free_at:
            return
        sure = False
        if self._doubted is not None and self._doubted[0] == marks:
            sure = now - self._doubted[1] >= _SETTLED
            if not sure:
                return
        began = time.monotonic()
        if not quiet:
            self._changed = began
        try:
            result = self._import(sure=sure, quiet=quiet)
        except CtxctlError:
            self._marks = marks
            raise
        finally:
            cost = time.monotonic() - began
            self._free_at = began + cost / _SHARE
        if result == "doubtful":
            self._doubted = (marks, began)
            return
        self._marks, self._doubted = marks, None

    def _import(self, *, sure: bool, quiet: bool) -> str:
        from ctxctl.importers.capture import open_capture

        while True:
            with open_capture(self.path, self._format) as capture:
                if capture.format is None:
                    return "done"  # a trace, or nothing that is known yet
                self.imported = True
                open_end = at_end(capture.source) if not quiet else None
                result = self._mirror.update(imported(capture), sure=sure, open_end=open_end)
            if result != "again":
                return result

    def finish(self) -> None:
        """Write the events that waited for the capture's end."""
        self._mirror.finish()


def imported(capture: Capture) -> Iterator[dict[str, Any]]:
    """Return the events of a foreign capture."""
    from ctxctl.importers import registry

    assert capture.format is not None
    # Views of the capture report its problems; here they would come again at each import.
    return registry.capture_events(capture.format, capture.source, lambda problem: None)


def at_end(source: Source | Folder) -> Callable[[], bool]:
    """Return a function that says whether a source was read to its end: its last events may then go on.

    Importers that read lines get there; the others never seem to be at the end.
    """
    over = [False]
    read = getattr(source, "read", None)
    if read is not None:

        def noting_read(offset: int, n: int) -> bytes:
            data: bytes = read(offset, n)
            over[0] = not data  # an importer may look through the lines before it reads them
            return data

        source.read = noting_read  # type: ignore[method-assign, union-attr]
    return lambda: over[0]
