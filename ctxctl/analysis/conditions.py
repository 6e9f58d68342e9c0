"""The conditions of `ctxctl check`: each checks every request of a trace.

Logic has three values, as in queries. A size without a bill only has bounds, so a condition about it may fail
for certain but never hold for certain.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Final, NamedTuple

from ctxctl.engine.query import Number, QueryError, parse_query
from ctxctl.engine.sizes.prefix import breaks_cache
from ctxctl.model.checks import ConditionResult, Outcome
from ctxctl.model.missed import miss_reason
from ctxctl.model.sizes import is_unsized, limit_words, only_recorded, sent_of
from ctxctl.session.item_words import broken_name
from ctxctl.wording import APPROXIMATE, AT_LEAST, dollars, number, plural, price, share, signed

if TYPE_CHECKING:
    from ctxctl.analysis.where import WhereQuery
    from ctxctl.engine.replay.step_tracker import ThreadKey
    from ctxctl.engine.replay.walked import Walked
    from ctxctl.item_names import ItemNames
    from ctxctl.model.findings import Place
    from ctxctl.model.results import Placement, Step, Window
    from ctxctl.tokens.catalogue.rates import RateBook

Truth = bool | None
_UNSEEN: Final = "nothing of what was sent is recorded"
_RESULTS: Final = frozenset({"tool_result", "session_history"})
"""Kinds that may hold tool results, including a history that stands for many messages."""
_NAME_CELLS: Final = 60
"""Cells of an item's name."""
WANTED: Final = (
    "a number of tokens, such as 120000 or 120k, or a share of the limit in whole per cent, such as 80%"
)

_DOLLARS: Final = re.compile(r"\$?([0-9]{1,9}(?:\.[0-9]{1,9})?)", re.ASCII)


def sent_bound(text: str) -> Number:
    """Return a bound on what is sent, as in the query ``sent>BOUND``. Raises ValueError."""
    try:
        term = parse_query(f"sent>{text.strip()}").term
    except QueryError:
        raise ValueError(WANTED) from None
    if not isinstance(term, Number) or term.op != ">":
        raise ValueError(WANTED)
    return term


def dollar_bound(text: str) -> str:
    """Return US dollars, with or without a sign, as a plain decimal number. Raises ValueError."""
    found = _DOLLARS.fullmatch(text.strip())
    if found is None:
        raise ValueError("an amount of US dollars, such as 2.50")
    return found[1]


class _Noted(NamedTuple):
    """A request that a result may name."""

    rank: float
    place: Place
    message: str
    tokens: int | None


class Condition:
    """One condition; call `take` for each request, in order.

    Args:
        name: The option's name.
        bound: The option's value.
        broke: What failing requests do, after "3 of 58 requests".
        idle: What to say if no request was conclusive.
    """

    which = "worst"
    """Which of several failing requests is named."""

    def __init__(self, name: str, bound: str | None, broke: str, idle: str) -> None:
        self.name, self.bound = name, bound
        self._broke, self._idle = broke, idle
        self.steps = self.failed = self.unknown = 0
        self._noted: dict[Truth, _Noted] = {}

    def take(self, one: Walked, place: Place, *, judged: bool) -> None:
        """Check a request. One that is not `judged` only precedes others."""
        self.steps += judged
        self.look(one, place, judged=judged)

    def look(self, one: Walked, place: Place, *, judged: bool) -> None:
        """Check a request for this kind of condition."""
        raise NotImplementedError

    def note(
        self, truth: Truth, place: Place, tell: Callable[[], str], rank: float = 0, tokens: int | None = None
    ) -> None:
        """Note whether it holds at a request; `tell` describes it, and the greatest `rank` is named."""
        self.failed += truth is False
        self.unknown += truth is None
        noted = self._noted.get(truth)
        if noted is None or (truth is not None and rank > noted.rank):
            self._noted[truth] = _Noted(rank, place, tell(), tokens)

    def result(self) -> ConditionResult:
        """Return the result."""
        if not self.steps:
            said = "no request was looked at"
            return ConditionResult(self.name, self.bound, "fails", said, 0)
        outcome: Outcome = "fails" if self.failed else "unknown" if self.unknown else "holds"
        truth = {"fails": False, "unknown": None, "holds": True}[outcome]
        noted = self._noted.get(truth)
        message = self._idle
        if noted is not None:
            message = noted.message
            if outcome == "fails":
                message = f"{self._of(self.failed)} {self._broke}{_lead(self.failed, self.which)}{message}"
            elif outcome == "unknown":
                message = f"not known at {self._of(self.unknown)}{_lead(self.unknown, 'first')}{message}"
        return ConditionResult(
            self.name, self.bound, outcome, message, self.steps, self.failed, self.unknown,
            None if noted is None else noted.place, None if noted is None else noted.tokens,
        )  # fmt: skip

    def _of(self, some: int) -> str:
        return f"{number(some)} of {plural(self.steps, 'request')}"


