"""What the screen of why, blame and findings is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from textual.message import Message

from ctxctl.tui.answers.desk import Desk
from ctxctl.tui.pointers import lines, wants
from ctxctl.tui.pointers.values import page

if TYPE_CHECKING:
    from ctxctl.lint.run import Linted
    from ctxctl.tui.answers.desk import Answer
    from ctxctl.tui.messages import Want


def _why(desk: Desk, want: wants.WantWhy) -> Message:
    from ctxctl import config
    from ctxctl.inspector.why.answer import explain
    from ctxctl.inspector.why.supposing import suppose

    def check(_part: float) -> None:
        desk.check()

    found = explain(desk.inspector, want.ordinal, want.item, progress=check)
    desk.tell(wants.Paged(page(want.title, lines.why(found, None), whole=False)))
    supposed = suppose(desk.inspector, found, config.load().models, progress=check)
    return wants.Paged(page(want.title, lines.why(found, supposed)))


def _blame(desk: Desk, want: wants.WantBlame) -> Message:
    from ctxctl.inspector.blame import blame

    def check(_part: float) -> None:
        desk.check()

    found = blame(desk.inspector, want.ordinal, desk.check, check)
    remark = f"{want.only} only" if want.only else ""
    return wants.Paged(page(want.title, lines.blame(found, want.only), remark=remark))


def _findings(desk: Desk, want: wants.WantFindings) -> Message:
    found: Linted = desk.kept("findings", lambda: _linted(desk))
    return wants.Paged(page(want.title, lines.findings(found.findings, found.tally)))


def _linted(desk: Desk) -> Linted:
    from ctxctl import config
    from ctxctl.lint.choice import configured
    from ctxctl.lint.run import linted

    def check(_part: float) -> None:
        desk.check()

    settings = config.load()
    return linted(desk.inspector, configured(settings.lint), settings.models, check)


ANSWERS: Final[dict[type[Want], Answer[Any]]] = {
    wants.WantWhy: _why,
    wants.WantBlame: _blame,
    wants.WantFindings: _findings,
}
