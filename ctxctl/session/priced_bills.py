"""The bill of one request in tokens, its price, and the price of its cache miss."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from functools import reduce
from typing import Final, NamedTuple

from msgspec import structs

from ctxctl.model.annotations import Compacted, SummaryRequest
from ctxctl.model.cost_sums import IN_NO_LOG, NO_OUTPUT
from ctxctl.model.money import MILLION, ZERO, Money, Rates, Tokens, priced, without_separate_parts
from ctxctl.model.results import Cache, Miss, Step, UsageView
from ctxctl.model.terms import PLAIN, Pass, Stated, Terms
from ctxctl.tokens.catalogue.rates import Priced, RateBook

NO_CACHE = "no cache figures are recorded: all of it priced as plain input"
_FREE_TOOLS: Final = {"tool_search": ZERO}
"""Tools for which only tokens are billed (Anthropic's and OpenAI's "Tool search")."""
CONTRADICTED = "the cache figures exceed the input: all of it priced as plain input"


def miss_price(miss: Miss | None, billed: Tokens | None, rates: Rates) -> Decimal | None:
    """Return the US dollars that a miss cost more than a read; None without a miss, or if a rate is unknown.

    Its tokens follow what was read, so they count as written (for an hour first, because Anthropic requires
    those in front) before any count as plain input.
    """
    if miss is None or billed is None or rates.cache_read is None:
        return None
    left, money = miss.tokens, ZERO
    kinds = (
        (billed.written_1h, rates.cache_write_1h), (billed.written, rates.cache_write),
        (billed.input, rates.input),
    )  # fmt: skip
    for held, rate in kinds:
        taken = min(left, held)
        if taken and rate is None:
            return None
        money += (rate or ZERO) * taken
        left -= taken
    return (money - rates.cache_read * (miss.tokens - left)) / MILLION


def write_rate(cache: Cache, rates: Rates) -> Decimal | None:
    """Return the rate of tokens after a break: that of writes if anything was written."""
    if not cache.reported_cache_write:
        return rates.input
    hour = cache.reported_cache_write_1h or 0
    return rates.cache_write_1h if hour * 2 > cache.reported_cache_write else rates.cache_write


class Bill(NamedTuple):
    """What one request was billed."""

    priced: Priced
    tokens: Tokens | None
    """As the usage reports them; None without usage."""
    money: Money | None
    """None without usage, or if a needed rate is unknown."""
    believed_tokens: Tokens | None
    """`tokens`, with a partial output as counted (`UsageView.believed_output`)."""
    believed: Money | None
    not_priced: dict[str, int]
    """Other billed units without a known rate, in calls or tokens, by kind."""
    units: dict[str, int]
    """Calls of the provider's own tools, by tool."""
    assumed: tuple[str, ...]
    """Assumptions about the bill that the capture does not confirm."""
    passes: tuple[tuple[Tokens, Rates], ...] = ()
    """Passes of the request's own model, in order, with the rates for each size; empty for a single pass."""


def bill_of(step: Step, book: RateBook) -> Bill:
    """Return the bill of a step, priced."""
    usage = step.usage
    terms = usage.terms if usage is not None else PLAIN
    whole, assumed = reported_tokens(step)
    size = step.window.used if whole is None else terms.sent(whole.context) or whole.context
    found = book.rates(step.model, usage.provider if usage is not None else None, step.time, size, terms)
    if step.time is None:
        assumed.append(prices_date(book))
    assumed.extend(found.assumed)
    summaries, in_no_log = _summaries(step, terms, book)
    if whole is None or usage is None:
        return Bill(found, None, None, None, None, in_no_log, {}, tuple(assumed))
    apart = {**terms.modalities, "reasoning": usage.reported_reasoning or 0}
    billed, left = without_separate_parts(whole, apart, found.rates)
    counted = usage.believed_output
    # A partial output has no valid parts either.
    believed = billed if counted is None else whole._replace(output=counted)
    beside, missing = _beside(step, terms, found, book)
    passes = tuple(_of_pass(step, one, terms, book) for one in terms.passes)
    beside = beside._replace(summaries=summaries.billed)
    least = beside._replace(summaries=summaries.billed + summaries.least)
    whole_price = _sum(passes or [(billed, found.rates)])
    return Bill(
        found,
        billed,
        _with(whole_price, beside),
        believed,
        _with(
            whole_price if believed == billed or whole_price is None else priced(believed, found.rates), least
        ),
        {**{name: n for name, n in left.items() if found.source}, **missing, **in_no_log},
        dict(terms.units),
        tuple(assumed),
        passes,
    )


def totals_by_table(step: Step, book: RateBook) -> tuple[Decimal | None, ...]:
    """Return the table's price for each total stated with a step; None if a model or price is unknown."""
    return tuple(_table_price(step, total, book) for total in step.stated)


