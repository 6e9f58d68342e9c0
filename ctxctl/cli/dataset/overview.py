"""``ctxctl fleet``: what a dataset holds, by project, client and week."""

from __future__ import annotations

from typing import Annotated

from ctxctl.cli import options as opt
from ctxctl.cli.dataset import place
from ctxctl.cli.parameters import Done, Option

By = Annotated[
    str | None,
    Option("--by", metavar="WHAT", help="A line for each project, client or week; project by default."),
]
_BY = ("project", "client", "week")


@opt.takes("dataset by", opt.PAGED, "color")
def fleet(options: opt.CommonOptions, dataset: place.Dataset = None, by: By = None) -> None:
    """Show what a dataset of many captures holds: the UI on a terminal, else a line for each project."""
    from ctxctl.cli.dataset.ask import put_answer
    from ctxctl.cli.run import begin
    from ctxctl.dataset.duck import Asked
    from ctxctl.dataset.opening import question_tables
    from ctxctl.dataset.questions import question
    from ctxctl.errors import UsageError

    if by is not None and by not in _BY:
        raise UsageError("bad-parameter", f"--by {by[:80]}: not one of {', '.join(_BY)}")
    run = begin(options)
    snapshot = place.opened(dataset, run, question_tables("overview"))
    given = {"by": by or "project", "limit": 1000}
    with run.out.progress("asking"), Asked(snapshot.files) as asked:
        answer = asked.ask("overview", given)
    put_answer(question("overview"), answer, given, snapshot, run)
    run.out.flush()
    raise Done(0)
