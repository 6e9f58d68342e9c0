"""Which groups and sessions of a dataset are listed, and in which order.  Plain Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from typing import Final, NamedTuple, TypeVar

from ctxctl.dataset.session_filter import LONGEST, session_filter
from ctxctl.dataset.session_groups import BY, By, Group, grouped, key_of, summed
from ctxctl.dataset.session_values import Places, SessionRow, SessionRows
from ctxctl.errors import UsageError
from ctxctl.report.session_figures import COLUMNS, figure_value

_FIGURES: Final = tuple(column.name for column in COLUMNS)
GROUP_ORDERS: Final = ("sessions", *_FIGURES, "name")
SESSION_ORDERS: Final = ("began", *_FIGURES, "name")
_RISING: Final = frozenset({"name"})
"""Where the least comes first."""
_REVERSED: Final = frozenset({"week"})
"""Groupings whose names are in their usual order when the last comes first."""


class Inside(NamedTuple):
    """The group whose sessions are listed."""

    by: By
    key: str | None


@dataclass(frozen=True, slots=True)
class Wish:
    """What the user wants to see."""

    typed: str = ""
    """Which sessions are meant."""
    by: By = "project"
    order: str = "sessions"
    """Of the groups."""
    reverse: bool = False
    inside: Inside | None = None
    session_order: str = "began"
    session_reverse: bool = False

    @property
    def flat(self) -> bool:
        """Whether sessions are listed, and not groups."""
        return self.inside is not None or self.by == "session"

    @property
    def sorted_by(self) -> str:
        """The column that the list is sorted by."""
        return self.session_order if self.flat else self.order

    @property
    def reversed(self) -> bool:
        """Whether the list is the other way round."""
        return self.session_reverse if self.flat else self.reverse


@dataclass(frozen=True, slots=True)
class Arranged:
    """What fits a wish, in its order."""

    wish: Wish
    groups: Sequence[Group] = ()
    sessions: Sequence[SessionRow] = ()
    """Where `wish.flat`, in the place of groups."""
    whole: Group | None = None
    """All that fits, within the group that is open; None while nothing has been read."""
    held: SessionRows | None = None
    cursor: int = 0
    wrong: str = ""
    """What is wrong with the text that was typed; the list is then of the text without its last term."""
    reading: bool = False

    @property
    def count(self) -> int:
        """Lines of the list."""
        return len(self.sessions if self.wish.flat else self.groups)


@dataclass(frozen=True, slots=True)
class ReadFailed:
    """Why the dataset cannot be shown."""

    message: str
    hint: str | None
    exit_code: int


@dataclass(frozen=True, slots=True)
class Looked:
    """Whether a session's capture is where it was."""

    row: SessionRow
    there: bool


def by_client(wish: Wish) -> bool:
    """Whether sessions are named by their clients: those of one project are not by that."""
    return wish.inside is not None and wish.inside.by == "project"


# From one wish to the next


def sorted_next(wish: Wish) -> Wish:
    """Sorted by the next column, the usual way round."""
    if wish.flat:
        return replace(wish, session_order=_after(SESSION_ORDERS, wish.session_order), session_reverse=False)
    return replace(wish, order=_after(GROUP_ORDERS, wish.order), reverse=False)


def turned(wish: Wish) -> Wish:
    """Sorted the other way round."""
    if wish.flat:
        return replace(wish, session_reverse=not wish.session_reverse)
    return replace(wish, reverse=not wish.reverse)


def grouped_next(wish: Wish) -> Wish:
    """Grouped by the next thing."""
    by = BY[(BY.index(wish.by) + 1) % len(BY)]
    usual = wish.order == usual_order(wish.by) and not wish.reverse
    return replace(wish, by=by, inside=None, order=usual_order(by) if usual else wish.order)


def first_wish(by: str) -> Wish:
    """What is shown first, grouped by a word of `BY`."""
    named = next((one for one in BY if one == by), BY[0])
    return Wish(by=named, order=usual_order(named))


