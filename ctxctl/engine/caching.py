"""What a prompt cache could have given a step, what it gave, and what it missed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ctxctl.engine.misses import Request, after, missed, passed
from ctxctl.engine.rendering import rendered_anew
from ctxctl.engine.settings import LEVELS
from ctxctl.model.results import BrokenBy, Cache, Miss
from ctxctl.model.vocab import PrefixBasis

if TYPE_CHECKING:
    from ctxctl.engine.prefix import Prefix
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
    prefix, settings = sealed.prefix, sealed.settings
    miss = _miss(thread, sealed, usage, window) if real else None
    if prefix is None:
        return Cache(None, None, cached, written, hour, miss)
    compared: PrefixBasis = "wire" if settings.request is not None else "content"
    return Cache(prefix.tokens, _broken_by(prefix, sealed), cached, written, hour, miss, compared)


def _broken_by(prefix: Prefix, sealed: Sealed) -> BrokenBy | None:
    if prefix.setting is not None:
        name, rank = prefix.setting
        return BrokenBy(None, None, prefix.length, prefix.status, None, name, LEVELS[rank])
    if prefix.breaker is None:
        return None
    item, cause, change = prefix.breaker.item, None, None
    if prefix.status == "removed":
        cause = sealed.context.cause_of(item).cause
    elif prefix.was is not None and rendered_anew(prefix.was, prefix.breaker):
        change = sealed.context.differs(prefix.was, prefix.breaker)
    return BrokenBy(item, prefix.breaker.version, prefix.length, prefix.status, cause, change=change)


def _miss(thread: ThreadState, sealed: Sealed, usage: Usage | None, window: Window) -> Miss | None:
    # Another model is the miss's own cause: what it would have read under the one before was not read.
    before, prefix = thread.cached, sealed.prefix.shared if sealed.prefix is not None else None
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
