"""What requests cost, added up: sums of steps, sessions or whole directories, which can be added up again.

They are fed with what one request cost (`analysis.costs.StepCost`), and hold nothing of a trace but names of
models and addresses of steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from ctxctl.model.money import ZERO, Money, Tokens
from ctxctl.model.terms import Stated

if TYPE_CHECKING:
    from ctxctl.model.results import Step

IN_NO_LOG: Final = "compaction"
"""The key in `not_priced` of requests that wrote a summary and whose bill is in no log."""
NO_OUTPUT: Final = "no output is recorded: none priced"
"""What is assumed of a bill without an output; sums with one are lower bounds."""


_NOTHING: Final = Money()
_NONE: Final = Tokens()


class Paid(NamedTuple):
    """What one request, or some together, cost, as far as that is known."""

    steps: int = 0
    cost: Decimal = ZERO
    """Of the requests with a known price, in US dollars."""
    unpriced: int = 0
    """Requests whose price is not known."""
    is_counted: bool = False
    """A part of the cost is of what was counted, not billed."""
    is_least: bool = False
    """Something that was billed has no known price, or an answer is not recorded."""
    is_known: bool = True
    """Some of them have a bill, or content that is recorded; without either nobody knows what they cost."""


class MissSum(msgspec.Struct, frozen=True, array_like=True):
    """All cache misses of one cause."""

    number: int = 0
    tokens: int = 0
    money: Decimal = ZERO
    unpriced: int = 0
    """Misses whose price is not known."""

    def plus(self, other: MissSum) -> MissSum:
        """The sum."""
        return MissSum(
            self.number + other.number, self.tokens + other.tokens, self.money + other.money,
            self.unpriced + other.unpriced,
        )  # fmt: skip


class MissSums(msgspec.Struct, array_like=True):
    """Cache misses and what they cost, by cause."""

    found: dict[str, MissSum] = {}

    def add(self, cause: str, tokens: int, money: Decimal | None) -> None:
        """Take in one step's; `money`: None where a rate is unknown."""
        self._plus(cause, MissSum(1, tokens, money or ZERO, int(money is None)))

    def plus(self, other: MissSums) -> None:
        """Take in all of other steps."""
        for cause, found in other.found.items():
            self._plus(cause, found)

    def _plus(self, cause: str, more: MissSum) -> None:
        self.found[cause] = self.found.get(cause, MissSum()).plus(more)

    @property
    def by_cause(self) -> dict[str, MissSum]:
        """The dearest cause first; among equals by tokens, then by name."""
        return dict(sorted(self.found.items(), key=lambda row: (-row[1].money, -row[1].tokens, row[0])))

    @property
    def whole(self) -> MissSum:
        """The sum over all causes."""
        whole = MissSum()
        for found in self.found.values():
            whole = whole.plus(found)
        return whole


class PartialOutputs(msgspec.Struct, array_like=True):
    """Requests whose output was logged before the answer's end, and all bills with these as counted."""

    requests: int = 0
    reported: int = 0
    """Tokens of output that the client logged for these requests."""
    counted: int = 0
    """Tokens of their answers as counted."""
    tokens: Tokens = _NONE
    money: Money = _NOTHING
    """All that was billed, these outputs as counted."""

    def plus(self, other: PartialOutputs) -> None:
        """Take in all of other steps."""
        self.requests += other.requests
        self.reported += other.reported
        self.counted += other.counted
        self.tokens = self.tokens.plus(other.tokens)
        self.money = self.money.plus(other.money)


class StatedTotal(msgspec.Struct, frozen=True, array_like=True):
    """A total that a runtime states for the requests of a turn or a session, at the last of them."""

    session: str | None
    thread: str
    turn: int
    step: int
    total: Stated
    table_usd: Decimal | None
    """The table's price for its tokens."""
    billed_usd: Decimal | None
    """The sum of its requests' bills; None where one of them has no bill, or no price."""
    is_part: bool = False
    """Whether a later total of the session includes it."""

    @property
    def usd(self) -> Decimal | None:
        """The stated US dollars, or else the table's price for its tokens."""
        return self.table_usd if self.total.usd is None else Decimal(self.total.usd)


class _Bills(msgspec.Struct, array_like=True):
    """The bills of a session's requests, or of a thread's present turn."""

    turn: int = 0
    usd: Decimal | None = ZERO
    """None: a request has no bill, or no price."""
    open: int = 0
    """Requests that no total includes so far."""
    turns: dict[str, None] = {}
    """The keys of the turns' totals since the session's last total."""