def usual_order(by: By) -> str:
    """What groups are sorted by at first: weeks by time, all others by their sessions."""
    return "name" if by == "week" else "sessions"


def _after(orders: Sequence[str], order: str) -> str:
    return orders[(orders.index(order) + 1) % len(orders)]


# What is listed


def arranged(held: SessionRows, wish: Wish, front: str | None = None) -> Arranged:
    """What fits a wish.

    Args:
        held: All sessions.
        wish: What is wanted; where its text is wrong, what stands before the last blank is listed.
        front: What was in front: a group's key, or a session's key and source.
    """
    wrong = ""
    try:
        fits = session_filter(wish.typed)
    except UsageError as error:
        wrong, fits = error.message, _without_last(wish.typed)
    rows: list[SessionRow] = list(filter(fits, held.rows)) if (wish.typed or wrong) else list(held.rows)
    if wish.inside is not None:
        inside = wish.inside
        rows = [row for row in rows if key_of(row, inside.by) == inside.key]
    whole = summed(None, rows)
    if wish.flat:
        sessions = _in_order(rows, lambda row: _of_session(row, wish.session_order, by_client(wish)), wish)
        names = [front_of(row) for row in sessions]
        return Arranged(wish, (), sessions, whole, held, _at(names, front), wrong)
    groups = _in_order(grouped(rows, wish.by), lambda group: _of_group(group, wish.order), wish)
    return Arranged(wish, groups, (), whole, held, _at([front_of(one) for one in groups], front), wrong)


def _without_last(typed: str) -> Callable[[SessionRow], bool]:
    """What a text means without its last term, which is not complete yet; all, where that is wrong too."""
    try:
        return session_filter(typed[:LONGEST].rpartition(" ")[0])
    except UsageError:
        return session_filter("")


def front_of(line: Group | SessionRow) -> str:
    """What a line is known by."""
    return front_of_group(line.key) if isinstance(line, Group) else f"{line.key}{line.source}"


def front_of_group(key: str | None) -> str:
    """What a group's line is known by."""
    return "" if key is None else f"={key}"


def _at(names: Sequence[str], front: str | None) -> int:
    return names.index(front) if front in names else 0


_T = TypeVar("_T")
_Value = str | float | None


def _in_order(lines: Iterable[_T], value: Callable[[_T], _Value], wish: Wish) -> list[_T]:
    """What is not known comes last, either way round; equals keep their order."""
    known: list[tuple[_Value, _T]] = []
    rest: list[_T] = []
    for line in lines:
        found = value(line)
        if found is None:
            rest.append(line)
        else:
            known.append((found, line))
    rising = wish.sorted_by in _RISING and not (not wish.flat and wish.by in _REVERSED)
    known.sort(key=lambda pair: pair[0], reverse=rising == wish.reversed)  # type: ignore[arg-type, return-value]
    return [*(line for _, line in known), *rest]


def _of_group(group: Group, order: str) -> _Value:
    if order == "name":
        return None if group.key is None else group.key.casefold()
    return group.sessions if order == "sessions" else figure_value(group.figures, order)


def _of_session(row: SessionRow, order: str, client_first: bool) -> _Value:
    if order == "name":
        name = row.client if client_first else row.project
        return None if name is None else name.casefold()
    if order == "began":
        return None if row.started is None else row.started.replace(tzinfo=UTC).timestamp()
    return figure_value(row.own, order)


class Matter(NamedTuple):
    """The request of a session that matters, and why."""

    address: str
    """As `ctxctl show PATH@…` takes it."""
    why: str


def matter_of(row: SessionRow, order: str) -> Matter | None:
    """Where a session is opened: by what the list is sorted by; None where it cannot be told."""
    places: Places = row.places
    chosen = {
        "cost": (places.dearest, "its most expensive request"),
        "misses": (places.missed, "its largest cache miss"),
        "compactions": (places.compacted, "its largest compaction"),
    }.get(order, (None, ""))
    place, why = chosen if chosen[0] is not None else (places.largest, "its largest request")
    address = row.address(place)
    return None if address is None else Matter(address, why)
