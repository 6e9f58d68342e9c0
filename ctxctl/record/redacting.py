"""Dialects that cut what has no secrets any more: nothing made of a body can give one away."""

from __future__ import annotations

from collections import OrderedDict
from hashlib import sha256
from typing import Any, Final

import orjson

from ctxctl.formats.build import Json
from ctxctl.formats.kit.parts import Part
from ctxctl.formats.wire.dialect import Dialect, Names, Unit
from ctxctl.formats.wire.slots import Slots
from ctxctl.record import values
from ctxctl.record.core import Core
from ctxctl.record.redact import Found

_REMEMBERED: Final = 4096


class Redacting(Dialect):
    """A dialect whose pieces of a body are redacted before anything looks at them.

    A piece is looked through once, however many requests carry it.  What was replaced is not counted here:
    the stubs are, once, in what is written.
    """

    def __init__(self, dialect: Dialect, core: Core) -> None:
        self._dialect = dialect
        self._core = core
        self._clean: OrderedDict[bytes, Any] = OrderedDict()
        """By digest of a piece: None if there is no secret in it, else the piece without."""

    @property
    def name(self) -> str:  # type: ignore[override]
        """The dialect's."""
        return self._dialect.name

    @property
    def provider(self) -> str:  # type: ignore[override]
        """The dialect's."""
        return self._dialect.provider

    @property
    def section(self) -> str:  # type: ignore[override]
        """The dialect's."""
        return self._dialect.section

    def detect(self, body: Json) -> int:
        """The dialect's."""
        return self._dialect.detect(body)

    def answers(self, response: Json) -> int:
        """The dialect's."""
        return self._dialect.answers(response)

    def units(self, body: Json) -> list[Unit]:
        """The dialect's, without secrets."""
        units = self._dialect.units(body)
        if self._core.redactor is None:
            return units
        return [self._without(unit) for unit in units]

    def settings(self, body: Json) -> Json | None:
        """The dialect's, without secrets."""
        made = self._dialect.settings(body)
        redactor = self._core.redactor
        if made is None or redactor is None:
            return made
        value, raw = _encoded(made)
        cleaned: Json = redactor.value(value, raw, Found())
        return cleaned

    def parts(self, unit: Unit, names: Names, line: int = 0) -> Slots:
        """The dialect's of a unit of `units`; what the cut has put together is looked through once more."""
        slots = self._dialect.parts(unit, names, line)
        self._look_through(slots.parts)
        return slots

    def reply(self, response: Json) -> list[Part]:
        """The dialect's, without secrets."""
        redactor = self._core.redactor
        if redactor is not None:
            value, raw = _encoded(response)
            response = redactor.value(value, raw, Found())
        parts = self._dialect.reply(response)
        self._look_through(parts)
        return parts

    def _without(self, unit: Unit) -> Unit:
        redactor = self._core.redactor
        assert redactor is not None
        value, raw = _encoded(unit.value)
        key = sha256(raw).digest()
        if key in self._clean:
            self._clean.move_to_end(key)
            kept = self._clean[key]
        else:
            found = Found()
            made = redactor.value(value, raw, found)
            kept = self._clean[key] = made if found.count or value is not unit.value else None
            if len(self._clean) > _REMEMBERED:
                self._clean.popitem(last=False)
        return unit if kept is None else unit._replace(value=kept)

    def _look_through(self, parts: list[Part]) -> None:
        redactor = self._core.redactor
        for part in parts if redactor is not None else ():
            if part.text is not None and redactor is not None:
                text = redactor.text(part.text, Found())
                if text is not part.text:
                    part.reword(text)


def _encoded(value: Any) -> tuple[Any, bytes]:
    """A value and its JSON; one that is nested too deep for JSON is cut there."""
    try:
        return value, orjson.dumps(value)
    except (orjson.JSONEncodeError, RecursionError):
        raw = values.encoded(value)
        return orjson.loads(raw), raw
