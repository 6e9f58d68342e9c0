"""An item's cost in money: for the requests so far, or for one that would include it.

It is a range, because the item's place in a request is not considered.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from ctxctl.analysis.why.cost import CarryingRequests, uncut_tokens
from ctxctl.analysis.why.reading import StepReader
from ctxctl.model.money import MILLION, ZERO, Rates
from ctxctl.model.why import Link, Why
from ctxctl.session.store_rows import lives_of
from ctxctl.wording import dollars, plural

if TYPE_CHECKING:
    from ctxctl.model.results import Step
    from ctxctl.session.facade import Inspector
    from ctxctl.tokens.catalogue.rates import Priced, RateBook


def money_for_item(
    inspector: Inspector, why: Why, models: dict[str, dict[str, Any]] | None
) -> Iterator[Link]:
    """Yield an item's cost in the requests so far, or in one that would include it.

    It lies between the cost with as much of it as possible read from a cache, and with as little.
    """
    lives, reader = lives_of(inspector), StepReader(inspector)
    entry = lives.find(lives.thread_of(why.ordinal), why.item)
    if entry is None or why.state in ("unknown", "unread", "later", "available"):
        return
    from ctxctl.tokens.catalogue.rates import RateBook

    book = RateBook(models)
    life = lives.life(entry.number, why.ordinal)
    found = CarryingRequests(reader, why.ordinal, life)
    moment = reader.moment(why.ordinal)
    low = high = ZERO
    unpriced = 0
    note = ""
    for steps, held in found.runs:
        for ordinal in steps:
            step = lives.step(ordinal)
            rates = _rates(book, step)
            span = _between(step, rates.rates, held)
            if span is None:
                unpriced += 1
                continue
            low, high, note = low + span[0], high + span[1], rates.source
    priced_requests = found.requests - unpriced
    if priced_requests:
        cheap, dear = dollars(low), dollars(high)
        money = dear if cheap == dear else f"{cheap} to {dear}"
        text = f"has cost {money} in {plural(priced_requests, 'request')} (prices: {note})"
        text += f"; {plural(unpriced, 'request')} without a known price" if unpriced else ""
        numbers: dict[str, int | float | str | None] = {
            "least": f"{low:f}", "most": f"{high:f}", "requests": priced_requests, "unpriced": unpriced,
        }  # fmt: skip
        yield Link("cost", "money", text, moment, None, numbers, "derived")
    elif found.requests:
        text = f"what it cost in {plural(found.requests, 'request')} is not known: no price is known"
        yield Link("cost", "no-price", text, moment, None, {"requests": found.requests}, "derived")
    tokens = uncut_tokens(life) if why.state in ("out", "omitted") else None
    if tokens:
        step = lives.step(why.ordinal)
        rate = _rates(book, step).rates.input
        if rate is not None:
            text = f"would cost {dollars(rate * tokens / MILLION)} more in this request, as plain input"
            yield Link("cost", "would-cost", text, moment, None, {"tokens": tokens}, "derived")


def _rates(book: RateBook, step: Step) -> Priced:
    usage = step.usage
    billed = usage.reported_input if usage is not None else None
    provider = usage.provider if usage is not None else None
    return book.rates(step.model, provider, (step.time or "")[:10] or None, billed or step.window.used)


def _between(step: Step, rates: Rates, held: int) -> tuple[Decimal, Decimal] | None:
    """Return the least and the greatest possible cost of tokens of a request; None without a rate."""
    if rates.input is None:
        return None
    cache, used = step.cache, step.window.used
    cached, written = cache.reported_cached or 0, cache.reported_cache_write or 0
    billed = (step.usage.reported_input if step.usage is not None else None) or 0
    hour = min(cache.reported_cache_write_1h or 0, written)
    if not billed or cached + written > billed or not used:
        cached = written = hour = 0
    else:
        cached, written, hour = (used * part // billed for part in (cached, written - hour, hour))
    needed = ((cached, rates.cache_read), (written, rates.cache_write), (hour, rates.cache_write_1h))
    if any(part and rate is None for part, rate in needed):
        return None
    held = min(held, used) if used else held
    bands = [(rate or ZERO, part) for part, rate in needed]
    bands.append((rates.input, max(0, used - cached - written - hour)))
    bands = sorted(band for band in bands if band[1])
    return _filled(bands, held) / MILLION, _filled(bands[::-1], held) / MILLION


def _filled(bands: list[tuple[Decimal, int]], tokens: int) -> Decimal:
    total = ZERO
    for rate, size in bands:
        taken = min(size, tokens)
        total += rate * taken
        tokens -= taken
    return total
