"""A what-if beside the record, turn by turn, as text and as JSON: the table, its sums, where the two part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any, Final, get_args

from ctxctl.analysis.comparison import Comparison
from ctxctl.model.addresses import prefix
from ctxctl.model.turnpairs import TurnPair, TurnSide
from ctxctl.model.vocab import UsedMethod
from ctxctl.model.whatif import Pair, Totals
from ctxctl.report import jsonout
from ctxctl.report.heading import Header
from ctxctl.report.paint import Paint
from ctxctl.report.step import methods
from ctxctl.report.tables import Column, fits, labelled, table
from ctxctl.session.edits import NOT_KNOWN, drops_text, replaced_text
from ctxctl.text import visible
from ctxctl.wording import cost_text, dollars, number, plural, signed, signed_share

_TAB: Final = 12
_UNKNOWN: Final = "unknown"


def heading(header: Header, comparison: Comparison, width: int) -> Iterator[str]:
    """What both sides are replayed under, and what to know before the numbers are read."""
    supposed = comparison.supposed
    params, edited = supposed.params, supposed.params.edited
    facts = [
        ("trace", visible(header.trace)),
        ("format", visible(header.format)),
        ("recorded", _under(header.policy, header.model, header.encoding)),
        ("simulated", _under(params.policy, params.model, params.encoding) + _limits(comparison)),
    ]
    if edited.drops:
        facts.append(("dropped", visible(drops_text(edited))))
    facts += [("set", visible(replaced_text(one))) for one in edited.texts]
    if edited.given:
        facts.append(("not known", NOT_KNOWN))
    facts += [("note", visible(note)) for note in supposed.notes]
    facts.append(("target", visible(header.target)))
    if header.thread is not None:
        facts.append(("thread", f"only {visible(header.thread)}"))
    if header.turn is not None:
        facts.append(("turn", f"only {visible(header.turn)}"))
    for label, text in facts:
        yield from labelled(label, text, width, tab=_TAB)


def _under(policy: str, model: str | None, encoding: str) -> str:
    named = f", model {visible(model)}" if model else ""
    return f"policy {visible(policy)}{named}, encoding {visible(encoding)}"


def _limits(comparison: Comparison) -> str:
    limits = comparison.supposed.limits
    named = (("window", limits.window), ("reserve", limits.reserve), ("max input", limits.max_input))
    return "".join(f", {name} {tokens:,}" for name, tokens in named if tokens is not None)


# The table --------------------------------------------------------------------------------------------------

_COLUMNS: Final[Sequence[tuple[Column, Callable[[TurnSide], str], bool]]] = (
    (Column("sent", right=True), lambda side: number(side.used if side.is_known else None), True),
    (Column("over", right=True), lambda side: _none_if_zero(side.over), False),
    (Column("omitted", right=True), lambda side: _none_if_zero(side.omitted), False),
    (Column("cut", right=True), lambda side: _none_if_zero(side.truncated), False),
    (Column("compact.", right=True), lambda side: _none_if_zero(side.compactions), False),
    (Column("breaks", right=True), lambda side: _none_if_zero(side.breaks), False),
    (Column("broken tokens", right=True), lambda side: _none_if_zero(side.lost), False),
    (
        Column("cost", right=True),
        lambda side: cost_of(side.cost, side.unpriced) if side.is_known else _UNKNOWN,
        True,
    ),
)
"""By column, what stands in it, and whether it stands there also where nothing happened."""
_GIVE_WAY: Final = ("broken tokens", "cut", "compact.", "over")
"""Columns that give way on a narrow line, the first first; the sums have them all the same."""


def _none_if_zero(n: int | None) -> str:
    return "0" if not n else number(n)


def cost_of(cost: Decimal, unpriced: int) -> str:
    """Money; `unknown` where no price is known, and a sign where one is not known of every step."""
    return cost_text(cost, counted=False, least=bool(unpriced)) if cost or not unpriced else _UNKNOWN


def both(recorded: str, simulated: str) -> str:
    """Two values beside each other; a single one where they are equal."""
    return recorded if recorded == simulated else f"{recorded} -> {simulated}"


def turn_cells(turn: TurnPair, address: str) -> tuple[str, ...]:
    """One turn as cells: what is kept of it for the table."""
    cells = [address]
    for _, of, always in _COLUMNS:
        text = both(of(turn.recorded), of(turn.simulated))
        cells.append(text if always or text != "0" else "")
    return tuple(cells)


def turn_table(rows: Sequence[tuple[str, ...]], width: int, paint: Paint) -> Iterator[str]:
    """A line for each turn; where the two sides are alike, their value stands once."""
    columns = [Column("turn"), *(column for column, _, _ in _COLUMNS)]
    for name in _GIVE_WAY:
        if fits(columns, rows, width):
            break
        at = next(n for n, column in enumerate(columns) if column.title == name)
        del columns[at]
        rows = [row[:at] + row[at + 1 :] for row in rows]
    listed = table(columns, rows, width)
    yield from (paint("head", line) for line in listed.head)
    yield from (line for lines in listed.rows for line in lines)


class Addresses:
    """Turns as addresses of a trace: the session and the thread only where they are needed."""

    def __init__(self) -> None:
        self._first: str | None = None
        self._begun = False

    def of(self, place: TurnPair | Pair) -> str:
        """The address of a turn."""
        if not self._begun:
            self._begun, self._first = True, place.session
        session = place.session if place.session != self._first else None
        return f"{visible(prefix(place.thread, session))}{place.turn}"


# The sums ---------------------------------------------------------------------------------------------------


def sums(comparison: Comparison, addresses: Addresses, width: int, paint: Paint) -> Iterator[str]:
    """Both sides over all turns, how they differ, and where they part."""
    recorded, simulated = comparison.recorded, comparison.simulated
    yield ""
    yield paint("head", "all turns")
    facts = [
        ("recorded", _sum(recorded, simulated=False)),
        ("simulated", _sum(simulated, simulated=True)),
        ("difference", _difference(recorded, simulated)),
        ("differs", _differs(comparison, addresses)),
        ("fits", f"recorded: {_verdict(recorded, addresses, simulated=False)}"),
        ("", f"simulated: {_verdict(simulated, addresses, simulated=True)}"),
        ("sizes", both(known_by(recorded), known_by(simulated))),
        ("counted", both(*(methods(side.by_method) or "nothing" for side in (recorded, simulated)))),
        ("prices", _prices(comparison)),
    ]
    facts += [("note", note) for note in _notes(comparison)]
    for label, text in facts:
        yield from labelled(label, text, width, indent=2, tab=_TAB)


def _sum(side: Totals, *, simulated: bool) -> str:
    known, requests = side.is_known(simulated=simulated), plural(side.steps, "request")
    parts = [
        f"{plural(side.sent, 'token')} in {requests}" if known else f"{requests} of unknown size",
        f"{side.omitted:,} omitted",
        f"{side.truncated:,} cut",
        plural(side.compactions, "compaction"),
        f"{plural(side.breaks, 'cache break')} ({plural(side.lost, 'token')} behind)",
        f"context {cost_of(side.cost, side.unpriced) if known else _UNKNOWN}",
    ]
    return ", ".join(parts)


def known_by(side: Totals) -> str:
    """How it is known what the steps of a side sent."""
    said = {"reported": "billed", "expected": "expected", "recorded": "only what is recorded"}
    ways = [f"{said[name]} at {plural(n, 'step')}" for name, n in side.known_by.items()]
    return ", ".join(ways) or "none"


def _difference(recorded: Totals, simulated: Totals) -> str:
    if not (recorded.is_known(simulated=False) and simulated.is_known(simulated=True)):
        return "not known"
    tokens = simulated.sent - recorded.sent
    text = f"{signed(tokens)} tokens"
    if recorded.sent:
        text += f" ({signed_share(tokens, recorded.sent)})"
    if recorded.unpriced or simulated.unpriced:
        return text + ", cost unknown"
    money = simulated.cost - recorded.cost
    share = f" ({signed_share(money, recorded.cost)})" if recorded.cost else ""
    return f"{text}, {dollars(money, signed=True)}{share}"


def _differs(comparison: Comparison, addresses: Addresses) -> str:
    first = comparison.first_differing
    if first is None:
        return "nowhere: the same is sent at every step"
    was, now = first.recorded.used, first.simulated.used
    how = f"{was:,} -> {now:,} tokens" if was != now else f"{was:,} tokens in another form"
    return f"first at {addresses.of(first)}.{first.step}: {how}"


def _verdict(side: Totals, addresses: Addresses, *, simulated: bool) -> str:
    """Which steps do not fit."""
    first = side.first_over
    if first is None:
        if not side.is_known(simulated=simulated):
            return "what was sent is not known, so ctxctl cannot tell"
        if side.unknown == side.steps:
            return "no limit is known, so ctxctl cannot tell"
        known = f"; of {plural(side.unknown, 'step')} no cap is known" if side.unknown else ""
        alone = side.known_by.get("recorded", 0)
        of = f"; of {plural(alone, 'step')} only what is recorded is known" if alone else ""
        return f"no step is over{of}{known}"
    over = (first.simulated if simulated else first.recorded).over or 0
    return (
        f"{side.over:,} of {plural(side.steps, 'step')} over,"
        f" the first at {addresses.of(first)}.{first.step} by {plural(over, 'token')}"
    )


def _prices(comparison: Comparison) -> str:
    sources = ", ".join(f"{name} ({plural(n, 'step')})" for name, n in comparison.prices_from.items())
    if not sources:
        unsized = set(comparison.recorded.known_by) == {"recorded"}
        none = "not asked for: no bill tells how much was sent besides the recorded content"
        return none if unsized else "none are known"
    whose = "the supposed model's on the simulated side" if comparison.supposed.model else "on both sides"
    return f"{sources}, {whose}; answers left out"


def _notes(comparison: Comparison) -> Iterator[str]:
    if comparison.appended:
        yield (
            "the policy only appends; the recorded requests carry the whole window each, and what they carry"
            " again is counted again"
        )
    if comparison.held:
        yield f"the recorded limit on input still decides at {plural(comparison.held, 'step')}"


def trace(header: Header, comparison: Comparison) -> dict[str, Any]:
    """The first line: the recorded side's parameters, and what is supposed in the place of the record."""
    supposed = comparison.supposed
    given = jsonout.supposed(supposed.limits, supposed.params.edited)
    return {**jsonout.trace(header), "supposed": given}


