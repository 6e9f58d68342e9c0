"""``ctxctl fleet diff``: two groups of a dataset's sessions, measure by measure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from ctxctl.cli import options as opt
from ctxctl.cli.dataset import place
from ctxctl.cli.parameters import Argument, Done, Option

if TYPE_CHECKING:
    from ctxctl.dataset.duck import Asked

GroupA = Annotated[
    str,
    Argument(
        metavar="A",
        help="Sessions by NAME=VALUE, month or week; commas combine them: client_version=2.1.2, 2026-09,"
        " 2026-W38.",
        show_default=False,
    ),
]
GroupB = Annotated[str, Argument(metavar="B", help="The sessions to compare them with, in the same form.")]
ExitCode = Annotated[
    bool, Option("--exit-code", help="Exit 1 if a measure is worse in B and chance does not explain it.")
]
ALL_ROWS = 10_000_000


@opt.takes("dataset since until project client label exit_code", opt.PAGED, "color")
def diff(
    options: opt.CommonOptions,
    a: GroupA,
    b: GroupB,
    dataset: place.Dataset = None,
    since: place.Since = None,
    until: place.Until = None,
    project: place.Project = None,
    client: place.Client = None,
    label: place.Label = None,
    exit_code: ExitCode = False,
) -> None:
    """Compare two groups of sessions: two versions, two weeks, two prompts.

    For each measure: both values, their difference with a 95% interval (bootstrap over sessions, with a fixed
    seed), and Cliff's delta as the effect size. If there are too few sessions, it says so.
    """
    from ctxctl.cli.dataset.sides import side_of
    from ctxctl.cli.run import begin
    from ctxctl.dataset import comparing
    from ctxctl.dataset.duck import Asked
    from ctxctl.dataset.questions import COMMON, question_tables
    from ctxctl.errors import Exit
    from ctxctl.report import fleet_diff

    run = begin(options)
    flags = {"since": since, "until": until, "project": project, "client": client, "label": label}
    both = place.given_values(flags, None, COMMON)
    sides = [both | side_of(one) for one in (a, b)]
    opened = place.opened(dataset, run, question_tables("measures"))
    with run.out.progress("asking"), Asked(opened.files) as asked:
        rows = [session_sums(asked, one) for one in sides]
        found = comparing.compared(rows[0], rows[1])
    if run.json:
        for one in fleet_diff.compared_objects(found, (a, b), [len(group) for group in rows], opened):
            run.out.json(one)
    else:
        counts = [len(group) for group in rows]
        run.out.lines(fleet_diff.compared_lines(found, (a, b), counts, run.out.width, run.out.paint))
    run.out.flush()
    worse = exit_code and any(fleet_diff.is_worse(one) for one in found)
    raise Done(Exit.FINDINGS if worse else Exit.OK)


def session_sums(asked: Asked, given: dict[str, Any]) -> list[dict[str, Any]]:
    """The sums of each session that the filters leave, in one order."""
    answer = asked.ask("measures", given | {"limit": ALL_ROWS})
    return [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
