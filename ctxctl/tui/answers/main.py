"""What the main screen and the reader are told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from textual.message import Message

from ctxctl.errors import UsageError
from ctxctl.tui import detailing, gather, wants
from ctxctl.tui.answers.desk import Desk
from ctxctl.tui.search import filtering

if TYPE_CHECKING:
    from ctxctl.tui.answers.desk import Answer
    from ctxctl.tui.messages import Want


def _detail(desk: Desk, want: wants.WantDetail) -> Message | None:
    try:
        return _detailed(desk, want)
    except UsageError as error:
        if error.slug == "no-such-frame" and not getattr(desk.inspector, "over", True):
            return None  # a step that was being written is another one now: the next growth asks again
        raise


def _detailed(desk: Desk, want: wants.WantDetail) -> Message:
    key = (want.target, want.with_skipped)
    found = desk.kept(key, lambda: detailing.facts(desk.inspector, *key))
    if want.how.only is None:
        return wants.Detailed(
            desk.kept((*key, want.how), lambda: detailing.arranged_detail(found, want.how)),
        )
    return wants.Detailed(filtering.filtered(desk.inspector, found, want.how))


def _stages(desk: Desk, want: wants.WantStages) -> Message:
    return wants.Reading(want.title, gather.stages(desk.inspector, want.ordinal))


def _problems(desk: Desk, want: wants.WantProblems) -> Message:
    inspector = desk.inspector
    return wants.Reading(want.title, gather.problems(inspector.problems, inspector.problem_count))


def _about(desk: Desk, want: wants.WantAbout) -> Message:
    return wants.Reading(want.title, gather.about(desk.inspector.format, desk.inspector.summary))


ANSWERS: Final[dict[type[Want], Answer[Any]]] = {
    wants.WantDetail: _detail,
    wants.WantStages: _stages,
    wants.WantProblems: _problems,
    wants.WantAbout: _about,
}
