"""Cache misses that no record explains (DESIGN section 3, cache misses): arithmetic on two bills.

The readable part is the smaller of the previous and the current request, less recorded changes after the
first break. Where the provider caches on request only, it is at most what the previous request had in the
cache. A miss is the readable part that was not read, if it is not noise.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple

from ctxctl.model.results import Miss
from ctxctl.model.vocab import NO_TIME, MissCause

FLOOR: Final = 1024
"""Tokens below which nothing is called a miss.  Anthropic and OpenAI cache no prompt that is shorter (both in
their guides "Prompt caching"); and what lies behind the last breakpoint of one request (Anthropic) or in its
last, unfinished block of 128 tokens (OpenAI) is never read by the next: of 4,175 pairs of Claude Code's
bills, 3,971 are off by less than 256 tokens for that reason, and only 22 by 256 to 1,024."""
_TAIL_PART: Final = 10
"""A break in the last tenth of the recorded content is near its end."""
MINUTES_5: Final = 300
"""Anthropic: a cache is kept for five minutes from its last use, unless an hour is asked and paid for
(platform.claude.com, Prompt caching)."""
HOUR: Final = 3600
MINUTES_10: Final = 600
"""OpenAI: kept for 5 to 10 minutes without use, an hour at most (developers.openai.com, Prompt caching)."""
DAY: Final = 86_400
"""OpenAI: models after gpt-5.4 keep for up to 24 hours, earlier ones only where a request asks for it (the
same guide; Azure's "Prompt caching")."""

_MODEL: Final = frozenset({"model_changed"})
_EXPIRED: Final = frozenset({"ttl_expired_5m", "ttl_expired_1h"})
_CHANGED: Final = frozenset({"system_changed", "system_prompt_changed", "tools_changed"})
_MESSAGES: Final = frozenset({"messages_changed", "messages_rewritten"})
"""Anthropic's `cache_miss_reason` (platform.claude.com, Cache diagnostics) and the words of Claude Code's own
statistics.  `previous_message_not_found`, `unavailable`, `unknown` and the like explain nothing."""


class BilledRequest(NamedTuple):
    """One request as billed, and its recorded size, in tokens."""

    input: int
    """The whole context, cache reads and writes included."""
    read: int | None
    written: int | None
    written_1h: int | None
    """The part of `written` that is kept for an hour; None if not reported separately."""
    output: int | None
    recorded: int
    """Tokens of the frame."""
    unrecorded: int | None = None
    """Input that the frame lacks; None if only `input` less `recorded` is known."""
    model: str | None = None
    provider: str | None = None
    time: str | None = None
    """RFC 3339."""


class CacheMemory(NamedTuple):
    """A thread's last billed request, for its cache. Immutable, so copies of a replay share it."""

    request: BilledRequest
    prefix: int
    """Recorded tokens that every request since has begun with."""
    lifetime: int | None
    """Seconds for which the provider keeps what was written last; None if not documented."""
    time: str | None
    """When the cache was last used."""


def cache_miss(
    before: CacheMemory | None, now: BilledRequest, prefix: int | None, error: float, said: str | None = None
) -> Miss | None:
    """Return the miss of a request; None if there is none, or the bills cannot tell.

    Args:
        before: Of the same thread; None: nothing was billed there yet.
        now: The request.
        prefix: Recorded tokens that it begins with as the step before did (its possible prefix).
        error: Share by which a count of recorded tokens may be too small: a recorded change explains so much
            more than is counted.
        said: Why the cache was not read, in the words of the client or the provider.
    """
    if before is None or prefix is None or now.read is None:
        return None
    read, was = now.read, before.request
    if was.read is None or read + (now.written or 0) > now.input or was.read + (was.written or 0) > was.input:
        return None  # the figures contradict each other
    expected = _readable(before, now, min(prefix, before.prefix), error)
    tokens = min(expected - read, now.input - read - max(0, now.input - was.input))
    if tokens < FLOOR:
        return None
    idle = seconds_between(before.time, now.time)
    changed = _unrecorded_changed(was, now, min(prefix, before.prefix), error)
    cause = _cause(was, now, idle, before.lifetime, said, changed=changed)
    return Miss(expected, read, tokens, cause, said, idle, before.lifetime)


def memory_after(before: CacheMemory | None, now: BilledRequest) -> CacheMemory:
    """Return what to remember after a billed request; `before` is the memory so far."""
    kept = lifetime(now)
    if before is not None and not now.written and on_request(now):
        kept = (
            before.lifetime if on_request(before.request) else kept
        )  # a read keeps what was written earlier
    return CacheMemory(now, now.recorded, kept, now.time)


def memory_unbilled(before: CacheMemory | None, prefix: int | None, time: str | None) -> CacheMemory | None:
    """Return what to remember after an unbilled step. Only its common prefix is expected in the cache."""
    if before is None or prefix is None:
        return before
    return before._replace(prefix=min(before.prefix, prefix), time=time or before.time)


def on_request(request: BilledRequest) -> bool:
    """Return whether the provider caches only what the client marks (Anthropic's models)."""
    return request.written is not None and _is_claude(request)


def lifetime(request: BilledRequest) -> int | None:
    """Return the seconds for which the provider documents to keep a cached request after its last use.

    None if nothing is documented (Gemini's implicit cache, unknown providers).
    """
    if _is_claude(request):
        written = request.written or 0
        return HOUR if written and request.written_1h == written else MINUTES_5
    name = (request.model or "").lower().rpartition("/")[2]
    if name.startswith("gpt-"):
        return DAY if _version(name) > (5, 4) else MINUTES_10
    return MINUTES_10 if name.startswith(("o1", "o3", "o4", "codex")) else None


def seconds_between(earlier: str | None, later: str | None) -> float | None:
    """Return the seconds between two times; None if one is missing or invalid, or they run backwards."""
    if earlier is None or later is None or NO_TIME in (earlier, later):
        return None
    try:
        passed_by = (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()
    except (ValueError, TypeError):
        return None
    return passed_by if passed_by >= 0 else None


def _readable(before: CacheMemory, now: BilledRequest, prefix: int, error: float) -> int:
    """Return the tokens that could be read again, by the bills and the recorded changes between them."""
    was = before.request
    held = was.input
    if on_request(was):
        held = (was.read or 0) + (was.written or 0)
    held = min(held, was.input, now.input)
    gone = was.recorded - prefix
    if gone <= 0:
        return held
    if gone * _TAIL_PART <= was.recorded:
        # If the break is near the end, nearly all unrecorded content precedes it.
        more = 1 + error
        left = min(was.input - gone * more, now.input - max(0, now.recorded - prefix) * more)
        return max(0, min(held, int(left)))
    if on_request(was):
        return 0  # looked up at most twenty blocks before a mark (Prompt caching): the change explains it all
    return min(held, int(prefix / (1 + error)))


def _unrecorded_changed(was: BilledRequest, now: BilledRequest, prefix: int, error: float) -> bool:
    """Return whether unrecorded content changed by more than counting errors or a hidden answer explain."""
    if now.unrecorded is not None and was.unrecorded is not None:
        change = now.unrecorded - was.unrecorded
    else:
        change = (now.input - was.input) - (now.recorded - was.recorded)
    slack = max(FLOOR, error * (max(0, now.recorded - prefix) + max(0, was.recorded - prefix)))
    if change > 0:
        slack += was.output or 0  # billed reasoning may be sent again without being recorded
    return abs(change) > slack


def _cause(
    was: BilledRequest,
    now: BilledRequest,
    idle: float | None,
    kept: int | None,
    said: str | None,
    *,
    changed: bool,
) -> MissCause:
    if said in _MODEL or (said is None and was.model and now.model and was.model != now.model):
        return "model"
    if said in _EXPIRED:
        return "expired"
    if said in _CHANGED or said in _MESSAGES:
        return "unrecorded"
    if was.model and now.model and was.model != now.model:
        return "model"
    if idle is not None and kept is not None and idle > kept:
        return "expired"
    return "unrecorded" if changed else "unexplained"


def _is_claude(request: BilledRequest) -> bool:
    return request.provider == "anthropic" or "claude" in (request.model or "").lower()


def _version(name: str) -> tuple[int, int]:
    """Return the version in a model's name: (5, 1) for `gpt-5.1-codex`; (0, 0) if there is none."""
    digits = name[4:].partition("-")[0].split(".")
    try:
        return int(digits[0]), int(digits[1]) if len(digits) > 1 else 0
    except ValueError:  # gpt-4o
        return 0, 0
