"""Request bodies cut into items; what the request before carried already is not cut again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import orjson

from ctxctl.ingest.build import Json
from ctxctl.ingest.parts import Part
from ctxctl.plugins.amplifier.parts import Origin, likeness, parts_with_reminders

if TYPE_CHECKING:
    from ctxctl.providers.dialects.base import CallTitles, Dialect, Unit

_Key = tuple[str, int, bytes]
_OPTIONS: Final = orjson.OPT_NON_STR_KEYS


class Bodies:
    """Holds the items of the last request, which are emitted and hold no texts, by their JSON."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._last: dict[_Key, list[Part] | None] = {}
        """By what was sent; None where it was sent more than once."""
        self._names: CallTitles | None = None
        self.fresh: list[Part] = []
        """Of the items of the last request, those that were cut for it."""

    def forget(self) -> None:
        """Cut everything anew: another window came between, or files were resolved."""
        self._last = {}

    def cut(self, wire: Dialect, sent: Json, line: int, entered: Sequence[Part] = ()) -> list[Part]:
        """The items of a request; those that the last one had are the same objects.

        Not where there are several alike, one that `entered` since then among them: which of them it is is
        told by what stands around it.
        """
        new = {likeness(part) for part in entered}
        names = self._titles()
        now: dict[_Key, list[Part] | None] = {}
        made: list[Part] = []
        fresh: list[Part] = []
        given = sent.get("input")
        # Amplifier names the answer before and sends the history all the same.
        whole = isinstance(given, list) and len(given) > 1
        for unit in wire.units(sent):
            if unit.section == "previous_response_id" and whole:
                continue
            key = _name(unit)
            alike = key in now
            parts = self._last.get(key) if key is not None and not alike else None
            if parts is None or any(likeness(part) in new for part in parts):
                parts = parts_with_reminders(wire.parts(unit, names, line).parts, self._origin)
                fresh += parts
            if key is not None:
                now[key] = None if alike else parts
            made += parts
        self.fresh = fresh
        self._last = now
        return made

    def alone(self, wire: Dialect, sent: Json, line: int) -> list[Part]:
        """The items of a request that may not be the conversation's."""
        self.forget()
        self.fresh = parts_with_reminders(wire.cut(sent, line), self._origin)
        return self.fresh

    def _titles(self) -> CallTitles:
        if self._names is None:
            # Imported with the dialects, which are slow to import.
            from ctxctl.providers.dialects.base import CallTitles

            self._names = CallTitles()
        return self._names


def _name(unit: Unit) -> tuple[str, int, bytes] | None:
    try:
        data = orjson.dumps(unit.value, option=_OPTIONS)
    except (TypeError, ValueError, RecursionError):
        return None
    section, _, index, head = unit
    return section, index if head else -1, data
