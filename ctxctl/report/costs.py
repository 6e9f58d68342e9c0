"""What a session cost, and what its runtime says that it cost, in plain text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, Final

import msgspec

from ctxctl.analysis.costs import Costs, DoubtedSums, SpentOn, StatedSums, StepCost, stated_of
from ctxctl.model.addresses import prefix
from ctxctl.model.money import Money, Tokens
from ctxctl.report.bill_notes import (
    doubted_lines,
    miss_cell,
    miss_object,
    misses_object,
    misses_text,
    with_mark,
)
from ctxctl.report.catalogue import catalogue_object
from ctxctl.report.jsonout import exact, money_object, rates_object, tokens_object
from ctxctl.report.tables import Column, labelled, table
from ctxctl.session.believed_bill import replaced_parts
from ctxctl.text import visible
from ctxctl.wording import AT_LEAST, dollars, number, plural, share, signed_share

TOP_BREAKS = 5


def address(cost: StepCost) -> str:
    """Where the step is: `turn.step`, with its thread where that is not the main one."""
    step = cost.step
    return f"{visible(prefix(step.thread))}{step.turn}.{step.step}"


def step_row(cost: StepCost) -> tuple[str, ...]:
    """One step as cells: what is kept of it for the table."""
    bill, parts = cost.believed_tokens, replaced_parts(cost.step.usage)
    tokens: tuple[str, ...] = ("-",) * 4
    if bill is not None:
        plain = bill.input + bill.audio_input + bill.image_input
        kinds = (plain, bill.cached + bill.audio_cached, bill.written + bill.written_1h, bill.answer)
        tokens = tuple(number(n) for n in kinds)
    if bill is not None and parts:
        tokens = (
            with_mark(tokens[0], "input" in parts),
            *tokens[1:3],
            with_mark(tokens[3], "output" in parts),
        )
    by = cost.step.cache.broken_by
    broke = by is not None and cost.broken is not None
    return (
        address(cost), *tokens, _lower(with_mark(dollars(_total(cost.believed)), bool(parts)), cost),
        dollars(_total(cost.counted)),
        dollars(cost.broken) if broke else "", visible(by.name) if by is not None and broke else "",
        miss_cell(cost),
    )  # fmt: skip


def _lower(text: str, cost: StepCost) -> str:
    return f"{AT_LEAST}{text}" if cost.not_priced and cost.believed is not None else text


def steps_table(rows: Sequence[tuple[str, ...]], width: int) -> Iterator[str]:
    """One line a step, made by `step_row`."""
    columns: tuple[Column, ...] = (
        Column("step"), Column("input", right=True), Column("cached", right=True),
        Column("written", right=True), Column("output", right=True), Column("billed", right=True),
        Column("counted", right=True), Column("break", right=True), Column("broken by", least=8),
        Column("missed"),
    )  # fmt: skip
    if not any(row[-1] for row in rows):
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    listed = table(columns, rows, width)
    yield from listed.head
    yield from (line for lines in listed.rows for line in lines)


def spent_table(
    title: str, spent: Sequence[SpentOn], context: Decimal, width: int, top: int
) -> Iterator[str]:
    """What went on what, the dearest first; the rest in one line, so that the column adds up."""
    columns = (
        Column(title, least=16), Column("steps", right=True), Column("tokens", right=True),
        Column("cost", right=True), Column("share", right=True),
    )  # fmt: skip
    rows = [_spent_row(visible(s.name), number(s.steps), s, context) for s in spent[:top]]
    rest = spent[top:]
    if rest:
        whole = SpentOn("", 0, sum(s.tokens for s in rest), sum((s.money for s in rest), Decimal(0)), 0)
        rows.append(_spent_row(f"({plural(len(rest), 'other')})", "", whole, context))
    listed = table(columns, rows, width)
    yield from listed.head
    yield from (line for lines in listed.rows for line in lines)


def _spent_row(name: str, steps: str, spent: SpentOn, context: Decimal) -> tuple[str, ...]:
    return (name, steps, number(spent.tokens), dollars(spent.money), share(spent.money, context, fine=True))


def summary(costs: Costs, breaks: Sequence[StepCost], width: int) -> Iterator[str]:
    """The sums, each with what it rests on."""
    for label, text in _facts(costs):
        yield from labelled(label, text, width, tab=12)
    if breaks:
        yield ""
        columns = (
            Column("dearest cache breaks"),
            Column("broken by", least=12),
            Column("how"),
            Column("cost", right=True),
        )
        rows = []
        for cost in breaks[:TOP_BREAKS]:
            by = cost.step.cache.broken_by
            assert by is not None
            rows.append((address(cost), visible(by.name), by.status, dollars(cost.broken)))
        listed = table(columns, rows, width)
        yield from listed.head
        yield from (line for lines in listed.rows for line in lines)


def _facts(costs: Costs) -> Iterator[tuple[str, str]]:
    reported = costs.steps - costs.unreported
    whole = plural(costs.steps, "step")
    known = bool(costs.sources)
    if reported:
        money = _spread(costs.billed, costs.at_least) if known else "not priced"
        yield "billed", f"{money}; {_of(costs.billed_tokens)}; {reported:,} of {whole}"
        if costs.not_priced:
            listed = ", ".join(_named(name, n) for name, n in costs.not_priced.items())
            yield "not priced", f"{listed}: no price is listed; the sums are lower bounds"
        paid = ", ".join(_named(n, count) for n, count in costs.units.items() if n not in costs.not_priced)
        if paid:
            yield "tool calls", f"{paid}; {dollars(costs.billed.units)}"
    yield from (("stated", line) for line in stated_lines(costs.stated, costs.steps))
    doubted = costs.doubted
    if doubted.requests or (costs.unreported and costs.sent_tokens.context):
        money = with_mark(_spread(costs.sent), True) if known else "not priced"
        how = ["what of a bill cannot be true as counted"] if doubted.requests else []
        if costs.unreported:
            how.append(f"{plural(costs.unreported, 'request')} without a bill at the expected size")
        yield "priced as", f"{money}; {_of(costs.sent_tokens)}: {', '.join(how)}"
    yield from (("in doubt", line) for line in doubted_lines(doubted))
    if costs.unreported:
        yield "missing", f"{plural(costs.unreported, 'step')} without reported usage"
    money = _spread(costs.counted) if known else "not priced"
    billed, counted = costs.compared
    part = f" ({share(counted, billed, fine=True)} of it)" if billed else ""
    yield "recorded", f"{money}{part}; {_of(costs.counted_tokens)}: the content that the trace holds"
    if costs.breaks:
        yield "breaks", f"{dollars(costs.broken)} for {plural(costs.breaks, 'cache break')}; derived"
    if costs.misses.whole.number:
        yield "misses", misses_text(costs)
    if costs.saved:
        yield "saved", f"{dollars(costs.saved)} by not sending again what the model had; derived"
    for why, steps in costs.unpriced.items():
        yield "unpriced", f"{plural(steps, 'step')}: {visible(why)}"
    sources = ", ".join(f"{name} ({plural(steps, 'step')})" for name, steps in costs.sources.items())
    yield "prices", sources or "none are known"
    for what, steps in costs.assumed.items():
        yield "assumed", f"{plural(steps, 'step')}: {what}"
    for note in costs.notes:
        yield "assumed", visible(note)


def _total(money: Money | None) -> Decimal | None:
    return None if money is None else money.total


_PARTS: Final = {
    "input": "input",
    "cached": "cached",
    "written": "written",
    "written_1h": "written for 1 h",
    "audio_input": "audio input",
    "audio_cached": "audio cached",
    "image_input": "image input",
    "output": "output",
    "audio_output": "audio output",
    "image_output": "image output",
    "reasoning": "reasoning",
    "units": "tool calls",
    "further": "further samplings",
}
"""Parts of a bill, as they are called."""


def _spread(money: Money, at_least: bool = False) -> str:
    parts = ((name, getattr(money, key)) for key, name in _PARTS.items())
    spent = ", ".join(f"{name} {dollars(amount)}" for name, amount in parts if amount)
    mark = f"{AT_LEAST} " if at_least else ""
    return f"{mark}{dollars(money.total)}" + (f" ({spent})" if spent else "")


def _of(tokens: Tokens) -> str:
    parts = ((name, getattr(tokens, key, 0)) for key, name in _PARTS.items())
    return ", ".join(f"{count:,} {name}" for name, count in parts if count) or "no tokens"


_CALLS: Final = {
    "web_search": ("web search", "web searches"),
    "web_fetch": ("web fetch", "web fetches"),
    "file_search": ("file search", "file searches"),
    "code_execution": ("code execution", "code executions"),
    "grounding_query": ("grounding query", "grounding queries"),
    "audio_input": ("token of audio input", "tokens of audio input (priced as text)"),
    "audio_cached": ("token of cached audio", "tokens of cached audio (priced as text)"),
    "audio_output": ("token of audio output", "tokens of audio output (priced as text)"),
}


def _named(name: str, count: int) -> str:
    one, many = _CALLS.get(name, (f"{name} call", f"{name} calls"))
    return visible(plural(count, one, many))


def step_object(cost: StepCost) -> dict[str, Any]:
    """One step as JSON; money as text with all its digits."""
    step, by = cost.step, cost.step.cache.broken_by
    return {
        "type": "step_cost",
        "session": step.session,
        "thread": step.thread,
        "turn": step.turn,
        "step": step.step,
        "model": step.model,
        "billed_tokens": tokens_object(cost.billed_tokens),
        "counted_tokens": tokens_object(cost.counted_tokens),
        "usd_per_mtok": rates_object(cost.priced.rates),
        "prices_from": cost.priced.source or None,
        "note": cost.priced.note,
        "billed": money_object(cost.billed),
        "counted": money_object(cost.counted),
        "cache_break": exact(cost.broken),
        "broken_by": by.name if by is not None and cost.broken is not None else None,
        "miss": miss_object(cost),
        "saved": exact(cost.saved),
        "assumed": list(cost.assumed),
        "sent_tokens": tokens_object(cost.sent_tokens),
        "sent": money_object(cost.sent),
        "units": dict(cost.units),
        "not_priced": dict(cost.not_priced),
        "stated": exact(stated_of(step)),
        **_believed(cost),
    }


def _believed(cost: StepCost) -> dict[str, Any]:
    """The bill with what cannot be true of it as counted; nothing where all of it can."""
    usage = cost.step.usage
    if usage is None or not usage.doubts:
        return {}
    return {
        "doubts": [msgspec.structs.asdict(doubt) for doubt in usage.doubts],
        "priced_as_counted": list(replaced_parts(usage)) if cost.billed_tokens is not None else [],
        "believed_tokens": tokens_object(cost.believed_tokens),
        "believed": money_object(cost.believed),
    }


def spent_object(by: str, spent: SpentOn) -> dict[str, Any]:
    """One thing that money went on."""
    return {
        "type": "spent",
        "by": by,
        "name": spent.name,
        "steps": spent.steps,
        "tokens": spent.tokens,
        "cost": exact(spent.money),
        "unpriced_tokens": spent.unpriced,
    }


def sum_object(costs: Costs) -> dict[str, Any]:
    """The sums."""
    return {
        "type": "cost",
        "currency": "USD",
        "steps": costs.steps,
        "unreported_steps": costs.unreported,
        "unpriced_steps": dict(costs.unpriced),
        "billed_tokens": tokens_object(costs.billed_tokens),
        "counted_tokens": tokens_object(costs.counted_tokens),
        "billed": money_object(costs.billed),
        "counted": money_object(costs.counted),
        "difference": exact(costs.compared[1] - costs.compared[0]),
        "cache_breaks": exact(costs.broken),
        "cache_misses": misses_object(costs),
        "saved": exact(costs.saved),
        "prices_from": dict(costs.sources),
        "assumed": dict(costs.assumed),
        "notes": list(costs.notes),
        "sent_tokens": tokens_object(costs.sent_tokens),
        "sent": money_object(costs.sent),
        "unbilled": exact(costs.unbilled),
        "doubted": _doubted(costs.doubted),
        "units": dict(costs.units),
        "not_priced": dict(costs.not_priced),
        "stated": stated_object(costs.stated),
        "lower_bound": costs.at_least,
        "as_of": costs.as_of,
        "catalogue": catalogue_object(),
    }


def _doubted(sums: DoubtedSums) -> dict[str, Any] | None:
    """What of all bills cannot be true, and the sums with that as counted; None where all of it can."""
    if not sums.requests and not sums.repeated:
        return None
    return {
        "requests": sums.requests,
        "repeated_requests": sums.repeated,
        "parts": {part: bills._asdict() for part, bills in sums.parts.items()},
        "believed_tokens": tokens_object(sums.tokens),
        "believed": money_object(sums.money),
    }


RUNS = 5
"""Runs whose cost is listed."""


def stated_lines(stated: StatedSums, steps: int) -> Iterator[str]:
    """Sentences for people; none where nothing states a cost."""
    if stated.requests:
        yield (
            f"{dollars(stated.usd)} by the runtime's own account, for {stated.requests:,} of"
            f" {plural(steps, 'step')}; {_beside(stated)}"
        )
    for run in stated.runs[:RUNS]:
        step = run.step
        where = f"{visible(prefix(step.thread))}{step.turn}.{step.step}"
        yield f"{dollars(run.usd)} in all by the runtime's own account, as of {where}"
    if len(stated.runs) > RUNS:
        yield f"and {plural(len(stated.runs) - RUNS, 'other')} (--json lists them)"


def _beside(stated: StatedSums) -> str:
    if stated.unpriced == stated.requests:
        return "the table has no price for them"
    priced = f"the table's prices come to {dollars(stated.table)}"
    if stated.unpriced:
        return f"{priced}, without {stated.unpriced:,} that have none"
    return f"{priced} for the same{_off(stated.usd, stated.table)}"


def _off(said: Decimal, table: Decimal) -> str:
    if not table:
        return ""
    share = (said - table) / table
    return f" (stated {signed_share(share)})" if abs(share) >= Decimal("0.0005") else ""


def stated_object(stated: StatedSums) -> dict[str, Any] | None:
    """The sums as JSON, money as text with all its digits; None where nothing states a cost."""
    if not stated.requests and not stated.runs:
        return None
    return {
        "requests": stated.requests,
        "usd": exact(stated.usd) if stated.requests else None,
        "table_usd": exact(stated.table) if stated.requests > stated.unpriced else None,
        "unpriced_requests": stated.unpriced,
        "runs": [
            {
                "session": run.step.session,
                "thread": run.step.thread,
                "turn": run.step.turn,
                "step": run.step.step,
                "usd": exact(run.usd),
            }
            for run in stated.runs
        ],
    }
