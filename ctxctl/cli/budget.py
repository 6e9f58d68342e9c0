"""``ctxctl budget``: will it fit before it is deployed, and the gate that holds it there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from ctxctl.cli import options as opt
from ctxctl.cli.parameters import Argument, Done, Option

if TYPE_CHECKING:
    from pathlib import Path

    from ctxctl.budget.check import Finding
    from ctxctl.budget.estimate import Estimate
    from ctxctl.budget.plan import Plan
    from ctxctl.cli.output import Output
    from ctxctl.cli.run import Run
    from ctxctl.model.records import Fidelity

_FORMATS = ("text", "json", "junit", "sarif", "github")

PlanArg = Annotated[
    str | None,
    Argument(
        metavar="[PLAN]", help="The plan, a TOML file (docs/budget.md).", autocompletion=opt.complete_files
    ),
]
Init = Annotated[bool, Option("--init", help="Write a plan to start from: to PLAN, or to standard output.")]
From = Annotated[
    list[str] | None,
    Option(
        "--from", metavar="TRACE[@ADDRESS]",
        help="Write a plan derived from this recorded session; with TRACE@40, one that continues"
        " it after turn 40. Without @ it may be repeated.",
        autocompletion=opt.complete_files,
    ),
]  # fmt: skip
Live = Annotated[
    bool, Option("--live", help="Run the MCP servers that the plan names, and ask for their tools.")
]
Check = Annotated[bool, Option("--check", help="Exit 1 if a limit of the plan is exceeded.")]
Baseline = Annotated[
    str | None,
    Option("--baseline", metavar="FILE", help="Check against this committed file too (implies --check)."),
]
Update = Annotated[
    bool, Option("--update-baseline", help="Rewrite the --baseline file, and say what changed in it.")
]
Form = Annotated[
    str,
    Option(
        "--format", metavar="NAME", help="text, json, or for --check also junit, sarif or github.",
        autocompletion=lambda incomplete: [name for name in _FORMATS if name.startswith(incomplete)],
    ),
]  # fmt: skip


@opt.takes(opt.PAGED, "init trace live")
def budget(
    options: opt.CommonOptions,
    plan: PlanArg = None,
    check: Check = False,
    baseline: Baseline = None,
    update_baseline: Update = False,
    format: Form = "text",  # noqa: A002 - the option's name
    init: Init = False,
    trace: From = None,
    live: Live = False,
) -> None:
    """Check whether a planned context fits: size of each part, first overflow, cost, what to shrink.

    With --check, it is a gate for CI.
    """
    from pathlib import Path

    from ctxctl.budget import baseline as kept
    from ctxctl.budget.check import limits_kept
    from ctxctl.budget.estimate import estimate
    from ctxctl.budget.plan import load
    from ctxctl.cli.run import begin
    from ctxctl.errors import Exit, UsageError

    form = "json" if options.json else format
    gate = check or baseline is not None
    _check_options(form, gate, baseline, update_baseline)
    run = begin(options._replace(json=form == "json"))
    if init or trace:
        _write_plan(plan, trace or [], run._replace(options=opt.CommonOptions()))
        raise Done(Exit.OK)
    if plan is None:
        raise UsageError(
            "plan-needed",
            "there is no plan to check",
            hint="`ctxctl budget --init budget.toml` writes one to start from",
        )
    path = Path(plan)
    read, text = load(path)
    listed = _listed_by_servers(read, path, run.out) if live else {}
    with run.out.progress("simulating"):
        found = estimate(read, plan, path.parent, run.settings.models, listed)
    if update_baseline:
        assert baseline is not None
        for line in kept.write_baseline(found, Path(baseline)) or ["nothing changed"]:
            run.out.lines([f"baseline: {line}"])
        gate = check
    findings = limits_kept(found) if gate else []
    if gate and baseline is not None and not update_baseline:
        findings += kept.compare_with_baseline(found, Path(baseline))
    if not update_baseline or gate:
        _print_estimate(found, findings, form, text, run.out, gate=gate, against=baseline is not None)
    if gate:
        _summarize(found, findings)
    run.out.flush()
    failed = any(finding.level == "error" for finding in findings)
    raise Done(Exit.FINDINGS if failed else Exit.OK)


def _listed_by_servers(plan: Plan, path: Path, out: Output) -> dict[str, Any]:
    """What the MCP servers of a plan list, by part; each is run, asked and ended, one after the other."""
    from ctxctl import __version__
    from ctxctl.text import visible

    listed: dict[str, Any] = {}
    for part in plan.part:
        if part.mcp is not None:
            from ctxctl.record.mcp.tool_list import tools_of

            with out.progress(f"asking for {visible(part.name[:60])}"):
                listed[part.name] = {"tools": tools_of(part.mcp, path.parent, __version__)}
    return listed


def _check_options(form: str, gate: bool, baseline: str | None, update: bool) -> None:
    """Raises UsageError for options that do not go together."""
    from ctxctl.errors import UsageError
    from ctxctl.text import visible

    if form not in _FORMATS:
        raise UsageError(
            "unknown-output-format",
            f"--format {visible(form[:40])!r} is unknown",
            hint=f"there are: {', '.join(_FORMATS)}",
        )
    if form in _FORMATS[2:] and not gate:
        raise UsageError("check-needed", f"--format {form} is for findings", hint="add --check")
    if update and baseline is None:
        raise UsageError("baseline-needed", "--update-baseline needs --baseline FILE")
    if update and form != "text":
        raise UsageError(
            "check-needed", "--update-baseline writes text only", hint="run the check separately"
        )


def _write_plan(plan: str | None, traces: list[str], run: Run) -> None:
    """Write a new plan: the commented one, or one derived from sessions."""
    out = run.out
    text = _plan_from_sessions(traces, run) if traces else _template()
    if plan is None or plan == "-":
        out.write(text.encode())
        out.flush()
        return
    from ctxctl.cli.destination import destination
    from ctxctl.cli.output import narrate

    with destination(plan, out, force=False) as file:
        file.write(text.encode())
    narrate(f"ctxctl: wrote {plan}; now: ctxctl budget {plan}")


def _template() -> str:
    from ctxctl.budget.plan import TEMPLATE

    return TEMPLATE


def _plan_from_sessions(traces: list[str], run: Run) -> str:
    from ctxctl.budget.derive import derived_plan, observed
    from ctxctl.budget.observe import Observed
    from ctxctl.cli.run import opened, tell_problems
    from ctxctl.report.heading import base_name
    from ctxctl.report.sent import lacking_text

    if (found := _session_to_continue(traces)) is not None:
        return _continuation_plan(*found, run)
    threads: list[Observed] = []
    encodings: dict[str, None] = {}
    captures: list[Fidelity] = []
    for path in traces:
        with opened(path, run, "measuring") as inspector:
            threads += observed(inspector)
            encodings[inspector.params.encoding] = None
            captures += inspector.summary.fidelity if inspector.summary is not None else ()
            tell_problems(inspector, run)
    names = [base_name(path) for path in traces]
    return derived_plan(threads, names, next(reversed(encodings)), lacking_text(captures))


def _session_to_continue(traces: list[str]) -> tuple[str, str] | None:
    """The trace and the address that a session goes on from, where one is given."""
    import os

    from ctxctl.errors import UsageError

    for trace in traces:
        path, sign, address = trace.rpartition("@")
        if not (sign and path and address) or os.path.exists(trace):
            continue
        if len(traces) > 1:
            raise UsageError("one-trace-needed", "only a single trace can be continued from an address")
        return path, address
    return None


def _continuation_plan(path: str, address: str, run: Run) -> str:
    from ctxctl.budget.continuation import continuation_plan, session_so_far
    from ctxctl.cli.run import opened, tell_problems
    from ctxctl.importers.capture import about_format
    from ctxctl.report.heading import base_name
    from ctxctl.report.sent import lacking_text

    with opened(path, run, "measuring") as inspector:
        found = session_so_far(inspector, address)
        measured = inspector.summary.fidelity if inspector.summary is not None else ()
        words = lacking_text(measured, about_format(inspector.format))
        text = continuation_plan(found, base_name(path), inspector.params.encoding, words)
        tell_problems(inspector, run)
    return text


def _print_estimate(
    found: Estimate,
    findings: list[Finding],
    form: str,
    plan_text: str,
    out: Output,
    *,
    gate: bool,
    against: bool,
) -> None:
    from ctxctl import __version__
    from ctxctl.report import budget as text

    if form == "text":
        out.lines(text.lines(found, out.width))
        if gate:
            out.lines(["", *text.check_lines(findings, out.width)])
    elif form == "json":
        for line in text.objects(found):
            out.json(line)
        if gate:
            for finding in findings:
                out.json(text.finding_object(finding))
            out.json(text.check_object(findings))
    elif form == "junit":
        out.write(text.junit(found, findings, text.rules_held(found.plan.limits, against=against)))
    elif form == "sarif":
        out.json(text.sarif(found, findings, plan_text, __version__))
    else:
        for command in text.github(found, findings, plan_text):
            out.write(command)
        out.lines(list(text.check_lines(findings, out.width))[-1:])


def _summarize(found: Estimate, findings: list[Finding]) -> None:
    """Append to the summary of a GitHub step, where there is one."""
    import os

    from ctxctl.cli.output import note
    from ctxctl.report.budget import markdown

    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if not path:
        return
    try:
        with open(path, "a", encoding="utf-8") as file:
            file.write(markdown(found, findings))
    except (OSError, ValueError):
        note("ctxctl: the step summary cannot be written")
