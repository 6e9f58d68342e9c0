"""What each request was spent on, by name. A thread's frame is followed by its changes.

A request is laid out in the provider's order and billed in parts: its beginning was read from a cache, the
next tokens were written to one, and the rest is plain input. Most of a frame is in one part, so only
placements outside of it are visited, and the rest of the sums belongs to that part. If many are outside, sums
over the frame's beginning are kept from step to step and subtracted.

If more is counted than billed, the parts of the bill are stretched over the counted tokens, and each part is
divided by the tokens that it then covers.

With many names (items), unchanged ones are not visited either (`spent.Standing`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, NamedTuple

from ctxctl.analysis.spent import NOT_RECORDED, PARTS, Share, Spent, Standing, unpriced_parts
from ctxctl.engine.sizes.prefix import is_provider_order, provider_order
from ctxctl.model.vocab import rank_of

if TYPE_CHECKING:
    from ctxctl.engine.replay.frames import FrameDelta
    from ctxctl.model.money import Rates, Tokens
    from ctxctl.model.results import Placement

_REST: Final = rank_of("history")
_MAX_VISITED: Final = 256
"""Most placements outside of the largest part, at either end, for which visiting them is cheapest."""
_MAX_VISITED_NAMES: Final = 64
"""Most names that are visited at each request, and for which sums over a frame's beginning are kept."""
_SUM_INTERVAL: Final = 64
"""Number of placements between two kept sums."""

By = Callable[["Placement"], str]
"""The name that a placement's cost is assigned to."""


class _Region(NamedTuple):
    """Tokens of a request from `start` to `end`, all billed as one part."""

    start: int
    end: int
    part: int


