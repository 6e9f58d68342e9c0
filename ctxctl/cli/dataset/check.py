"""``ctxctl fleet check``: a gate that holds a dataset to rules, for CI and for a nightly job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from ctxctl.cli import options as opt
from ctxctl.cli.check import AllowUnknown, Github, Junit
from ctxctl.cli.dataset import place
from ctxctl.cli.parameters import Argument, Done, Option

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ctxctl.cli.run import Run
    from ctxctl.dataset.rules import Rule
    from ctxctl.model.checks import ConditionResult

RulesFile = Annotated[
    str,
    Argument(
        metavar="RULES",
        help="A TOML file of [[rule]] tables (docs/fleet.md).",
        autocompletion=opt.complete_files,
    ),
]
EndsAt = Annotated[
    str | None,
    Option(
        "--until",
        metavar="WHEN",
        help="The end of the last period: a date, or 2d for two days ago. Default: now.",
    ),
]
_MOST = 1 << 20


@opt.takes("dataset until allow_unknown junit github", opt.PAGED, "color")
def check(
    options: opt.CommonOptions,
    rules: RulesFile,
    dataset: place.Dataset = None,
    until: EndsAt = None,
    allow_unknown: AllowUnknown = False,
    junit: Junit = None,
    github: Github = False,
) -> None:
    """Check a dataset against rules: limits on measures and answers, or on how much worse they may get.

    Exit 1 if one fails, or is not known to hold.
    """
    from ctxctl.cli.check import tell_checked
    from ctxctl.cli.run import begin
    from ctxctl.errors import Exit, UsageError
    from ctxctl.report.check import CheckedTrace, passes

    if github and options.json:
        raise UsageError("github-and-json", "--github and --json do not go together", hint="give one of them")
    run = begin(options)
    made = _read(rules)
    results = _decide(made, rules, dataset, until, run)
    checked = [CheckedTrace(rules, max((one.steps for one in results), default=0), results, True)]
    tell_checked(
        checked,
        run,
        allow_unknown=allow_unknown,
        quiet=options.quiet,
        github=github,
        junit=junit,
        what="session",
    )
    failed = not all(passes(one, allow_unknown=allow_unknown) for one in results)
    raise Done(Exit.FINDINGS if failed else Exit.OK)


def _read(file: str) -> list[Rule]:
    from ctxctl.dataset.rules import read_rules
    from ctxctl.errors import UnreadableError

    try:
        with open(file, "rb") as opened:
            data = opened.read(_MOST)
    except OSError as error:
        raise UnreadableError("not-readable", f"{file}: {error.strerror or 'cannot be read'}") from None
    return read_rules(data, file)


def _decide(
    rules: Sequence[Rule], file: str, dataset: str | None, until: str | None, run: Run
) -> list[ConditionResult]:
    import time
    from datetime import UTC, datetime

    from ctxctl.cli.ls import moment_since
    from ctxctl.dataset.duck import Asked
    from ctxctl.dataset.questions import question_tables
    from ctxctl.dataset.rules import decided, tables_of_rules
    from ctxctl.model.checks import ConditionResult

    now = time.time()
    end = datetime.fromtimestamp(now if until is None else moment_since(until, now, "--until"), UTC)
    tables = {table for name in tables_of_rules(rules) for table in question_tables(name)}
    opened = place.opened(dataset, run, tables)
    results = []
    with run.out.progress("asking"), Asked(opened.files) as asked:

        def ask(name: str, given: Mapping[str, Any]) -> list[dict[str, Any]]:
            answer = asked.ask(name, given)
            return [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]

        for rule in rules:
            found = decided(rule, ask, end)
            failed, unknown = int(found.outcome == "fails"), int(found.outcome == "unknown")
            results.append(
                ConditionResult(
                    rule.name,
                    None,
                    found.outcome,
                    found.message,
                    found.sessions,
                    failed,
                    unknown,
                    trace=file,
                )
            )
    return results
