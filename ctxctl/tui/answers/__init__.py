"""How each request of a screen is answered: one module for each screen, run in the loader's threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ctxctl.tui.answers import assembled, compactions, diff, item, pointers, steps, turns, whatif

if TYPE_CHECKING:
    from ctxctl.tui.answers.context import Answer
    from ctxctl.tui.requests import Request

ANSWERS: Final[dict[type[Request], Answer[Any]]] = {
    **turns.ANSWERS,
    **item.ANSWERS,
    **steps.ANSWERS,
    **whatif.ANSWERS,
    **diff.ANSWERS,
    **assembled.ANSWERS,
    **pointers.ANSWERS,
    **compactions.ANSWERS,
}
"""By kind of request, what computes the answer."""
