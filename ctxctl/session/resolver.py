"""Which item a person means: the one answer that `log`, `why`, `blame --item`, `--drop` and `--set` give.

A name is tried in these ways, and the first one that fits anything decides: the exact id; `ID@VERSION`; the
whole title; the whole source; the id in other letters; the beginning of the id; a part of the title; a part
of the source; and last of all, a piece of the text.  An id that several threads use is one item.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final, NamedTuple

from ctxctl.engine.replay.item_table import base_id, version_of
from ctxctl.engine.replay.step_tracker import ThreadKey
from ctxctl.errors import UsageError
from ctxctl.model.addresses import prefix
from ctxctl.model.content import Content
from ctxctl.model.records import Item
from ctxctl.session.inventory import FirstMention, Inventory, ThreadItems

_LONGEST: Final = 10_000
"""Characters of the longest name that is looked for."""
_LEAST_PART: Final = 2
"""Characters of the shortest part of a title or source that is looked for."""
_LEAST_TEXT: Final = 3
"""Characters of the shortest piece of text that is looked for."""
_SHOWN: Final = 8
"""Candidates, versions or threads that an error lists."""
_CUTOFF: Final = 75
"""Likeness, of 100, from which a name is told as a near one."""
_COMPARED: Final = 20_000
"""Names among which near ones are looked for."""
_NEAR: Final = 5
"""Near names that are told."""

ASK_THERE: Final = "write TRACE@THREAD:TURN"
"""How to ask about a frame for an item of another thread."""

TextOf = Callable[[Content], str]
"""Gives the text of a content as it may be shown."""
Scope = Collection[ThreadKey] | None
"""Threads whose items are meant; None: all."""


class ItemCandidate(NamedTuple):
    """An item that a name may mean."""

    item: str
    title: str | None
    """As its newest version has it."""
    source: str | None
    kind: str
    threads: tuple[ThreadKey, ...]
    """Threads that speak of it, in the order of the trace."""
    came: FirstMention
    """When the first of them spoke of it first."""


class ItemFound(NamedTuple):
    """Exactly one item fits."""

    candidate: ItemCandidate
    version: str | None
    """The version that `ID@VERSION` names, as it was typed."""
    others: tuple[str, ...]
    """Where the trace does not know that version, those that it does know; empty otherwise."""
    how: str | None
    """What of the item fits, as in "by its title"; None for an id."""


class SeveralItems(NamedTuple):
    """Several items fit equally well."""

    candidates: tuple[ItemCandidate, ...]
    """The latest one first."""
    how: str


class NoItem(NamedTuple):
    """No item fits."""

    near: tuple[str, ...]
    """Ids of items whose id or title resembles the name, the nearest first."""
    elsewhere: tuple[ThreadKey, ...]
    """Threads outside the scope that have an item of that name."""
    some: tuple[str, ...]
    """The first items that there are, for a message that has no near ones."""


Answer = ItemFound | SeveralItems | NoItem


def resolve_item(inventory: Inventory, name: str, text: TextOf, scope: Scope = None) -> Answer:
    """The item that a name means among the items of some threads.

    Reads every text of those threads once where nothing is called so, and no text otherwise.  Does not look
    into texts of which something was redacted.

    Raises UsageError: `no-such-item` for an empty name or one of more than 10,000 characters.
    """
    if not name.strip() or len(name) > _LONGEST:
        raise UsageError("no-such-item", "an item without a name" if not name.strip() else "a name too long")
    shelves = {key: shelf for key, shelf in inventory.shelves.items() if scope is None or key in scope}
    exact = _exact(shelves, name)
    if exact is not None:
        return exact
    fitting = _named(shelves, name)
    if fitting is None and len(name.strip()) >= _LEAST_TEXT:
        fitting = _saying(shelves, name, text), "by its text"
    if fitting is not None and fitting[0]:
        items, how = fitting
        found = [_candidate(shelves, item) for item in items]
        if len(found) == 1:
            return ItemFound(found[0], None, (), how)
        return SeveralItems(tuple(sorted(found, key=lambda one: -one.came.line)), how)
    others = {key: shelf for key, shelf in inventory.shelves.items() if key not in shelves}
    having = (
        key for key, shelf in others.items() if _exact({key: shelf}, name) or _named({key: shelf}, name)
    )
    known = dict.fromkeys(item for shelf in shelves.values() for item in shelf.came)
    return NoItem(_near(shelves, name), tuple(having), tuple(known)[: _SHOWN + 1])


def only_item(
    answer: Answer, name: str, *, where: str = "", any_version: bool = False,
    remark: Callable[[ItemCandidate], str] | None = None,
) -> ItemFound:  # fmt: skip
    """The item of an answer, where it is exactly one.

    Args:
        answer: What `resolve_item` gave for `name`.
        where: How to ask for an item of another thread, after "it is in THREAD; ".
        any_version: A version that the trace does not know is no error.
        remark: What else to say of a candidate, to tell it from the others.

    Raises UsageError: `ambiguous-item`, which lists the candidates; `no-such-item`, with what is nearest.
    """
    if isinstance(answer, SeveralItems):
        raise ambiguous_item(answer, name, remark)
    if isinstance(answer, NoItem):
        raise no_such_item(answer, name, where)
    if answer.others and not any_version:
        listed = ", ".join(version[:200] for version in answer.others[:_SHOWN])
        raise UsageError(
            "no-such-item",
            f"no version of {answer.candidate.item[:200]!r} is called {(answer.version or '')[:200]!r}",
            hint=f"there are: {listed}{', …' if len(answer.others) > _SHOWN else ''}",
        )
    return answer


def ambiguous_item(
    answer: SeveralItems, name: str, remark: Callable[[ItemCandidate], str] | None = None
) -> UsageError:
    """The error that lists what a name may mean: `ambiguous-item`."""
    found = answer.candidates
    listed = "; ".join(
        f"{number}. {_described(one, remark)}" for number, one in enumerate(found[:_SHOWN], start=1)
    )
    more = f"; and {len(found) - _SHOWN:,} more, older ones" if len(found) > _SHOWN else ""
    return UsageError(
        "ambiguous-item", f"{len(found):,} items fit {name[:200]!r} {answer.how}",
        hint=f"name one by its id: {listed}{more}",
    )  # fmt: skip


def no_such_item(answer: NoItem, name: str, where: str = "") -> UsageError:
    """The error that says what there is instead: `no-such-item`."""
    if answer.elsewhere:
        sessions = {key.session for key in answer.elsewhere}
        named = [
            (prefix(key.thread, key.session if len(sessions) > 1 else None) or f"{key.thread}:").removesuffix(
                ":"
            )
            for key in answer.elsewhere[:_SHOWN]
        ]
        more = len(answer.elsewhere) - _SHOWN
        listed = ", ".join(named) + (f" and {more} more" if more > 0 else "")
        hint = f"it is in {listed}" + (f"; {where}" if where else "")
    elif answer.near:
        hint = f"did you mean {', '.join(answer.near)}?"
    elif answer.some:
        listed = ", ".join(one[:200] for one in answer.some[:_SHOWN])
        hint = f"items are, for example: {listed}{', ...' if len(answer.some) > _SHOWN else ''}"
    else:
        hint = "there is no item at all"
    return UsageError("no-such-item", f"no item is called {name[:200]!r}, and none says so", hint=hint)


# Looking ----------------------------------------------------------------------------------------------------

_Shelves = dict[ThreadKey, ThreadItems]


def _exact(shelves: _Shelves, name: str) -> ItemFound | None:
    """The item whose id, or `ID@VERSION`, a name is to the letter."""
    if any(name in shelf.came for shelf in shelves.values()):
        return ItemFound(_candidate(shelves, name), None, (), None)
    item, at, version = name.rpartition("@")
    having = [shelf for shelf in shelves.values() if item in shelf.came] if at and version else []
    if not having:
        return None
    if any(shelf.book.find(name) is not None for shelf in having):
        return ItemFound(_candidate(shelves, item), version, (), None)
    others = dict.fromkeys(v.version for shelf in having for v in shelf.book.history(item) if v.version)
    return ItemFound(_candidate(shelves, item), version, tuple(others), None)


def _named(shelves: _Shelves, name: str) -> tuple[list[str], str] | None:
    """The items that are called by a name in some way, and in which; None if none is."""
    for how, names_of, fits in _manners(name):
        found = dict.fromkeys(
            item
            for shelf in shelves.values()
            for item in shelf.came
            if any(one and fits(one) for one in names_of(shelf, item))
        )
        if found:
            return list(found), how
    return None


def _ids(_shelf: ThreadItems, item: str) -> Iterable[str | None]:
    return (item,)


def _titles(shelf: ThreadItems, item: str) -> Iterable[str | None]:
    return (version.record.title for version in shelf.book.history(item))


def _sources(shelf: ThreadItems, item: str) -> Iterable[str | None]:
    return (version.record.source for version in shelf.book.history(item))


_NamesOf = Callable[[ThreadItems, str], Iterable[str | None]]


def _manners(name: str) -> Iterator[tuple[str, _NamesOf, Callable[[str], bool]]]:
    """Ways in which an item may be meant, the closest first: how, its names of that sort, and what fits."""
    low = name.casefold()

    def same(text: str) -> bool:
        return text.casefold() == low

    def has(text: str) -> bool:
        return low in text.casefold()

    yield "by its title", _titles, same
    yield "by its source", _sources, same
    yield "by its id, in other letters", _ids, same
    yield "by the beginning of its id", _ids, lambda text: text.startswith(name)
    if len(name) >= _LEAST_PART:
        yield "by a part of its title", _titles, has
        yield "by a part of its source", _sources, has


def _saying(shelves: _Shelves, piece: str, text: TextOf) -> list[str]:
    """The items whose text holds a piece, in other letters too; none of which something was redacted."""
    wanted = piece.casefold()
    known: dict[Content, bool] = {}
    found: dict[str, None] = {}
    hidden = {ref for shelf in shelves.values() for ref in shelf.redacted}

    def says(content: Content) -> bool:
        if content not in known:
            known[content] = wanted in text(content).casefold()
        return known[content]

    for shelf in shelves.values():
        for item in shelf.came:
            own = (version.content for version in shelf.book.history(item))
            contents = (*own, *shelf.in_blocks.get(item, ()))
            if any(content is not None and says(content) for content in contents):
                found[item] = None
    return [item for item in found if not any(ItemRefs(item).by(ref) for ref in hidden)]


def _near(shelves: _Shelves, name: str) -> tuple[str, ...]:
    """Ids of the items whose id or title resembles a name."""
    from rapidfuzz import fuzz, process

    known: dict[str, str] = {}
    for shelf in shelves.values():
        for item in shelf.came:
            if len(known) >= _COMPARED:
                break
            known.setdefault(item[:200], item)
            for title in _titles(shelf, item):
                if title:
                    known.setdefault(title[:200], item)
    found = process.extract(name[:200], list(known), scorer=fuzz.WRatio, score_cutoff=_CUTOFF, limit=_NEAR)
    # A name of one or two letters resembles everything that holds them.
    good = [near for near, _, _ in found if 2 * min(len(near), len(name)) >= max(len(near), len(name))]
    return tuple(dict.fromkeys(known[near] for near in good))


# Errors -----------------------------------------------------------------------------------------------------


def _candidate(shelves: _Shelves, item: str) -> ItemCandidate:
    having = {key: shelf for key, shelf in shelves.items() if item in shelf.came}
    records = [version.record for shelf in having.values() for version in shelf.book.history(item)]
    return ItemCandidate(
        item,
        next((record.title for record in records if record.title), None),
        next((record.source for record in records if record.source), None),
        records[0].context_kind if records else "custom",
        tuple(having),
        min(shelf.came[item] for shelf in having.values()),
    )


def _described(one: ItemCandidate, remark: Callable[[ItemCandidate], str] | None) -> str:
    """A candidate with what tells it from others: its kind, title, first turn, and a remark."""
    facts = [one.kind.replace("_", " ")]
    if one.title:
        facts.append(one.title if len(one.title) <= 60 else one.title[:59] + "…")
    if one.came.turn > 0:
        facts.append(f"turn {one.came.turn}.{one.came.step}")
    if remark is not None and (said := remark(one)):
        facts.append(said)
    return f"{one.item} ({', '.join(facts)})"


class ItemRefs:
    """Whether a ref or a record speaks of an item (DESIGN section 2, identity)."""

    def __init__(self, item: str, others: Iterator[str] | frozenset[str] = frozenset()) -> None:
        self.item = item
        self._others = frozenset(others)
        """Ids of the thread that begin with this one and an `@`."""

    def by(self, ref: str) -> bool:
        """Whether a ref does: the id itself, or the id with a version behind it."""
        if ref == self.item:
            return True
        head, at, suffix = ref.rpartition("@")
        return bool(at and suffix) and head == self.item and ref not in self._others

    def in_item(self, record: Item) -> bool:
        """Whether an item record is of it."""
        return self.by(record.item_id) and base_id(record, version_of(record)) in (self.item, record.item_id)