class NamedFrame:
    """The sums of one thread's frame by name."""

    def __init__(self, by: By, uncounted: set[str], spent: Spent) -> None:
        """`uncounted` collects names with an item of unknown size, and `spent` the costs of requests."""
        self._by = by
        self._uncounted = uncounted
        self._standing = Standing(spent)
        self._placements: list[Placement] = []
        self._tokens: dict[str, int] = {}
        self._whole = 0
        self._copies: dict[str, int] = {}
        self._heads: dict[Placement, int] = {}
        """Number of copies of each placement that providers put first."""
        self._sums = _PrefixSums(by)

    def move_to(self, placements: list[Placement], delta: FrameDelta | None) -> None:
        """Proceed to the next frame; `delta` is its difference from the last one, if known."""
        known = delta is not None and (
            delta.before is self._placements or delta.before == self._placements  # compared by identity
        )
        if delta is None or not known:
            self.settle()
            for name in self._tokens:
                self._standing.leave(name)
            self._tokens, self._copies, self._heads, self._whole = {}, {}, {}, 0
            self._count(placements, 1)
            self._sums.keep(0)
        else:
            self._count(delta.inserted, 1)
            self._count(delta.removed, -1)
            self._sums.keep(delta.prefix)
        self._placements = placements

    def _count(self, placements: Iterable[Placement], sign: int) -> None:
        tokens, copies = self._tokens, self._copies
        for placement in placements:
            name = self._by(placement)
            stands = tokens.get(name)
            self._standing.settle(name, stands)
            tokens[name] = (stands or 0) + sign * placement.tokens
            self._whole += sign * placement.tokens
            copies[name] = copies.get(name, 0) + sign
            if not copies[name]:
                del tokens[name], copies[name]
                self._standing.leave(name)
            if placement.rank < _REST:
                stood = self._heads.pop(placement, 0) + sign
                if stood:
                    self._heads[placement] = stood
            if placement.method == "uncounted":
                self._uncounted.add(name)

    def settle(self) -> None:
        """Assign the cost so far to all names in the frame."""
        for name, tokens in self._tokens.items():
            self._standing.settle(name, tokens)

    def spend(self, billed: Tokens, beside: int, rates: Rates, *, unpriced: bool) -> None:
        """Assign a request's cost to the names in the frame.

        Args:
            billed: The request.
            beside: Unrecorded tokens, which come first.
            rates: The rates of its bill.
            unpriced: Whether what was sent has no price.
        """
        unknown = unpriced_parts(rates)
        has_rates = not any(getattr(billed, PARTS[part]) for part in unknown)
        if len(self._tokens) > _MAX_VISITED_NAMES and (unpriced or has_rates):
            self._spend_on_many(billed, beside, rates, unpriced=unpriced)
            return
        spent = self._standing.spent
        for name, (*parts, tokens) in self.parts(billed, beside).items():
            spent.add(name, 1, tokens, tokens if unpriced else 0)
            if not unpriced and not any(parts[part] for part in unknown):
                for part, put in enumerate(parts):
                    spent.put(name, (rates, part), put)

    def _spend_on_many(self, billed: Tokens, beside: int, rates: Rates, *, unpriced: bool) -> None:
        """Assign costs like `parts`, without visiting placements in the largest part."""
        spent, whole = self._standing.spent, self._whole + beside
        regions = _regions(billed, whole)
        if beside:
            requests = 0 if NOT_RECORDED in self._tokens else 1
            spent.add(NOT_RECORDED, requests, beside, beside if unpriced else 0)
        if unpriced or not regions:
            self._standing.request(None, unpriced=unpriced)
            return
        most = max(regions, key=lambda region: region.end - region.start)
        stretched = whole > _context(billed)
        put_down = _PutDown(spent, rates, billed, stretched=stretched)
        self._standing.request((rates, most.part), unpriced=False, each=put_down.each(most))
        put_down.put(NOT_RECORDED, most, beside)
        for region in regions if stretched else ():
            spent.share_out((rates, region.part), getattr(billed, PARTS[region.part]))
        for walk, outside in self._walks(beside, whole, regions, most):
            for name, start, end in walk:
                for region in outside:
                    common = min(end, region.end) - max(start, region.start)
                    if common > 0:
                        put_down.put(name, most, -common)
                        put_down.put(name, region, common)

    def _walks(
        self, beside: int, whole: int, regions: list[_Region], most: _Region
    ) -> tuple[tuple[Iterator[tuple[str, int, int]], list[_Region]], ...]:
        """Return the pieces of the request before and after its largest part, with their parts."""
        ordered = provider_order(self._placements, sum(self._heads.values()), self._heads)
        at = regions.index(most)
        return (
            (self._forward(ordered, beside, most.start), regions[:at]),
            (self._backward(ordered, beside, whole, most.end), regions[at + 1 :]),
        )

    def parts(self, billed: Tokens, beside: int) -> dict[str, list[int]]:
        """Return by name its billed tokens by `PARTS`, and all its counted tokens.

        Args:
            billed: The request.
            beside: Unrecorded tokens, which come first.
        """
        totals = dict(self._tokens)
        if beside:
            totals[NOT_RECORDED] = totals.get(NOT_RECORDED, 0) + beside
        whole = sum(totals.values())
        regions = _regions(billed, whole)
        found = {name: [0] * len(PARTS) + [tokens] for name, tokens in totals.items()}
        if not regions:
            return found
        most = max(regions, key=lambda region: region.end - region.start)
        for row in found.values():
            row[most.part] = row[-1]
        is_ordered = is_provider_order(self._placements, sum(self._heads.values()))
        for walk, outside in self._walks(beside, whole, regions, most):
            pieces = list(islice(walk, _MAX_VISITED))
            if len(pieces) == _MAX_VISITED and len(found) <= _MAX_VISITED_NAMES and is_ordered:
                self._subtract(found, beside, outside, most)
            else:
                _put_down(found, chain(pieces, walk), outside, most)
        if whole > _context(billed):
            _shrink(found, billed, regions)
        return found

    def _subtract(
        self, found: dict[str, list[int]], beside: int, regions: Iterable[_Region], most: _Region
    ) -> None:
        """Assign costs like `_put_down`, by sums over the frame's beginning."""
        for region in regions:
            edges = (region.start, region.end)
            low, high = (self._sums.until(self._placements, max(0, edge - beside)) for edge in edges)
            first, last = (min(edge, beside) for edge in edges)
            if last > first:
                high[NOT_RECORDED] = high.get(NOT_RECORDED, 0) + last - first
            for name, tokens in high.items():
                common = tokens - low.get(name, 0)
                found[name][most.part] -= common
                found[name][region.part] += common

    def _forward(self, ordered: list[Placement], beside: int, end: int) -> Iterator[tuple[str, int, int]]:
        """Yield the pieces of the request from its start to a place: name, start and end."""
        at = 0
        first = ((NOT_RECORDED, beside),) if beside else ()
        for name, tokens in chain(first, ((self._by(p), p.tokens) for p in ordered)):
            if at >= end:
                break
            yield name, at, at + tokens
            at += tokens

    def _backward(
        self, ordered: list[Placement], beside: int, whole: int, start: int
    ) -> Iterator[tuple[str, int, int]]:
        """Yield the pieces of the request from its end back to a place."""
        at = whole
        last = ((NOT_RECORDED, beside),) if beside else ()
        for name, tokens in chain(((self._by(p), p.tokens) for p in reversed(ordered)), last):
            if at <= start:
                break
            yield name, at - tokens, at
            at -= tokens


