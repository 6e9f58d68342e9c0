"""What came of the conditions of `ctxctl check`: in plain text, as JSON, and as CI systems read it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from ctxctl.model.checks import ConditionResult, Outcome
from ctxctl.report.gates import Result, Suite
from ctxctl.report.lint import address, show_command
from ctxctl.report.paint import Paint, plain
from ctxctl.report.tables import labelled
from ctxctl.text import cells, clip, visible
from ctxctl.wording import noun, number, plural

_ROLES: Final[dict[Outcome, str]] = {"holds": "added", "fails": "error", "unknown": "warn"}
_OUTCOME: Final = 9
"""Cells of an outcome and of the blanks behind it."""
_LABEL: Final = 34
"""Cells that a condition has at most; a longer one has a line of its own."""


class CheckedTrace(NamedTuple):
    """One trace, and what came of each condition in it."""

    trace: str
    """As the user typed it."""
    steps: int
    """Requests that were looked at."""
    results: list[ConditionResult]
    foreign: bool
    """Its lines are not those of its file."""


def passes(result: ConditionResult, *, allow_unknown: bool) -> bool:
    """Whether a condition does not stop a run."""
    return result.outcome == "holds" or (allow_unknown and result.outcome == "unknown")


def check_lines(
    checked: Sequence[CheckedTrace], width: int, paint: Paint = plain, *, allow_unknown: bool,
    everything: bool = False, quiet: bool = False, what: str = "request",
) -> Iterator[str]:  # fmt: skip
    """A line for each condition, by trace, and one of them all; `what` was looked at.

    Of several traces only those in which something does not hold, unless `everything` is asked for; where
    it is `quiet`, of none what passes.
    """
    several = len(checked) > 1
    for one in checked:
        shown = [
            r for r in one.results
            if not passes(r, allow_unknown=allow_unknown) or not (quiet or (several and not everything))
        ]  # fmt: skip
        if not shown:
            continue
        if several:
            yield paint("head", visible(one.trace))
        tab = max(min(cells(visible(result.label)), _LABEL) for result in shown) + 2
        for result in shown:
            yield from _lines(result, tab, width, paint)
    if not quiet:
        yield _sum(checked, what, allow_unknown=allow_unknown)


def _lines(result: ConditionResult, tab: int, width: int, paint: Paint) -> Iterator[str]:
    label, text = visible(result.label), visible(result.message)
    at = None if result.place is None else address(result.place)
    held = result.outcome == "holds"
    if held and at is not None:
        text += f", at {visible(at)}"
    head, room = result.outcome, max(width - _OUTCOME, 20)
    lines = labelled(label, text, room, tab=tab)
    if cells(label) > tab - 2:
        lines = iter([clip(label, room), *labelled("", text, room, tab=tab)])
    for n, line in enumerate(lines):
        lead = head + " " * (_OUTCOME - len(head)) if not n else " " * _OUTCOME
        yield (paint(_ROLES[result.outcome], head) + lead[len(head) :] if not n else lead) + line
    if not held and result.place is not None:
        yield " " * (_OUTCOME + tab) + visible(show_command(result.trace, result.place))  # to be copied


def _sum(checked: Sequence[CheckedTrace], what: str, *, allow_unknown: bool) -> str:
    """How many conditions there were, and what came of them."""
    counts: Counter[str] = Counter(result.outcome for one in checked for result in one.results)
    steps = sum(one.steps for one in checked)
    among = plural(steps, what)
    if len(checked) > 1:
        among = f"{plural(len(checked), 'trace')}, {among}"
    parts = [
        f"{number(counts[name])} {noun(counts[name], one, many)}"
        for name, one, many in (
            ("holds", "condition holds", "conditions hold"), ("fails", "fails", "fail"),
            ("unknown", "is not known", "are not known"),
        )
        if counts[name] or name == "holds"
    ]  # fmt: skip
    allowed = ", which is allowed" if counts["unknown"] and allow_unknown else ""
    return f"{', '.join(parts)}{allowed} ({among})"


def condition_object(result: ConditionResult) -> dict[str, Any]:
    """What came of one condition; keys as `docs/json.md` has them."""
    place = result.place
    return {
        "type": "condition",
        "trace": result.trace,
        "condition": result.condition,
        "bound": result.bound,
        "outcome": result.outcome,
        "message": result.message,
        "requests": result.steps,
        "failed": result.failed,
        "unknown": result.unknown,
        "tokens": result.tokens,
        "usd": None if result.usd is None else f"{result.usd:f}",
        "address": None if place is None else address(place),
        "ordinal": None if place is None else place.ordinal,
        "session": None if place is None else place.session,
        "thread": None if place is None else place.thread,
        "turn": None if place is None else place.turn,
        "step": None if place is None else place.step,
        "line": None if place is None else place.line or None,
    }


def verdict_object(checked: Sequence[CheckedTrace], *, allow_unknown: bool) -> dict[str, Any]:
    """The last line: whether everything holds."""
    results = [result for one in checked for result in one.results]
    counts = Counter(result.outcome for result in results)
    return {
        "type": "verdict",
        "passed": all(passes(result, allow_unknown=allow_unknown) for result in results),
        "allow_unknown": allow_unknown,
        "traces": len(checked),
        "requests": sum(one.steps for one in checked),
        "holds": counts["holds"],
        "fails": counts["fails"],
        "unknown": counts["unknown"],
    }


def suites(checked: Sequence[CheckedTrace], *, allow_unknown: bool) -> list[Suite]:
    """A suite for each trace, with a case for each condition; what is unknown and allowed is a note."""
    return [
        Suite(
            one.trace,
            [visible(result.label) for result in one.results],
            list(_results(one, allow_unknown=allow_unknown)),
        )
        for one in checked
    ]


def marked(checked: Sequence[CheckedTrace], *, allow_unknown: bool) -> list[Result]:
    """What does not hold, as CI systems mark it."""
    return [result for one in checked for result in _results(one, allow_unknown=allow_unknown)]


def _results(one: CheckedTrace, *, allow_unknown: bool) -> Iterator[Result]:
    for result in one.results:
        if result.outcome == "holds":
            continue
        place = result.place
        see = "" if place is None else f". See: {show_command(one.trace, place)}"
        said = "does not hold" if result.outcome == "fails" else "is not known to hold"
        label = visible(result.label)
        yield Result(
            rule=label,
            level="note" if passes(result, allow_unknown=allow_unknown) else "error",
            message=f"{label} {said}: {result.message}{see}",
            brief=result.message,
            file=one.trace,
            line=1 if one.foreign or place is None else place.line,
            mark=label,
        )
