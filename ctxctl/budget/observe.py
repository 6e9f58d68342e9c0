"""What recorded sessions tell: sizes of parts, of what is said and called, and how often parts change.

`SessionGrowth` follows how the window of a session grew, request by request, and what of it is still there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from ctxctl.budget.beside import COLUMN, SentBesideRecord, scaled_arrivals
from ctxctl.budget.plan import Arrival
from ctxctl.engine.replay.frames import FrameDelta
from ctxctl.model.results import Placement, Step
from ctxctl.model.vocab import rank_of

_TALK: Final = {
    "user_message": "user",
    "assistant_message": "answer",
    "reasoning": "answer",
    "tool_call": "call",
    "tool_result": "result",
}


class PartGroup(NamedTuple):
    """Placements that make one part of a plan."""

    segment: str
    """`tools`, `system` or `context`."""
    kind: str
    source: str | None


class GroupSizes(NamedTuple):
    """A group over the turns of all sessions."""

    sizes: tuple[int, ...]
    """By turn; of a group that stays, of what was new in a turn."""
    changed: int
    chances: int
    """Turns that could have changed it: all but the first of each session."""
    stays: bool


class TurnTalk(NamedTuple):
    """What is said in one turn, in tokens."""

    user: int
    answer: int
    calls: tuple[int, ...]
    results: tuple[int, ...]
    parallel: tuple[int, ...]
    """How many calls came in one answer, by answer."""


class _Turn:
    def __init__(self) -> None:
        self.user = self.answer = 0
        self.calls: list[int] = []
        self.results: list[int] = []
        self.parallel: list[int] = []
        self.groups: dict[PartGroup, dict[int, int]] = {}

    @property
    def talk(self) -> TurnTalk:
        return TurnTalk(self.user, self.answer, tuple(self.calls), tuple(self.results), tuple(self.parallel))


class Observed:
    """One thread of one session; feed it its steps in their order."""

    def __init__(self) -> None:
        self.steps = 0
        self.turns: list[_Turn] = []
        self.models: Counter[tuple[str, str | None]] = Counter()
        self.last: Step | None = None
        self.earlier = 0
        """Tokens of messages that were there before the first one that was recorded."""
        self.uncounted = 0
        self.sent = SentBesideRecord()
        self.course = SessionGrowth()
        """The growth of the session, request by request."""
        self.over = 0
        """Requests that were over the cap then in force."""
        self.first_over: int | None = None
        """The turn of the first of them."""
        self._known: set[str] = set()
        self._groups: dict[PartGroup, dict[int, int]] = {}
        """What of the last step is no message, by group and rendering; never changed."""
        self._frame: Sequence[Placement] = []
        self._copies: Counter[tuple[PartGroup, int]] = Counter()
        """How often each stands in the frame."""
        self._number: int | None = None

    def add(
        self,
        step: Step,
        placements: Sequence[Placement],
        turn: int | None = None,
        delta: FrameDelta | None = None,
    ) -> None:
        """Take in one step; `turn` is its number where a plan counts something else as turns.

        With `delta`, how the frame differs from that of the step before, only what came is looked at.
        """
        self.steps += 1
        self.last = step
        self.course.add(step, self.steps)
        if step.model is not None:
            self.models[step.model, step.usage.provider if step.usage is not None else None] += 1
        number = step.turn if turn is None else turn
        if step.window.over:
            self.over += 1
            self.first_over = number if self.first_over is None else self.first_over
        first = number != self._number
        if first:
            self._number = number
            self.turns.append(_Turn())
        now = self.turns[-1]
        # What a model answered is in the next request: of a turn's first one it belongs to the turn before.
        before = self.turns[-2] if first and len(self.turns) > 1 else now
        begins = first and len(self.turns) == 1
        if delta is not None and not (delta.before is self._frame or delta.before == self._frame):
            delta = None  # the frame before was weighed anew: another encoding
        self._frame = placements
        now.groups = self._groups = self._grouped(placements, delta)
        came = placements if delta is None else delta.inserted
        new = list(self._new(came, begins=begins))
        arrived = sum(tokens for _, tokens in new)
        total = self.sent.grown(step, arrived)
        if not arrived and not begins:
            before.answer += total
        for what, counted in new:
            tokens = counted * total // arrived if arrived else 0
            if what == "user":
                now.user += tokens
            elif what == "answer":
                before.answer += tokens
            elif what == "call":
                before.calls.append(tokens)
            else:
                before.results.append(tokens)
        if calls := sum(what == "call" for what, _ in new):
            before.parallel.append(calls)

    def _new(self, came: Sequence[Placement], *, begins: bool) -> Iterator[tuple[str, int]]:
        """What is said for the first time, with its tokens."""
        newest = next((p.item for p in reversed(came) if p.kind == "user_message"), None) if begins else None
        for placement in came:
            what = _said(placement)
            if what is None or placement.item in self._known:
                continue
            self._known.add(placement.item)
            self.uncounted += placement.method == "uncounted"
            if begins and placement.item != newest:
                self.earlier += placement.tokens
            else:
                yield what, placement.tokens

    def _grouped(
        self, placements: Sequence[Placement], delta: FrameDelta | None
    ) -> dict[PartGroup, dict[int, int]]:
        """What is no message; only the groups of which some came or left are made anew."""
        if delta is None:
            self._copies.clear()
        groups = {} if delta is None else dict(self._groups)
        mine: set[PartGroup] = set()
        for placement in delta.removed if delta is not None else ():
            if (group := _group_of(placement)) is not None:
                held = _own(groups, group, mine)
                self._copies[group, placement.key] -= 1
                if not self._copies[group, placement.key]:
                    del self._copies[group, placement.key], held[placement.key]
        for placement in delta.inserted if delta is not None else placements:
            if (group := _group_of(placement)) is not None:
                self._copies[group, placement.key] += 1
                _own(groups, group, mine)[placement.key] = placement.tokens
        for group in mine:
            if not groups[group]:
                del groups[group]
        return groups


def _own(groups: dict[PartGroup, dict[int, int]], group: PartGroup, mine: set[PartGroup]) -> dict[int, int]:
    """A group that may be changed: a copy of what an earlier turn has."""
    if group not in mine:
        mine.add(group)
        groups[group] = dict(groups.get(group, {}))
    return groups[group]


def _group_of(placement: Placement) -> PartGroup | None:
    """The group of what is no message, and stands for none."""
    if _said(placement) is not None or placement.kind in STANDS_FOR_OLDER:
        return None
    segment = ("tools", "system", "context")[rank_of(placement.segment)]
    return PartGroup(segment, placement.kind, placement.source if segment != "system" else None)


def _said(placement: Placement) -> str | None:
    """Which message a placement is; None for what is none."""
    return _TALK.get(placement.kind) if rank_of(placement.segment) == 2 else None


def talk_of(threads: Iterable[Observed]) -> list[TurnTalk]:
    """The turns of all sessions; the last answer of each is in no request: its turn knows nothing of it."""
    return [turn.talk for thread in threads for turn in thread.turns]


def answers_of(threads: Iterable[Observed]) -> list[int]:
    """What stayed of the answers, by turn; of turns that another one follows."""
    return [turn.answer for thread in threads for turn in thread.turns[:-1]]


def groups_of(threads: Sequence[Observed]) -> dict[PartGroup, GroupSizes]:
    """The groups of all sessions, in the order of the window, each with its sizes by turn."""
    names: dict[PartGroup, None] = {}
    for thread in threads:
        for turn in thread.turns:
            names.update(dict.fromkeys(turn.groups))
    order = ("tools", "system", "context")
    return {group: _seen(group, threads) for group in sorted(names, key=lambda g: order.index(g.segment))}


def _seen(group: PartGroup, threads: Sequence[Observed]) -> GroupSizes:
    whole: list[int] = []
    fresh: list[int] = []
    changed = chances = grew = 0
    for thread in threads:
        before: dict[int, int] | None = None
        for turn in thread.turns:
            now = turn.groups.get(group, {})
            whole.append(sum(now.values()))
            new = sum(tokens for key, tokens in now.items() if before is None or key not in before)
            if before is not None:
                chances += 1
                if now.keys() != before.keys():
                    changed += 1
                    grew += bool(before) and before.keys() < now.keys()
            if before is None or new:
                fresh.append(new)
            before = now
    stays = group.segment == "context" and changed > 0 and grew * 2 > changed
    return GroupSizes(tuple(fresh if stays else whole), changed, chances, stays)


BEGINNING: Final = 0.1
"""Share of a session that is its beginning."""
COMMON: Final = 0.95
"""Share of the units that count as they were; larger ones count as large as the largest of these.
A file of 40,000 tokens that was read once says little of what comes."""


class SessionGrowth:
    """One thread of one session; feed it its steps in their order."""

    def __init__(self) -> None:
        self.arrivals: list[Arrival] = []
        """What each request had that none before it had, by the provider's count where it was billed."""
        self.sent = SentBesideRecord()
        self.units: list[int] = []
        """By request, the unit that it belongs to."""
        self._came: dict[str, int] = {}
        """By item, the unit in which it came."""

    def add(self, step: Step, unit: int) -> None:
        """Take in one step; units count from 1 and never fall."""
        sums = [0, 0, 0, 0]
        for change in step.changes:
            column = COLUMN.get(change.kind)
            if column is None:
                continue
            if change.status == "added" and change.item not in self._came:
                # What comes back after it had left is in no unit's growth.
                self._came[change.item] = unit
                sums[column] += change.new
            elif change.status == "updated":
                sums[column] += max(0, change.new - change.freed)
        self.arrivals.append(scaled_arrivals(sums, self.sent.grown(step, sum(sums))))
        self.units.append(unit)

    def seen(self) -> list[tuple[Arrival, ...]]:
        """The units, each with its requests; without the first tenth of them, at least the first.

        What a session begins with does not come again: a task is given, and the place is looked over.  Units
        above the `COMMON` size are made as large as that.
        """
        found: list[list[Arrival]] = []
        for number, (unit, arrival) in enumerate(zip(self.units, self.arrivals, strict=True)):
            if number == 0 or unit != self.units[number - 1]:
                found.append([])
            found[-1].append(arrival)
        kept = found[max(1, round(len(found) * BEGINNING)) :] or found
        sizes = sorted(sum(map(sum, arrivals)) for arrivals in kept)
        most = sizes[min(len(sizes) - 1, int(len(sizes) * COMMON))]
        return [_cut(arrivals, most) for arrivals in kept]

    def history(self, placements: Sequence[Placement], most: int) -> tuple[list[Arrival], int]:
        """What is in a window of each unit, the oldest first, and tokens of what stands for older messages.

        Args:
            placements: The window.
            most: Rows; where there are more units, some in a row share one.
        """
        held: dict[int, list[int]] = {}
        other = 0
        for placement in placements:
            if rank_of(placement.segment) != 2:
                continue
            column = COLUMN.get(placement.kind)
            if column is not None:
                row = held.setdefault(self._came.get(placement.item, 0), [0, 0, 0, 0])
                row[column] += placement.tokens
            elif placement.kind in STANDS_FOR_OLDER:
                other += placement.tokens
        rows = [held[unit] for unit in sorted(held) if any(held[unit])]
        together = max(1, -(-len(rows) // most))
        merged = (rows[at : at + together] for at in range(0, len(rows), together))
        sums = ([sum(column) for column in zip(*some, strict=True)] for some in merged)
        return [(a, b, c, d) for a, b, c, d in sums], other


STANDS_FOR_OLDER: Final = frozenset(("thread_summary", "session_history"))
"""Kinds of what stands for messages that were counted when they came."""


def _cut(arrivals: Sequence[Arrival], most: int) -> tuple[Arrival, ...]:
    """A unit of no more than so many tokens, each of its requests made smaller by the same share."""
    size = sum(map(sum, arrivals))
    if size <= most:
        return tuple(arrivals)
    return tuple(scaled_arrivals(arrival, sum(arrival) * most // size) for arrival in arrivals)
