"""Cuts the messages that a context manager gives for a request into items; they are in Amplifier's form."""

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
    """The dialect of views: `messages` alone, which is not what goes over the wire."""

    name: ClassVar[str] = "amplifier-view"
    provider: ClassVar[str] = "amplifier"
    section: ClassVar[str] = "messages"

    def detect(self, body: Json) -> int:
        """Always 0: no body says that it is a view."""
        return 0

    def answers(self, response: Json) -> int:
        """Always 0: a view has no answer."""
        return 0

    def units(self, body: Json) -> list[Unit]:
        """The messages; a system prompt at the beginning stands before the conversation."""
        return message_units(body.get("messages") or ())

    def parts(self, unit: Unit, names: CallTitles, line: int = 0) -> Slots:
        """The items of a message."""
        slots = Slots(unit.section, line)
        if isinstance(unit.value, dict):
            slots.parts = amplifier.message_parts(unit.value, _no_origin, line)
        else:
            unknown_part(slots, unit.value, "user")
        return slots

    def reply(self, response: Json) -> list[Part]:
        """The items of a message of the assistant."""
        return amplifier.answer_parts(response)


class ViewReader:
    """Amplifier's messages: reminders inside of them are items, and a message that comes back is the same."""

    def __init__(self) -> None:
        self._names = Known()

    def cut(self, parts: list[Part]) -> list[Part]:
        """The parts, with reminders and files cut out as parts of their own."""
        return amplifier.parts_with_reminders(parts, _no_origin)

    def give(self, parts: list[Part], held: Collection[str]) -> None:
        """Names of what earlier requests had; `held` stand in front."""
        self._names.give(parts, held=held)

    def learn(self, parts: list[Part]) -> None:
        """For the requests to come."""
        self._names.learn(parts)


def _no_origin(piece: Piece) -> tuple[str | None, Any]:
    return piece.source, None
