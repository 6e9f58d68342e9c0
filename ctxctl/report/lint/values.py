"""Findings as JSON objects, and as what CI systems read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ctxctl.lint.rule import Rule
from ctxctl.model.findings import Finding, Place, Tally
from ctxctl.report.gates import Described, Level, Result, Suite
from ctxctl.report.lint.text import address, command, cost, summary

_LEVELS: Final[dict[str, Level]] = {"error": "error", "warning": "warning", "info": "note"}


def finding_object(finding: Finding) -> dict[str, Any]:
    """One finding; keys as `docs/json.md` has them."""
    return {
        "type": "finding",
        "trace": finding.trace,
        "code": finding.code,
        "rule": finding.name,
        "severity": finding.severity,
        "message": finding.message,
        "fix": finding.fix,
        **place_object(finding.place),
        "item": finding.item,
        "subject": finding.subject,
        "count": finding.count,
        "more": [place_object(place) for place in finding.more],
        "tokens": finding.tokens,
        "usd": None if finding.money is None else f"{finding.money:f}",
        "note": finding.note,
    }


def place_object(place: Place) -> dict[str, Any]:
    """Where it is; `address` is null where it is about no step."""
    return {
        "address": address(place),
        "ordinal": place.ordinal,
        "session": place.session,
        "thread": place.thread,
        "turn": place.turn,
        "step": place.step,
        "line": place.line or None,
        "event_id": place.event_id,
    }


def sum_object(
    findings: Sequence[Finding], tallies: Mapping[str, Tally], baselined: int, stale: int
) -> dict[str, Any]:
    """The last line: how many of each severity, and what was left out."""
    return {
        "type": "lint",
        "traces": len(tallies),
        "steps": sum(tally.steps for tally in tallies.values()),
        "errors": sum(f.severity == "error" for f in findings),
        "warnings": sum(f.severity == "warning" for f in findings),
        "infos": sum(f.severity == "info" for f in findings),
        "uncounted": sum(n for tally in tallies.values() for n in tally.more.values()),
        "ignored": sum(n for tally in tallies.values() for n in tally.ignored.values()),
        "baselined": baselined,
        "stale_baseline": stale,
    }


def described(rules: Sequence[type[Rule]]) -> dict[str, Described]:
    """Rules as SARIF lists them."""
    return {
        rule.code: Described(summary(rule), rule.name, rule.fix, _LEVELS[rule.severity]) for rule in rules
    }


def results(findings: Sequence[Finding], foreign: frozenset[str]) -> list[Result]:
    """As CI systems read them; in a `foreign` trace lines are not those of its file."""
    made = []
    for finding in findings:
        told = cost(finding)
        times = f" ({finding.count:,} steps)" if finding.count > 1 else ""
        costs = f" Cost: {told}." if told else ""
        made.append(
            Result(
                rule=finding.code,
                level=_LEVELS[finding.severity],
                message=f"{finding.message}{times}.{costs} {finding.fix} See: {command(finding)}",
                brief=finding.message,
                file=finding.trace,
                line=1 if finding.trace in foreign else finding.place.line,
                mark="\0".join((finding.place.session or "", finding.place.thread, finding.subject)),
                about=finding.item or finding.subject,
                properties={
                    "tokens": finding.tokens,
                    "usd": None if finding.money is None else f"{finding.money:f}",
                    "count": finding.count,
                    "address": address(finding.place),
                },
            )
        )
    return made


def suites(findings: Sequence[Finding], tallies: Mapping[str, Tally], foreign: frozenset[str]) -> list[Suite]:
    """A suite for each trace, with a case for each rule that ran."""
    made = results(findings, foreign)
    return [
        Suite(trace, tally.rules, [r for r in made if r.file == trace]) for trace, tally in tallies.items()
    ]
