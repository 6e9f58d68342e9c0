"""Reading what a provider's usage holds beside its counts: how the request was served, what is billed apart.

Plain code that loads nothing: a traced program waits for it.

Providers' own fields, by name: `service_tier` (OpenAI, Anthropic), `speed` and `inference_geo` (Anthropic),
tokens by modality (`audio_tokens` in OpenAI's details; `promptTokensDetails` of Gemini), calls of the
provider's own tools (`server_tool_use`; `web_search_call` and its like in an answer of OpenAI), and the
passes of one request (`iterations` of Anthropic).  What a runtime, a router
or a tracing service says that the request cost stands there too, under many names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeGuard

from ctxctl.model.numbers import count

PARTS: Final = ("audio_input", "audio_cached", "audio_output", "image_input", "image_output")
"""Tokens by modality; the cached ones are among the input."""
STANDARD: Final = frozenset(
    ("", "standard", "default", "auto", "standard_only", "on_demand", "not_available")
)
"""What providers call the tier, and the place, that their list prices are for."""
_DETAILS: Final = (
    ("prompt_tokens_details", "input"), ("input_tokens_details", "input"), ("input_token_details", "input"),
    ("completion_tokens_details", "output"), ("output_tokens_details", "output"),
    ("output_token_details", "output"),
)  # fmt: skip
_MODALITIES: Final = (
    ("promptTokensDetails", "input"), ("prompt_tokens_details", "input"),
    ("toolUsePromptTokensDetails", "input"), ("tool_use_prompt_tokens_details", "input"),
    ("cacheTokensDetails", "cached"), ("cache_tokens_details", "cached"),
    ("candidatesTokensDetails", "output"), ("candidates_tokens_details", "output"),
)  # fmt: skip
_FLAT: Final = (("input_audio", "audio_input"), ("output_audio", "audio_output"))
"""As Langfuse spells them."""
_CALLS: Final = {
    "web_search_call": "web_search",
    "file_search_call": "file_search",
    "code_interpreter_call": "code_interpreter",
    "image_generation_call": "image_generation",
}
"""Items of an answer of OpenAI that are billed by the call."""
_ANSWER_PASSES: Final = frozenset(("message", "fallback_message"))
OWN_PASSES: Final = _ANSWER_PASSES | {"compaction"}
"""Types of passes of the request's own model."""
_SUMMED: Final = (
    "input_tokens", "cached_tokens", "cache_write_tokens", "cache_write_1h_tokens", "output_tokens",
)  # fmt: skip


_STATED: Final = ("cost_usd", "costUSD", "response_cost", "total_cost", "totalCost", "cost")
"""Names of what a request is said to have cost: Amplifier; Claude Code of 2025; LiteLLM; LangSmith; Langfuse;
OpenRouter, pi and others."""
_MOST_STATED: Final = 1_000_000
"""US dollars; more is no cost of a request."""


_TIERS: Final = (
    ("service_tier", ("service_tier", "serviceTier", "trafficType")), ("speed", ("speed",)),
    ("inference_geo", ("inference_geo",)),
)  # fmt: skip
_SERVED: Final = frozenset(key for _, keys in _TIERS for key in keys)
_COSTS: Final = frozenset(_STATED)
_OTHER_THAN_TEXT: Final = frozenset(name for name, _ in (*_DETAILS, *_MODALITIES, *_FLAT))
_UNITS: Final = frozenset(("server_tool_use", "num_search_queries"))
_UNITS_BESIDE: Final = frozenset(("output", "candidates"))


