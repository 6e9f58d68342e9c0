"""Cuts the views of Amplifier's context manager, the messages it gives for a request, into items."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar

from ctxctl.ingest.build import Json
from ctxctl.ingest.parts import Part
from ctxctl.plugins.amplifier import parts as amplifier
from ctxctl.plugins.amplifier.parts import KnownNames as Known
from ctxctl.plugins.amplifier.parts import Piece
from ctxctl.providers.dialects.base import CallTitles, Dialect, Unit, message_units, unknown_part
from ctxctl.providers.dialects.slots import Slots


class ViewDialect(Dialect):
    """The dialect of views: a body with `messages` alone, which is not what goes over the wire."""

    name: ClassVar[str] = "amplifier-view"
    provider: ClassVar[str] = "amplifier"
    section: ClassVar[str] = "messages"

    def detect(self, body: Json) -> int:
        """Return 0: no body shows that it is a view."""
        return 0

    def answers(self, response: Json) -> int:
        """Return 0: a view has no answer."""
        return 0

    def units(self, body: Json) -> list[Unit]:
        """Return the messages as units."""
        return message_units(body.get("messages") or ())

    def parts(self, unit: Unit, names: CallTitles, line: int = 0) -> Slots:
        """Return the items of a message."""
        slots = Slots(unit.section, line)
        if isinstance(unit.value, dict):
            slots.parts = amplifier.message_parts(unit.value, _no_origin, line)
        else:
            unknown_part(slots, unit.value, "user")
        return slots

    def reply(self, response: Json) -> list[Part]:
        """Return the items of a message of the assistant."""
        return amplifier.answer_parts(response)


class ViewReader:
    """Reads Amplifier's messages: cuts reminders out as items, and names what comes back as it was named."""

    def __init__(self) -> None:
        self._names = Known()

    def cut(self, parts: list[Part]) -> list[Part]:
        """Return the parts, with reminders and files as parts of their own."""
        return amplifier.parts_with_reminders(parts, _no_origin)

    def give(self, parts: list[Part], held: Collection[str]) -> None:
        """Name the parts that earlier requests had; `held`: names of the parts that stand in front."""
        self._names.give(parts, held=held)

    def learn(self, parts: list[Part]) -> None:
        """Remember the names of these parts for later requests."""
        self._names.learn(parts)


def _no_origin(piece: Piece) -> tuple[str | None, Any]:
    return piece.source, None
