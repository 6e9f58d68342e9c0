"""What the functions that answer requests work with: the trace, recent answers, and the way back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from ctxctl.tui.requests import Asked, Request

if TYPE_CHECKING:
    from ctxctl.session import Inspector

_KEPT: Final = 64
"""Answers kept for coming back to them."""

Kind = TypeVar("Kind", bound=Request, contravariant=True)


class Answer(Protocol[Kind]):
    """Computes the answer to one kind of request; for a CtxctlError, `Request.failed` makes it instead."""

    def __call__(self, context: AnswerContext, request: Kind, /) -> object | None:
        """The last part of the answer; None where all parts have been sent, or none is wanted."""
        ...


class AnswerLine(Protocol):
    """The way back to the screen that asked."""

    def check(self, asked: Asked | None) -> None:
        """Raise where an answer to `asked` is of no use any more."""
        ...

    def reply(self, asked: Asked, value: object) -> None:
        """Send an answer."""
        ...


class AnswerContext:
    """Holds the inspector, recent answers and the way back to the screen; belongs to one thread."""

    def __init__(self, line: AnswerLine, inspector: Inspector) -> None:
        self.inspector = inspector
        self._line = line
        self._kept: dict[object, Any] = {}
        self.asked: Asked | None = None
        """The request being answered."""

    def check(self) -> None:
        """Stop an answer that nobody waits for; a long one calls this every few milliseconds.

        Raises `Stopped` when the program ends, and `Superseded` when another request of the same kind has
        come: neither is to be caught.
        """
        self._line.check(self.asked)

    def tell(self, value: object) -> None:
        """Send a part of the answer ahead of the rest; raises as `check` does."""
        self.check()
        if self.asked is not None:
            self._line.reply(self.asked, value)

    def kept(self, key: object, make: Callable[[], Any]) -> Any:
        """What `make` returned for this key lately, else what it returns now."""
        kept = self._kept  # another dict once the trace has changed: what is made of the old one is not kept
        found = kept.pop(key, None)
        if found is None:
            found = make()
        kept[key] = found
        if len(kept) > _KEPT:
            del kept[next(iter(kept))]
        return found

    def forget(self) -> None:
        """Forget kept answers: the trace has changed.  Safe from any thread."""
        self._kept = {}
