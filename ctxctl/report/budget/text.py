"""An estimate in plain text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctxctl.budget.check import Finding
from ctxctl.budget.estimate import Estimate
from ctxctl.budget.growth import FirstTurn
from ctxctl.model.fitting import Room
from ctxctl.report.tables import Column, Table, labelled, number, plural, table
from ctxctl.text import visible

_TURNS = 12
_SHRUNK = 6
_TAB = 14


def lines(found: Estimate, width: int) -> Iterator[str]:
    """The whole report."""
    for label, text in _head(found):
        yield from labelled(label, visible(text), width, tab=_TAB)
    yield ""
    yield from _flat(_parts(found, width))
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
        parts.append(f"window {room.window:,} - reserve {room.reserve or 0:,}")
    return f"{room.cap:,} tokens: {' or '.join(parts)}{', the smaller' if len(parts) > 1 else ''}"


def turn_of(turn: int | None, turns: int) -> str:
    """A first turn, or that there is none."""
    return f"turn {turn}" if turn is not None else f"none in {plural(turns, 'turn')}"


def _head(found: Estimate) -> Iterator[tuple[str, str]]:
    plan, base = found.plan, found.ground
    yield "plan", found.name
    served = f" ({plan.model.provider})" if plan.model.provider else ""
    yield "model", f"{plan.model.name or 'none is named'}{served}"
    yield "cap", f"{cap_of(base.room)}. {base.limits_from}"
    counted = "exact" if base.exact else "an estimate"
    yield "tokens", base.assumed or f"{base.encoding}, {counted}"
    talk = plan.conversation
    drawn = f"{plural(plan.runs, 'session')} of {plural(talk.turns, 'turn')}, drawn with seed {plan.seed}"
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
    rows.append(
        ("all parts", "", number(found.total("p50")), number(found.total("p95")),
         _share(found.total("p95"), found.cap), "", "")
    )  # fmt: skip
    return table(columns, rows, width)


def _verdicts(found: Estimate) -> Iterator[tuple[str, str]]:
    turns, first = len(found.turns), found.turns[0].p95
    free = found.cap - first
    fits = f"fits, {free:,} tokens free" if free >= 0 else f"does not fit, {-free:,} tokens over"
    yield "first turn", f"{fits} at p95"
    yield "overflow", f"{_firsts(found.first_wanted, turns)}: what is wanted is over the cap"
    if found.first_wanted.p99 is not None or found.first_acted.p99 is not None:
        acts = _firsts(found.first_acted, turns, found.acted)
        yield "compaction", f"{acts}: {found.plan.policy} acts{_of(found, found.acted)}"
        yield "still over", f"{_firsts(found.first_over, turns, found.runs)}{_of(found, found.runs)}"
    if found.left_out:
        told = (f"{left.name} ({left.tokens:,} tokens)" for left in found.left_out)
        yield "leaves first", ", ".join(told)
    bill = found.bill
    if bill is None:
        yield "cost", f"not known. {found.unpriced}"
        return
    each = f"${bill.per_turn:,.4f} a turn{_of(found, found.runs)}"
    yield "cost", f"${bill.p50:,.4f} a session at p50, ${bill.p95:,.4f} at p95; {each}"
    told = (f"{count:,} {name}" for name, count in bill.tokens._asdict().items() if count)
    yield "billed", f"{', '.join(told)} tokens a session; without a cache ${bill.uncached:,.4f}"
    yield "prices", f"{bill.source}. {' '.join(bill.notes)}"


def _firsts(first: FirstTurn, turns: int, runs: int = 1) -> str:
    if not runs:
        return "not known: a session is too long to be taken to its end"
    if first.p99 is None:
        return turn_of(None, turns)
    return ", ".join(f"{level} {turn_of(turn, turns)}" for level, turn in first._asdict().items())


def _of(found: Estimate, runs: int) -> str:
    """How many sessions that is about, where it is not about all."""
    return f", of {plural(runs, 'session')}" if 0 < runs < found.plan.runs else ""


def _turns(found: Estimate, width: int) -> Table:
    """Some turns: the first and the last, and as many in between."""
    columns = (
        Column("turn", right=True), Column("wanted p50", right=True), Column("p95", right=True),
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
        firsts = (f"turn {turn}" if turn is not None else "none" for turn in shrunk.first_over)
        rows.append((visible(shrunk.name), number(shrunk.tokens), *firsts))
    return table(columns, rows, width)


def _share(tokens: int, cap: int) -> str:
    return f"{tokens / cap:.1%}" if cap else "-"


def _flat(made: Table) -> Iterator[str]:
    yield from made.head
    yield from (line for row in made.rows for line in row)
