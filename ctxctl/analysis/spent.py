"""Sums of costs by name, with running sums for items that stay from request to request.

Most items of a session stay in many requests, each time in the same part of the bill. So the cost per token
of that part is added to a running sum. A name's cost is computed when its tokens change: its tokens times the
growth of the sum (`Standing`).
"""

from __future__ import annotations

from collections.abc import Collection
from decimal import Decimal
from functools import lru_cache
from typing import Final, NamedTuple

from ctxctl.model.money import ZERO, Rates, Tokens, priced

NOT_RECORDED: Final = "(not recorded)"
"""The name for the cost of unrecorded content."""
EARLIER: Final = "(earlier passes)"
"""The name for a request's passes before its last one. Only the last pass is divided among items."""
PARTS: Final = ("cached", "audio_cached", "written_1h", "written", "input", "audio_input", "image_input")
"""Parts of a bill in the order of providers' requests."""

Share = tuple[Rates, int]
"""A part of a bill, with its rates."""


class SpentOn(NamedTuple):
    """What one name cost over a session."""

    name: str
    steps: int
    tokens: int
    """Tokens over all requests."""
    money: Decimal
    unpriced: int
    """Tokens of requests without a known price."""
    is_least: bool = False
    """Whether some of its items have no known size, so that `tokens` and `money` exclude them."""

    @property
    def is_unknown(self) -> bool:
        """Whether nothing of it could be counted."""
        return self.is_least and not self.tokens


@lru_cache(maxsize=256)
def unpriced_parts(rates: Rates) -> frozenset[int]:
    """Return which of `PARTS` have no rate."""
    return frozenset(n for n, part in enumerate(PARTS) if priced(Tokens(**{part: 1}), rates) is None)


class Spent:
    """Costs by name."""

    def __init__(self) -> None:
        self._rows: dict[str, list[int]] = {}
        """By name: requests, tokens, and tokens of requests without a known price."""
        self._parts: dict[Rates, dict[str, list[int]]] = {}
        """By rates and name: tokens by `PARTS`, which are priced together on demand."""
        self._shares: dict[Share, dict[str, float]] = {}
        """By part and name: billed tokens of parts that are stretched over counted tokens."""
        self._shared: dict[Share, int] = {}
        """Their totals, by part."""

    def add(self, name: str, requests: int, tokens: int, unpriced: int) -> None:
        """Add requests with a name, all its tokens in them, and those without a price."""
        row = self._rows.setdefault(name, [0, 0, 0])
        row[0] += requests
        row[1] += tokens
        row[2] += unpriced

    def put(self, name: str, share: Share, tokens: int) -> None:
        """Assign billed tokens to a name."""
        rates, part = share
        self._parts.setdefault(rates, {}).setdefault(name, [0] * len(PARTS))[part] += tokens

    def earlier(self, tokens: Tokens, rates: Rates, *, unpriced: bool) -> None:
        """Add an earlier pass of a request."""
        self.add(EARLIER, 1, tokens.context, tokens.context if unpriced else 0)
        for part, name in enumerate(PARTS if not unpriced else ()):
            self.put(EARLIER, (rates, part), getattr(tokens, name))

    def share_out(self, share: Share, tokens: int) -> None:
        """Announce how many tokens `give` divides, so that the total over all names is exact."""
        self._shared[share] = self._shared.get(share, 0) + tokens

    def give(self, name: str, share: Share, tokens: float) -> None:
        """Assign a share of billed tokens to a name, not rounded."""
        names = self._shares.setdefault(share, {})
        names[name] = names.get(name, 0.0) + tokens

    def found(self, uncounted: Collection[str]) -> list[SpentOn]:
        """Return the costs by name, the highest first; among equals by tokens, then by name."""
        money = dict.fromkeys(self._rows, ZERO)
        for rates, names in self.parts().items():
            for name, parts in names.items():
                spent = priced(Tokens(**dict(zip(PARTS, parts, strict=True))), rates)
                assert spent is not None
                money[name] += spent.total
        found = [
            SpentOn(name, steps, tokens, money[name], unpriced, name in uncounted)
            for name, (steps, tokens, unpriced) in self._rows.items()
        ]
        return sorted(found, key=lambda s: (-s.money, -s.tokens, s.name))

    def parts(self) -> dict[Rates, dict[str, list[int]]]:
        """By rates and name, billed tokens by `PARTS`."""
        whole = {
            rates: {name: list(parts) for name, parts in names.items()}
            for rates, names in self._parts.items()
        }
        for rates, rows in self._rounded().items():
            names = whole.setdefault(rates, {})
            for name, part, tokens in rows:
                names.setdefault(name, [0] * len(PARTS))[part] += tokens
        return whole

    def _rounded(self) -> dict[Rates, list[tuple[str, int, int]]]:
        """Return by rates: name, part and whole tokens of divided shares; exact in the sum of each part."""
        made: dict[Rates, list[tuple[str, int, int]]] = {}
        for (rates, part), names in self._shares.items():
            tokens, whole = self._shared[rates, part], sum(names.values())
            counted, given = 0.0, 0
            last = max(names)
            for name in sorted(names):
                counted += names[name]
                upto = (
                    tokens if name == last else min(tokens, round(counted / whole * tokens)) if whole else 0
                )
                made.setdefault(rates, []).append((name, part, max(upto, given) - given))
                given = max(upto, given)
        return made


class _Mark(NamedTuple):
    """Running sums at one request: requests, those without a price, and tokens billed per token."""

    requests: int
    unpriced: int
    exact: dict[Share, int]
    """How often a token of the part was billed."""
    stretched: dict[Share, float]
    """How much of a token was billed, where less was billed than counted."""


class Standing:
    """The cost of the names in one thread's frame since each was last settled."""

    def __init__(self, spent: Spent) -> None:
        self.spent = spent
        self._now = _Mark(0, 0, {}, {})
        self._since: dict[str, _Mark] = {}
        """By name: the sums when its tokens last changed; without names that left."""

    def request(self, share: Share | None, *, unpriced: bool, each: float | None = None) -> None:
        """Add a request.

        Args:
            share: The part of the bill with all tokens of the frame; None: nothing is assigned.
            unpriced: Whether its price is unknown.
            each: Billed tokens per counted token, where less was billed than counted.
        """
        requests, without, exact, stretched = self._now
        if share is not None and each is None:
            exact = {**exact, share: exact.get(share, 0) + 1}
        elif share is not None and each is not None:
            stretched = {**stretched, share: stretched.get(share, 0.0) + each}
        self._now = _Mark(requests + 1, without + unpriced, exact, stretched)

    def settle(self, name: str, tokens: int | None) -> None:
        """Assign a name's cost since it was last settled.

        Args:
            name: The name.
            tokens: Its tokens during that time; None if it enters only now.
        """
        since, now = self._since.get(name), self._now
        self._since[name] = now
        if tokens is None or since is None or since is now:
            return
        spent = self.spent
        requests = now.requests - since.requests
        spent.add(name, requests, requests * tokens, (now.unpriced - since.unpriced) * tokens)
        for share, times in now.exact.items():
            if times := times - since.exact.get(share, 0):
                spent.put(name, share, times * tokens)
        for share, each in now.stretched.items():
            if each := each - since.stretched.get(share, 0.0):
                spent.give(name, share, each * tokens)

    def leave(self, name: str) -> None:
        """Forget a settled name."""
        del self._since[name]