def _table_price(step: Step, total: Stated, book: RateBook) -> Decimal | None:
    if any(one.input_tokens is not None for one in total.by_model):
        prices = [_table_price(step, one, book) for one in total.by_model]
        return None if None in prices else sum((price for price in prices if price is not None), ZERO)
    if total.input_tokens is None:
        return None
    cached, written = total.cached_tokens or 0, total.cache_write_tokens or 0
    tokens = Tokens(max(0, total.input_tokens - cached - written), cached, written, total.output_tokens or 0)
    provider = step.usage.provider if step.usage is not None else None
    # A sum of several requests does not select the price for large ones.
    model = total.by_model[0].model if len(total.by_model) == 1 else total.model
    money = priced(tokens, book.rates(model or step.model, provider, step.time, 0).rates)
    return None if money is None else money.total


def prices_date(book: RateBook) -> str:
    """Return the sentence on whose day's prices apply to requests without a time."""
    whose = "as asked (--as-of)" if book.stated else "the catalogue's date; --as-of DATE names another"
    return f"no time is recorded: priced as of {book.as_of}, {whose}"


def reported_tokens(step: Step) -> tuple[Tokens | None, list[str]]:
    """Return billed input, cache and output, None without input; and what was assumed about them."""
    usage, cache = step.usage, step.cache
    if usage is None or not usage.reported_input:
        return None, []
    assumed = []
    cached, written = cache.reported_cached or 0, cache.reported_cache_write or 0
    hour = min(cache.reported_cache_write_1h or 0, written)
    plain = usage.reported_input - cached - written
    if plain < 0:  # the figures contradict each other, and only the sum is certain
        cached = written = hour = 0
        plain = usage.reported_input
        assumed.append(CONTRADICTED)
    elif cache.reported_cached is None:
        assumed.append(NO_CACHE)
    if usage.reported_output is None:
        assumed.append(NO_OUTPUT)
    return Tokens(plain, cached, written - hour, usage.reported_output or 0, hour), assumed


def _with(money: Money | None, beside: Money) -> Money | None:
    return None if money is None else money.plus(beside)


class _Summaries(NamedTuple):
    """US dollars for requests that wrote a step's summaries and are not steps."""

    billed: Decimal
    """The cost of those whose bill is in the log."""
    least: Decimal
    """The least cost of the others, as if their known input was read from a cache."""


def _summaries(step: Step, terms: Terms, book: RateBook) -> tuple[_Summaries, dict[str, int]]:
    """Return the cost of these requests, and how many of them are not logged."""
    billed = least = ZERO
    in_no_log = 0
    for one in step.annotations.compactions:
        if (asked := one.request) is None:
            continue
        cost = _summary(step, one, asked, terms, book)
        if asked.billed:
            billed += cost
        else:
            least += cost
            in_no_log += 1
    return _Summaries(billed, least), {IN_NO_LOG: in_no_log} if in_no_log else {}


def _summary(step: Step, one: Compacted, asked: SummaryRequest, terms: Terms, book: RateBook) -> Decimal:
    if asked.stated_usd is not None:
        return Decimal(asked.stated_usd)
    read, output = asked.cached_tokens, asked.output_tokens
    if not asked.billed:
        item = (one.summary or "").partition("@")[0]
        read, output = asked.input_tokens, sum(c.tokens for c in step.changes if c.item == item)
    sampled = Pass("compaction", None, asked.input_tokens, read, asked.cache_write_tokens, 0, output)
    money = _priced_pass(step, sampled, terms, book)
    if money is None:  # a model without a price for cache reads
        money = _priced_pass(step, structs.replace(sampled, cached_tokens=0), terms, book)
    return ZERO if money is None else money.total


def _priced_pass(step: Step, one: Pass, terms: Terms, book: RateBook) -> Money | None:
    return priced(*_of_pass(step, one, terms, book))


def _beside(step: Step, terms: Terms, found: Priced, book: RateBook) -> tuple[Money, dict[str, int]]:
    """Return US dollars for tool calls and passes of other models, and the units without a known price."""
    missing: dict[str, int] = {}
    units = further = ZERO
    for name, count in terms.units.items():
        rate = found.units.get(name, _FREE_TOOLS.get(name))
        if rate is None:
            missing[name] = count
        else:
            units += rate * count
    for one in terms.further:
        money = _priced_pass(step, one, terms, book)
        if money is None:
            missing[one.type] = missing.get(one.type, 0) + 1
        else:
            further += money.total
    return Money(units=units, further=further), missing


def _sum(passes: Iterable[tuple[Tokens, Rates]]) -> Money | None:
    found = [priced(tokens, rates) for tokens, rates in passes]
    known = [money for money in found if money is not None]
    return reduce(Money.plus, known) if len(known) == len(found) else None


def _of_pass(step: Step, one: Pass, terms: Terms, book: RateBook) -> tuple[Tokens, Rates]:
    written = one.cache_write_tokens
    hour = min(one.cache_write_1h_tokens, written)
    plain = max(0, one.input_tokens - one.cached_tokens - written)
    tokens = Tokens(plain, one.cached_tokens, written - hour, one.output_tokens, hour)
    provider = step.usage.provider if step.usage is not None else None
    return tokens, book.rates(one.model or step.model, provider, step.time, tokens.context, terms).rates


def answer_of(usage: UsageView | None) -> int:
    """Return the known answer tokens of a request whose input was not billed."""
    from ctxctl.engine.sizes.bills import believed_output

    if usage is None:
        return 0
    return believed_output(usage) or usage.counted_output or 0
