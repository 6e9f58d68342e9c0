"""An estimate and its findings in plain text, as lines of JSON (docs/json.md), and as CI systems read them.

These are JUnit, SARIF, GitHub annotations and a step summary.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, Final

from ctxctl.budget.check import RULES, Finding
from ctxctl.budget.estimate import Estimate
from ctxctl.budget.growth import Between, FirstTurn
from ctxctl.budget.plan import Bounds, line_of
from ctxctl.model.fitting import Room
from ctxctl.report import gates
from ctxctl.report.jsonout import tokens_object
from ctxctl.report.tables import Column, Table, labelled, table
from ctxctl.text import visible
from ctxctl.wording import MINUS, dollars, number, plural, share

_TURNS = 12
_SHRUNK = 6
_TOOLS = 8
TOOLS = ("tools", "mcp")
"""Kinds of parts whose pieces are tool definitions."""
_TAB = 14


def lines(found: Estimate, width: int) -> Iterator[str]:
    """The whole report."""
    for label, text in _head(found):
        yield from labelled(label, visible(text), width, tab=_TAB)
    yield ""
    yield from _flat(_parts(found, width))
    yield ""
    if any(part.part.kind in TOOLS and len(part.pieces) > 1 for part in found.parts):
        yield from _flat(_tools(found, width))
        yield ""
    for label, text in _verdicts(found):
        yield from labelled(label, visible(text), width, tab=_TAB)
    if len(found.turns) > 1:
        yield ""
        yield from _flat(_turns(found, width))
    if found.shrunk:
        yield ""
        yield from _flat(_shrunk(found, width))


def check_lines(findings: Sequence[Finding], width: int) -> Iterator[str]:
    """What the gate says: each finding with what to do, and one line of verdict."""
    for finding in findings:
        sign = "FAIL" if finding.level == "error" else "note"
        yield from labelled(sign, f"{finding.rule}: {finding.message}", width, tab=6)
        yield from labelled("", finding.hint, width, tab=6)
    failed = sum(finding.level == "error" for finding in findings)
    yield f"check: {plural(failed, 'finding')}" if failed else "check: passed"


def cap_of(room: Room) -> str:
    """The cap and how it comes about."""
    parts = []
    if room.max_input is not None:
        parts.append(f"max input {room.max_input:,}")
    if room.window is not None:
        parts.append(f"window {room.window:,} {MINUS} reserve {room.reserve or 0:,}")
    return f"{room.cap:,} tokens: {' or '.join(parts)}{', the smaller' if len(parts) > 1 else ''}"


def turn_of(turn: int | None, turns: int, unit: str = "turn") -> str:
    """A first turn, or that there is none."""
    return f"{unit} {turn:,}" if turn is not None else f"none in {plural(turns, unit)}"


def between_of(found: Estimate, when: Between) -> str:
    """When something happens in a session that goes on: the middle of the runs, and where nine of ten lie."""
    early, middle, late = when
    last = found.plan.last
    if early is None:
        return f"later than {found.unit} {last:,} in more than 95 of 100 sessions"
    half = f"at {found.unit} {middle:,} (p50)" if middle is not None else f"after {found.unit} {last:,} (p50)"
    to = f"{late:,}" if late is not None else f"later than {last:,}"
    return f"{half}, {early:,} to {to} (p5 to p95)"


def _head(found: Estimate) -> Iterator[tuple[str, str]]:
    plan, base = found.plan, found.ground
    yield "plan", found.name
    served = f" ({plan.model.provider})" if plan.model.provider else ""
    if plan.start is not None:
        of = f" of {plan.start.trace}" if plan.start.trace else ""
        yield "starts", f"after {found.unit} {plan.start.turn:,}{of}, with {found.start_tokens:,} tokens"
    yield "model", f"{plan.model.name or 'none is named'}{served}"
    yield "cap", f"{cap_of(base.room)}. {base.limits_from}"
    counted = "exact" if base.exact else "an estimate"
    yield "tokens", base.assumed or f"{base.encoding}, {counted}"
    talk = plan.conversation
    drawn = f"{plural(plan.runs, 'session')} of {plural(talk.turns, found.unit)}, drawn with seed {plan.seed}"
    yield "simulated", f"{drawn}; {found.runs:,} of them played to the end under {plan.policy}"


def _parts(found: Estimate, width: int) -> Table:
    columns = (
        Column("part", least=14), Column("segment"), Column("p50", right=True), Column("p95", right=True),
        Column("of cap", right=True), Column("tokens", least=6), Column("server", least=6),
    )  # fmt: skip
    rows = []
    for part in found.parts:
        rows.append(
            (
                visible(part.part.name), part.part.where, number(part.p50), number(part.p95),
                _share(part.p95, found.cap), part.method, visible(part.part.server or ""),
            )
        )  # fmt: skip
    if (start := found.plan.start) is not None:
        held = number(start.tokens)
        rows.append(
            ("history so far", "history", held, held, _share(start.tokens, found.cap), "recorded", "")
        )
    rows.append(
        ("all parts", "", number(found.total("p50")), number(found.total("p95")),
         _share(found.total("p95"), found.cap), "", "")
    )  # fmt: skip
    return table(columns, rows, width)


def _tools(found: Estimate, width: int) -> Table:
    """The largest tools, and what they come to for each server."""
    columns = (
        Column("tool", least=14), Column("tokens", right=True), Column("of cap", right=True),
        Column("server", least=6),
    )  # fmt: skip
    parts = [part for part in found.parts if part.part.kind in TOOLS]
    pieces = [(piece, part.part.server or "") for part in parts for piece in part.pieces]
    pieces.sort(key=lambda pair: -pair[0].tokens)
    rows = [
        (visible(piece.name), number(piece.tokens), _share(piece.tokens, found.cap), visible(server))
        for piece, server in pieces[:_TOOLS]
    ]
    if len(pieces) > _TOOLS:
        rest = sum(piece.tokens for piece, _ in pieces[_TOOLS:])
        rows.append((f"{len(pieces) - _TOOLS:,} more", number(rest), _share(rest, found.cap), ""))
    for server in dict.fromkeys(server for _, server in pieces if server):
        held = found.server(server, "p95")
        rows.append((f"all of {visible(server)}", number(held), _share(held, found.cap), visible(server)))
    return table(columns, rows, width)


def _verdicts(found: Estimate) -> Iterator[tuple[str, str]]:
    first = found.turns[0].p95
    free = found.cap - first
    fits = f"fits, {free:,} tokens free" if free >= 0 else f"does not fit, {-free:,} tokens over"
    goes_on = found.plan.start is not None
    yield f"{'next' if goes_on else 'first'} {found.unit}", f"{fits} at p95"
    happens = found.first_wanted.p99 is not None
    overflow = _when(found, found.first_wanted, found.first_between)
    yield "overflow", f"{overflow}: what is wanted is over the cap" if happens else overflow
    if happens or found.first_acted.p99 is not None:
        acts = _when(found, found.first_acted, found.acted_between, found.acted)
        yield "compaction", f"{acts}: {found.plan.policy} acts{_of(found, found.acted)}"
        still = _when(found, found.first_over, found.over_between, found.runs)
        yield "still over", f"{still}{_of(found, found.runs)}"
    if found.left_out:
        names = (f"{left.name} ({left.tokens:,} tokens)" for left in found.left_out)
        yield "leaves first", ", ".join(names)
    bill = found.bill
    if bill is None:
        yield "cost", f"not known. {found.unpriced}"
        return
    each = f"{dollars(bill.per_turn)} a {found.unit}{_of(found, found.runs)}"
    yield "cost", f"{dollars(bill.p50)} a session at p50, {dollars(bill.p95)} at p95; {each}"
    counts = (f"{count:,} {name}" for name, count in bill.tokens._asdict().items() if count)
    yield "billed", f"{', '.join(counts)} tokens a session; without a cache {dollars(bill.uncached)}"
    yield "prices", f"{bill.source}. {' '.join(bill.notes)}"


def _when(found: Estimate, first: FirstTurn, when: Between, runs: int = 1) -> str:
    """When something first happens, in as many runs."""
    if not runs:
        return "not known: a session is too long to be simulated to its end"
    if first.p99 is None:
        return turn_of(None, len(found.turns), found.unit)
    if found.plan.start is not None:
        return between_of(found, when)
    turns = first._asdict().items()
    return ", ".join(f"{level} {turn_of(turn, len(found.turns), found.unit)}" for level, turn in turns)


def _of(found: Estimate, runs: int) -> str:
    """How many sessions that is about, where it is not about all."""
    return f", of {plural(runs, 'session')}" if 0 < runs < found.plan.runs else ""


def _turns(found: Estimate, width: int) -> Table:
    """Some turns: the first and the last, and as many in between."""
    columns = (
        Column(found.unit, right=True), Column("wanted p50", right=True), Column("p95", right=True),
        Column("p99", right=True), Column("free at p95", right=True),
    )  # fmt: skip
    last = len(found.turns) - 1
    shown = sorted({round(last * n / (_TURNS - 1)) for n in range(_TURNS)})
    rows = []
    for at in shown:
        turn = found.turns[at]
        free = found.cap - turn.p95
        rows.append((number(turn.turn), *(number(n) for n in turn[1:]), number(free)))
    return table(columns, rows, width)


def _shrunk(found: Estimate, width: int) -> Table:
    columns = (
        Column("with half of", least=14), Column("holds", right=True), Column("overflow p50"), Column("p95"),
        Column("p99"),
    )  # fmt: skip
    rows = []
    for shrunk in found.shrunk[:_SHRUNK]:
        firsts = (f"{found.unit} {turn}" if turn is not None else "none" for turn in shrunk.first_over)
        rows.append((visible(shrunk.name), number(shrunk.tokens), *firsts))
    return table(columns, rows, width)


def _share(tokens: int, cap: int) -> str:
    return share(tokens, cap, fine=True)


def _flat(made: Table) -> Iterator[str]:
    yield from made.head
    yield from (line for row in made.rows for line in row)


def objects(found: Estimate) -> Iterator[dict[str, Any]]:
    """`budget`, then a line for each `part`, each `budget_turn`, and each part that helps when `shrunk`."""
    base = found.ground
    yield {
        "type": "budget",
        "version": 1,
        "plan": found.name,
        "model": found.plan.model.name,
        "provider": found.plan.model.provider,
        "cap": found.cap,
        "window": base.room.window,
        "reserve": base.room.reserve,
        "max_input": base.room.max_input,
        "limits_from": base.limits_from,
        "encoding": base.encoding,
        "encoding_known": base.exact,
        "assumed": base.assumed or None,
        "policy": found.plan.policy,
        "seed": found.plan.seed,
        "runs": found.plan.runs,
        "unit": found.unit,
        "start": _start(found),
        "runs_to_compaction": found.acted,
        "runs_under_policy": found.runs,
        "total": {level: found.total(level) for level in ("p50", "p95", "p99")},
        "first_overflow": found.first_wanted._asdict(),
        "first_overflow_between": found.first_between._asdict(),
        "first_compaction": found.first_acted._asdict() if found.acted else None,
        "first_still_over": found.first_over._asdict() if found.runs else None,
        "left_out_first": [left._asdict() for left in found.left_out],
        "cost": _bill(found),
    }
    for part in found.parts:
        yield {
            "type": "part",
            "name": part.part.name,
            "kind": part.part.kind,
            "segment": part.part.where,
            "server": part.part.server,
            "method": part.method,
            "tokens": {"p50": part.p50, "p95": part.p95, "p99": part.p99},
            "share": part.p95 / found.cap if found.cap else None,
            "pieces": [piece._asdict() for piece in part.pieces],
        }
    for turn in found.turns:
        levels = {"p50": turn.p50, "p95": turn.p95, "p99": turn.p99}
        free = {level: found.cap - tokens for level, tokens in levels.items()}
        yield {"type": "budget_turn", "turn": turn.turn, "wanted": levels, "free": free}
    for shrunk in found.shrunk:
        yield {
            "type": "shrunk",
            "name": shrunk.name,
            "tokens": shrunk.tokens,
            "kept": 0.5,
            "first_overflow": shrunk.first_over._asdict(),
        }


def finding_object(finding: Finding) -> dict[str, Any]:
    """One finding of the gate."""
    return {"type": "budget_finding", **finding._asdict()}


def check_object(findings: list[Finding]) -> dict[str, Any]:
    """The gate's verdict, its last line."""
    failed = sum(finding.level == "error" for finding in findings)
    return {"type": "check", "passed": not failed, "failed": failed, "notes": len(findings) - failed}


def _start(found: Estimate) -> dict[str, Any] | None:
    start = found.plan.start
    if start is None:
        return None
    return {"trace": start.trace, "turn": start.turn, "tokens": found.start_tokens}


def _bill(found: Estimate) -> dict[str, Any] | None:
    bill = found.bill
    if bill is None:
        return None
    names = ("p50", "p95", "p99", "per_turn", "uncached")
    return {
        "currency": "USD",
        **{name: _text(getattr(bill, name)) for name in names},
        "tokens": tokens_object(bill.tokens),
        "prices_from": bill.source,
        "notes": list(bill.notes),
    }


def _text(amount: Decimal) -> str:
    return f"{amount.normalize():f}"


_MARKDOWN: Final = re.compile(r"([\\`*_{}\[\]()#+!|~@-])")
_KEYS: Final = {
    "total-limit": "total",
    "headroom-limit": "headroom",
    "overflow-limit": "overflow_turn",
    "cost-limit": "cost_per_session",
}
"""Where a plan says what these rules demand."""


def rules_held(bounds: Bounds, *, against: bool) -> list[str]:
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
