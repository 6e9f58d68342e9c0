"""How a screen asks for what it shows, and how it is answered: two messages that carry plain values.

A request is a value that says what is wanted; `ctxctl.tui.answers` knows by its kind how it is answered, in a
thread.  Whoever asked gets the answer's values one by one and looks up by their kind what to do with them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from textual.message import Message
from textual.message_pump import MessagePump

from ctxctl.tui.textual_private import has_no_application

Handlers = Mapping[type, Callable[[Any], None]]
"""By kind of value, what is done with an answer."""


class Request:
    """What a screen asks for; a newer one of the same class replaces one that waits or is being answered."""

    worker: ClassVar[str] = "views"
    """Which thread answers: requests that may take long have one of their own."""

    newest_only: ClassVar[bool] = False
    """Whether a later answer of the same kind makes an earlier one not worth showing."""

    def failed(self, why: str) -> object:
        """What is sent in the place of an answer, with the reason in words."""
        return Unanswered(self, why)


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A request that could not be answered, and why; sent unless the request has words of its own for it."""

    request: Request
    why: str


class Asked(Message):
    """Asks the application for something, on behalf of a screen."""

    def __init__(self, request: Request, asker: MessagePump | None = None) -> None:
        super().__init__()
        self.request = request
        self.asker = asker
        """Who gets the answer; the application where it is None."""


class Answered(Message, bubble=False):
    """Brings a value: an answer, a part of one, or news of the trace that nobody asked for."""

    def __init__(self, value: object, *, newest_only: bool = False) -> None:
        super().__init__()
        self.value = value
        self._newest_only = newest_only

    def can_replace(self, message: Message) -> bool:
        """Whether a message that waits behind this one makes it superfluous."""
        return self._newest_only and isinstance(message, Answered) and type(message.value) is type(self.value)

    def handle(self, handlers: Handlers) -> None:
        """Do what the table says of this kind of value; one that is not in the table is passed over."""
        handler = handlers.get(type(self.value))
        if handler is not None:
            handler(self.value)


def ask(asker: MessagePump, request: Request) -> None:
    """Ask for something that is answered to `asker` itself."""
    asker.app.post_message(Asked(request, asker))


@dataclass(frozen=True, slots=True)
class Placed:
    """The step that an address leads to."""

    address: str
    ordinal: int


@dataclass(frozen=True, slots=True)
class PlaceRequest(Request):
    """The step that an address names.

    `session`: the one that is meant where the trace holds several and the address names none.
    """

    worker: ClassVar[str] = "places"

    address: str
    session: str | None


Post = Callable[[Message], object]
"""Sends a message to the event loop from any thread, as `post_message` does."""


def receiver_is_gone(error: RuntimeError) -> bool:
    """Whether a message could not be sent because the event loop, or the screen that asked, is there no more.

    Any other error is one: a thread that ended without a word would leave a screen that looks alive.
    """
    return has_no_application(error) or "loop is closed" in str(error)
