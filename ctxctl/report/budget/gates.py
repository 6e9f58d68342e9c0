"""Findings as CI systems read them: JUnit, SARIF, GitHub annotations and a step summary."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from ctxctl.budget.check import RULES, Finding
from ctxctl.budget.estimate import Estimate
from ctxctl.budget.plan import Bounds, line_of
from ctxctl.labels import dollars, number, share
from ctxctl.report import gates
from ctxctl.report.budget.text import cap_of, turn_of
from ctxctl.text import visible

_MARKDOWN: Final = re.compile(r"([\\`*_{}\[\]()#+!|~@-])")
_KEYS: Final = {
    "total-limit": "total",
    "headroom-limit": "headroom",
    "overflow-limit": "overflow_turn",
    "cost-limit": "cost_per_session",
}
"""Where a plan says what these rules demand."""


def held(bounds: Bounds, *, against: bool) -> list[str]:
    """The rules that a check holds against a plan; `against`: a baseline too."""
    given = {
        "does-not-fit": True,
        "total-limit": bounds.total is not None,
        "part-limit": bool(bounds.parts),
        "server-limit": bool(bounds.servers),
        "headroom-limit": bool(bounds.headroom),
        "overflow-limit": bounds.overflow_turn is not None,
        "cost-limit": bounds.cost_per_session is not None,
    }
    return [rule for rule in RULES if given.get(rule, against)]


def junit(found: Estimate, findings: Sequence[Finding], rules: Sequence[str]) -> bytes:
    """One test case for each rule that was held against the plan, and a failure for each that it breaks."""
    results = _results(found, findings, "")
    return gates.junit("ctxctl budget", [gates.Suite(found.name, rules, results)])


def sarif(found: Estimate, findings: Sequence[Finding], plan_text: str, version: str) -> dict[str, Any]:
    """A SARIF 2.1.0 log; each finding at the plan's line that names what it is about."""
    rules = {rule: gates.Described(told) for rule, told in RULES.items()}
    return gates.sarif(_results(found, findings, plan_text), rules, "ctxctlBudget/v1", version)


def github(found: Estimate, findings: Sequence[Finding], plan_text: str) -> Iterator[bytes]:
    """Workflow commands that put the findings beside the plan's lines; the last one counts the rest."""
    return gates.github(_results(found, findings, plan_text), "ctxctl budget")


def _results(found: Estimate, findings: Sequence[Finding], plan_text: str) -> list[gates.Result]:
    return [
        gates.Result(
            rule=finding.rule,
            level=finding.level,
            message=f"{finding.message}. {finding.hint}",
            brief=finding.message,
            file=found.name,
            line=_line(plan_text, finding),
            mark=finding.subject,
            about=finding.subject,
        )
        for finding in findings
    ]


def markdown(found: Estimate, findings: Sequence[Finding]) -> str:
    """The summary of a step: the verdict, the findings, the parts."""
    failed = [finding for finding in findings if finding.level == "error"]
    verdict = f"{len(failed)} failed" if failed else "passed"
    out = [f"### Context budget of {_cell(found.name)}: {verdict}", ""]
    out += [f"Cap {_cell(cap_of(found.ground.room))}.", ""]
    if findings:
        out += ["| | rule | finding | what to do |", "|---|---|---|---|"]
        for finding in findings:
            sign = "❌" if finding.level == "error" else "note"
            out.append(f"| {sign} | {finding.rule} | {_cell(finding.message)} | {_cell(finding.hint)} |")
        out.append("")
    out += ["| part | segment | p50 | p95 | of cap |", "|---|---|---:|---:|---:|"]
    for part in found.parts:
        of_cap = share(part.p95, found.cap, fine=True)
        row = (_cell(part.part.name), part.part.where, number(part.p50), number(part.p95), of_cap)
        out.append(f"| {' | '.join(row)} |")
    turns, first = len(found.turns), found.first_wanted
    out += ["", "First overflow: " + ", ".join(f"{level} {turn_of(turn, turns, found.unit)}"
                for level, turn in first._asdict().items()) + "."]  # fmt: skip
    if found.bill is not None:
        out.append(f"Cost of a session: {dollars(found.bill.p50)} at p50, {dollars(found.bill.p95)} at p95.")
    return "\n".join(out) + "\n"


def _line(plan_text: str, finding: Finding) -> int:
    return line_of(plan_text, finding.subject, _KEYS.get(finding.rule, ""))


def _cell(text: str) -> str:
    """Shown text that Markdown takes for nothing else."""
    text = _MARKDOWN.sub(r"\\\1", visible(text))
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