def fields_of(usage: Any, response: Any = None) -> dict[str, Any]:
    """The fields of `ctxctl.usage.reported` that say it; empty where nothing does.

    For a request of several passes they include the sums of the passes' counts, which replace the totals'.

    Args:
        usage: The usage as the provider or the client wrote it.
        response: The response that it stands in: OpenAI's tier and calls of tools stand beside the usage.
    """
    usage = usage if _is_mapping(usage) else {}
    response = response if _is_mapping(response) else {}
    both = (usage, response) if response else (usage,)
    made: dict[str, Any] = {}
    # Every bill passes here, and most have few of these keys: what has none of them is not searched.
    if not (_SERVED.isdisjoint(usage) and _SERVED.isdisjoint(response)):
        made |= _served(both)
    if not _OTHER_THAN_TEXT.isdisjoint(usage) and (modalities := _modalities(usage)):
        made["modalities"] = modalities
    if not (_UNITS.isdisjoint(usage) and _UNITS_BESIDE.isdisjoint(response)) and (
        units := _units(usage, response)
    ):
        made["units"] = units
    if usage.get("iterations"):
        made |= _passes(usage)
    if _is_mapping(managed := response.get("context_management")):
        cleared = [
            count(one.get("cleared_input_tokens")) or 0 for one in tables(managed.get("applied_edits"))
        ]
        if any(cleared):
            made["cleared_tokens"] = sum(cleared)
    if not (_COSTS.isdisjoint(usage) and _COSTS.isdisjoint(response)):
        said = next((t for held in both for n in _STATED if (t := dollars(held.get(n)))), None)
        if said is not None:
            made["stated_usd"] = said
    return made


def _is_mapping(value: Any) -> TypeGuard[Mapping[str, Any]]:
    return type(value) is dict or isinstance(value, Mapping)  # asking an abstract class is slow


