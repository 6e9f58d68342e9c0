"""Sums of costs, of one session or of many, in plain text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

from ctxctl.model.addresses import prefix
from ctxctl.model.cost_sums import IN_NO_LOG, CostSums, PartialOutputs, StatedSums, StatedTotal
from ctxctl.model.money import Money, Tokens
from ctxctl.model.terms import FIGURES, Stated
from ctxctl.report.bill_notes import misses_object, misses_text, partial_lines
from ctxctl.report.jsonout import exact, money_object, tokens_object, total_object
from ctxctl.text import visible
from ctxctl.wording import cost_text, dollars, noun, plural, share, signed_share


def cost_facts(costs: CostSums, contents: bool = True) -> Iterator[tuple[str, str]]:
    """The sums, each with what it rests on, as labels and sentences; without `contents`, by bills alone."""
    reported = costs.steps - costs.unreported
    whole = plural(costs.steps, "step")
    known = costs.is_priced
    if reported:
        money = _spread(costs.billed, costs.at_least) if known else "not priced"
        yield "billed", f"{money}; {_of(costs.billed_tokens)}; {reported:,} of {whole}"
        not_priced = [_named(name, n) for name, n in costs.not_priced.items() if name != IN_NO_LOG]
        if not_priced:
            listed = ", ".join(not_priced)
            yield "not priced", f"{listed}: no price is listed; the sums are lower bounds"
        paid = ", ".join(_named(n, count) for n, count in costs.units.items() if n not in costs.not_priced)
        if paid:
            yield "tool calls", f"{paid}; {dollars(costs.billed.units)}"
    if number := costs.not_priced.get(IN_NO_LOG):
        which = plural(number, "compaction request that is", "compaction requests that are")
        yield (
            "no log",
            f"at least {dollars(costs.sent.summaries - costs.billed.summaries)}: {which} in no log",
        )
    yield from (("stated", line) for line in stated_lines(costs.stated, costs.steps))
    partial = costs.partial_outputs
    expected = costs.unreported - costs.unsized
    if partial.requests or (expected and costs.sent_tokens.context):
        money = _spread(costs.sent, costs.at_least, True) if known else "not priced"
        how = [f"{plural(partial.requests, 'partial output')} as counted"] if partial.requests else []
        if expected:
            how.append(f"{plural(expected, 'request')} without a bill at the expected size")
        yield "estimated", f"{money}; {_of(costs.sent_tokens)}: {', '.join(how)}"
    yield from (("outputs", line) for line in partial_lines(partial))
    if costs.unreported:
        yield "missing", f"{plural(costs.unreported, 'step')} without reported usage"
    if costs.unsized:
        yield "not known", unsized_text(costs)
    yield from _content_facts(costs) if contents else _NOT_READ
    for why, steps in costs.unpriced.items():
        yield "unpriced", f"{plural(steps, 'step')}: {visible(why)}"
    sources = ", ".join(f"{name} ({plural(steps, 'step')})" for name, steps in costs.sources.items() if name)
    yield "prices", sources or "none are known"
    for what, steps in costs.assumed.items():
        yield "assumed", f"{plural(steps, 'step')}: {what}"
    for note in costs.notes:
        yield "assumed", visible(note)


_NOT_READ: Final = (("not read", "contents; --contents adds what is recorded, cache breaks and misses"),)


def _content_facts(costs: CostSums) -> Iterator[tuple[str, str]]:
    """What only a reading of the contents shows."""
    money = _spread(costs.counted) if costs.is_priced else "not priced"
    billed, counted = costs.compared
    part = f" ({share(counted, billed, fine=True)} of it)" if 0 < counted <= billed else ""
    yield "recorded", f"{money}{part}; {_of(costs.counted_tokens)}: the content that the trace holds"
    if costs.breaks:
        yield "breaks", f"{dollars(costs.broken)} for {plural(costs.breaks, 'cache break')}; derived"
    if costs.misses.whole.number:
        yield "misses", misses_text(costs)
    if costs.saved:
        yield "saved", f"{dollars(costs.saved)} by not sending again what the model had; derived"


def unsized_text(costs: CostSums) -> str:
    """What is known of requests whose size nothing tells."""
    which = plural(costs.unsized, "request")
    return (
        f"what {which} cost: no bill tells how much was sent besides the"
        f" {plural(costs.unsized_tokens, 'token')} that are recorded"
    )


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
    "further": "other models",
    "summaries": "compactions",
}
"""Parts of a bill, as they are called."""


def _spread(money: Money, at_least: bool = False, counted: bool = False) -> str:
    parts = ((name, getattr(money, key)) for key, name in _PARTS.items())
    spent = ", ".join(f"{name} {dollars(amount)}" for name, amount in parts if amount)
    whole = cost_text(money.total, counted=counted, least=at_least)
    return whole + (f" ({spent})" if spent else "")


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


def sums_fields(costs: CostSums, contents: bool = True) -> dict[str, Any]:
    """The sums as fields of a line of JSON; money is null where the price of no request is known.

    Without `contents`, what only a reading of these shows is null.
    """
    known = costs.is_priced
    return {
        "steps": costs.steps,
        "unreported_steps": costs.unreported,
        "unsized_steps": costs.unsized,
        "unpriced_steps": dict(costs.unpriced),
        "billed_tokens": tokens_object(costs.billed_tokens),
        "counted_tokens": tokens_object(costs.counted_tokens if contents else None),
        "billed": money_object(costs.billed if known else None),
        "counted": money_object(costs.counted if known and contents else None),
        "difference": exact(costs.compared[1] - costs.compared[0]) if contents else None,
        "cache_breaks": exact(costs.broken) if contents else None,
        "cache_misses": misses_object(costs) if contents else None,
        "saved": exact(costs.saved) if contents else None,
        "prices_from": dict(costs.sources),
        "assumed": dict(costs.assumed),
        "notes": list(costs.notes),
        "sent_tokens": tokens_object(costs.sent_tokens if costs.is_sized else None),
        "sent": money_object(costs.sent if known and costs.is_sized else None),
        "unbilled": exact(costs.unbilled) if known and costs.is_sized else None,
        "partial_outputs": _partial(costs.partial_outputs),
        "units": dict(costs.units),
        "not_priced": dict(costs.not_priced),
        "stated": stated_object(costs.stated),
        "lower_bound": costs.at_least,
    }


def _partial(sums: PartialOutputs) -> dict[str, Any] | None:
    """Outputs that were logged too early, and all bills with these as counted; None where there are none."""
    if not sums.requests:
        return None
    return {
        "requests": sums.requests,
        "reported": sums.reported,
        "counted": sums.counted,
        "believed_tokens": tokens_object(sums.tokens),
        "believed": money_object(sums.money),
    }


LISTED_TOTALS = 5
"""Totals that are listed."""


def stated_lines(stated: StatedSums, steps: int) -> Iterator[str]:
    """Sentences for people; none where nothing is stated."""
    if stated.requests:
        yield (
            f"{dollars(stated.usd)} by the runtime's own account, for {stated.requests:,} of"
            f" {plural(steps, 'step')}; {_beside(stated)}"
        )
    totals = sorted(stated.totals.values(), key=lambda one: one.is_part)
    several = len({one.session for one in totals}) > 1
    for one in totals[:LISTED_TOTALS]:
        where = scope_text(one, one.session if several else None)
        said = f"{total_text(one.total)} by the runtime's own account, {where}"
        yield "; ".join([said, *_prices(one)])
    if len(totals) > LISTED_TOTALS:
        yield f"and {plural(len(totals) - LISTED_TOTALS, 'other')} (--json lists them)"


def total_text(total: Stated) -> str:
    """`12,300 input (8,000 cached, 100 written), 300 output, 2 requests; $0.0123`, as far as it is stated."""
    beside = [
        f"{tokens:,} {name}"
        for name, tokens in (("cached", total.cached_tokens), ("written", total.cache_write_tokens))
        if tokens
    ]
    of_output = f" ({total.reasoning_tokens:,} reasoning)" if total.reasoning_tokens else ""
    parts = []
    if total.input_tokens is not None:
        parts.append(f"{total.input_tokens:,} input" + (f" ({', '.join(beside)})" if beside else ""))
    if total.output_tokens is not None:
        parts.append(f"{total.output_tokens:,} output{of_output}")
    if total.requests:
        parts.append(plural(total.requests, "request"))
    if total.premium_requests:
        parts.append(f"{total.premium_requests:g} premium {noun(int(total.premium_requests), 'request')}")
    tokens = ", ".join(parts) + (" (rounded)" if parts and total.rounded else "")
    return "; ".join(filter(None, (tokens, dollars(Decimal(total.usd)) if total.usd is not None else "")))


def scope_text(one: StatedTotal, session: str | None = None) -> str:
    """The requests that a total includes; `session`: its name, where there are several."""
    where = visible(prefix(one.thread, session))
    if one.total.scope == "turn":
        return f"for turn {where}{one.turn}"
    if one.total.scope == "request":
        return f"for request {where}{one.turn}.{one.step} alone"
    return f"in all, as of {where}{one.turn}.{one.step}"


def _prices(one: StatedTotal) -> Iterator[str]:
    """The table's price for the bills of its requests, or else for the stated tokens."""
    usd = None if one.total.usd is None else Decimal(one.total.usd)
    for table, what in ((one.billed_usd, "the bills of its requests"), (one.table_usd, "these tokens")):
        if table:
            off = "" if usd is None else _off(usd, table)
            yield f"the table's prices for {what} come to {dollars(table)}{off}"
            return


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
    if not stated.requests and not stated.totals:
        return None
    whole = stated.whole
    return {
        "requests": stated.requests,
        "usd": exact(stated.usd) if stated.requests else None,
        "table_usd": exact(stated.table) if stated.requests > stated.unpriced else None,
        "unpriced_requests": stated.unpriced,
        "total_usd": exact(whole),
        "total_is_priced": stated.is_priced,
        "total_is_least": whole is not None and stated.is_least(0),
        **{name: stated.tokens(name) for name in FIGURES if name != "requests"},
        "runs": [_total_object(one) for one in stated.totals.values()],
    }


def _total_object(one: StatedTotal) -> dict[str, Any]:
    return {
        "session": one.session,
        "thread": one.thread,
        "turn": one.turn,
        "step": one.step,
        **total_object(one.total),
        "table_usd": exact(one.table_usd),
        "billed_usd": exact(one.billed_usd),
        "is_part": one.is_part,
    }
