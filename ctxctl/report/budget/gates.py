"""Findings as CI systems read them: JUnit, SARIF, GitHub annotations and a step summary."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from ctxctl.budget.check import RULES, Finding
from ctxctl.budget.estimate import Estimate
from ctxctl.budget.plan import Bounds, line_of
from ctxctl.report.budget.text import cap_of, turn_of
from ctxctl.text import inert, visible

_MARKDOWN: Final = re.compile(r"([\\`*_{}\[\]()#+!|~@-])")
_KEYS: Final = {
    "total-limit": "total",
    "headroom-limit": "headroom",
    "overflow-limit": "overflow_turn",
    "cost-limit": "cost_per_session",
}
"""Where a plan says what these rules demand."""
_MOST_ANNOTATIONS: Final = 10
"""GitHub shows no more of a step."""


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
    from xml.etree import ElementTree

    failed = [rule for rule in rules if any(f.rule == rule and f.level == "error" for f in findings)]
    suite = ElementTree.Element(
        "testsuite", name="ctxctl budget", tests=str(len(rules)), failures=str(len(failed)), errors="0"
    )
    for rule in rules:
        case = ElementTree.SubElement(suite, "testcase", classname=visible(found.name), name=rule)
        broken = [f for f in findings if f.rule == rule and f.level == "error"]
        if broken:
            text = "\n".join(f"{f.message}. {f.hint}" for f in broken)
            ElementTree.SubElement(case, "failure", message=broken[0].message, type=rule).text = text
        notes = [f"{f.message}. {f.hint}" for f in findings if f.rule == rule and f.level == "note"]
        if notes:
            ElementTree.SubElement(case, "system-out").text = "\n".join(notes)
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    body = inert(ElementTree.tostring(suites, encoding="unicode"))
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'.encode()


def sarif(found: Estimate, findings: Sequence[Finding], plan_text: str, version: str) -> dict[str, Any]:
    """A SARIF 2.1.0 log; each finding at the plan's line that names what it is about."""
    from hashlib import sha256

    results = []
    for finding in findings:
        mark = sha256(f"{finding.rule}\0{finding.subject}".encode("utf-8", "replace")).hexdigest()[:32]
        place = {
            "physicalLocation": {
                "artifactLocation": {"uri": _uri(found.name)},
                "region": {"startLine": _line(plan_text, finding)},
            }
        }
        if finding.subject:
            place["logicalLocations"] = [{"name": visible(finding.subject)}]  # type: ignore[assignment]
        results.append(
            {
                "ruleId": finding.rule,
                "level": finding.level,
                "message": {"text": f"{finding.message}. {finding.hint}"},
                "locations": [place],
                "partialFingerprints": {"ctxctlBudget/v1": mark},
            }
        )
    driver = {
        "name": "ctxctl",
        "semanticVersion": version,
        "rules": [{"id": rule, "shortDescription": {"text": told}} for rule, told in RULES.items()],
    }
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }


def github(found: Estimate, findings: Sequence[Finding], plan_text: str) -> Iterator[bytes]:
    """Workflow commands that put the findings beside the plan's lines; the last one counts the rest."""
    for number, finding in enumerate(findings):
        if number == _MOST_ANNOTATIONS - 1 and len(findings) > _MOST_ANNOTATIONS:
            yield f"::error title=ctxctl budget::{len(findings) - number} further findings\n".encode()
            return
        command = "error" if finding.level == "error" else "notice"
        where = f"file={_property(found.name)},line={_line(plan_text, finding)}"
        text = _data(f"{finding.message}. {finding.hint}")
        yield f"::{command} {where},title={_property(finding.rule)}::{text}\n".encode()


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
        share = f"{part.p95 / found.cap:.1%}" if found.cap else "-"
        row = (_cell(part.part.name), part.part.where, f"{part.p50:,}", f"{part.p95:,}", share)
        out.append(f"| {' | '.join(row)} |")
    turns, first = len(found.turns), found.first_wanted
    out += ["", f"First overflow: p50 {turn_of(first.p50, turns)}, p95 {turn_of(first.p95, turns)}, "
                f"p99 {turn_of(first.p99, turns)}."]  # fmt: skip
    if found.bill is not None:
        out.append(f"Cost of a session: ${found.bill.p50:,.4f} at p50, ${found.bill.p95:,.4f} at p95.")
    return "\n".join(out) + "\n"


def _line(plan_text: str, finding: Finding) -> int:
    return line_of(plan_text, finding.subject, _KEYS.get(finding.rule, ""))


def _cell(text: str) -> str:
    """Shown text that Markdown takes for nothing else."""
    text = _MARKDOWN.sub(r"\\\1", visible(text))
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _uri(name: str) -> str:
    from urllib.parse import quote

    return quote(name.encode("utf-8", "surrogateescape"))


def _data(text: str) -> str:
    return inert(visible(text)).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