def _lead(several: int, which: str) -> str:
    return f"; the {which}: " if several > 1 else ": "


def at_least(window: Window) -> int | None:
    """Return the tokens that were sent for certain; None if an expectation has no known error."""
    if window.used_method == "reported" or only_recorded(window.used_method, window.unrecorded):
        return window.used
    return None if window.used_error is None else window.used - window.used_error


class MaxSent(Condition):
    """No request sends more than a number of tokens, or than a share of the limit in force."""

    def __init__(self, bound: str) -> None:
        self._most = sent_bound(bound)
        super().__init__("max", bound, "sent more", "nothing was sent")

    def look(self, one: Walked, place: Place, *, judged: bool) -> None:
        """Check the size of a request, against its limit if the bound is a share of it."""
        window = one.at.step.window
        if judged:
            rank = window.used / window.cap if self._most.percent and window.cap else window.used
            self.note(self._truth(window), place, lambda: self._told(window), rank, window.used)

    def _truth(self, window: Window) -> Truth:
        least = at_least(window)
        if least is not None and self._is_over(least, window.cap):
            return False
        if window.used_method != "reported":
            return None
        over = self._is_over(window.used, window.cap)
        return None if over is None else not over

    def _is_over(self, tokens: int, cap: int | None) -> Truth:
        if not self._most.percent:
            return tokens > self._most.value
        return None if cap is None else tokens * 100 > self._most.value * cap

    def _told(self, window: Window) -> str:
        if not self._most.percent:
            return sent_of(window)
        if window.cap is None:
            return f"{sent_of(window)}, and no limit is known"
        if is_unsized(window):
            return f"{sent_of(window)}; the limit is {limit_words(window.cap, window.limit_source)}"
        part = share(window.used, window.cap, fine=True) if window.cap else "more"
        return f"{sent_of(window)}, {part} of {limit_words(window.cap, window.limit_source)}"


class MaxGrowth(Condition):
    """No request exceeds the previous one of its thread by more than a number of tokens."""

    def __init__(self, most: int) -> None:
        super().__init__("max-growth", number(most), "grew by more", "no request has another before it")
        self._most = most
        self._before: dict[ThreadKey, Window] = {}

    def look(self, one: Walked, place: Place, *, judged: bool) -> None:
        """Compare the size with that of the previous request."""
        now = one.at.step.window
        before = self._before.get(one.key)
        self._before[one.key] = now
        if before is None or not judged:
            return
        grown = now.used - before.used
        truth = self._truth(before, now, grown)
        self.note(
            truth, place, lambda: f"{signed(grown)}, from {sent_of(before)} to {sent_of(now)}", grown, grown
        )

    def _truth(self, before: Window, now: Window, grown: int) -> Truth:
        methods = {before.used_method, now.used_method}
        if methods == {"reported"}:
            return grown <= self._most
        if "recorded" in methods:
            # Recorded content alone gives no bound on what was sent, only evidence that it grew.
            return False if len(methods) == 1 and grown > self._most else None
        errors = [w.used_error if w.used_method == "expected" else 0 for w in (before, now)]
        known = [error for error in errors if error is not None]
        return False if len(known) == 2 and grown - sum(known) > self._most else None


