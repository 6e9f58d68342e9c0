"""What a request is answered with."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from textual.message import Message

from ctxctl.tui.messages import Want

if TYPE_CHECKING:
    from ctxctl.inspector import Inspector

_KEPT: Final = 64
"""Answers kept for coming back to them."""

W = TypeVar("W", bound=Want, contravariant=True)


class Answer(Protocol[W]):
    """Computes the answer to one kind of request; a CtxctlError is told in the words of `Want.failed`."""

    def __call__(self, desk: Desk, want: W, /) -> Message | None:
        """The last message of the answer."""
        ...


class Line(Protocol):
    """The way back to who asked."""

    def check(self, want: Want | None) -> None:
        """Raise where an answer to `want` is of no use any more."""
        ...

    def reply(self, want: Want, message: Message) -> None:
        """Send an answer."""
        ...


class Desk:
    """The inspector, a memory of recent answers, and the way back; belongs to one thread."""

    def __init__(self, line: Line, inspector: Inspector) -> None:
        self.inspector = inspector
        self._line = line
        self._kept: dict[object, Any] = {}
        self.want: Want | None = None
        """The request being answered."""

    def check(self) -> None:
        """To be called every few milliseconds of a long answer.

        Raises `Stopped` when the program ends, and `Superseded` when another request of the same kind has
        come: neither is to be caught.
        """
        self._line.check(self.want)

    def tell(self, message: Message) -> None:
        """Send a part of the answer ahead of its end; raises as `check` does."""
        self.check()
        if self.want is not None:
            self._line.reply(self.want, message)

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