def _served(both: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """How the request was served, where that is not what list prices are for."""
    made: dict[str, str] = {}
    for name, places in _TIERS:
        said = _first_word(both, places)
        if said is not None and said.lower() not in STANDARD:
            made[name] = said
    return made


def _first_word(both: Iterable[Mapping[str, Any]], places: tuple[str, ...]) -> str | None:
    for held in both:
        for place in places:
            if place in held and (said := short_word(held[place])) is not None:
                return said
    return None


def dollars(value: Any) -> str | None:
    """What is said to be an amount in US dollars, with all its digits; None for what is none.

    A table of parts is its `total`.
    """
    if value is None:
        return None
    if _is_mapping(value):
        value = value.get("total")
    if type(value) is float and 0 <= value < _MOST_STATED:
        text = str(value)
        if "e" not in text and text[0] != "-":
            return text  # as nearly all are written
    if isinstance(value, bool) or not isinstance(value, int | float | str) or len(str(value)) > 40:
        return None
    from decimal import Decimal, InvalidOperation  # loaded only where a cost is stated

    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        return None
    return f"{amount:f}" if amount.is_finite() and 0 <= amount < _MOST_STATED else None


def short_word(value: Any) -> str | None:
    """A short word, or None for what is none."""
    return value if isinstance(value, str) and 0 < len(value) <= 80 else None


def _modalities(usage: Mapping[str, Any]) -> dict[str, int]:
    """Tokens that are neither text nor reasoning."""
    found: dict[str, int] = {}
    for name, side in _DETAILS:
        details = usage.get(name)
        if not _is_mapping(details):
            continue
        for kind in ("audio", "image"):
            value = count(details.get(f"{kind}_tokens")) or count(details.get(kind))
            _more(found, f"{kind}_{side}", value)
        cached = details.get("cached_tokens_details")
        if _is_mapping(cached):
            _more(found, "audio_cached", count(cached.get("audio_tokens")))
    for name, side in _MODALITIES:
        listed = usage.get(name)
        for one in listed if isinstance(listed, list) else ():
            if _is_mapping(one) and (modality := short_word(one.get("modality"))) is not None:
                value = count(one.get("tokenCount")) or count(one.get("token_count"))
                _more(found, f"{modality.lower()}_{side}", value)
    for name, part in _FLAT:
        _more(found, part, count(usage.get(name)))
    return found


def _more(found: dict[str, int], part: str, tokens: int | None) -> None:
    if tokens and part in PARTS:
        found[part] = found.get(part, 0) + tokens


def _units(usage: Mapping[str, Any], response: Mapping[str, Any]) -> dict[str, int]:
    """Calls of the provider's own tools."""
    found: dict[str, int] = {}
    tools = usage.get("server_tool_use")
    for name, value in tools.items() if _is_mapping(tools) else ():
        if value and isinstance(name, str) and name.endswith("_requests") and count(value):
            found[name.removesuffix("_requests")] = count(value) or 0
    searched = count(usage.get("num_search_queries"))
    if searched:
        found.setdefault("web_search", searched)
    if not response:
        return found
    for kind in _items(response):
        unit = _CALLS.get(kind)
        if unit is not None:
            found[unit] = found.get(unit, 0) + 1
    queries = sum(_grounded(candidate) for candidate in tables(response.get("candidates")))
    if queries:
        found["grounding_query"] = queries
    return found


def _items(response: Mapping[str, Any]) -> Iterable[str]:
    for item in tables(response.get("output")):
        kind = item.get("type")
        # OpenAI bills a search, and not the opening of a page that it found.
        action = item.get("action")
        opened = _is_mapping(action) and action.get("type") not in (None, "search")
        if isinstance(kind, str) and not (kind == "web_search_call" and opened):
            yield kind


def _grounded(candidate: Mapping[str, Any]) -> int:
    value = candidate.get("groundingMetadata") or candidate.get("grounding_metadata")
    queries = (
        (value.get("webSearchQueries") or value.get("web_search_queries")) if _is_mapping(value) else None
    )
    return len(queries) if isinstance(queries, list) else 0


def tables(value: Any) -> list[Mapping[str, Any]]:
    """The tables of a list; none where it is no list."""
    return [one for one in value if _is_mapping(one)] if isinstance(value, list) else []


def _passes(usage: Mapping[str, Any]) -> dict[str, Any]:
    """The passes of a request that was sampled several times, and what those of its own model sum up to.

    Anthropic's totals hold all passes of the request's own model, all but compactions, or of the input the
    first alone (platform.claude.com, *Compaction* and *Advisor tool*); the list is what is billed.  Totals
    that exceed the list include more than this request (a whole run); then the list is ignored.
    """
    listed = tables(usage.get("iterations"))
    if len(listed) < 2 and all(short_word(one.get("type")) in _ANSWER_PASSES for one in listed):
        return {}
    whole = map(sum, zip(*map(_billed, listed), strict=True))
    if any(total > held for total, held in zip(_billed(usage), whole, strict=True)):
        return {}
    passes = [_pass(one) for one in listed]
    own = [one for one in passes if is_own(one["type"], one.get("model"))]
    told = [name for name in _SUMMED if any(name in one for one in own)]
    return {**{name: sum(one.get(name, 0) for one in own) for name in told}, "passes": passes}


def is_own(kind: str, model: str | None) -> bool:
    """Whether a pass is of the request's own model: not of an advisor, or another tool that asks a model."""
    return kind in OWN_PASSES or model is None


def _pass(one: Mapping[str, Any]) -> dict[str, Any]:
    writes, parts = one.get("cache_creation"), _billed(one)
    made: dict[str, Any] = {"type": short_word(one.get("type")) or "unnamed"}
    if (model := short_word(one.get("model"))) is not None:
        made["model"] = model
    told = {
        "input_tokens": parts[0] + parts[2] + parts[3],
        "cached_tokens": count(one.get("cache_read_input_tokens")),
        "cache_write_tokens": count(one.get("cache_creation_input_tokens")),
        "cache_write_1h_tokens": count(writes.get("ephemeral_1h_input_tokens"))
        if _is_mapping(writes)
        else None,
        "output_tokens": parts[1],
    }
    return made | {name: value for name, value in told.items() if value is not None}


def _billed(usage: Mapping[str, Any]) -> tuple[int, ...]:
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return tuple(count(usage.get(name)) or 0 for name in names)
