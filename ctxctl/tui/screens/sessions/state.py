"""Which sessions are listed, and in which order.  Plain Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, Literal

from ctxctl.model.session_list import ListedSession, SessionFacts

Order = Literal["age", "project", "client", "turns", "sent", "cost"]
ORDERS: Final[tuple[Order, ...]] = ("age", "project", "client", "turns", "sent", "cost")


@dataclass(frozen=True, slots=True)
class Wish:
    """What the user wants to see."""

    typed: str = ""
    """What is looked for."""
    order: Order = "age"
    reverse: bool = False


@dataclass(frozen=True, slots=True)
class Arranged:
    """The sessions that fit a wish, in its order."""

    rows: Sequence[ListedSession]
    wish: Wish
    now: float
    """Seconds since the epoch at which ages are told."""
    cursor: int = 0
    """The row of the session that was in front."""
    total: int = 0
    unread: int = 0
    live: int = 0
    places: tuple[str, ...] = ()
    """Where was looked."""
    looked: bool = False
    """Whether a look at all places is over."""
    reading: bool = False
    twins: frozenset[str] = frozenset()
    """Paths of sessions that look like another one; their files tell them apart."""
    closed: tuple[str, ...] = ()
    """`PATH: why` of each file or directory that the system does not let be read."""


@dataclass(frozen=True, slots=True)
class ListFailed:
    """Why no list can be shown at all."""

    message: str
    hint: str | None
    exit_code: int


def in_order(sessions: Iterable[ListedSession], wish: Wish) -> list[ListedSession]:
    """By the wish's order, what is not known last; of equals the one written last first."""
    value = _VALUES[wish.order]
    newest = sorted(sessions, key=lambda one: -one.written)
    known = [(found, one) for one in newest if (found := value(one)) is not None]
    rest = [one for one in newest if value(one) is None]
    falling = (wish.order in _FALLING) != wish.reverse
    known.sort(key=lambda pair: pair[0], reverse=falling)
    return [*(one for _, one in known), *rest]


def twins_of(sessions: Iterable[ListedSession]) -> frozenset[str]:
    """Paths of the sessions of which a list says the same as of another one, whatever their age."""
    alike: dict[object, list[str]] = {}
    for one in sessions:
        facts = one.facts
        said = None if facts is None else (facts.prompt, facts.turns, facts.sent, facts.cost)
        alike.setdefault((one.format, one.directory, one.failed, said), []).append(one.path)
    return frozenset(path for paths in alike.values() if len(paths) > 1 for path in paths)


def next_order(order: Order) -> Order:
    """The column to sort by after this one."""
    return ORDERS[(ORDERS.index(order) + 1) % len(ORDERS)]


_Value = str | float | Decimal | None
_FALLING: Final = frozenset({"age", "turns", "sent", "cost"})
"""Where the greatest comes first."""


def _of_facts(value: Callable[[SessionFacts], _Value]) -> Callable[[ListedSession], _Value]:
    return lambda one: None if one.facts is None else value(one.facts)


_VALUES: Final[dict[str, Callable[[ListedSession], _Value]]] = {
    "age": lambda one: one.written,
    "project": lambda one: one.directory,
    "client": lambda one: one.format,
    "turns": _of_facts(lambda facts: facts.turns),
    "sent": _of_facts(lambda facts: facts.sent),
    "cost": _of_facts(lambda facts: facts.cost),
}
