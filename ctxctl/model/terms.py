"""What a bill holds beside its counts of tokens: how the request was served, and what is billed apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ctxctl.model.billed import dollars, is_own, short_word, tables
from ctxctl.model.numbers import count


class Pass(msgspec.Struct, frozen=True, gc=False):
    """One of the samplings that a request was answered with; `input_tokens` is all that it read."""

    type: str
    model: str | None = None
    """None: the request's."""
    input_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    cache_write_1h_tokens: int = 0
    """Of those written."""
    output_tokens: int = 0


class Stated(msgspec.Struct, frozen=True, omit_defaults=True):
    """A total that a runtime states for several requests; it is never the bill of one of them."""

    scope: str = "session"
    """`turn`, `session`: it includes the requests of the turn or of the session up to this one.

    `request`: it is of this one, in the runtime's own counts, which are not those of a bill."""
    usd: str | None = None
    """US dollars."""
    input_tokens: int | None = None
    """Cache reads and writes included, as in a bill."""
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    requests: int | None = None
    premium_requests: float | None = None
    """As GitHub Copilot bills them."""
    model: str | None = None
    by_model: tuple[Stated, ...] = ()
    """The same by model; these add up to the total."""
    rounded: bool = False
    """Whether the runtime rounded the counts."""


FIGURES: Final = tuple(n for n in Stated.__struct_fields__ if n.endswith("tokens") or n == "requests")
"""The counts of a `Stated`."""


class Terms(msgspec.Struct, frozen=True):
    """How a request was served, and what is billed apart; all of it as the capture says."""

    service_tier: str | None = None
    speed: str | None = None
    inference_geo: str | None = None
    modalities: dict[str, int] = {}
    """Tokens by `PARTS`, parts of the input and the output."""
    units: dict[str, int] = {}
    """Calls of the provider's tools, by tool: `web_search`, `web_fetch`, `code_execution`, ..."""
    passes: tuple[Pass, ...] = ()
    """Passes of the request's own model, in order; the bill is their sum.  Empty: there was one."""
    further: tuple[Pass, ...] = ()
    """Passes of other models that a tool asked (an advisor): they are billed beside the request's own."""
    cleared_tokens: int | None = None
    """Tokens that the provider took out of the request, by its own count; no other figure includes them."""
    stated_usd: str | None = None
    """US dollars that the runtime, a router or a tracing service says that the request cost."""
    stated_total_usd: str | None = None
    """The same of all requests of a run, as told with its last one."""

    def sent(self, billed: int | None) -> int | None:
        """The size of a request with this bill: the input of its last answer, or of its compaction if it
        ended with
        that."""
        answers = [one for one in self.passes if one.type != "compaction"] or self.passes
        return answers[-1].input_tokens if answers else billed


PLAIN: Final = Terms()
"""A bill that says nothing of the kind."""


def terms_of(fields: Mapping[str, Any]) -> Terms:
    """The terms of a record of a trace; what is not of the form of `fields_of` is left out."""
    passes = [_pass(one) for one in tables(fields.get("passes"))]
    own = tuple(one for one in passes if is_own(one.type, one.model))
    # Older traces have passes beside the totals here, with an input that excludes the cache.
    further = [_with_cache(_pass(one)) for one in tables(fields.get("further"))]
    found = Terms(
        short_word(fields.get("service_tier")),
        short_word(fields.get("speed")),
        short_word(fields.get("inference_geo")),
        _counts(fields.get("modalities")),
        _counts(fields.get("units")),
        own,
        (*(one for one in passes if one not in own), *further),
        count(fields.get("cleared_tokens")),
        dollars(fields.get("stated_usd")),
        dollars(fields.get("stated_total_usd")),
    )
    return PLAIN if found == PLAIN else found


def totals_of(fields: Mapping[str, Any]) -> tuple[Stated, ...]:
    """The totals of a record of a trace; other values are left out."""
    return tuple(map(_stated, tables(fields.get("totals"))))


def _stated(fields: Mapping[str, Any]) -> Stated:
    scope, premium = fields.get("scope"), dollars(fields.get("premium_requests"))
    return Stated(
        scope=scope if scope in ("turn", "request") else "session",
        usd=dollars(fields.get("usd")),
        model=short_word(fields.get("model")),
        by_model=tuple(_stated(one) for one in tables(fields.get("by_model")) if "by_model" not in one),
        rounded=fields.get("rounded") is True,
        premium_requests=None if premium is None else float(premium),
        **{name: count(fields.get(name)) for name in FIGURES},
    )


def _counts(value: Any) -> dict[str, int]:
    pairs = value.items() if isinstance(value, Mapping) else ()
    return {name: held for name, given in pairs if (held := count(given))}


def _pass(told: Mapping[str, Any]) -> Pass:
    numbers = {n: count(told.get(n)) or 0 for n in Pass.__struct_fields__ if n.endswith("_tokens")}
    return Pass(short_word(told.get("type")) or "unnamed", short_word(told.get("model")), **numbers)


def _with_cache(one: Pass) -> Pass:
    whole = one.input_tokens + one.cached_tokens + one.cache_write_tokens
    return msgspec.structs.replace(one, input_tokens=whole)