class MaxToolResult(Condition):
    """No tool result that enters a window has more than a number of tokens."""

    def __init__(self, most: int, names: ItemNames) -> None:
        super().__init__("max-tool-result", number(most), "took in a larger one", "no tool result came in")
        self._most, self._names = most, names

    def look(self, one: Walked, place: Place, *, judged: bool) -> None:
        """Check what entered."""
        if not judged:
            return
        if not one.at.step.window.recorded:
            self.note(None, place, lambda: _UNSEEN)
            return
        came = [p for p in one.delta.inserted if p.kind in _RESULTS]
        came = [p for p in came if p.kind == "tool_result" or p.method == "uncounted"]
        if not came:
            return
        largest = max(came, key=lambda p: p.tokens)
        if largest.tokens > self._most:
            truth: Truth = False
        else:
            unseen = next((p for p in came if p.method == "uncounted"), None)
            truth, largest = (True, largest) if unseen is None else (None, unseen)
        self.note(truth, place, lambda: self._told(largest), largest.tokens, largest.tokens)

    def _told(self, placement: Placement) -> str:
        name = self._names.of(placement.item, placement.title, _NAME_CELLS)
        if placement.method == "uncounted":
            return f"{name} has neither text nor size"
        return f"{name}, {plural(placement.tokens, 'token')} ({placement.method})"


class StablePrefix(Condition):
    """Every request begins with nine tenths of the previous one, so that a prompt cache can be read."""

    def __init__(self, names: ItemNames) -> None:
        super().__init__("stable-prefix", None, "broke the prefix", "no request has another before it")
        self._names = names

    def look(self, one: Walked, place: Place, *, judged: bool) -> None:
        """Check the possible prefix."""
        step = one.at.step
        prefix = step.cache.possible_prefix
        if not judged:
            return
        if step.target != "model":
            self.note(None, place, lambda: "prompt caches are of the model's requests")
        elif prefix is not None:
            whole = step.ledger.window_before
            truth = not breaks_cache(step) if whole else None
            self.note(truth, place, lambda: self._told(step, prefix), whole - prefix, whole - prefix)

    def _told(self, step: Step, prefix: int) -> str:
        if not step.ledger.window_before:
            return "nothing of the request before it is recorded"
        before = number(step.ledger.window_before)
        text = f"{number(prefix)} of {before} recorded tokens kept"
        broken = step.cache.broken_by
        if broken is not None:
            text += f", up to {broken_name(step, self._names)} ({broken.status})"
        return f"{text}; compared by content" if step.cache.compared == "content" else text


class NoMisses(Condition):
    """Nothing that a cache could have served was billed again."""

    def __init__(self) -> None:
        idle = "no request has another before it"
        super().__init__("no-misses", None, "missed the cache", idle)
        self._figures: set[ThreadKey] = set()
        """Threads with cache figures in a bill."""

    def look(self, one: Walked, place: Place, *, judged: bool) -> None:
        """Check for a miss, and whether one could be detected."""
        step = one.at.step
        cache, known = step.cache, one.key in self._figures
        tells = _has_cache_figures(step)
        if tells:
            self._figures.add(one.key)
        if not judged or (cache.possible_prefix is None and step.target == "model"):
            return
        miss = cache.miss
        if miss is not None:
            told = f"{plural(miss.tokens, 'token')} billed again ({miss_reason(miss)})"
            self.note(False, place, lambda: told, miss.tokens, miss.tokens)
        elif tells and known:
            self.note(True, place, lambda: "none, by the cache figures of the bills")
        else:
            self.note(None, place, lambda: "no cache figures to tell by")


def _has_cache_figures(step: Step) -> bool:
    """Return whether the bill has consistent cache figures."""
    billed = None if step.usage is None else step.usage.reported_input
    read, written = step.cache.reported_cached, step.cache.reported_cache_write
    return billed is not None and read is not None and read + (written or 0) <= billed


