"""An estimate in plain text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctxctl.budget.check import Finding
from ctxctl.budget.estimate import Estimate
from ctxctl.budget.growth import Between, FirstTurn
from ctxctl.labels import MINUS, dollars, number, plural, share
from ctxctl.model.fitting import Room
from ctxctl.report.tables import Column, Table, labelled, table
from ctxctl.text import visible

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
    yield "simulated", f"{drawn}; {found.runs:,} of them to the end under {plan.policy}"


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
        told = (f"{left.name} ({left.tokens:,} tokens)" for left in found.left_out)
        yield "leaves first", ", ".join(told)
    bill = found.bill
    if bill is None:
        yield "cost", f"not known. {found.unpriced}"
        return
    each = f"{dollars(bill.per_turn)} a {found.unit}{_of(found, found.runs)}"
    yield "cost", f"{dollars(bill.p50)} a session at p50, {dollars(bill.p95)} at p95; {each}"
    told = (f"{count:,} {name}" for name, count in bill.tokens._asdict().items() if count)
    yield "billed", f"{', '.join(told)} tokens a session; without a cache {dollars(bill.uncached)}"
    yield "prices", f"{bill.source}. {' '.join(bill.notes)}"


def _when(found: Estimate, first: FirstTurn, when: Between, runs: int = 1) -> str:
    """When something first happens, in as many runs."""
    if not runs:
        return "not known: a session is too long to be taken to its end"
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
