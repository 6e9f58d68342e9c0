"""One request's bill in tokens, by how they are billed, what it comes to, and what its cache miss cost."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

from ctxctl.model.cost_sums import NO_OUTPUT
from ctxctl.model.money import MILLION, ZERO, Money, Rates, Tokens, priced, without_separate_parts
from ctxctl.model.results import Cache, Miss, Step, UsageView
from ctxctl.model.terms import PLAIN, Further, Stated, Terms
from ctxctl.session.believed_bill import believed_tokens
from ctxctl.tokens.catalogue.rates import Priced, RateBook

NO_CACHE = "no cache figures are recorded: all of it priced as plain input"
CONTRADICTED = "the cache figures exceed the input: all of it priced as plain input"


def miss_price(miss: Miss | None, billed: Tokens | None, rates: Rates) -> Decimal | None:
    """US dollars that a miss cost more than a read would have; None: no miss, or a rate is unknown.

    Its tokens stand right behind what was read, so they were written (for an hour first: Anthropic wants
    those in front) before any of them were plain input.
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
    """What a token behind a break was billed at: most of them are written again where anything was."""
    if not cache.reported_cache_write:
        return rates.input
    hour = cache.reported_cache_write_1h or 0
    return rates.cache_write_1h if hour * 2 > cache.reported_cache_write else rates.cache_write


class Bill(NamedTuple):
    """What one request was billed."""

    priced: Priced
    tokens: Tokens | None
    """As the usage reports them; None: the step has no usage."""
    money: Money | None
    """None: no usage, or a rate that it needs is not known."""
    believed_tokens: Tokens | None
    """`tokens`, where parts of them cannot be true with what was counted in their place
    (`session.believed_bill`)."""
    believed: Money | None
    not_priced: dict[str, int]
    """What else was billed at a rate that nobody knows, in calls or tokens, by what it is."""
    units: dict[str, int]
    """Calls of the provider's own tools, by tool."""
    assumed: tuple[str, ...]
    """What the capture does not say of the bill, and how it was priced all the same."""


def bill_of(step: Step, book: RateBook) -> Bill:
    """The bill of a step, priced."""
    usage = step.usage
    terms = usage.terms if usage is not None else PLAIN
    whole, assumed = reported_tokens(step)
    believed = believed_tokens(step, whole)
    size = step.window.used if believed is None else believed.context
    found = book.rates(step.model, usage.provider if usage is not None else None, step.time, size, terms)
    if step.time is None:
        assumed.append(prices_date(book))
    assumed.extend(found.assumed)
    if whole is None or usage is None:
        return Bill(found, None, None, None, None, {}, {}, tuple(assumed))
    apart = {**terms.modalities, "reasoning": usage.reported_reasoning or 0}
    billed, left = without_separate_parts(whole, apart, found.rates)
    # Where the whole bill is not believed, neither are its separate parts.
    believed = billed if believed == whole else believed
    beside, missing = _beside(step, terms, found, book)
    return Bill(
        found,
        billed,
        _with(priced(billed, found.rates), beside),
        believed,
        None if believed is None else _with(priced(believed, found.rates), beside),
        {**{name: n for name, n in left.items() if found.source}, **missing},
        dict(terms.units),
        tuple(assumed),
    )


def totals_by_table(step: Step, book: RateBook) -> tuple[Decimal | None, ...]:
    """What the prices of the table make of the tokens of each total that is stated with a step; None where
    a model or a price is not known."""
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
    # The sum of several requests says nothing of a price for large ones.
    model = total.by_model[0].model if len(total.by_model) == 1 else total.model
    money = priced(tokens, book.rates(model or step.model, provider, step.time, 0).rates)
    return None if money is None else money.total


def prices_date(book: RateBook) -> str:
    """The sentence that says by which day's prices a request without a time is billed."""
    whose = "as asked (--as-of)" if book.stated else "the catalogue's date; --as-of DATE names another"
    return f"no time is recorded: priced as of {book.as_of}, {whose}"


def reported_tokens(step: Step) -> tuple[Tokens | None, list[str]]:
    """Input, cache and output as reported, None where no input is; and what was assumed of them."""
    usage, cache = step.usage, step.cache
    if usage is None or usage.reported_input is None:
        return None, []
    assumed = []
    cached, written = cache.reported_cached or 0, cache.reported_cache_write or 0
    hour = min(cache.reported_cache_write_1h or 0, written)
    plain = usage.reported_input - cached - written
    if plain < 0:  # figures that contradict one another: the whole is what is sure
        cached = written = hour = 0
        plain = usage.reported_input
        assumed.append(CONTRADICTED)
    elif cache.reported_cached is None:
        assumed.append(NO_CACHE)
    if usage.reported_output is None:
        assumed.append(NO_OUTPUT)
    return Tokens(plain, cached, written - hour, usage.reported_output or 0, hour), assumed


def _with(money: Money | None, beside: tuple[Decimal, Decimal]) -> Money | None:
    return None if money is None else money._replace(units=beside[0], further=beside[1])


def _beside(
    step: Step, terms: Terms, found: Priced, book: RateBook
) -> tuple[tuple[Decimal, Decimal], dict[str, int]]:
    """US dollars for calls of tools and for further samplings; and those of them whose price is not known."""
    missing: dict[str, int] = {}
    units = further = ZERO
    for name, count in terms.units.items():
        rate = found.units.get(name)
        if rate is None:
            missing[name] = count
        else:
            units += rate * count
    for one in terms.further:
        money = _sampled(step, one, terms, book)
        if money is None:
            missing[one.type] = missing.get(one.type, 0) + 1
        else:
            further += money.total
    return (units, further), missing


def _sampled(step: Step, one: Further, terms: Terms, book: RateBook) -> Money | None:
    hour = min(one.cache_write_1h_tokens, one.cache_write_tokens)
    tokens = Tokens(
        one.input_tokens, one.cached_tokens, one.cache_write_tokens - hour, one.output_tokens, hour
    )
    provider = step.usage.provider if step.usage is not None else None
    rates: Rates = book.rates(one.model or step.model, provider, step.time, tokens.context, terms).rates
    return priced(tokens, rates)


def answer_of(usage: UsageView | None) -> int:
    """Tokens of the answer to a request whose input nobody billed, as far as they are known."""
    from ctxctl.engine.sizes.bill_doubts import believed_output

    if usage is None:
        return 0
    return believed_output(usage) or usage.counted_output or 0
