"""What the search screen is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from textual.message import Message

from ctxctl.tui import pauses
from ctxctl.tui.answers.desk import Desk
from ctxctl.tui.search import wants

if TYPE_CHECKING:
    from ctxctl.tui.answers.desk import Answer
    from ctxctl.tui.messages import Want


def _search(desk: Desk, want: wants.WantSearch) -> Message | None:
    from ctxctl.inspector.search import search

    with pauses.short():
        for found in search(desk.inspector, want.query, desk.check):
            message = wants.Hits(want.serial, found)
            if found.done:
                return message
            desk.tell(message)
    return None


ANSWERS: Final[dict[type[Want], Answer[Any]]] = {wants.WantSearch: _search}
"""By kind of request, what computes the answer."""
