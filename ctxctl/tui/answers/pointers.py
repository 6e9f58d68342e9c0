"""What the screen of why, blame and findings is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ctxctl.tui.answers.desk import Desk
from ctxctl.tui.screens.pointers import lines, requests
from ctxctl.tui.screens.pointers.values import Page, page

if TYPE_CHECKING:
    from ctxctl.lint.run import LintResult
    from ctxctl.tui.answers.desk import Answer
    from ctxctl.tui.requests import Request


def _why(desk: Desk, request: requests.WhyRequest) -> Page:
    from ctxctl import config
    from ctxctl.analysis.why.answer import explain_item
    from ctxctl.analysis.why.supposing import supposed_outcomes

    def check(_part: float) -> None:
        desk.check()

    found = explain_item(desk.inspector, request.ordinal, request.item, progress=check)
    desk.tell(page(request.title, lines.why(found, None), whole=False))
    supposed = supposed_outcomes(desk.inspector, found, config.load().models, progress=check)
    return page(request.title, lines.why(found, supposed))


def _blame(desk: Desk, request: requests.BlameRequest) -> Page:
    from ctxctl.analysis.blame import blame_frame

    def check(_part: float) -> None:
        desk.check()

    found = blame_frame(desk.inspector, request.ordinal, desk.check, check)
    remark = f"{request.only} only" if request.only else ""
    return page(request.title, lines.blame(found, request.only), remark=remark)


def _findings(desk: Desk, request: requests.FindingsRequest) -> Page:
    found: LintResult = desk.kept("findings", lambda: _linted(desk))
    return page(request.title, lines.findings(found.findings, found.tally))


def _linted(desk: Desk) -> LintResult:
    from ctxctl import config
    from ctxctl.lint.run import lint_with_tally
    from ctxctl.lint.selection import configured_rules

    def check(_part: float) -> None:
        desk.check()

    settings = config.load()
    return lint_with_tally(desk.inspector, configured_rules(settings.lint), settings.models, check)


ANSWERS: Final[dict[type[Request], Answer[Any]]] = {
    requests.WhyRequest: _why,
    requests.BlameRequest: _blame,
    requests.FindingsRequest: _findings,
}
