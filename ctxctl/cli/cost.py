"""``ctxctl cost``: what a session cost, and on what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

from ctxctl.cli import options as opt
from ctxctl.cli.parameters import Argument, Done, Option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxctl.analysis.cost_groups import CostWords
    from ctxctl.analysis.cost_overview import CostOverview, CostQuestion
    from ctxctl.analysis.request_cost import StepCost
    from ctxctl.cli.run import Run
    from ctxctl.cli.selection import TurnSelection
    from ctxctl.config import Settings
    from ctxctl.report.heading import Header
    from ctxctl.session import Inspector
    from ctxctl.session.naming import NamedPlace

_SPENT_ON = ("kind", "item", "source", "segment")

By = Annotated[
    str | None,
    Option(
        "--by",
        metavar="WHAT",
        help="Group by what the money was spent on (kind, the default for a trace; item, source or segment),"
        " or by where it was spent (session, the default for a directory; day, project, branch or model).",
    ),
]
Traces = Annotated[
    str | None,
    Argument(
        metavar="[TRACE[@TURN]|DIR]",
        help="Trace or foreign capture, a turn of one (run.jsonl@3), or a directory of captures; - is stdin."
        " Default: the newest session of the current directory.",
        autocompletion=opt.complete_files,
        show_default=False,
    ),
]
Top = Annotated[int, Option("--top", metavar="N", min=1, help="How many groups to list.")]
Steps = Annotated[
    bool, Option("--steps", help="Also print a line for each step; a directory is then read as one trace.")
]
Provider = Annotated[
    str | None,
    Option("--provider", metavar="NAME", help="Use this provider's prices if the trace names no provider."),
]

Bills = Annotated[
    bool,
    Option(
        "--bills",
        help="Add up bills alone, without what is recorded, cache breaks and misses: much faster. The default"
        " for a directory, and with --by session, day, project, branch or model; but not with --json.",
    ),
]
Contents = Annotated[
    bool,
    Option(
        "--contents",
        help="Where sessions are added up, also read contents: for what is recorded, cache breaks and misses."
        " The default with --json.",
    ),
]

AsOf = Annotated[
    str | None,
    Option(
        "--as-of",
        metavar="DATE",
        help="Price requests without a time as of this day (YYYY-MM-DD). Default: the day of the model"
        " table, never today.",
    ),
]


@opt.takes(opt.PAGED, "turn thread", opt.COUNTED, "calibration", opt.READ)
def cost(
    options: opt.CommonOptions,
    trace: Traces = None,
    by: By = None,
    top: Top = 15,
    steps: Steps = False,
    provider: Provider = None,
    as_of: AsOf = None,
    bills: Bills = False,
    contents: Contents = False,
) -> None:
    """Show what a session, or a directory of them, cost: the bill, what it was spent on, cache breaks."""
    from ctxctl.analysis.cost_groups import BY
    from ctxctl.cli.fleet import fleet
    from ctxctl.cli.run import begin
    from ctxctl.cli.selection import split_trace
    from ctxctl.cli.sessions import given_or_newest
    from ctxctl.errors import UsageError
    from ctxctl.tokens.catalogue.names import provider_of

    if by is not None and by not in (*_SPENT_ON, *BY):
        raise UsageError(
            "bad-grouping", f"--by does not know {by!r}", hint=f"there are: {', '.join((*_SPENT_ON, *BY))}"
        )
    if bills and (contents or steps or by in _SPENT_ON):
        raise UsageError("bad-grouping", "--bills knows no contents: leave out --contents, --steps or --by")
    run = begin(options)
    whole = contents or (run.json and not bills)
    asked = _Asked(by, top, steps, provider_of(provider), _price_date(as_of), whole)
    place = split_trace(given_or_newest(trace, run))
    selects = place.address is not None or options.turn is not None or options.thread is not None
    if by in (None, *BY) and not steps and not selects:
        with fleet(place.trace, run, "pricing", alone=by is not None or bills) as several:
            if several is not None:
                from ctxctl.cli.fleet_cost import fleet_cost

                raise Done(fleet_cost(several, asked.by or "session", top, asked.words(run.settings), run))
    if by in BY or bills:
        what = "--bills" if bills else f"--by {by}"
        raise UsageError("bad-grouping", f"{what} needs a file or a directory, no --steps, turn or thread")
    _one_trace(place, asked, run)


class _Asked(NamedTuple):
    by: str | None
    top: int
    steps: bool
    provider: str | None
    as_of: str | None
    contents: bool

    def words(self, settings: Settings) -> CostWords:
        """As each capture of a directory is asked."""
        from ctxctl.analysis.cost_groups import CostWords

        return CostWords(
            settings.target, settings.model, settings.encoding, settings.policy, settings.calibration,
            settings.learned, settings.models, self.provider, self.as_of, self.contents,
        )  # fmt: skip


def _one_trace(place: NamedPlace, asked: _Asked, run: Run) -> None:
    """What went on what in one trace or a part of it, and what each of its requests cost."""
    from ctxctl.analysis.cost_overview import CostQuestion, cost_overview
    from ctxctl.cli.run import header, reported
    from ctxctl.cli.selection import nothing_there, place_selected
    from ctxctl.report import costs as report
    from ctxctl.report.catalogue import catalogue_line
    from ctxctl.report.heading import header_lines

    by, out = asked.by or "kind", run.out
    question = CostQuestion(by, run.settings.models, asked.provider, asked.as_of)
    with reported(place.trace, run, "pricing") as inspector:
        chosen = place_selected(inspector, place.address, run.options.turn, run.options.thread)
        turn = run.options.turn if place.address is None else chosen.named_turn
        head = header(inspector, thread=chosen.thread, turn=turn)
        if not chosen.is_all and not any(map(chosen.__call__, inspector.places().spans)):
            raise nothing_there(turn, chosen.thread, inspector.places().spans)
        if run.json:
            _json(inspector, question, run, head, chosen)
            return
        rows: list[tuple[str, ...]] = []
        each = asked.steps or not chosen.is_all
        found = _with_rows(inspector, question, rows, chosen) if each else cost_overview(inspector, question)
        out.lines([*header_lines(head, out.width), *catalogue_line(out.width), ""])
        if asked.steps:
            out.lines([*report.steps_table(rows, out.width), ""])
        out.lines(report.spent_table(by, found.spent, out.width, asked.top))
        out.lines(
            ["", *report.summary(found.sums, zip(found.breaks, found.broken_by, strict=True), out.width)]
        )


def _json(
    inspector: Inspector, question: CostQuestion, run: Run, head: Header, chosen: TurnSelection
) -> None:
    """Each chosen step, then what they were spent on, then the sums."""
    from ctxctl.analysis.costs import step_costs
    from ctxctl.report import costs as report
    from ctxctl.report import jsonout

    out, costs = run.out, question.costs()
    out.json(jsonout.trace(head))
    for one in step_costs(inspector, costs, only=None if chosen.is_all else chosen.__call__):
        out.json(report.step_object(one))
    for spent in costs.spent():
        out.json(report.spent_object(question.by, spent))
    out.json(report.sum_object(costs))


def _with_rows(
    inspector: Inspector, question: CostQuestion, rows: list[tuple[str, ...]], chosen: TurnSelection
) -> CostOverview:
    """As `cost_overview`, of the chosen steps alone, with a row for each of them added to `rows`."""
    from ctxctl.analysis.cost_overview import CostOverview, costliest_breaks
    from ctxctl.analysis.costs import step_costs
    from ctxctl.report.costs import step_row
    from ctxctl.session.item_words import ItemWords, broken_name

    costs, words = question.costs(), ItemWords(inspector)
    names, only = words.names(), None if chosen.is_all else chosen.__call__

    def steps() -> Iterator[StepCost]:
        for cost in step_costs(inspector, costs, only=only, see=words.see):
            rows.append(step_row(cost, names))
            yield cost

    breaks = costliest_breaks(steps())
    return CostOverview(costs, costs.spent(), breaks, [broken_name(cost.step, names) for cost in breaks])


def _price_date(said: str | None) -> str | None:
    from datetime import date

    from ctxctl.errors import UsageError

    try:
        return None if said is None else date.fromisoformat(said).isoformat()
    except ValueError:
        raise UsageError("bad-date", f"--as-of {said} is not a date", hint="write it as 2026-07-02") from None
