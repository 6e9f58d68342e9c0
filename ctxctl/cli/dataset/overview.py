"""``ctxctl fleet``: what a dataset holds, by project, client and week."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from ctxctl.cli import options as opt
from ctxctl.cli.dataset import place
from ctxctl.cli.parameters import Done, Option

if TYPE_CHECKING:
    from ctxctl.cli.run import Run

By = Annotated[
    str | None,
    Option("--by", metavar="WHAT", help="Group by project, client or week. Default: project."),
]
_BY = ("project", "client", "week")


@opt.takes("dataset by", opt.PAGED, "color")
def fleet(options: opt.CommonOptions, dataset: place.Dataset = None, by: By = None) -> None:
    """Show what a dataset of many captures holds: in the UI on a terminal, or one line per project."""
    from ctxctl.cli.picker import at_terminal
    from ctxctl.cli.run import begin
    from ctxctl.errors import UsageError

    if by is not None and by not in _BY:
        raise UsageError("bad-parameter", f"--by {by[:80]}: not one of {', '.join(_BY)}")
    run = begin(options)
    if at_terminal() and not (options.json or options.plain):
        raise Done(_shown(place.place_of(dataset, run), run, by))
    _printed(dataset, run, by)
    raise Done(0)


def _printed(dataset: str | None, run: Run, by: str | None) -> None:
    from ctxctl.cli.dataset.ask import put_answer
    from ctxctl.dataset.duck import Asked
    from ctxctl.dataset.questions import question, question_tables

    snapshot = place.opened(dataset, run, question_tables("overview"))
    given = {"by": by or "project", "limit": 1000}
    with run.out.progress("asking"), Asked(snapshot.files) as asked:
        answer = asked.ask("overview", given)
    put_answer(question("overview"), answer, given, snapshot, run)
    run.out.flush()


def _shown(dataset: str, run: Run, by: str | None) -> int:
    """Let the user look around, open the session that was chosen, and come back; the exit code at the end."""
    from functools import partial

    from ctxctl.cli.run import inspector_of
    from ctxctl.dataset.opening import opened
    from ctxctl.dataset.session_rows import session_rows, session_tables
    from ctxctl.tui import app, fleet_app
    from ctxctl.tui.screens.fleet.state import first_wish

    pick = fleet_app.FleetPick(first_wish(by or "project"))
    tables = session_tables()
    while True:
        code = fleet_app.show_fleet(lambda: session_rows(opened(dataset, tables)), pick, run.settings)
        if pick.chosen is None or pick.chosen.path is None:
            return code
        back, path = app.Return(), pick.chosen.path
        code = app.run(
            partial(inspector_of, path, run), path, settings=run.settings, came_from=back,
            start=None if pick.matter is None else app.Start(*pick.matter),
        )  # fmt: skip
        if not back.back:
            return code
        pick.lines = back.lines
