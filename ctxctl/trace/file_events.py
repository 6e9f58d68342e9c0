"""Waits until something may have happened to files: told by the system where it can, else by looking again.

The system does not tell of writes through a mapping or on a network file system, so nobody should wait for
longer than `LOOK`.
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
_BLIND: Final = 0.2
"""Seconds between looks where the system tells nothing at all."""
_STEP: Final = 10
_DEBOUNCE: Final = 50
"""Milliseconds: changes are told once there was none for a step, or after the second span at the latest."""
_STOP: Final = 200
"""Milliseconds between two looks at whether to stop."""

_LOST: Final = "\N{REPLACEMENT CHARACTER}"
"""Stands in a name that is told of for bytes that are no UTF-8: it may be any file's."""

Relevant = Callable[[str], bool]


def _is_utf8(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


class FileWaiter:
    """Watches directories; what happens to names in them that are not `relevant` wakes nobody."""

    def __init__(self) -> None:
        self._places: tuple[tuple[str, ...], bool] = ((), False)
        self._told: Iterator[set[tuple[Change, str]]] | None = None
        self._paced = 0.0
        self._relevant: Relevant = lambda path: True

    def at(self, directories: Sequence[str], relevant: Relevant, *, deep: bool) -> None:
        """Watch these directories, those that exist; `deep`: and what is below them."""
        there = tuple(sorted({d for d in directories if os.path.isdir(d)}))
        if not all(map(_is_utf8, there)):
            there = ()  # watchfiles takes no other names: these are looked at instead
        self._relevant = relevant
        if (there, deep) != self._places:
            self.close()
            self._places = there, deep

    def pace(self, least: float, most: float) -> None:
        """Sleep until the last call is `least` seconds ago, for `most` seconds at the longest."""
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
                time.sleep(min(left, _BLIND))
                if left > _BLIND:
                    continue
                return
            try:
                if any(_LOST in path or self._relevant(path) for _, path in next(self._told)):
                    return
            except StopIteration:
                self._told = None
                return
            except (OSError, RuntimeError):
                # A directory went away, or there are too many watches already.
                self._told, self._places = None, ((), False)

    def _watch(self) -> Iterator[set[tuple[Change, str]]]:
        from watchfiles import watch

        directories, deep = self._places
        # Without a filter: changes that it takes out are not told at all, and a directory in which others
        # write all the time would never let go.
        return watch(
            *directories, watch_filter=None, debounce=_DEBOUNCE, step=_STEP, rust_timeout=_STOP,
            yield_on_timeout=True, recursive=deep, ignore_permission_denied=True,
        )  # fmt: skip

    def close(self) -> None:
        """Watch nothing."""
        watching, self._told = self._told, None
        self._places = ((), False)
        if watching is not None:
            watching.close()  # type: ignore[attr-defined]
