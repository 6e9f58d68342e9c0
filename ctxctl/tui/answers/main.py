"""What the main screen and the reader are told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from textual.message import Message

from ctxctl.tui import gather, wants
from ctxctl.tui.answers.desk import Desk

if TYPE_CHECKING:
    from ctxctl.tui.answers.desk import Answer
    from ctxctl.tui.messages import Want


def _detail(desk: Desk, want: wants.WantDetail) -> Message:
    key = (want.target, want.with_skipped)
    return wants.Detailed(desk.kept(key, lambda: gather.detail(desk.inspector, *key)))


def _item(desk: Desk, want: wants.WantItem) -> Message:
    return wants.Texted(gather.item(desk.inspector, want.key))


def _assembled(desk: Desk, want: wants.WantAssembled) -> Message:
    return wants.Reading(want.title, gather.assembled(desk.inspector, want.ordinal))


def _stages(desk: Desk, want: wants.WantStages) -> Message:
    return wants.Reading(want.title, gather.stages(desk.inspector, want.ordinal))


def _problems(desk: Desk, want: wants.WantProblems) -> Message:
    inspector = desk.inspector
    return wants.Reading(want.title, gather.problems(inspector.problems, inspector.problem_count))


def _about(desk: Desk, want: wants.WantAbout) -> Message:
    return wants.Reading(want.title, gather.about(desk.inspector.format, desk.inspector.summary))


ANSWERS: Final[dict[type[Want], Answer[Any]]] = {
    wants.WantDetail: _detail,
    wants.WantItem: _item,
    wants.WantAssembled: _assembled,
    wants.WantStages: _stages,
    wants.WantProblems: _problems,
    wants.WantAbout: _about,
}
