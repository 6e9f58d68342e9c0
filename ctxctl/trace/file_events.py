"""Wait until files may have changed: by system events where possible, else by polling.

The system does not report writes through a mapping or on a network file system, so do not wait longer than
`LOOK`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from watchfiles import Change

LOOK: Final = 1.0
"""Seconds after which to look in any case."""
_POLL_SECONDS: Final = 0.2
"""Seconds between looks without any system events."""
_STEP_MS: Final = 10
_DEBOUNCE_MS: Final = 50
"""Milliseconds: changes are reported after a step without any, or after the second span at the latest."""
_STOP_MS: Final = 200
"""Milliseconds between two checks whether to stop."""

_LOST: Final = "\N{REPLACEMENT CHARACTER}"
"""In a reported name, replaces bytes that are not UTF-8: it may be any file's."""

Relevant = Callable[[str], bool]


def _is_utf8(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


class FileWaiter:
    """Watches directories. Events for names that are not `relevant` are ignored."""

    def __init__(self) -> None:
        self._places: tuple[tuple[str, ...], bool] = ((), False)
        self._told: Iterator[set[tuple[Change, str]]] | None = None
        self._paced = 0.0
        self._relevant: Relevant = lambda path: True

    def at(self, directories: Sequence[str], relevant: Relevant, *, deep: bool) -> None:
        """Watch those of the directories that exist; `deep` includes their subdirectories."""
        there = tuple(sorted({d for d in directories if os.path.isdir(d)}))
        if not all(map(_is_utf8, there)):
            there = ()  # watchfiles takes no other names, so these are polled
        self._relevant = relevant
        if (there, deep) != self._places:
            self.close()
            self._places = there, deep

    def pace(self, least: float, most: float) -> None:
        """Sleep until the last call is `least` seconds ago, for at most `most` seconds."""
        left = min(least - (time.monotonic() - self._paced), most)
        if left > 0:
            time.sleep(left)
        self._paced = time.monotonic()

    def wait(self, seconds: float, stop: Callable[[], bool]) -> None:
        """Return when something happened, or after `seconds`, or soon after `stop`."""
        end = time.monotonic() + seconds
        while not stop() and (left := end - time.monotonic()) > 0:
            if self._told is None and self._places[0]:
                self._told = self._watch()
            if self._told is None:
                time.sleep(min(left, _POLL_SECONDS))
                if left > _POLL_SECONDS:
                    continue
                return
            try:
                if any(_LOST in path or self._relevant(path) for _, path in next(self._told)):
                    return
            except StopIteration:
                self._told = None
                return
            except (OSError, RuntimeError):
                # A directory was removed, or there are too many watches.
                self._told, self._places = None, ((), False)

    def _watch(self) -> Iterator[set[tuple[Change, str]]]:
        from watchfiles import watch

        directories, deep = self._places
        # No filter: it would report nothing for filtered changes, and constant writes of others in a
        # directory would never let it return.
        return watch(
            *directories, watch_filter=None, debounce=_DEBOUNCE_MS, step=_STEP_MS, rust_timeout=_STOP_MS,
            yield_on_timeout=True, recursive=deep, ignore_permission_denied=True,
        )  # fmt: skip

    def close(self) -> None:
        """Stop watching."""
        watching, self._told = self._told, None
        self._places = ((), False)
        if watching is not None:
            watching.close()  # type: ignore[attr-defined]
