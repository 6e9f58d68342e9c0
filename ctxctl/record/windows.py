"""The last window of each thread: what makes the next assembly cost what changed."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, NamedTuple

_THREADS: Final = 1024


class Window(NamedTuple):
    """The blocks of an assembly, each as JSON."""

    assembly_id: str
    blocks: list[bytes]
    generation: int


class Windows:
    """The last assembly of each thread and target; of the threads used last, the rest is told whole again."""

    def __init__(self) -> None:
        self._last: OrderedDict[tuple[str, str], Window] = OrderedDict()

    def base(self, key: tuple[str, str], generation: int) -> Window | None:
        """What the next assembly can build on."""
        found = self._last.get(key)
        return found if found is not None and found.generation == generation else None

    def last(self, key: tuple[str, str]) -> str | None:
        """Id of the last assembly."""
        found = self._last.get(key)
        return found.assembly_id if found is not None else None

    def keep(self, key: tuple[str, str], window: Window) -> None:
        """This one was written."""
        self._last[key] = window
        self._last.move_to_end(key)
        if len(self._last) > _THREADS:
            self._last.popitem(last=False)
