"""What the screen of why, blame and findings is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ctxctl.tui.answers.desk import Desk
from ctxctl.tui.screens.pointers import lines, requests
from ctxctl.tui.screens.pointers.values import Page, page

if TYPE_CHECKING:
    from ctxctl.lint.run import Linted
    from ctxctl.tui.answers.desk import Answer
    from ctxctl.tui.requests import Request


def _why(desk: Desk, request: requests.WhyRequest) -> Page:
    from ctxctl import config
    from ctxctl.analysis.why.answer import explain
    from ctxctl.analysis.why.supposing import suppose

    def check(_part: float) -> None:
        desk.check()

    found = explain(desk.inspector, request.ordinal, request.item, progress=check)
    desk.tell(page(request.title, lines.why(found, None), whole=False))
    supposed = suppose(desk.inspector, found, config.load().models, progress=check)
    return page(request.title, lines.why(found, supposed))


def _blame(desk: Desk, request: requests.BlameRequest) -> Page:
    from ctxctl.analysis.blame import blame

    def check(_part: float) -> None:
        desk.check()

    found = blame(desk.inspector, request.ordinal, desk.check, check)
    remark = f"{request.only} only" if request.only else ""
    return page(request.title, lines.blame(found, request.only), remark=remark)


def _findings(desk: Desk, request: requests.FindingsRequest) -> Page:
    found: Linted = desk.kept("findings", lambda: _linted(desk))
    return page(request.title, lines.findings(found.findings, found.tally))


def _linted(desk: Desk) -> Linted:
    from ctxctl import config
    from ctxctl.lint.run import linted
    from ctxctl.lint.selection import configured

    def check(_part: float) -> None:
        desk.check()

    settings = config.load()
    return linted(desk.inspector, configured(settings.lint), settings.models, check)


ANSWERS: Final[dict[type[Request], Answer[Any]]] = {
    requests.WhyRequest: _why,
    requests.BlameRequest: _blame,
    requests.FindingsRequest: _findings,
}