class NoCompaction(Condition):
    """No compaction is recorded, and no unexplained cut."""

    def __init__(self) -> None:
        super().__init__("no-compaction", None, "compacted", "none is recorded")

    def look(self, one: Walked, place: Place, *, judged: bool) -> None:
        """Check the request's flags."""
        step = one.at.step
        if not judged:
            return
        if "compacted" in step.flags:
            gone = [c for c in step.changes if c.status == "removed" and c.cause == "compacted"]
            tokens = sum(change.freed for change in gone)
            told = f"{plural(len(gone), 'item')}, {plural(tokens, 'token')} went"
            self.note(False, place, lambda: told, tokens, tokens)
        elif "unrecorded_cut" in step.flags:
            self.note(None, place, lambda: "history was cut, and nothing recorded says why")
        elif not step.window.recorded:
            self.note(None, place, lambda: _UNSEEN)


class QueryCondition(Condition):
    """A query that matches no request (`never`), or every one (`always`)."""

    which = "first"

    def __init__(self, name: str, text: str, query: WhereQuery, names: ItemNames) -> None:
        never = name == "never"
        idle = "no request matched" if never else "every request matched"
        super().__init__(name, text, "matched" if never else "did not match", idle)
        self._never, self._query, self._names = never, query, names

    def look(self, one: Walked, place: Place, *, judged: bool) -> None:
        """Check whether the query matches. Call this for each step."""
        held = self._query.held(one)
        truth = None if held.truth is None else held.truth is not self._never
        if judged and truth is not True:
            self.note(truth, place, lambda: self._told(one, [(c.item, c.title) for c in held.changes]))

    def _told(self, one: Walked, changes: list[tuple[str, str | None]]) -> str:
        if not changes:
            return sent_of(one.at.step.window)
        name = self._names.of(*changes[0], _NAME_CELLS)
        return name if len(changes) == 1 else f"{name} and {number(len(changes) - 1)} more"


class MaxCost(Condition):
    """All requests together cost at most a number of US dollars, by their bills."""

    def __init__(self, most: Decimal, book: RateBook) -> None:
        super().__init__("max-cost", price(most), "", "")
        self._most, self._book = most, book
        self._sum = Decimal(0)
        self._partial = 0
        """Number of requests with a partial output, which is priced as counted."""

    def look(self, one: Walked, place: Place, *, judged: bool) -> None:
        """The bill of a request, priced."""
        from ctxctl.analysis.request_cost import cost_of
        from ctxctl.model.cost_sums import NO_OUTPUT

        if not judged:
            return
        cost = cost_of(one.at.step, self._book)
        if cost.believed is not None:
            amount = cost.believed.total
            self._sum += amount
            self._partial += one.at.step.has_partial_output
            self.note(True, place, lambda: f"the most expensive request {dollars(amount)}", float(amount))
        why = (
            "no bill" if cost.billed_tokens is None
            else f"no price of {one.at.step.model or 'a model without a name'}" if cost.believed is None
            else f"no price of {', '.join(cost.not_priced)}" if cost.not_priced
            else "no output in the bill" if NO_OUTPUT in cost.assumed
            else None
        )  # fmt: skip
        if why is not None:
            self.note(None, place, lambda: why)

    def result(self) -> ConditionResult:
        """Return the sum, compared with the bound. Unknown parts make it a lower bound."""
        if not self.steps:
            return super().result()
        outcome: Outcome = "fails" if self._sum > self._most else "unknown" if self.unknown else "holds"
        told = self._noted.get(None if outcome == "unknown" else True)
        usd = self._sum if True in self._noted else None
        return ConditionResult(
            self.name, self.bound, outcome, self._message(outcome), self.steps, 0, self.unknown,
            None if told is None else told.place, None, usd,
        )  # fmt: skip

    def _message(self, outcome: Outcome) -> str:
        dearest, first = self._noted.get(True), self._noted.get(None)
        unknown = f"{_lead(self.unknown, 'first')}{first.message}" if first is not None else ""
        if dearest is None:
            return f"known of none of {plural(self.steps, 'request')}{unknown}"
        sign = AT_LEAST if self.unknown else APPROXIMATE if self._partial else ""
        parts = [f"{sign}{dollars(self._sum)} for {plural(self.steps, 'request')}"]
        if self._partial:
            parts.append(f"{plural(self._partial, 'output')} as counted")
        if unknown:
            parts.append(f"not known of {number(self.unknown)}{unknown}")
        if outcome != "unknown":
            parts.append(dearest.message)
        return "; ".join(parts)
