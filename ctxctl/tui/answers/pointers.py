"""Answers for the screen of why, blame and findings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ctxctl.tui.answers.context import AnswerContext
from ctxctl.tui.screens.pointers import lines, requests
from ctxctl.tui.screens.pointers.values import Page, page

if TYPE_CHECKING:
    from ctxctl.lint.run import LintResult
    from ctxctl.tui.answers.context import Answer
    from ctxctl.tui.requests import Request


def _why(context: AnswerContext, request: requests.WhyRequest) -> Page:
    from ctxctl import config
    from ctxctl.analysis.why.answer import explain_item
    from ctxctl.analysis.why.supposing import supposed_outcomes

    def check(_part: float) -> None:
        context.check()

    found = explain_item(context.inspector, request.ordinal, request.item, progress=check)
    context.tell(page(request.title, lines.why(found, None), whole=False))
    supposed = supposed_outcomes(context.inspector, found, config.load().models, progress=check)
    return page(request.title, lines.why(found, supposed))


def _blame(context: AnswerContext, request: requests.BlameRequest) -> Page:
    from ctxctl.analysis.blame import blame_frame

    def check(_part: float) -> None:
        context.check()

    found = blame_frame(context.inspector, request.ordinal, context.check, check)
    remark = f"{request.only} only" if request.only else ""
    return page(request.title, lines.blame(found, request.only), remark=remark)


def _findings(context: AnswerContext, request: requests.FindingsRequest) -> Page:
    found: LintResult = context.kept("findings", lambda: _linted(context))
    return page(request.title, lines.findings(found.findings, found.tally))


def _linted(context: AnswerContext) -> LintResult:
    from ctxctl import config
    from ctxctl.lint.registry import configured_rules
    from ctxctl.lint.run import lint_with_tally

    def check(_part: float) -> None:
        context.check()

    settings = config.load()
    return lint_with_tally(context.inspector, configured_rules(settings.lint), settings.models, check)


ANSWERS: Final[dict[type[Request], Answer[Any]]] = {
    requests.WhyRequest: _why,
    requests.BlameRequest: _blame,
    requests.FindingsRequest: _findings,
}