class StatedSums(msgspec.Struct, array_like=True):
    """What the runtime itself says that requests cost."""

    requests: int = 0
    """Requests of which a cost is stated."""
    usd: Decimal = ZERO
    table: Decimal = ZERO
    """Their price by the table, of those that have one."""
    unpriced: int = 0
    """How many of these requests have no price by the table."""
    totals: dict[str, StatedTotal] = {}
    """The last total of each turn and session, in their order."""
    bills: dict[str, _Bills] = {}
    """The bills of requests that a later total may include, by session or thread."""
    open: int = 0
    """Requests that no total includes."""

    def plus(self, other: StatedSums) -> None:
        """Take in all of other steps."""
        self.requests += other.requests
        self.usd += other.usd
        self.table += other.table
        self.unpriced += other.unpriced
        self.open += other.open
        held = len(self.totals)
        self.totals |= {f"{held}+{key}": total for key, total in other.totals.items()}

    def take(self, step: Step, billed: Decimal | None, priced: Sequence[Decimal | None]) -> None:
        """Add a request's bill, and the totals that are stated with it.

        Args:
            step: The request.
            billed: The price of its bill.
            priced: The table's price for each total.
        """
        session = f"{step.session}"
        thread = f"{session}\0{step.thread}"
        bills = {"session": self.bills.setdefault(session, _Bills())}
        bills["turn"] = self.bills.setdefault(thread, _Bills(step.turn))
        if bills["turn"].turn != step.turn:
            bills["turn"] = self.bills[thread] = _Bills(step.turn)
        self.open += 1
        for one in bills.values():
            one.usd = None if billed is None or one.usd is None else one.usd + billed
            one.open += 1
        for total, table in zip(step.stated, priced, strict=True):
            keys = {"turn": f"{thread}\0{step.turn}", "request": f"{thread}\0\0request"}
            key = keys.get(total.scope, session)
            before = self.totals.pop(key, None)
            if before is not None and total.scope == "session" and _fell(before.total, total):
                self.totals[f"{key}~{len(self.totals)}"] = before  # of an earlier run of the client
                both = bills["session"].usd, before.billed_usd
                bills["session"].usd = None if None in both else both[0] - both[1]  # type: ignore[operator]
            turns = bills["session"].turns
            if total.scope == "turn":
                turns[key] = None
            elif total.scope == "session":
                self.totals |= {one: replace(self.totals[one], is_part=True) for one in turns}
                turns.clear()
            place = (step.session, step.thread, step.turn, step.step)
            if total.scope == "request":
                self.totals[key] = StatedTotal(*place, total, None, billed, is_part=True)
            else:
                self.totals[key] = StatedTotal(*place, total, table, bills[total.scope].usd)
                held = min(bills[total.scope].open, bills["session"].open)
                self.open, bills["session"].open = self.open - held, bills["session"].open - held
                bills["turn"].open = 0

    @property
    def whole(self) -> Decimal | None:
        """The sum of all totals, each request once; None where none has a cost or a price."""
        found = [one.usd for one in self.totals.values() if not one.is_part]
        known = [usd for usd in found if usd is not None]
        return sum(known, ZERO) if known else None

    @property
    def cost(self) -> Decimal | None:
        """The sum of the totals, or else of the costs stated for single requests; None where there is
        neither."""
        return self.usd if self.whole is None and self.requests else self.whole

    def is_least(self, steps: int) -> bool:
        """Whether `cost` leaves out some of so many requests."""
        if self.whole is None:
            return self.requests < steps
        return self.open > 0 or any(one.usd is None for one in self.totals.values() if not one.is_part)

    def tokens(self, name: str) -> int | None:
        """The sum of one of the `FIGURES` of all totals, each request once; None where none states it."""
        for is_part in (False, True):
            held = [one.total for one in self.totals.values() if one.is_part is is_part]
            found: list[int | None] = [getattr(total, name) for total in held if total.scope != "request"]
            known = [count for count in found if count is not None]
            if known:
                return sum(known)
        return None

    @property
    def is_priced(self) -> bool:
        """Whether a part of `cost` is the price of stated tokens."""
        return self.whole is not None and any(
            one.total.usd is None for one in self.totals.values() if not one.is_part
        )


def _fell(before: Stated, now: Stated) -> bool:
    """Whether a running total is less than it was: then another run of the client began it anew."""
    both = ((before.usd, now.usd), (before.input_tokens, now.input_tokens))
    return any(a is not None and b is not None and Decimal(b) < Decimal(a) for a, b in both)


