"""Sums of what was spent, by name, and of what stands from request to request without being looked at again.

Most of a session's items stand in many requests, each time in the same part of the bill.  So what a request
spends on each token of that part is added to a running sum, and what it comes to for one name is worked out
when that changes: its tokens times what the sum has grown by since (`Standing`).
"""

from __future__ import annotations

from collections.abc import Collection
from decimal import Decimal
from functools import lru_cache
from typing import Final, NamedTuple

from ctxctl.model.money import ZERO, Rates, Tokens, priced

NOT_RECORDED: Final = "(not recorded)"
"""What is spent on what was sent and is not in the trace, by whatever items are named."""
EARLIER: Final = "(earlier passes)"
"""The cost of a request's passes before its last one, which alone is shared out over the items."""
PARTS: Final = ("cached", "audio_cached", "written_1h", "written", "input", "audio_input", "image_input")
"""Parts of a bill in the order in which providers place what is sent."""

Share = tuple[Rates, int]
"""A part of a bill, at its rates."""


class SpentOn(NamedTuple):
    """What went on one thing over a session."""

    name: str
    steps: int
    tokens: int
    """The sum over all requests."""
    money: Decimal
    unpriced: int
    """Tokens of requests whose price is not known."""
    is_least: bool = False
    """The size of some of its items is not known: `tokens` and `money` are without them."""

    @property
    def is_unknown(self) -> bool:
        """Nothing of it could be counted."""
        return self.is_least and not self.tokens


@lru_cache(maxsize=256)
def unpriced_parts(rates: Rates) -> frozenset[int]:
    """Return which of `PARTS` have no rate."""
    return frozenset(n for n, part in enumerate(PARTS) if priced(Tokens(**{part: 1}), rates) is None)


class Spent:
    """What was spent, by name."""

    def __init__(self) -> None:
        self._rows: dict[str, list[int]] = {}
        """By name: requests, tokens, and tokens of requests whose price is not known."""
        self._parts: dict[Rates, dict[str, list[int]]] = {}
        """By rates and name, tokens by `PARTS`, priced together when they are asked for."""
        self._shares: dict[Share, dict[str, float]] = {}
        """Of parts of bills that are stretched over what is counted, by name, tokens that were billed."""
        self._shared: dict[Share, int] = {}
        """How many were, in all."""

    def add(self, name: str, requests: int, tokens: int, unpriced: int) -> None:
        """Count requests in which a name stood, all its tokens in them, and those without a price."""
        row = self._rows.setdefault(name, [0, 0, 0])
        row[0] += requests
        row[1] += tokens
        row[2] += unpriced

    def put(self, name: str, share: Share, tokens: int) -> None:
        """Put billed tokens down to a name."""
        rates, part = share
        self._parts.setdefault(rates, {}).setdefault(name, [0] * len(PARTS))[part] += tokens

    def earlier(self, tokens: Tokens, rates: Rates, *, unpriced: bool) -> None:
        """Add a pass of a request that is not its last one."""
        self.add(EARLIER, 1, tokens.context, tokens.context if unpriced else 0)
        for part, name in enumerate(PARTS if not unpriced else ()):
            self.put(EARLIER, (rates, part), getattr(tokens, name))

    def share_out(self, share: Share, tokens: int) -> None:
        """Say how many tokens `give` shares out; so the sum of all names is exact."""
        self._shared[share] = self._shared.get(share, 0) + tokens

    def give(self, name: str, share: Share, tokens: float) -> None:
        """Put a share of billed tokens down to a name, not rounded."""
        names = self._shares.setdefault(share, {})
        names[name] = names.get(name, 0.0) + tokens

    def found(self, uncounted: Collection[str]) -> list[SpentOn]:
        """By name, the dearest first; among equals by tokens, then by name."""
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
        """By rates: name, part and whole tokens of what was shared out; exact in the sum of each part."""
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
    """Running sums at one request: of requests, of those without a price, and for a token of each part."""

    requests: int
    unpriced: int
    exact: dict[Share, int]
    """How often a token of the part was billed."""
    stretched: dict[Share, float]
    """How much of a token was, where fewer were billed than are counted."""


class Standing:
    """What was spent on the names of one thread's frame since it was settled last."""

    def __init__(self, spent: Spent) -> None:
        self.spent = spent
        self._now = _Mark(0, 0, {}, {})
        self._since: dict[str, _Mark] = {}
        """By name, the sums when its tokens changed last; those that are no name's any more are gone."""

    def request(self, share: Share | None, *, unpriced: bool, each: float | None = None) -> None:
        """Take in a request.

        Args:
            share: The part of the bill that all tokens of the frame are in; None: nothing is put down.
            unpriced: Whether its price is not known.
            each: What is billed for each token of the part, where fewer were billed than are counted.
        """
        requests, without, exact, stretched = self._now
        if share is not None and each is None:
            exact = {**exact, share: exact.get(share, 0) + 1}
        elif share is not None and each is not None:
            stretched = {**stretched, share: stretched.get(share, 0.0) + each}
        self._now = _Mark(requests + 1, without + unpriced, exact, stretched)

    def settle(self, name: str, tokens: int | None) -> None:
        """Put down what was spent on a name since it was settled last.

        Args:
            name: The name.
            tokens: As many as it had all that time; None: it comes only now.
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
        """Forget a name that was settled."""
        del self._since[name]
