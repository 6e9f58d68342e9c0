"""What compactions took and what of it is handed on, as lines that lead to steps and items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ctxctl.analysis.handed_on import KEPT, KINDS, LATER, NOWHERE, SUMMARY, UNKNOWN
from ctxctl.item_names import ItemNames, local
from ctxctl.report.compaction_words import kinds_text, triggers_text
from ctxctl.report.compactions import NOTE, UNREAD_SUMMARY, flow_text, unread_text
from ctxctl.text import preview
from ctxctl.tui.answers.context import AnswerContext
from ctxctl.tui.screens.pointers.requests import CompactionsRequest, Goal, Line, Page, page_of
from ctxctl.tui.thread_names import ThreadNames, named_by
from ctxctl.wording import COMPACTION, noun, number, plural, short_kind

if TYPE_CHECKING:
    from ctxctl.analysis.handed_on import Compaction, Handed
    from ctxctl.tui.answers.context import Answer
    from ctxctl.tui.requests import Request

_LONG: Final = 400
_NAME: Final = 54
_TITLES: Final = {
    SUMMARY: "in the summary",
    KEPT: "not in the summary, but still in the window",
    LATER: "not in the summary, but seen again later",
    NOWHERE: "neither in the summary nor seen again",
    UNKNOWN: "not known",
}

StepName = tuple[str | None, str, int, int]


class Known(NamedTuple):
    """All compactions of a trace."""

    found: Sequence[Compaction]
    names: ItemNames
    ordinals: Mapping[StepName, int]
    """Of the steps that they speak of."""
    threads: ThreadNames


def _compactions(context: AnswerContext, request: CompactionsRequest) -> Page:
    known: Known = context.kept("compactions", lambda: _looked_up(context))
    return page_of(request.title, page_lines(known, request.ordinals))


def _looked_up(context: AnswerContext) -> Known:
    from ctxctl.analysis import handed_on
    from ctxctl.session.item_words import ItemWords

    def check(_part: float) -> None:
        context.check()

    words = ItemWords(context.inspector)
    found = handed_on.compactions(context.inspector, check, words.see)
    wanted = {step for one in found for step in _steps_of(one)}
    ordinals = {
        key: row.ordinal
        for row in context.inspector.known
        if (key := (row.session, row.thread, row.turn, row.step)) in wanted
    }
    return Known(found, words.names(), ordinals, named_by(context.inspector.known))


def _steps_of(one: Compaction) -> Iterator[StepName]:
    yield _step_of(one)
    for handed in one.facts:
        if handed.turn is not None and handed.step is not None:
            yield one.session, one.thread, handed.turn, handed.step


def _step_of(one: Compaction) -> StepName:
    return one.session, one.thread, one.taken.turn, one.taken.step


def page_lines(known: Known, ordinals: range) -> Iterator[Line]:
    """The compactions of these steps at length, the others by their headings; all at length where none is of
    these steps.
    """
    if not known.found:
        yield Line("no compaction is recorded in this trace", "!")
        return
    here: list[Compaction] = []
    others: list[Compaction] = []
    for one in known.found:
        (here if known.ordinals.get(_step_of(one)) in ordinals else others).append(one)
    for one in here or known.found:
        yield from _told(known, one)
        yield Line("")
    yield Line(NOTE)
    if here and others:
        yield Line("")
        yield Line("other compactions of this trace", "@")
        yield from (_heading(known, one, " ") for one in others)


def _heading(known: Known, one: Compaction, kind: str) -> Line:
    place = known.threads.place(*_step_of(one))
    where = f"{place}{triggers_text(one.taken)}"
    return Line(f"{COMPACTION} {where}: {flow_text(one)}", kind, _goal(known, _step_of(one)), 2)


def _goal(known: Known, step: StepName, item: str | None = None) -> Goal | None:
    ordinal = known.ordinals.get(step)
    return None if ordinal is None else Goal(ordinal, item)


def _told(known: Known, one: Compaction) -> Iterator[Line]:
    step = _step_of(one)
    yield _heading(known, one, "@")
    if one.taken.kinds:
        yield Line(f"took {kinds_text(one.taken)}", hang=5)
    if one.unread:
        yield Line(unread_text(one.unread), "!")
    if one.taken.largest:
        yield Line("")
        yield Line("the largest of it", "@")
        rows = [known.names.row(item.item, item.title, item.kind) for item in one.taken.largest]
        for name, taken in zip(known.names.listed(rows, _NAME), one.taken.largest, strict=True):
            text = f"{number(taken.tokens):>9}  {short_kind(taken.kind):6} {name}"
            yield Line(text, " ", _goal(known, step, taken.item), 18)
    for item in one.summary[:1]:
        yield Line("")
        size = plural(one.summary_tokens, "token") if one.is_summary_read else UNREAD_SUMMARY
        yield Line(f"the summary, {size}", "@", _goal(known, step, item))
    for kind in KINDS:
        yield from _facts(known, one, kind)


def _facts(known: Known, one: Compaction, kind: str) -> Iterator[Line]:
    """What became of the things of one kind; those that stand nowhere first."""
    facts = one.of(kind)
    if not facts:
        return
    name = noun(len(facts), "open task" if kind == "task" else kind)
    counts = ", ".join(
        f"{number(len(held))} {title}" for place, title in _TITLES.items() if (held := one.of(kind, place))
    )
    more = one.unsought.get(kind)
    rest = f"; {number(more)} more were not looked for" if more else ""
    yield Line("")
    yield Line(f"{number(len(facts))} {name}: {counts}{rest}", "@")
    for place in (NOWHERE, UNKNOWN, LATER, KEPT, SUMMARY):
        for handed in one.of(kind, place):
            yield _fact(known, one, handed)


def _fact(known: Known, one: Compaction, handed: Handed) -> Line:
    text = local(handed.fact.text, known.names.directory) if handed.fact.kind == "path" else handed.fact.text
    notes = [f"{number(handed.mentions)} times"] if handed.mentions > 1 else []
    goal = _goal(known, _step_of(one))
    if handed.turn is not None and handed.step is not None:
        notes.append(f"again at {handed.turn}.{handed.step}")
        goal = _goal(known, (one.session, one.thread, handed.turn, handed.step))
    end = f"  ({', '.join(notes)})" if notes else ""
    sign = {SUMMARY: "✓", KEPT: "=", LATER: "↺", NOWHERE: "∅", UNKNOWN: "?"}[handed.where]
    return Line(f"  {sign} {preview(text, _LONG)}{end}", "!" if handed.where == NOWHERE else " ", goal, 4)


ANSWERS: Final[dict[type[Request], Answer[Any]]] = {CompactionsRequest: _compactions}
