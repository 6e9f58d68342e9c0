"""What a session cost, and what its runtime says that it cost, in plain text and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any

from ctxctl.analysis.costs import Costs
from ctxctl.analysis.request_cost import StepCost, stated_of
from ctxctl.analysis.spent import SpentOn
from ctxctl.item_names import NAMELESS, ItemNames
from ctxctl.model.addresses import prefix
from ctxctl.model.cost_sums import CostSums
from ctxctl.model.money import Money
from ctxctl.report.bill_notes import (
    miss_cell,
    miss_object,
    with_mark,
)
from ctxctl.report.catalogue import catalogue_object
from ctxctl.report.cost_sums import cost_facts, sums_fields
from ctxctl.report.jsonout import exact, money_object, rates_object, tokens_object
from ctxctl.report.tables import Column, labelled, table
from ctxctl.session.item_words import broken_name
from ctxctl.text import visible
from ctxctl.wording import AT_LEAST, NOT_KNOWN, cost_text, dollars, number, plural, share


def address(cost: StepCost) -> str:
    """Where the step is: `turn.step`, with its thread where that is not the main one."""
    step = cost.step
    return f"{visible(prefix(step.thread))}{step.turn}.{step.step}"


def step_row(cost: StepCost, names: ItemNames = NAMELESS) -> tuple[str, ...]:
    """One step as cells: what is kept of it for the table."""
    bill, partial = cost.believed_tokens, cost.step.has_partial_output
    tokens: tuple[str, ...] = ("-",) * 4
    if bill is not None:
        plain = bill.input + bill.audio_input + bill.image_input
        kinds = (plain, bill.cached + bill.audio_cached, bill.written + bill.written_1h, bill.answer)
        tokens = tuple(number(n) for n in kinds)
        tokens = (*tokens[:3], with_mark(tokens[3], partial))
    broke = cost.broken is not None
    return (
        address(cost), *tokens, _billed(cost, partial),
        dollars(_total(cost.counted)),
        dollars(cost.broken) if broke else "", broken_name(cost.step, names) if broke else "",
        miss_cell(cost),
    )  # fmt: skip


def _billed(cost: StepCost, is_counted: bool) -> str:
    return cost_text(_total(cost.believed), counted=is_counted, least=bool(cost.not_priced))


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


def spent_table(title: str, spent: Sequence[SpentOn], width: int, top: int) -> Iterator[str]:
    """What went on what, the dearest first; the rest in one line, so that the column adds up."""
    context = sum((s.money for s in spent), Decimal(0))
    columns = (
        Column(title, least=16), Column("steps", right=True), Column("tokens", right=True),
        Column("cost", right=True), Column("share", right=True),
    )  # fmt: skip
    rows = [_spent_row(visible(s.name), number(s.steps), s, context) for s in spent[:top]]
    rest = spent[top:]
    if rest:
        money, unpriced = sum((s.money for s in rest), Decimal(0)), sum(s.unpriced for s in rest)
        least = any(s.is_least for s in rest)
        whole = SpentOn("", 0, sum(s.tokens for s in rest), money, unpriced, least)
        rows.append(_spent_row(f"({plural(len(rest), 'other')})", "", whole, context))
    listed = table(columns, rows, width)
    yield from listed.head
    yield from (line for lines in listed.rows for line in lines)


def _spent_row(name: str, steps: str, spent: SpentOn, context: Decimal) -> tuple[str, ...]:
    cost, part = spent_money(spent), share(spent.money, context, fine=True)
    return (name, steps, spent_tokens(spent), cost, NOT_KNOWN if cost == NOT_KNOWN else part)


def spent_tokens(spent: SpentOn) -> str:
    """How much was sent of a thing; `≥` where a part of it could not be counted, `-` where nothing could."""
    if spent.is_unknown:
        return NOT_KNOWN
    return AT_LEAST * spent.is_least + number(spent.tokens)


def spent_money(spent: SpentOn) -> str:
    """What that cost, with the same signs; `-` also where no price is known."""
    if spent.is_unknown or (spent.unpriced and not spent.money):
        return NOT_KNOWN
    said = dollars(spent.money)
    if not spent.is_least:
        return said
    return f"{AT_LEAST}{said}" if said.startswith("$") else NOT_KNOWN  # at least next to nothing says nothing


def summary(costs: CostSums, breaks: Iterable[tuple[StepCost, str]], width: int) -> Iterator[str]:
    """The sums, each with what it rests on; the costliest cache breaks, each with what broke it."""
    for label, text in cost_facts(costs):
        yield from labelled(label, text, width, tab=12)
    rows = []
    for cost, name in breaks:
        by = cost.step.cache.broken_by
        rows.append((address(cost), name, "" if by is None else by.status, dollars(cost.broken)))
    if rows:
        yield ""
        columns = (
            Column("costliest cache breaks"),
            Column("broken by", least=12),
            Column("how"),
            Column("cost", right=True),
        )
        listed = table(columns, rows, width)
        yield from listed.head
        yield from (line for lines in listed.rows for line in lines)


def _total(money: Money | None) -> Decimal | None:
    return None if money is None else money.total


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
        "sent_tokens": tokens_object(cost.sent_tokens if cost.is_sized else None),
        "sent": money_object(cost.sent if cost.is_sized else None),
        "units": dict(cost.units),
        "not_priced": dict(cost.not_priced),
        "stated": exact(stated_of(step)),
        **_believed(cost),
    }


def _believed(cost: StepCost) -> dict[str, Any]:
    """The bill with a partial output as counted; nothing where the output is whole."""
    if not cost.step.has_partial_output:
        return {}
    return {
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
        "tokens": None if spent.is_unknown else spent.tokens,
        "cost": None if spent.is_unknown else exact(spent.money),
        "unpriced_tokens": spent.unpriced,
        "lower_bound": spent.is_least,
    }


def sum_object(costs: Costs) -> dict[str, Any]:
    """The sums."""
    return {
        "type": "cost",
        "currency": "USD",
        **sums_fields(costs),
        "as_of": costs.as_of,
        "catalogue": catalogue_object(),
    }
