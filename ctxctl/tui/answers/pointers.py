"""Answers for the screen of why, blame and findings, as lines.

Texts are raw: the view makes them visible.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from ctxctl.item_names import NAMELESS, ItemNames, id_ends
from ctxctl.model.blame import Blame, Block, Total
from ctxctl.model.findings import Finding, Place, Tally
from ctxctl.model.why import Link, Moment, WhatIf, Why
from ctxctl.session.item_words import directory_of
from ctxctl.text import clip
from ctxctl.tui import scheduling
from ctxctl.tui.answers.context import AnswerContext
from ctxctl.tui.finding_marks import FindingMarks, local_message
from ctxctl.tui.screens.pointers import requests
from ctxctl.tui.screens.pointers.requests import Goal, Line, Page, page_of
from ctxctl.tui.screens.turns.requests import Marked, MarksRequest
from ctxctl.tui.thread_names import ThreadNames, named_by
from ctxctl.tui.versions import without_digests
from ctxctl.wording import AT_LEAST, NOT_KNOWN, dollars, given_share, number, plural, signed

if TYPE_CHECKING:
    from ctxctl.lint.run import LintResult
    from ctxctl.tui.answers.context import Answer
    from ctxctl.tui.requests import Request


def _why(context: AnswerContext, request: requests.WhyRequest) -> Page:
    from ctxctl import config
    from ctxctl.analysis.why.answer import explain_item
    from ctxctl.analysis.why.supposing import supposed_outcomes
    from ctxctl.session.item_words import names_at

    def check(_part: float) -> None:
        context.check()

    found = explain_item(context.inspector, request.ordinal, request.item, ids=request.ids, progress=check)
    names = names_at(context.inspector, request.ordinal)
    context.tell(page_of(request.title, why_lines(found, None, names, ids=request.ids), whole=False))
    supposed = supposed_outcomes(context.inspector, found, config.load().models, progress=check)
    return page_of(request.title, why_lines(found, supposed, names, ids=request.ids))


def _blame(context: AnswerContext, request: requests.BlameRequest) -> Page:
    from ctxctl.analysis.blame import blame_frame
    from ctxctl.session.item_words import names_at

    def check(_part: float) -> None:
        context.check()

    found = blame_frame(context.inspector, request.ordinal, context.check, check)
    names = names_at(context.inspector, request.ordinal)
    remark = f"{request.only} only" if request.only else ""
    return page_of(request.title, blame_lines(found, request.only, names), remark=remark)


def _findings(context: AnswerContext, request: requests.FindingsRequest) -> Page:
    found: LintResult = context.kept("findings", lambda: _linted(context))
    threads = named_by(context.inspector.known)
    directory = directory_of(context.inspector)
    return page_of(request.title, finding_lines(found.findings, found.tally, directory, threads))


def _marks(context: AnswerContext, request: MarksRequest) -> Marked:
    with scheduling.short_waits():
        found: LintResult = context.kept("findings", lambda: _linted(context))
    return Marked(request.epoch, FindingMarks.of(found.findings, directory_of(context.inspector)))


def _linted(context: AnswerContext) -> LintResult:
    from ctxctl import config
    from ctxctl.lint.registry import configured_rules
    from ctxctl.lint.run import lint_with_tally

    def check(_part: float) -> None:
        context.check()

    settings = config.load()
    return lint_with_tally(context.inspector, configured_rules(settings.lint), settings.models, check)


_SAYS: Final = {
    "current": "in the window",
    "stale": "there only as a stale copy",
    "out": "not in the window: it was, and has left",
    "omitted": "not in the window, and never was before",
    "untold": "in the window or not: what a compaction left of it is not recorded",
    "available": "not in the window: it was available, and nothing named it",
    "later": "not there yet",
    "unread": "not known to be there: the capture holds it where ctxctl does not read it",
    "unknown": "in nothing that was recorded",
}
_LONG: Final = 2000
_NAME: Final = 60
_WHERE: Final = 7
"""Cells of the step in front of a sentence."""
_SIZED: Final = 19
"""Cells in front of what has a size."""
_KIND: Final = (18, 24)
"""Cells of a column of kinds, at least and at most."""


def why_lines(
    found: Why, supposed: WhatIf | None, names: ItemNames = NAMELESS, *, ids: bool = False
) -> Iterator[Line]:
    """The answer, the chain that led there, and what it would take; None: that is still being found out."""
    here = Goal(found.ordinal, found.item)
    name = names.of(found.item, found.title)
    size = "" if found.tokens is None else f", {plural(found.tokens, 'token')}"
    kind = "" if found.kind is None else f" ({found.kind}{size})"
    yield Line(f"{name}{kind}", "@", here)
    if name != found.item and ids:
        yield Line(f"id {found.item[:_LONG]}")
    yield Line(
        f"at {found.turn}.{found.step} it is {_SAYS[found.state]}", " " if found.present else "!", here
    )
    yield Line("")
    yield from _chain(found.links, found.item, ids)
    if found.left_out:
        yield Line(f"{plural(found.left_out, 'change')} between the first and these left out")
    yield Line("")
    if supposed is None:
        yield Line("what it would take is being found out…", "!")
    elif supposed.links:
        yield Line("what it costs, and what it would take", "@")
        yield from _chain(supposed.links, found.item, ids)


def _chain(links: Iterable[Link], item: str, ids: bool) -> Iterator[Line]:
    for link in links:
        sign = "!" if link.provenance == "simulated" else " "
        goal = None if link.at is None else Goal(link.at.ordinal, item)
        said = " ".join((link.text if ids else without_digests(link.text)).split())[:_LONG]
        yield Line(f"{_place(link.at):{_WHERE}}{said}", sign, goal, _WHERE)
        yield Line(f"{'':{_WHERE}}{_rests(link, ids)}", " ", goal, _WHERE)


def _rests(link: Link, ids: bool) -> str:
    """The event that a sentence rests on."""
    if link.event is None:
        return f"({link.provenance})"
    name = "" if link.event.event_id is None or not ids else f", id {link.event.event_id[:_NAME]}"
    how = "" if link.provenance == "native" else f"{link.provenance} from "
    return f"({how}line {link.event.line:,}{name})"


def _place(moment: Moment | None) -> str:
    return "" if moment is None else f"{moment.turn}.{moment.step}"


def blame_lines(found: Blame, only: str = "", names: ItemNames = NAMELESS) -> Iterator[Line]:
    """The blocks of the window in order, then the sums; `only`: `stale` or `duplicate` ones."""
    listed = [block for block in found.blocks if not only or _is(block, only)]
    room = max((len(block.placement.kind) for block in listed), default=0)
    room = min(max(room, _KIND[0]), _KIND[1])
    yield Line(f"{'since':>8} {'tokens':>8}  {'kind':{room}} item", "@")
    placed = [block.placement for block in listed]
    called = names.listed([names.row(p.item, p.title, p.kind) for p in placed], _NAME)
    for block, name in zip(listed, called, strict=True):
        yield _block(block, name, found.ordinal, room)
    if not listed:
        yield Line(f"no {only} block" if only else "the window is empty", "!")
    if only:
        return
    totals = found.totals
    for name, group in (
        ("by kind", totals.kinds), ("by source", totals.sources), ("by tool server", totals.servers),
        ("by age", totals.ages),
    ):  # fmt: skip
        yield from _sums(name, group)
    yield from _sums("besides", (totals.stale, totals.duplicate))
    yield Line("")
    window = found.step.window
    silent = sum(block.placement.method == "uncounted" for block in found.blocks)
    held = f"{plural(window.recorded, 'token')} recorded" if silent < len(found.blocks) else "size not known"
    more = f", {number(silent)} uncounted" if 0 < silent < len(found.blocks) else ""
    yield Line(f"{plural(len(found.blocks), 'block')}, {held}{more}")
    if found.evidence is not None and found.evidence < 0:
        yield Line(f"{plural(-found.evidence, 'token')} more than was billed")
    elif found.evidence is not None:
        yield Line(
            f"{signed(found.evidence)} tokens were billed that no block holds: overhead, separators, the rest"
        )


def _is(block: Block, only: str) -> bool:
    return block.placement.stale if only == "stale" else block.twin is not None


def _block(block: Block, name: str, here: int, room: int) -> Line:
    placement = block.placement
    since = "before" if block.since is None else f"{block.since.turn}.{block.since.step}"
    marks = ["stale"] * placement.stale
    if block.twin is not None:
        marks.append(f"{given_share(block.twin.share / 100)} of block {block.twin.position + 1}")
    if block.changed is not None and block.entered is not None:
        marks.append(f"in the window since {block.entered.turn}.{block.entered.step}")
    tokens = f"{placement.tokens:,}" if placement.method != "uncounted" else NOT_KNOWN
    tail = f"  · {', '.join(marks)}" if marks else ""
    source = f"  [{placement.source[:_NAME]}]" if placement.source else ""
    goal = Goal(here if block.since is None else block.since.ordinal, placement.item)
    text = f"{since:>8} {tokens:>8}  {clip(placement.kind, room):{room}} {name}{source}{tail}"
    sign = "!" if placement.stale or block.twin is not None else " "
    return Line(text, sign, goal, _SIZED + room + 1)


def _sums(title: str, group: Sequence[Total]) -> Iterator[Line]:
    shown = [total for total in group if total.blocks]
    if not shown:
        return
    yield Line("")
    yield Line(title, "@")
    for total in shown:
        name = "(none given)" if total.name is None else total.name[:_LONG]
        text = f"{'':8} {_sum(total):>8}  {name}, {plural(total.blocks, 'block')}"
        yield Line(text, hang=_SIZED)


def _sum(total: Total) -> str:
    """The tokens of a group; what was not counted adds nothing, so that they are at least these."""
    if total.uncounted == total.blocks:
        return NOT_KNOWN
    return f"{AT_LEAST * bool(total.uncounted)}{number(total.tokens)}"


def finding_lines(
    found: Sequence[Finding], tally: Tally, directory: str | None = None, threads: ThreadNames | None = None
) -> Iterator[Line]:
    """What the rules found, by rule, the worst first; a line leads to where it was found."""
    if not found:
        yield Line(f"no findings: {plural(len(tally.rules), 'rule')}, {plural(tally.steps, 'step')}", "!")
    by_rule: dict[str, list[Finding]] = {}
    for finding in found:
        by_rule.setdefault(finding.code, []).append(finding)
    for code, rule in by_rule.items():
        more = tally.more.get(code, 0)
        total = plural(len(rule) + more, "finding")
        yield Line(f"{code} {rule[0].name} · {rule[0].severity} · {total}", "@")
        threads = threads or ThreadNames()
        marks = _marks_apart(rule, threads)
        for finding in rule:
            yield from _finding(finding, directory, threads, marks.get(finding.item or "", ""))
        if more:
            yield Line(f"  and {more:,} more that are not listed")
        yield Line(f"  fix: {rule[0].fix}", hang=7)
        yield Line("")
    for code, why_not in sorted(tally.idle.items()):
        yield Line(f"{code} had nothing to look at: {why_not}")


def _marks_apart(rule: Sequence[Finding], threads: ThreadNames) -> dict[str, str]:
    """The ends of the ids of items of which the same is said at the same place."""
    alike: dict[tuple[str, str], set[str]] = {}
    for finding in rule:
        if finding.item is not None:
            said = (_address(finding.place, threads), finding.message)
            alike.setdefault(said, set()).add(finding.item)
    return {
        item: f" #{end}"
        for items in alike.values()
        if len(items) > 1
        for item, end in id_ends(sorted(items)).items()
    }


def _finding(finding: Finding, directory: str | None, threads: ThreadNames, mark: str) -> Iterator[Line]:
    costs = [] if finding.tokens is None else [plural(finding.tokens, "token")]
    if finding.money is not None:
        costs.append(dollars(finding.money))
    costs += [finding.note] if finding.note else []
    tail = f" ({', '.join(costs)})" if costs else ""
    sign = " " if finding.severity == "info" else "!"
    said = local_message(finding.message, directory)
    yield Line(
        f"{_address(finding.place, threads):>8}  {said}{mark}{tail}", sign, _goal(finding, finding.place), 10
    )
    for place in finding.more:
        yield Line(f"{_address(place, threads):>8}  again", " ", _goal(finding, place))
    rest = finding.count - 1 - len(finding.more)
    if rest > 0:
        yield Line(f"{'':8}  and at {plural(rest, 'more place')}")


def _goal(finding: Finding, place: Place) -> Goal | None:
    return None if place.ordinal is None else Goal(place.ordinal, finding.item)


def _address(place: Place, threads: ThreadNames) -> str:
    if place.turn is None:
        return f"line {place.line:,}" if place.line else ""
    return threads.place(place.session, place.thread, place.turn, place.step)


ANSWERS: Final[dict[type[Request], Answer[Any]]] = {
    requests.WhyRequest: _why,
    requests.BlameRequest: _blame,
    requests.FindingsRequest: _findings,
    MarksRequest: _marks,
}
