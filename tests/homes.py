"""Where tests are at home."""

from __future__ import annotations

import os
from pathlib import Path


class Homes:
    """Homes of tests: each test has one of its own, empty, at a path that no other test had."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._homes = 0
        self._mode = 0

    def home(self) -> Path:
        """Make the next one.

        Most tests leave theirs as it was made; that is moved then: to make a folder, and to remove it in the
        end, takes a hundred times as long.
        """
        last, new = (self.folder / str(number) for number in (self._homes, self._homes + 1))
        self._homes += 1
        if self._homes > 1 and self._is_as_made(last):
            last.rename(new)
        else:
            new.mkdir()
            self._mode = new.lstat().st_mode
        return new

    def _is_as_made(self, home: Path) -> bool:
        return home.exists() and home.lstat().st_mode == self._mode and not os.listdir(home)