def supposition(comparison: Comparison) -> dict[str, Any]:
    """The second line: what the simulated side is replayed under."""
    supposed = comparison.supposed
    params = supposed.params
    return {
        "type": "supposition",
        "policy": params.policy,
        "model": params.model,
        "encoding": params.encoding,
        "provenance": "simulated",
        "notes": list(supposed.notes),
    }


def turn(value: TurnPair) -> dict[str, Any]:
    """One turn on both sides."""
    return {
        "type": "comparison",
        "session": value.session,
        "thread": value.thread,
        "turn": value.turn,
        "title": value.title,
        "steps": value.steps,
        "recorded": _side(value.recorded, value.steps),
        "simulated": _side(value.simulated, value.steps),
    }


def _side(side: TurnSide, steps: int) -> dict[str, Any]:
    known = side.is_known
    return {
        "used": side.used if known else None,
        "used_method": side.method,
        "recorded": side.recorded,
        "cap": side.cap,
        "free": side.free if known else None,
        "over": side.over if known or side.over else None,
        "sent": side.sent if known or side.sent else None,
        "uncounted": side.uncounted,
        **_outcome(side, steps, known=known or bool(side.sent)),
    }


def _outcome(side: TurnSide | Totals, steps: int, *, known: bool) -> dict[str, Any]:
    """What was left out, and what the cache and the money came to, of a turn or of all turns."""
    return {
        "omitted": side.omitted,
        "truncated": side.truncated,
        "compactions": side.compactions,
        "possible_prefix": side.prefix,
        "cache_breaks": side.breaks,
        "broken_tokens": side.lost,
        "context_cost": _money(side.cost) if known and side.unpriced < steps else None,
        "unpriced_steps": side.unpriced,
    }


