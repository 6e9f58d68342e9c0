"""Rows of a dataset about one session's requests: steps, misses, compactions, and the session's sums."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ctxctl.analysis.compacting import compacting
from ctxctl.analysis.request_cost import StepCost, broken_tokens
from ctxctl.analysis.shared_requests import moment
from ctxctl.analysis.turn_sums import paid_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ctxctl.dataset.rows.clear import ClearTexts
    from ctxctl.dataset.rows.names import ItemOrigin
    from ctxctl.engine.replay.frames import FrameDelta
    from ctxctl.model.results import Change, Placement, Step

_SEGMENTS: Final = ("tools", "system", "history", "context", "user")
Row = list[Any]


def microseconds(time: str | None) -> int | None:
    """A recorded time as microseconds since the epoch; None where there is none, or it is no time."""
    told = moment(time)
    return None if told is None else _microseconds(told)


def _microseconds(told: datetime) -> int:
    seconds = int((told.replace(microsecond=0) - _EPOCH).total_seconds())
    return seconds * 1_000_000 + told.microsecond


_EPOCH: Final = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


class RequestAt(NamedTuple):
    """A request in its session."""

    ordinal: int
    thread: str
    time: int | None
    """Microseconds since the epoch."""
    model: str | None

    @property
    def place(self) -> Row:
        """The columns that most tables have of it."""
        return [self.ordinal, self.time, self.model]


def step_row(at: RequestAt, cost: StepCost, request: int | None) -> Row:
    """The columns of `steps` behind `sub_agent`."""
    step = cost.step
    window, ledger, cache, usage = step.window, step.ledger, step.cache, step.usage
    usd, input_usd = spent(cost)
    return [
        at.ordinal, step.turn, step.step, step.target, at.time, at.model, request,
        window.used, window.used_method, window.recorded, window.unrecorded, window.uncounted,
        window.limit, window.limit_source, window.over,
        ledger.new, ledger.freed, ledger.stale,
        *(step.segments.get(name, 0) for name in _SEGMENTS),
        cache.possible_prefix, cache.reported_cached, cache.reported_cache_write,
        None if usage is None else usage.reported_output, usd, input_usd,
        *((None, None) if usd is None else (_priced_by(cost), paid_for(cost).is_least)),
    ]  # fmt: skip


def spent(cost: StepCost) -> tuple[float | None, float | None]:
    """What a request cost and the part of it for what was sent, in US dollars; None: no size or no price."""
    if cost.sent is None or not cost.is_sized or not cost.priced.source:
        return None, None
    return float(cost.sent.total), float(cost.sent.context)


def _priced_by(cost: StepCost) -> str:
    if cost.billed_tokens is None:
        return "expected"
    return "billed" if cost.believed_tokens == cost.billed_tokens else "counted"


def rate_of(cost: StepCost) -> float | None:
    """US dollars for each token that was sent; None where they have no price."""
    usd = spent(cost)[1]
    return None if usd is None or cost.step.window.used <= 0 else usd / cost.step.window.used


class ThreadFacts:
    """What is told of one thread from request to request.

    Args:
        origin: Of which tool and server an item is: kind, title, source, id.
        clear: What may be shown.
    """

    def __init__(
        self, origin: Callable[[str, str | None, str | None, str], ItemOrigin], clear: ClearTexts
    ) -> None:
        self._origin = origin
        self._clear = clear
        self._sent: int | None = None
        self._time: int | None = None

    def misses(self, at: RequestAt, cost: StepCost, delta: FrameDelta) -> list[Row]:
        """The columns of `misses` behind `sub_agent`: none, one or two rows."""
        step = cost.step
        found: list[Row] = []
        lost = broken_tokens(step)
        if lost is not None:
            broken = step.cache.broken_by
            assert broken is not None
            kind, origin = self._broke(step, delta)
            cause = broken.setting if broken.item is None else broken.status
            idle = None if self._time is None or at.time is None else (at.time - self._time) / 1e6
            found.append([
                *at.place, "break", cause, kind, origin and origin.tool, origin and origin.server, lost,
                None if cost.broken is None else float(cost.broken), idle, None,
            ])  # fmt: skip
        miss = step.cache.miss
        if miss is not None:
            missed = None if cost.missed is None else float(cost.missed)
            found.append([
                *at.place, "miss", miss.cause, None, None, None, miss.tokens, missed, miss.idle,
                miss.lifetime,
            ])  # fmt: skip
        return found

    def _broke(self, step: Step, delta: FrameDelta) -> tuple[str | None, ItemOrigin | None]:
        """Kind and origin of the item that broke the prefix."""
        broken = step.cache.broken_by
        if broken is None or broken.item is None:
            return None, None
        known: Iterator[Change | Placement] = chain(step.changes, delta.removed, delta.inserted, delta.before)
        for one in known:
            if one.item == broken.item:
                return one.kind, self._origin(one.kind, one.title, one.source, one.item)
        return None, None

    def compaction(self, at: RequestAt, step: Step, delta: FrameDelta) -> Row | None:
        """The columns of `compactions` behind `sub_agent`; None where the request had none before it."""
        if "compacted" not in step.flags and not step.annotations.compactions:
            return None
        taken = compacting(step)
        triggers = [self._clear.name(one) for one in taken.triggers]
        by_tool: Counter[str] = Counter()
        for change in step.changes:
            if change.status == "removed" and change.cause == "compacted" and change.kind == "tool_result":
                tool = self._origin(change.kind, change.title, change.source, change.item).tool
                if tool is not None:
                    by_tool[tool] += change.freed
        return [
            *at.place, next(filter(None, triggers), None), self._sent, step.window.used, taken.items,
            taken.tokens, sorted((kind, tokens) for kind, _, tokens in taken.kinds), sorted(by_tool.items()),
            summary_tokens(step, delta.inserted),
        ]  # fmt: skip

    def passed(self, at: RequestAt, step: Step) -> None:
        """The request is over."""
        self._sent, self._time = step.window.used, at.time


def summary_tokens(step: Step, inserted: Iterable[Placement]) -> int | None:
    """Tokens of what came in the place of what a compaction took; None: no summary is recorded."""
    entered = {change.item for change in step.changes if change.status in ("added", "updated")}
    fresh = [p for p in inserted if p.item in entered and not p.stale]
    into = {change.into for change in step.changes if change.into}
    into |= {one.summary.partition("@")[0] for one in step.annotations.compactions if one.summary}
    said = [p for p in fresh if p.item in into] or [p for p in fresh if p.kind == "thread_summary"]
    return sum(p.tokens for p in said) if said else None


class SessionSums:
    """The sums of a session's requests that `sessions` has."""

    def __init__(self) -> None:
        self.requests = 0
        self.threads: dict[str, set[int]] = {}
        """By thread in the order of their first requests, its turns."""
        self.models: dict[str, Counter[str]] = {}
        self.firsts: dict[str, int] = {}
        """By thread, tokens of its first request."""
        self.times: list[int] = []
        """The first and the last recorded one."""
        self.first_time: str | None = None
        self.limit: int | None = None
        self.largest: int | None = None
        self.over: int | None = None
        self.sent = self.billed = self.unpriced = self.compactions = 0
        self.read: int | None = None
        self.written: int | None = None
        self.output: int | None = None
        self.usd: float | None = None
        self.breaks: int | None = None
        self.missed: int | None = None

    def add(self, at: RequestAt, cost: StepCost) -> None:
        """Take in a request."""
        step = cost.step
        self.requests += 1
        self.threads.setdefault(at.thread, set()).add(step.turn)
        if at.model is not None:
            self.models.setdefault(at.thread, Counter())[at.model] += 1
        self.firsts.setdefault(at.thread, step.window.used)
        if at.time is not None:
            self.times = [min([at.time, *self.times]), max([at.time, *self.times])]
            self.first_time = self.first_time or step.time
        window, cache = step.window, step.cache
        self.limit = window.limit if self.limit is None else self.limit
        self.largest = max(window.used, self.largest or 0)
        self.sent += window.used
        self.over = _plus(self.over, None if window.over is None else int(window.over > 0))
        self.billed += step.usage is not None and step.usage.reported_input is not None
        self.read = _plus(self.read, cache.reported_cached)
        self.written = _plus(self.written, cache.reported_cache_write)
        self.output = _plus(self.output, None if step.usage is None else step.usage.reported_output)
        usd = spent(cost)[0]
        self.unpriced += usd is None or paid_for(cost).is_least
        self.usd = usd if self.usd is None else self.usd + (usd or 0.0)
        if cache.reported_cached is not None:
            self.breaks = (self.breaks or 0) + (broken_tokens(step) is not None)
            self.missed = (self.missed or 0) + (0 if cache.miss is None else cache.miss.tokens)


def _plus(whole: int | None, more: int | None) -> int | None:
    return whole if more is None else more + (whole or 0)
