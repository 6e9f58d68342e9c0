"""``ctxctl lint``: what in a trace is waste, a contradiction or a leak."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from ctxctl.cli import options as opt
from ctxctl.cli.lint_rules import Found, RuleWords, chosen_rules
from ctxctl.cli.parameters import Argument, Done, Option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctxctl.cli.run import Run
    from ctxctl.lint.registry import RuleChoice

_FORMS = ("text", "json", "sarif", "junit", "github")

Traces = Annotated[
    list[str] | None,
    Argument(
        metavar="[TRACE...]",
        help="Traces, foreign captures or directories of them; - is stdin."
        " Default: the newest session of the current directory.",
        autocompletion=opt.complete_files,
    ),
]
Select = Annotated[
    list[str] | None,
    Option(
        "--select",
        metavar="RULES",
        help="Run only these rules: codes, prefixes of codes (CTX0), names, or all.",
    ),
]
Ignore = Annotated[
    list[str] | None, Option("--ignore", metavar="RULES", help="Do not run these rules, even if selected.")
]
Severity = Annotated[
    str | None,
    Option(
        "--severity",
        metavar="LEAST",
        help="Run only rules of this severity or worse: error, warning or info.",
    ),
]
Set = Annotated[
    list[str] | None,
    Option("--set", metavar="RULE.NAME=VALUE", help="Set a parameter of a rule: CTX009.share=0.4."),
]
Form = Annotated[
    str | None,
    Option(
        "--format", metavar="NAME", help="Write text, json, sarif, junit or github. Default: text.",
        autocompletion=lambda incomplete: [name for name in _FORMS if name.startswith(incomplete)],
    ),
]  # fmt: skip
OldForm = Annotated[str | None, Option("--output", metavar="NAME", hidden=True)]
Baseline = Annotated[
    str | None, Option("--baseline", metavar="FILE", help="Leave out the findings that this file lists.")
]
Update = Annotated[bool, Option("--update-baseline", help="Rewrite the --baseline file.")]
Statistics = Annotated[bool, Option("--statistics", help="Show one row per rule instead of findings.")]
Explain = Annotated[str | None, Option("--explain", metavar="RULE", help="Explain one rule.")]
ListRules = Annotated[bool, Option("--rules", help="List all rules, with a sentence on each.")]
Everything = Annotated[bool, Option("--all", help="List every finding, and every problem of the input.")]


@opt.takes(
    opt.PAGED,
    "thread baseline update_baseline statistics explain list_rules everything target model",
    opt.READ,
    everything=Everything,
)
def lint(
    options: opt.CommonOptions,
    traces: Traces = None,
    select: Select = None,
    ignore: Ignore = None,
    severity: Severity = None,
    settings: Set = None,
    format: Form = None,  # noqa: A002 - the option's name
    output: OldForm = None,
    baseline: Baseline = None,
    update_baseline: Update = False,
    statistics: Statistics = False,
    explain: Explain = None,
    list_rules: ListRules = False,
) -> None:
    """Find waste, contradictions and leaks in traces, each with its cost, a fix and where to look.

    Exit 1 if there is a finding of severity error or warning.
    """
    from ctxctl.cli.output import narrate
    from ctxctl.cli.run import begin, note_old_format
    from ctxctl.cli.selection import whole_trace
    from ctxctl.cli.sessions import newest_here
    from ctxctl.errors import Exit, UsageError

    form, read_as = _form_and_format(options, format, output)
    run = begin(options._replace(json=form == "json", read_as=read_as))
    if read_as != options.read_as:
        note_old_format()
    if output is not None:
        narrate("ctxctl: --output is now called --format; the old name still works")
    if explain is not None or list_rules:
        _documented(explain, run)
        raise Done(Exit.OK)
    own = run.settings.lint
    baseline = baseline or own.get("baseline")
    if baseline is None and (why := run.settings.refused.get("lint.baseline")):
        raise UsageError("baseline-needed", why, hint="--baseline FILE")
    if update_baseline and baseline is None:
        raise UsageError("baseline-needed", "--update-baseline needs --baseline FILE")
    asked = RuleWords(select, ignore, severity, settings, own)
    choice = chosen_rules(asked)
    hint = "`ctxctl export {} --format markdown` has the findings of one turn"
    places = [whole_trace(trace, hint) for trace in traces or [newest_here(run)]]
    found = _found(places, choice, asked, run)
    code = _tell(found, choice, baseline, form, run, update=update_baseline, table=statistics)
    raise Done(max(code, found.code))


def _form_and_format(options: opt.CommonOptions, form: str | None, old: str | None) -> tuple[str, str | None]:
    """How findings are written, and what the captures are read as.

    A format of captures is understood in place of a form, as `--format` had it before.  Raises UsageError
    (`unknown-output-format`).
    """
    from ctxctl.errors import UsageError
    from ctxctl.text import visible

    form = "json" if options.json else form or old or "text"
    if form in _FORMS:
        return form, options.read_as
    if options.read_as is None and form in opt.complete_formats(form):
        return old or "text", form
    raise UsageError(
        "unknown-output-format",
        f"--format {visible(form[:40])} is unknown",
        hint=f"one of {', '.join(_FORMS)}",
    )


def _found(traces: Sequence[str], choice: RuleChoice, asked: RuleWords, run: Run) -> Found:
    """All traces, one after the other; one that cannot be read does not stop the others."""
    from ctxctl.cli.fleet import fleet
    from ctxctl.cli.output import complain
    from ctxctl.errors import CtxctlError
    from ctxctl.model.findings import findings_order

    found = Found()
    for trace in dict.fromkeys(traces):
        try:
            with fleet(trace, run, "linting") as several:
                if several is not None:
                    _refuse_thread(run.options.thread, trace)
                    from ctxctl.cli.fleet_lint import lint_fleet

                    lint_fleet(several, asked, run, found)
                    continue
            _lint_trace(trace, choice, run, found)
        except CtxctlError as error:
            if len(traces) == 1:
                raise
            complain(error.message, error.hint)
            found.code = max(found.code, int(error.exit_code))
    found.findings.sort(key=findings_order)
    return found


def _refuse_thread(thread: str | None, directory: str) -> None:
    """Raise UsageError where a thread of a whole directory is asked for: names mean nothing across traces."""
    from ctxctl.errors import UsageError

    if thread is not None:
        raise UsageError(
            "thread-of-several", f"--thread is a thread of one trace, but {directory} holds several",
            hint="name the file; `ctxctl ls DIR` lists them",
        )  # fmt: skip


def _lint_trace(trace: str, choice: RuleChoice, run: Run, found: Found) -> None:
    from ctxctl.cli.run import header, opened, tell_problems, verdict
    from ctxctl.cli.selection import check_thread
    from ctxctl.lint.run import lint_with_tally
    from ctxctl.report import jsonout

    with opened(trace, run, "linting") as inspector:
        thread = run.options.thread
        check_thread(inspector, thread)
        if run.json:
            run.out.json(jsonout.trace(header(inspector, thread=thread)))
        made = lint_with_tally(
            inspector, choice, run.settings.models, run.out.progressed,
            None if thread is None else lambda step: step.thread != thread,
        )  # fmt: skip
        found.findings += [one for one in made.findings if thread in (None, one.place.thread)]
        found.tallies[trace] = made.tally
        if inspector.format != "native":
            found.foreign.add(trace)
        tell_problems(inspector, run)
        found.code = max(found.code, verdict(inspector, run))


def _tell(
    found: Found, choice: RuleChoice, baseline: str | None, form: str, run: Run, *, update: bool, table: bool
) -> int:
    """Print what is new; the exit code that it asks for."""
    from pathlib import Path

    from ctxctl.cli.output import narrate, note
    from ctxctl.errors import Exit
    from ctxctl.lint import baseline as kept

    findings, known, stale = found.findings, 0, list[str]()
    if baseline is not None and update:
        for line in kept.write_baseline(findings, found.tallies, Path(baseline)) or ["nothing changed"]:
            narrate(f"baseline: {line}")
        findings, known = [], len(findings)
    elif baseline is not None:
        codes = [chosen.rule.code for chosen in choice.rules]
        findings, known, stale = kept.split_by_baseline(findings, found.tallies, codes, Path(baseline))
    found.findings = findings
    _print(found, choice, form, run, known=known, stale=len(stale), table=table)
    run.out.flush()
    for line in stale:
        note(f"baseline: {line}: no longer found; --update-baseline removes it")
    failed = any(finding.severity != "info" for finding in findings)
    return Exit.FINDINGS if failed or (stale and run.settings.strict) else Exit.OK


def _print(
    found: Found, choice: RuleChoice, form: str, run: Run, *, known: int, stale: int, table: bool
) -> None:
    from ctxctl import __version__
    from ctxctl.report import gates
    from ctxctl.report import lint as report

    findings, out = found.findings, run.out
    rules = [chosen.rule for chosen in choice.rules]
    if form == "json":
        for finding in findings:
            out.json(report.finding_object(finding))
        out.json(report.sum_object(findings, found.tallies, known, stale))
    elif form == "sarif":
        made = report.results(findings, frozenset(found.foreign))
        out.json(gates.sarif(made, report.described(rules), "ctxctlLint/v1", __version__))
    elif form == "junit":
        suites = report.suites(findings, found.tallies, frozenset(found.foreign))
        out.write(gates.junit("ctxctl lint", suites, frozenset({"error", "warning"})))
    elif form == "github":
        for line in gates.github(report.results(findings, frozenset(found.foreign)), "ctxctl lint"):
            out.write(line)
        out.lines(report.verdict(findings, found.tallies, known))
    else:
        by_code = {rule.code: rule for rule in rules}
        if table:
            out.lines([*report.statistics(findings, rules, out.width), ""])
        else:
            out.lines(report.lines(findings, by_code, out.width, out.paint, everything=run.everything))
        out.lines(report.verdict(findings, found.tallies, known))


def _documented(explain: str | None, run: Run) -> None:
    """One rule, or the list of all."""
    from ctxctl.lint.registry import find_rule, rules
    from ctxctl.report import lint as report

    if explain is not None:
        run.out.lines(report.explained(find_rule(explain), min(run.out.width, 100)))
    else:
        run.out.lines(report.listed(rules(), min(run.out.width, 100)))
    run.out.flush()