@dataclass
class CostSums:
    """Sums over requests."""

    steps: int = 0
    billed: Money = _NOTHING
    counted: Money = _NOTHING
    billed_tokens: Tokens = _NONE
    counted_tokens: Tokens = _NONE
    sent: Money = _NOTHING
    """Requests of known size: bills, with partial outputs as counted, and what nobody billed as expected."""
    sent_tokens: Tokens = _NONE
    unsized: int = 0
    """Requests whose size nothing tells: they are in neither of these two."""
    unsized_tokens: int = 0
    """What is recorded of the content of those."""
    unbilled: Decimal = ZERO
    """How much of `sent` is of requests without a bill."""
    unreported: int = 0
    """Steps without usage."""
    unpriced: dict[str, int] = field(default_factory=dict)
    """Steps without a price, by why."""
    compared: tuple[Decimal, Decimal] = (ZERO, ZERO)
    """Billed, with partial outputs as counted, and counted, over the steps that have both."""
    units: dict[str, int] = field(default_factory=dict)
    """Calls of the provider's own tools, by tool."""
    not_priced: dict[str, int] = field(default_factory=dict)
    """What was billed and no rate is known for, by what it is."""
    partial_outputs: PartialOutputs = field(default_factory=PartialOutputs)
    broken: Decimal = ZERO
    saved: Decimal = ZERO
    breaks: int = 0
    stated: StatedSums = field(default_factory=StatedSums)
    """What the runtime itself says that requests cost."""
    misses: MissSums = field(default_factory=MissSums)
    """Cache misses that nothing recorded explains, by cause."""
    sources: dict[str, int] = field(default_factory=dict)
    """Steps by where their rates are from."""
    assumed: dict[str, int] = field(default_factory=dict)
    """Steps by what was assumed of their bill."""
    notes: list[str] = field(default_factory=list)
    """Whose prices they are; each once."""

    @property
    def is_priced(self) -> bool:
        """Whether a price is known at all, where there are requests.

        A source without a name is that of requests that cost nothing whatever the price.
        """
        return any(self.sources) or not self.steps

    @property
    def is_sized(self) -> bool:
        """Whether the size of any request is known, where there are requests."""
        return self.unsized < self.steps or not self.steps

    @property
    def is_counted(self) -> bool:
        """Whether a part of `sent` is as counted or expected: nobody billed it, or its output is partial."""
        return bool(self.unreported > self.unsized or self.partial_outputs.requests)

    @property
    def cost(self) -> Decimal | None:
        """What was sent and answered, in US dollars; None where no request has a known price and size."""
        return self.sent.total if any(self.sources) and self.is_sized else None

    @property
    def stated_cost(self) -> Decimal | None:
        """The cost that the runtime states, where no request has a known price and size."""
        return self.stated.cost if self.cost is None else None

    @property
    def at_least(self) -> bool:
        """Whether the sums leave out something: of unknown price or size, or an unrecorded answer."""
        return bool(self.not_priced or self.unpriced or self.unsized or NO_OUTPUT in self.assumed)

    def plus(self, other: CostSums) -> None:
        """Take in the sums of other requests."""
        self.steps += other.steps
        self.billed, self.counted = self.billed.plus(other.billed), self.counted.plus(other.counted)
        self.billed_tokens = self.billed_tokens.plus(other.billed_tokens)
        self.counted_tokens = self.counted_tokens.plus(other.counted_tokens)
        self.sent, self.sent_tokens = self.sent.plus(other.sent), self.sent_tokens.plus(other.sent_tokens)
        self.unsized += other.unsized
        self.unsized_tokens += other.unsized_tokens
        self.unbilled += other.unbilled
        self.unreported += other.unreported
        self.compared = (self.compared[0] + other.compared[0], self.compared[1] + other.compared[1])
        for ours, theirs in (
            (self.unpriced, other.unpriced), (self.units, other.units), (self.not_priced, other.not_priced),
            (self.sources, other.sources), (self.assumed, other.assumed),
        ):  # fmt: skip
            if theirs:
                count_all(ours, theirs)
        self.partial_outputs.plus(other.partial_outputs)
        self.broken, self.saved = self.broken + other.broken, self.saved + other.saved
        self.breaks += other.breaks
        self.stated.plus(other.stated)
        self.misses.plus(other.misses)
        self.notes += [note for note in other.notes if note not in self.notes]


def count_all(sums: dict[str, int], more: Mapping[str, int]) -> None:
    """Add counts by name to counts by name."""
    for name, count in more.items():
        sums[name] = sums.get(name, 0) + count