class _PrefixSums:
    """Sums by name over a frame's beginning, at every `_SUM_INTERVAL` placements, as far as requested."""

    def __init__(self, by: By) -> None:
        self._by = by
        self._starts = [0]
        self._sums: list[dict[str, int]] = [{}]

    def keep(self, number: int) -> None:
        """Proceed to a frame with the same first `number` placements."""
        del self._starts[number // _SUM_INTERVAL + 1 :], self._sums[number // _SUM_INTERVAL + 1 :]

    def until(self, placements: list[Placement], end: int) -> dict[str, int]:
        """Return the tokens by name before token `end` of the frame."""
        starts, sums = self._starts, self._sums
        while starts[-1] < end and len(starts) * _SUM_INTERVAL <= len(placements):
            at = (len(starts) - 1) * _SUM_INTERVAL
            here = dict(sums[-1])
            starts.append(self._add(here, placements[at : at + _SUM_INTERVAL], starts[-1], None))
            sums.append(here)
        mark = bisect_right(starts, end) - 1
        found = dict(sums[mark])
        self._add(found, placements[mark * _SUM_INTERVAL : (mark + 1) * _SUM_INTERVAL], starts[mark], end)
        return found

    def _add(self, sums: dict[str, int], placements: list[Placement], at: int, end: int | None) -> int:
        for placement in placements:
            tokens = placement.tokens if end is None else min(placement.tokens, end - at)
            if tokens > 0:
                name = self._by(placement)
                sums[name] = sums.get(name, 0) + tokens
                at += tokens
        return at


class _PutDown:
    """Assigns counted tokens to the parts of one bill, scaled if fewer were billed."""

    def __init__(self, spent: Spent, rates: Rates, billed: Tokens, *, stretched: bool) -> None:
        self._spent = spent
        self._rates = rates
        self._billed = billed
        self._stretched = stretched

    def each(self, region: _Region) -> float | None:
        """Return the billed tokens per counted token of a part, if that is less than 1."""
        if not self._stretched:
            return None
        return float(getattr(self._billed, PARTS[region.part])) / (region.end - region.start)

    def put(self, name: str, region: _Region, tokens: int) -> None:
        """Assign tokens to a part."""
        share: Share = (self._rates, region.part)
        each = self.each(region)
        if not tokens:
            return
        if each is None:
            self._spent.put(name, share, tokens)
        else:
            self._spent.give(name, share, tokens * each)


def _put_down(
    found: dict[str, list[int]],
    pieces: Iterable[tuple[str, int, int]],
    regions: Iterable[_Region],
    most: _Region,
) -> None:
    """Assign pieces of a request to their regions, from the largest one."""
    for name, start, end in pieces:
        row = found[name]
        for region in regions:
            common = min(end, region.end) - max(start, region.start)
            if common > 0:
                row[most.part] -= common
                row[region.part] += common


def _context(billed: Tokens) -> int:
    return sum(getattr(billed, name) for name in PARTS)


def _regions(billed: Tokens, whole: int) -> list[_Region]:
    """Return the billed regions of a request of `whole` counted tokens, in order. If fewer are billed, all
    regions are stretched alike to cover it."""
    context = _context(billed)
    found: list[_Region] = []
    start = at = 0
    for part, name in enumerate(PARTS):
        at += getattr(billed, name)
        end = at * whole // context if whole > context > 0 else min(whole, at)
        if end > start:
            found.append(_Region(start, end, part))
            start = end
    return found


def _shrink(found: dict[str, list[int]], billed: Tokens, regions: Iterable[_Region]) -> None:
    """Divide each part of the bill by its counted tokens: to within a token, and exactly in sum."""
    names = sorted(found)
    for region in regions:
        tokens, width = getattr(billed, PARTS[region.part]), region.end - region.start
        counted = given = 0
        for name in names:
            row = found[name]
            counted += row[region.part]
            row[region.part], given = counted * tokens // width - given, counted * tokens // width