def summary(comparison: Comparison, turns: int) -> dict[str, Any]:
    """Both sides over all turns."""
    return {
        "type": "comparison_summary",
        "currency": "USD",
        "turns": turns,
        "recorded": _totals(comparison.recorded, simulated=False),
        "simulated": _totals(comparison.simulated, simulated=True),
        "first_differing": _place(comparison.first_differing),
        "appended_steps": comparison.appended,
        "held_steps": comparison.held,
        "prices_from": dict(comparison.prices_from),
    }


def _totals(side: Totals, *, simulated: bool) -> dict[str, Any]:
    first, known = side.first_over, side.is_known(simulated=simulated)
    return {
        "steps": side.steps,
        "steps_over": side.over,
        "steps_unknown": side.unknown,
        "first_over": _place(first),
        "first_over_by": None if first is None else (first.simulated if simulated else first.recorded).over,
        "sent": side.sent if known else None,
        **_outcome(side, side.steps, known=known),
        "recorded_by_method": dict(sorted(side.by_method.items())),
        "known_by": {name: side.known_by[name] for name in get_args(UsedMethod) if name in side.known_by},
    }


def _place(pair: Pair | None) -> dict[str, Any] | None:
    if pair is None:
        return None
    return {"session": pair.session, "thread": pair.thread, "turn": pair.turn, "step": pair.step}


def _money(amount: Decimal) -> str:
    """A sum of what is known, with all its digits."""
    return f"{amount.normalize():f}" if amount else "0"
