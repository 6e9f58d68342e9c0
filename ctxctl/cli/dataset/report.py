"""``ctxctl fleet report``: what a dataset holds, as one page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from ctxctl.cli import options as opt
from ctxctl.cli.dataset import place
from ctxctl.cli.parameters import Done, Option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctxctl.cli.run import Run
    from ctxctl.dataset.opening import OpenDataset
    from ctxctl.dataset.session_values import SessionRow
    from ctxctl.report.html.dataset import Asked

Where = Annotated[
    str,
    Option("--output", "-o", metavar="FILE", help="The file to write; - is stdout.", show_default=True),
]
Force = Annotated[bool, Option("--force", help="Replace FILE if it exists.")]
Sessions = Annotated[
    int, Option("--sessions", metavar="N", help="How many sessions to list, the most expensive first.", min=0)
]
_ROWS = 10
"""Of each question."""


@opt.takes("dataset since until project client label quiet")
def report(
    options: opt.CommonOptions,
    output: Where = "-",
    force: Force = False,
    sessions: Sessions = 500,
    dataset: place.Dataset = None,
    since: place.Since = None,
    until: place.Until = None,
    project: place.Project = None,
    client: place.Client = None,
    label: place.Label = None,
) -> None:
    """Write one HTML page about a dataset: an overview, the questions that have answers, and its sessions.

    The page loads nothing and runs nothing. It shows the command that opens each session.
    """
    from ctxctl.cli.destination import destination
    from ctxctl.cli.run import begin
    from ctxctl.dataset.questions import COMMON
    from ctxctl.report.html import dataset as html

    run = begin(options)
    flags = {"since": since, "until": until, "project": project, "client": client, "label": label}
    given = place.given_values(flags, None, COMMON)
    opened = place.opened(dataset, run)
    with run.out.progress("asking"):
        page = _page(opened, given, sessions, run)
    with destination(output, run.out, force=force, read=[opened.place]) as sink:
        for piece in html.write(page):
            sink.write(piece)
    run.out.flush()
    raise Done(0)


def _page(opened: OpenDataset, given: dict[str, Any], most: int, run: Run) -> Any:
    from ctxctl import __version__
    from ctxctl.dataset.session_filter import chosen
    from ctxctl.dataset.session_groups import grouped, summed
    from ctxctl.dataset.session_rows import session_rows
    from ctxctl.report.answers import filter_words
    from ctxctl.report.html import dataset as html

    asked = _asked(opened, given, run)
    held = session_rows(opened)
    rows = chosen(held.rows, given)
    groups = {by: sorted(grouped(rows, by), key=lambda one: -one.sessions) for by in html.BY}
    groups["week"].sort(key=lambda one: one.key or "", reverse=True)
    return html.DatasetPage(
        opened.place, opened.version, __version__, filter_words(given), summed(None, rows), groups, asked,
        _listed(rows, asked, most), len(rows), held.more,
    )  # fmt: skip


def _asked(opened: OpenDataset, given: dict[str, Any], run: Run) -> list[Asked]:
    """Every question that needs no word of the user's, with its first rows."""
    from ctxctl.dataset import duck
    from ctxctl.dataset.questions import ORDER, question
    from ctxctl.report.html.dataset import Asked

    made = []
    with duck.Asked(opened.files) as asked:
        for n, name in enumerate(ORDER):
            run.out.progressed(n / len(ORDER))
            one = question(name)
            if any(parameter.required for parameter in one.parameters):
                made.append(Asked(one, None, f"it wants a word: ctxctl fleet ask {name}"))
            elif one.texts and not opened.texts:
                made.append(Asked(one, None, "this dataset keeps no texts"))
            else:
                made.append(Asked(one, asked.ask(name, given | {"limit": _ROWS})))
    return made


def _listed(rows: Sequence[SessionRow], asked: Sequence[Asked], most: int) -> list[SessionRow]:
    """The dearest sessions, and those that an answer names."""
    from ctxctl.report.html.dataset import dearest

    named = {
        f"{row[n]:016x}"
        for one in asked
        if one.answer is not None
        for n, column in enumerate(one.question.columns)
        if column.type == "digest" and column.name == "session"
        for row in one.answer.rows
        if row[n] is not None
    }
    ordered = dearest(rows)
    return [*ordered[:most], *(row for row in ordered[most:] if row.key in named)]
