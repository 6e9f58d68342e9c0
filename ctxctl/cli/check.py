"""``ctxctl check``: a gate that holds recorded sessions to conditions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from ctxctl.cli import options as opt
from ctxctl.cli.parameters import Argument, Done, Option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctxctl.cli.run import Run
    from ctxctl.model.checks import CheckRules
    from ctxctl.report.check import CheckedTrace

Traces = Annotated[
    list[str] | None,
    Argument(
        metavar="[TRACE...]",
        help="Traces, foreign captures or directories of them; - is stdin. Default: the newest session of"
        " the current directory.",
        autocompletion=opt.complete_files,
        show_default=False,
    ),
]
Max = Annotated[
    str | None,
    Option(
        "--max",
        metavar="TOKENS|N%",
        help="No request may send more than this; N% is a share of the limit in force.",
    ),
]
Growth = Annotated[
    str | None,
    Option(
        "--max-growth",
        metavar="TOKENS",
        help="No request may be larger than the one before by more than this.",
    ),
]
ToolResult = Annotated[
    str | None, Option("--max-tool-result", metavar="TOKENS", help="No tool result may be larger than this.")
]
Cost = Annotated[
    str | None,
    Option("--max-cost", metavar="USD", help="All requests of a trace together may not cost more than this."),
]
Stable = Annotated[
    bool,
    Option(
        "--stable-prefix",
        help="No request may break the prompt cache: each must repeat the first 90% of the one before.",
    ),
]
NoMisses = Annotated[
    bool,
    Option(
        "--no-misses",
        help="No request may miss the cache: be billed for tokens that could have been read from it.",
    ),
]
NoCompaction = Annotated[bool, Option("--no-compaction", help="No compaction may take place.")]
Never = Annotated[
    list[str] | None,
    Option("--never", metavar="QUERY", help="No request may match this (docs/search.md). Repeatable."),
]
Always = Annotated[
    list[str] | None,
    Option("--always", metavar="QUERY", help="Every request must match this. Repeatable."),
]
AllowUnknown = Annotated[
    bool,
    Option("--allow-unknown", help="Do not fail if it is not known whether a condition holds."),
]
Junit = Annotated[
    str | None,
    Option("--junit", metavar="FILE", help="Also write a JUnit report.", autocompletion=opt.complete_files),
]
Github = Annotated[
    bool, Option("--github", help="Also print conditions that do not hold as GitHub Actions annotations.")
]
Everything = Annotated[
    bool, Option("--all", help="List every condition of every trace, and every problem of the input.")
]


@opt.takes(
    "allow_unknown junit github",
    opt.PAGED,
    "everything thread",
    opt.COUNTED,
    "calibration",
    opt.READ,
    everything=Everything,
)
def check(
    options: opt.CommonOptions,
    traces: Traces = None,
    max_sent: Max = None,
    max_growth: Growth = None,
    max_tool_result: ToolResult = None,
    max_cost: Cost = None,
    stable_prefix: Stable = False,
    no_misses: NoMisses = False,
    no_compaction: NoCompaction = False,
    never: Never = None,
    always: Always = None,
    allow_unknown: AllowUnknown = False,
    junit: Junit = None,
    github: Github = False,
) -> None:
    """Check a recorded session against conditions. Exit 1 if one fails, or is not known to hold.

    Conditions can also be set in ctxctl.toml, under [check]; options override them.
    """
    from ctxctl.cli.run import begin
    from ctxctl.cli.sessions import newest_here
    from ctxctl.errors import Exit, UsageError
    from ctxctl.report.check import passes

    if github and options.json:
        raise UsageError("github-and-json", "--github and --json cannot be combined", hint="give one of them")
    run = begin(options)
    own = run.settings.check
    given = {
        "max": max_sent, "max_growth": max_growth, "max_tool_result": max_tool_result, "max_cost": max_cost,
        "stable_prefix": stable_prefix, "no_misses": no_misses, "no_compaction": no_compaction,
        "never": never, "always": always,
    }  # fmt: skip
    rules = _rules(given, own)
    if not rules:
        raise UsageError(
            "no-conditions",
            "there is no condition to check",
            hint="give one, for example --max 80%, or write a [check] table in ctxctl.toml (docs/check.md)",
        )
    allowed = allow_unknown or bool(own.get("allow_unknown"))
    found = _Found()
    _check_all(traces or [newest_here(run)], rules, run, found)
    tell_checked(found.checked, run, allow_unknown=allowed, quiet=options.quiet, github=github, junit=junit)
    results = [result for one in found.checked for result in one.results]
    failed = not all(passes(result, allow_unknown=allowed) for result in results)
    raise Done(max(found.code, Exit.FINDINGS if failed else Exit.OK))


class _Found:
    """What came of all traces."""

    def __init__(self) -> None:
        self.checked: list[CheckedTrace] = []
        self.code = 0
        """0, or what could not be read."""


def _rules(given: dict[str, Any], own: dict[str, Any]) -> CheckRules:
    """The conditions of the command line, and those of the settings that it does not name.

    Queries are held together.  Raises UsageError (`bad-condition`, `bad-query`).
    """
    from ctxctl.cli.selection import query_of
    from ctxctl.model.checks import CheckRules

    values: dict[str, Any] = {}
    for name in ("max", "max_growth", "max_tool_result", "max_cost"):
        typed, where = given[name], "--" + name.replace("_", "-")
        if typed is None and name in own:
            typed, where = str(own[name]), f"[check] {name}"
        values[name] = None if typed is None else _bound(name, typed, where)
    for name in ("stable_prefix", "no_misses", "no_compaction"):
        values[name] = given[name] or bool(own.get(name))
    for name in ("never", "always"):
        both = dict.fromkeys([*(given[name] or ()), *own.get(name, ())])
        for text in both:
            query_of(text)
        values[name] = tuple(both)
    return CheckRules(**values)


def _bound(name: str, typed: str, where: str) -> Any:
    """A bound as it was typed, in the form that rules have it in."""
    from ctxctl.analysis.conditions import dollar_bound, sent_bound
    from ctxctl.errors import UsageError
    from ctxctl.model.whatif import parse_tokens

    try:
        if name == "max":
            sent_bound(typed)
            return typed.strip()
        return dollar_bound(typed) if name == "max_cost" else parse_tokens(typed, least=0)
    except ValueError as error:
        raise UsageError("bad-condition", f"{where} must be {error}, not {typed[:80]!r}") from None


def _check_all(traces: Sequence[str], rules: CheckRules, run: Run, found: _Found) -> None:
    """All traces, one after the other; one that cannot be read does not stop the others."""
    from ctxctl.cli.fleet import fleet
    from ctxctl.cli.output import complain
    from ctxctl.errors import CtxctlError

    for trace in dict.fromkeys(traces):
        try:
            with fleet(trace, run, "checking") as several:
                if several is not None:
                    from ctxctl.cli.fleet_check import check_fleet

                    checked, code = check_fleet(several, rules, run)
                    found.checked += checked
                    found.code = max(found.code, code)
                    continue
            found.checked.append(_check_trace(trace, rules, run, found))
        except CtxctlError as error:
            if len(traces) == 1:
                raise
            run.out.flush()
            complain(error.message, error.hint)
            found.code = max(found.code, int(error.exit_code))


def _check_trace(trace: str, rules: CheckRules, run: Run, found: _Found) -> CheckedTrace:
    from msgspec import structs

    from ctxctl.analysis.check import check_trace
    from ctxctl.cli.run import header, opened, tell_problems, verdict
    from ctxctl.report import jsonout
    from ctxctl.report.check import CheckedTrace

    thread = run.options.thread
    with opened(trace, run, "checking") as inspector:
        if run.json:
            run.out.json(jsonout.trace(header(inspector, thread=thread)))
        made = check_trace(inspector, rules, run.settings.models, run.out.progressed, thread=thread)
        tell_problems(inspector, run)
        found.code = max(found.code, verdict(inspector, run))
        results = [structs.replace(one, trace=trace) for one in made]
        return CheckedTrace(trace, results[0].steps, results, inspector.format != "native")


def tell_checked(
    checked: Sequence[CheckedTrace], run: Run, *, allow_unknown: bool, quiet: bool, github: bool,
    junit: str | None, what: str = "request",
) -> None:  # fmt: skip
    """Print what came of it, and write the report that is asked for; `what` was looked at."""
    from ctxctl.cli.destination import destination
    from ctxctl.report import check as report
    from ctxctl.report import gates

    out = run.out
    if run.json:
        for one in checked:
            for result in one.results:
                out.json(report.condition_object(result))
        out.json(report.verdict_object(checked, allow_unknown=allow_unknown))
    else:
        out.lines(
            report.check_lines(
                checked, out.width, out.paint, allow_unknown=allow_unknown, everything=run.everything,
                quiet=quiet, what=what,
            )
        )  # fmt: skip
        if github:
            found = report.marked(checked, allow_unknown=allow_unknown)
            for line in gates.github(found, "ctxctl check"):
                out.write(line)
    out.flush()
    if junit is not None:
        made = gates.junit("ctxctl check", report.suites(checked, allow_unknown=allow_unknown))
        with destination(junit, out, force=True, read=[one.trace for one in checked]) as file:
            file.write(made)
        out.flush()
