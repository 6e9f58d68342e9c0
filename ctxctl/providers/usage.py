"""What a provider billed, in one shape: `input_tokens` is the whole context, cached tokens included.

It is read from usage as chat and responses APIs report it, as routers (litellm, openrouter) pass it on, and
from what Anthropic says of its prompt cache beside the counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

from ctxctl.ingest.build import Json
from ctxctl.ingest.parts import count, shallow, string
from ctxctl.model.billed import dollars, fields_of


def usage_record(
    *,
    input_tokens: Any,
    output_tokens: Any = None,
    cached: Any = None,
    cache_write: Any = None,
    cache_write_1h: Any = None,
    reasoning: Any = None,
    excludes_cache: bool | None = None,
    total: Any = None,
    provider: str | None = None,
    model: str | None = None,
    native: Json | None = None,
    miss_cause: str | None = None,
    bill: Any = None,
    response: Any = None,
    stated: Any = None,
) -> Json | None:
    """The record of `ctxctl.usage.reported`, less what is no count; None without a count of input.

    Args:
        input_tokens: The runtime's count of input tokens.
        output_tokens: Of output tokens, reasoning included.
        cached: Of input tokens read from the provider's cache.
        cache_write: Of input tokens written to it.
        cache_write_1h: Of these, the ones that are kept for an hour.
        reasoning: Of output tokens that were reasoning.
        excludes_cache: True where `input_tokens` leaves cache reads and writes out (Anthropic's convention).
            None: the total decides, because gateways differ.
        total: The count of all tokens; default: the bill's `total_tokens`.
        provider: Whose bill it is.
        model: The model that answered.
        native: The runtime's own usage fields; kept under `metadata.native`.
        miss_cause: Why the cache was not read, as the provider or the client says.
        bill: The usage as the provider wrote it, for what it bills apart (`model.billed`); default: `native`.
        response: The response that it stands in, where tier and calls of tools stand beside it.
        stated: US dollars that the runtime says the request cost, where that stands elsewhere.
    """
    if count(input_tokens) is None:
        return None
    usage = native if bill is None else bill
    told = {
        "provider": provider,
        "model": model,
        "input_tokens": count(input_tokens),
        "cached_tokens": count(cached),
        "cache_write_tokens": count(cache_write),
        "cache_write_1h_tokens": count(cache_write_1h) if count(cache_write) is not None else None,
        "cache_miss_cause": miss_cause,
        "output_tokens": count(output_tokens),
        "reasoning_tokens": count(reasoning),
        **fields_of(usage, response),
    }
    told["stated_usd"] = dollars(stated) or told.get("stated_usd")
    made: Json = {name: value for name, value in told.items() if value is not None}
    _complete(made, excludes_cache, usage, count(total))
    if native:
        made["metadata"] = {"native": shallow(native)}
    return made


def stated_total(
    scope: str,
    *,
    usd: Any = None,
    input_tokens: Any = None,
    cached: Any = None,
    cache_write: Any = None,
    output_tokens: Any = None,
    reasoning: Any = None,
    requests: Any = None,
    premium_requests: Any = None,
    model: Any = None,
    by_model: Iterable[Json | None] = (),
    excludes_cache: bool = False,
    rounded: bool = False,
) -> Json | None:
    """A total that a runtime states for a `turn`, a `session` or a `request` (`model.terms.Stated`).

    None where no figure is above 0.

    Args:
        excludes_cache: True where `input_tokens` leaves cache reads and writes out.
        by_model: The same for each model; figures that are not given are their sums.

    The others are as in `usage_record`.
    """
    counts = [count(input_tokens), count(cached), count(cache_write)]
    if excludes_cache and counts[0] is not None:
        counts[0] = sum(n or 0 for n in counts)
    names = ("input_tokens", "cached_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens")
    told = dict(zip(names, (*counts, count(output_tokens), count(reasoning)), strict=True))
    told["requests"] = count(requests)
    models = [one for one in by_model if one is not None]
    for name, value in told.items():
        parts = [one[name] for one in models if name in one]
        told[name] = sum(parts) if value is None and parts else value
    premium = dollars(premium_requests)
    amount = dollars(usd)
    if amount is None and models and all("usd" in one for one in models):
        amount = str(sum(Decimal(one["usd"]) for one in models))
    if amount is not None and not Decimal(amount):
        amount = None  # runtimes write 0 where they know no price
    if not any((*told.values(), amount, float(premium or 0))):
        return None
    made: Json = {"scope": scope, "usd": amount, "model": string(model), **told}
    made |= {"by_model": models or None, "rounded": rounded or None}
    made["premium_requests"] = None if premium is None else float(premium)
    return {name: value for name, value in made.items() if value is not None}


def total_of(scope: str, bill: Json | None, **more: Any) -> Json | None:
    """A total whose figures are those of a record of `usage_record`; `more` as in `stated_total`."""
    held = bill or {}
    return stated_total(
        scope, usd=more.pop("usd", held.get("stated_usd")), input_tokens=held.get("input_tokens"),
        cached=held.get("cached_tokens"), cache_write=held.get("cache_write_tokens"),
        output_tokens=held.get("output_tokens"), reasoning=held.get("reasoning_tokens"), **more,
    )  # fmt: skip


def stated_record(*totals: Json | None) -> Json | None:
    """The record of `ctxctl.total.stated`; None where there is no total."""
    held = [total for total in totals if total is not None]
    return {"totals": held} if held else None


def _complete(bill: Json, excludes_cache: bool | None, usage: Any, total: int | None) -> None:
    """Add to input and output what they leave out: of the cache, and of reasoning, as xAI counts.

    Where the caller does not say so, the total decides; without a total, an input that is less than the
    cache's
    counts excludes them.
    """
    names = ("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens", "reasoning_tokens")
    billed, made, read, written, thought = (bill.get(name, 0) for name in names)
    if excludes_cache is None:
        if total is None and isinstance(usage, dict):
            total = count(_first(usage, "total_tokens", "totalTokens"))
        more = max(0, total - billed - made) if total is not None else 0
        if more and more in (read, written, read + written):
            bill["input_tokens"] += more
            return
        if more and more == thought:
            bill["output_tokens"] = made + more
        excludes_cache = bool(billed < read + written)
    if excludes_cache:
        bill["input_tokens"] += read + written


_READ: Final = (
    "cached_tokens", "cached", "cache_read", "cache_read_input_tokens", "cache_read_tokens",
    "prompt_cache_hit_tokens",
)  # fmt: skip
"""OpenAI, tau-bench, LangChain, litellm, DeepSeek."""
_WRITTEN: Final = (
    "cache_creation_input_tokens", "cache_write_tokens", "cache_creation_tokens", "cache_creation",
)  # fmt: skip


def chat_usage(
    usage: Any,
    *,
    provider: str | None = None,
    model: str | None = None,
    native: Json | None = None,
    response: Any = None,
) -> Json | None:
    """The bill of a chat completion or of a response; it includes the cache fields that routers add."""
    if not isinstance(usage, dict):
        return None
    asked = _inner(usage, "prompt_tokens_details") or _inner(usage, "input_tokens_details")
    made = _inner(usage, "completion_tokens_details") or _inner(usage, "output_tokens_details")
    lifetimes = _inner(usage, "cache_creation") or _inner(asked, "cache_creation_token_details")
    written, hour = writes_of(lifetimes, _most(_WRITTEN, asked, usage))
    return usage_record(
        input_tokens=_first(usage, "prompt_tokens", "input_tokens"),
        output_tokens=_first(usage, "completion_tokens", "output_tokens"),
        cached=_most(_READ, asked, usage),
        cache_write=written,
        cache_write_1h=hour,
        reasoning=made.get("reasoning_tokens"),
        provider=provider,
        model=model,
        native=native,
        bill=usage,
        response=response,
    )


def _most(names: Iterable[str], *held: Json) -> int | None:
    """The largest count under these names; None where there is none."""
    return max((n for one in held for name in names if (n := count(one.get(name))) is not None), default=None)


def writes_of(
    details: Json, whole: int | None = None, *, apart: bool = False
) -> tuple[int | None, int | None]:
    """Tokens written to the cache, and those of them that are kept for an hour, by the details.

    Args:
        details: Counts by name; a name that holds `1h` or `5m` is that of a lifetime.
        whole: The count beside them; it includes these tokens, unless it is less.
        apart: True where the count beside them excludes these tokens.
    """
    hour, five = (_most([name for name in details if mark in name], details) for mark in ("1h", "5m"))
    if hour is None and five is None:
        return whole, None
    split, more = (hour or 0) + (five or 0), whole or 0
    return (more + split if apart or more < split else more), hour or 0


def _inner(usage: Json, name: str) -> Json:
    found = usage.get(name)
    return found if isinstance(found, dict) else {}


def _first(fields: Json, *names: str) -> Any:
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def clock(seconds: Any) -> str | None:
    """Seconds since 1970 as a native timestamp; None for what is no time."""
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 < seconds < 2**33:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def millisecond_clock(value: Any) -> str | None:
    """Milliseconds since 1970 as a native timestamp; None for what is no time, however many digits it has."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < 2**43:
        return None
    return clock(value / 1000)


_SILENT: Final = frozenset({"none", ""})
"""A comparison that found nothing."""


def hour_writes(usage: Any) -> int | None:
    """Of the tokens written to the cache, those kept for an hour; None: the usage does not say."""
    parts = usage.get("cache_creation") if isinstance(usage, dict) else None
    return count(parts.get("ephemeral_1h_input_tokens")) if isinstance(parts, dict) else None


def miss_cause(message: Any) -> str | None:
    """Why the cache was not read, as the API told the client (`diagnostics.cache_miss_reason`, its beta cache
    diagnostics, which Claude Code writes to its log with the message); None: nothing is said, or nothing
    was found."""
    told = message.get("diagnostics") if isinstance(message, dict) else None
    reason = told.get("cache_miss_reason") if isinstance(told, dict) else None
    kind = string(reason.get("type")) if isinstance(reason, dict) else None
    return None if kind is None or kind in _SILENT else kind
