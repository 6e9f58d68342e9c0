"""What a prompt cache could have given a step, what it gave, and what it missed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ctxctl.engine.misses import Request, after, missed, passed
from ctxctl.model.results import BrokenBy, Cache, Miss

if TYPE_CHECKING:
    from ctxctl.engine.thread import Sealed, ThreadState
    from ctxctl.model.records import Usage
    from ctxctl.model.results import Window

_ERRORS: Final = {"exact": 0.02, "calibrated": 0.15}
"""Share by which a count may be too small, by its method; what is sent around a text is not in it."""
_FOREIGN: Final = 1.0
"""Of a count in another model's tokens: providers' tokenizers give at most twice as many."""


def cache_of(
    thread: ThreadState, sealed: Sealed, usage: Usage | None, window: Window, *, real: bool
) -> Cache:
    """A finished step's cache.

    Args:
        thread: Remembers the bill for the thread's next step.
        sealed: The step.
        usage: Its bill.
        window: Its window, for what it has recorded and what it lacks.
        real: Whether the frame is the one that was sent: of another one a bill says nothing.
    """
    cached = usage.cached_tokens if usage is not None else None
    written = usage.cache_write_tokens if usage is not None else None
    hour = usage.cache_write_1h_tokens if usage is not None else None
    prefix = sealed.prefix
    miss = _miss(thread, sealed, usage, window) if real else None
    if prefix is None:
        return Cache(None, None, cached, written, hour, miss)
    broken = None
    if prefix.breaker is not None:
        cause = None
        if prefix.status == "removed":
            cause = sealed.context.cause_of(prefix.breaker.item).cause
        broken = BrokenBy(prefix.breaker.item, prefix.breaker.version, prefix.length, prefix.status, cause)
    return Cache(prefix.tokens, broken, cached, written, hour, miss)


def _miss(thread: ThreadState, sealed: Sealed, usage: Usage | None, window: Window) -> Miss | None:
    before, prefix = thread.cached, sealed.prefix.tokens if sealed.prefix is not None else None
    time = thread.asked or sealed.ids.time
    if usage is None or usage.input_tokens is None or window.used_method != "reported":
        if not thread.failures:
            thread.cached = passed(before, prefix, time)
        return None
    now = Request(
        input=usage.input_tokens,
        read=usage.cached_tokens,
        written=usage.cache_write_tokens,
        written_1h=usage.cache_write_1h_tokens,
        output=usage.output_tokens,
        recorded=thread.frame.used,
        unrecorded=window.unrecorded,
        model=usage.model or thread.model,
        provider=usage.provider,
        time=time,
    )
    thread.cached = after(before, now)
    return missed(before, now, prefix, _error(window), usage.cache_miss_cause)


def _error(window: Window) -> float:
    """Of the worst method that a window is counted with."""
    named = {name.partition(":")[0] for name, tokens in window.by_method.items() if tokens}
    return max((_ERRORS.get(name, _FOREIGN) for name in named), default=_FOREIGN)
