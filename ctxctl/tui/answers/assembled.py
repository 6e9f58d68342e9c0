"""What the assembled text's screen is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from textual.message import Message

from ctxctl.tui.answers.desk import Desk
from ctxctl.tui.assembled import gather, wants

if TYPE_CHECKING:
    from ctxctl.tui.answers.desk import Answer
    from ctxctl.tui.messages import Want


def _text(desk: Desk, want: wants.WantAssembledText) -> Message:
    return wants.AssembledText(gather.assembled(desk.inspector, want.ordinal, desk.check))


ANSWERS: Final[dict[type[Want], Answer[Any]]] = {wants.WantAssembledText: _text}
