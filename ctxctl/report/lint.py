"""Findings by rule, the worst first, in plain text; as JSON objects; and as what CI systems read."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from ctxctl.lint.rule import Rule
from ctxctl.model.addresses import prefix
from ctxctl.model.findings import Finding, Place, Tally
from ctxctl.model.vocab import MAIN_THREAD
from ctxctl.report.gates import Described, Level, Result, Suite
from ctxctl.report.paint import Paint, plain
from ctxctl.report.tables import Column, labelled, table, wrap
from ctxctl.text import cells, clip, visible
from ctxctl.wording import dollars, plural

SHOWN: Final = 5
"""Findings shown of one rule before the others are only counted."""
_ROLES: Final = {"error": "error", "warning": "warn", "info": "dim"}
_INDENT: Final = "  "


def address(place: Place) -> str | None:
    """``[SESSION/][THREAD:]TURN.STEP``; None where the finding is about no step."""
    if place.turn is None or place.step is None:
        return None
    session = place.session if place.session_needed else None
    return f"{prefix(place.thread or MAIN_THREAD, session)}{place.turn}.{place.step}"


def command(finding: Finding) -> str:
    """The command that shows the place of a finding."""
    return show_command(finding.trace, finding.place)


def show_command(trace: str, place: Place) -> str:
    """The command that shows a place of a trace."""
    at = address(place)
    return "ctxctl show " + shlex.quote(trace + (f"@{at}" if at is not None else ""))


def cost(finding: Finding) -> str:
    """Tokens and dollars of a finding; empty where neither is known."""
    if finding.tokens is None:
        return ""
    money = "" if finding.money is None else f", {dollars(finding.money)}"
    return f"{plural(finding.tokens, 'token')}{money}"


def lines(
    findings: Sequence[Finding], rules: Mapping[str, type[Rule]], width: int, paint: Paint = plain,
    *, everything: bool = False,
) -> Iterator[str]:  # fmt: skip
    """All findings by rule; rules in the order of their worst finding."""
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.code, []).append(finding)
    for code, group in groups.items():
        rule = rules[code]
        head = f"{code} {rule.name}"
        severity = paint(_ROLES[rule.severity], rule.severity)
        yield f"{paint('head', head)}  {severity}, {plural(len(group), 'finding')}"
        for finding in group if everything else group[:SHOWN]:
            yield from _finding(finding, width)
        if not everything and len(group) > SHOWN:
            yield f"{_INDENT}{plural(len(group) - SHOWN, 'more finding')}: --all lists them"
        yield from labelled("fix:", rule.fix, width, indent=2, tab=5)
        yield ""


def _finding(finding: Finding, width: int) -> Iterator[str]:
    lead = "  "
    room = max(width - 4, 20)
    for line in wrap(_broken(visible(finding.message), room), room):
        yield lead + line
        lead = "    "
    price = cost(finding)
    parts = []
    if finding.count > 1:
        rest = [visible(at) for place in finding.more if (at := address(place)) is not None]
        more = ", ..." if finding.count - 1 > len(rest[:3]) else ""
        where = f" ({', '.join(rest[:3])}{more})" if rest else ""
        parts.append(f"and at {plural(finding.count - 1, 'more step')}{where}")
    if price:
        parts.append(f"{price} in all" if finding.count > 1 else price)
    if parts:
        yield from _indented("; ".join(parts), width)
    yield f"      {visible(command(finding))}"  # whole, to be copied


def _broken(text: str, width: int) -> str:
    """The text with words that are wider than a line in pieces: the end of a path says most."""
    if all(cells(word) <= width for word in text.split(" ")):
        return text
    pieces = []
    for word in text.split(" "):
        while cells(word) > width:
            head = clip(word, width)[:-1]
            pieces.append(head)
            word = word[len(head) :]
        pieces.append(word)
    return " ".join(pieces)


def _indented(text: str, width: int) -> Iterator[str]:
    for line in wrap(text, max(width - 6, 20)):
        yield f"      {line}"


def verdict(findings: Sequence[Finding], tallies: Mapping[str, Tally], baselined: int) -> Iterator[str]:
    """One line of what was found, and one of what was left out."""
    steps = sum(tally.steps for tally in tallies.values())
    counts = [
        (severity, sum(f.severity == severity for f in findings)) for severity in ("error", "warning", "info")
    ]
    each = ", ".join(plural(n, name) if name != "info" else f"{n:,} info" for name, n in counts if n)
    among = f"{plural(len(tallies), 'trace')}, {plural(steps, 'step')}"
    yield f"{plural(len(findings), 'finding')} in {among}: {each}" if findings else f"no findings in {among}"
    more = sum(n for tally in tallies.values() for n in tally.more.values())
    ignored = sum(n for tally in tallies.values() for n in tally.ignored.values())
    if more:
        yield f"{more:,} further findings of rules that fire very often were only counted"
    if ignored:
        yield f"{plural(ignored, 'place')} left out as the trace asks (metadata.ctxctl.lint.ignore)"
    if baselined:
        yield f"{plural(baselined, 'finding')} left out because the baseline has them"


def statistics(findings: Sequence[Finding], rules: Sequence[type[Rule]], width: int) -> Iterator[str]:
    """A row for each rule that ran."""
    columns = [
        Column("code"), Column("rule"), Column("severity"), Column("findings", right=True),
        Column("places", right=True), Column("tokens", right=True), Column("cost", right=True),
    ]  # fmt: skip
    made = table(columns, [_row(rule, [f for f in findings if f.code == rule.code]) for rule in rules], width)
    for line in (made.head, *made.rows):
        yield from line


def _row(rule: type[Rule], mine: Sequence[Finding]) -> tuple[str, ...]:
    tokens = [f.tokens for f in mine if f.tokens is not None]
    known = [f.money for f in mine if f.tokens is not None and f.money is not None]
    money = dollars(sum(known, Decimal(0))) if known and len(known) == len(tokens) else "-"
    places = sum(f.count for f in mine)
    spent = f"{sum(tokens):,}" if tokens else ""
    return (
        rule.code, rule.name, rule.severity, f"{len(mine):,}", f"{places:,}", spent, money if mine else "",
    )  # fmt: skip


def listed(rules: Sequence[type[Rule]], width: int) -> Iterator[str]:
    """Every rule with its severity, whether it is on, and its first sentence."""
    for rule in rules:
        off = "" if rule.default else ", off by default"
        yield f"{rule.code} {rule.name} ({rule.severity}{off})"
        for line in wrap(summary(rule), max(width - 7, 20)):
            yield f"       {line}"


def summary(rule: type[Rule]) -> str:
    """What is wrong, in one sentence: the first of the rule's documentation."""
    from inspect import cleandoc

    return " ".join(cleandoc(rule.__doc__ or rule.name).split("\n\n")[0].split())


def explained(rule: type[Rule], width: int) -> Iterator[str]:
    """Everything about one rule."""
    from inspect import cleandoc

    off = "" if rule.default else ", off by default"
    yield f"{rule.code} {rule.name} ({rule.severity}{off})"
    for paragraph in cleandoc(rule.__doc__ or "").split("\n\n"):
        yield ""
        yield from wrap(" ".join(paragraph.split()), width)
    yield ""
    yield from labelled("fix", rule.fix, width)
    if rule.needs:
        yield from labelled("needs", rule.needs, width)
    for name, what in rule.parameters.items():
        yield from labelled("setting", f"{name} = {getattr(rule, name)}: {what}", width)
    yield from labelled("docs", f"docs/lint.md#{rule.code.lower()}", width)


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
        price = cost(finding)
        times = f" ({finding.count:,} steps)" if finding.count > 1 else ""
        costs = f" Cost: {price}." if price else ""
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
