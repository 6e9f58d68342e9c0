"""Resolve a name to an item, for `log`, `why`, `blame --item`, `--drop` and `--set`.

A name is tried in these ways, and the first that matches anything decides: the exact id; `ID@VERSION`; the
whole title; the whole source; the id in another case; the beginning of the id; the path, or its end; a part
of the title; a part of the source; a name as cut in a list; words of the title; a piece of the text, or words
of it. An id in several threads is one item. Of a call and its own result, the result is meant. Paths are
compared both as recorded and relative to the session's directory.

After a blank, `#` and up to three digits choose one of several matches, in the order of the list; `#` and
more digits is the end of an id, as lists show it for items that look the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from ctxctl.engine.replay.item_table import base_id, version_of
from ctxctl.engine.replay.step_tracker import ThreadKey
from ctxctl.errors import UsageError
from ctxctl.item_names import ends_with, fitted, head_ends_with, is_cut_from, local, path_ends_with, told
from ctxctl.model.addresses import prefix
from ctxctl.model.content import Content
from ctxctl.model.records import Item
from ctxctl.session.inventory import FirstMention, Inventory, ThreadItems
from ctxctl.text import ELLIPSIS
from ctxctl.wording import file_size

_MAX_NAME: Final = 10_000
"""Longest name that is resolved, in characters."""
_MIN_PART: Final = 2
"""Shortest part of a title or source that is searched, in characters."""
_MIN_TEXT: Final = 3
"""Shortest piece of text that is searched, in characters."""
_MAX_LISTED: Final = 8
"""Most candidates, versions or threads that an error lists."""
_FIRST: Final = 200
"""Number of items of which those with a title are listed first, if nothing is near."""
_CUTOFF: Final = 75
"""Least similarity, of 100, of a near name."""
_MAX_COMPARED: Final = 20_000
"""Most names among which near ones are searched."""
_MAX_NEAR: Final = 5
"""Most near names that are listed."""
_MARKED: Final = re.compile(r"(?:(?P<name>.*\S)\s+)?#(?P<mark>\S+)", re.DOTALL)
_NUMBER: Final = re.compile(r"\d{1,3}")
_MAX_READ: Final = 1000
"""Characters of a text in which its first words are searched."""
_NAME_CELLS: Final = 80
"""Cells of a name in a list of candidates."""

ASK_THERE: Final = "write TRACE@THREAD:TURN"
"""How to ask about a frame for an item of another thread."""

TextOf = Callable[[Content], str]
"""Returns a content's text as it may be shown."""
Scope = Collection[ThreadKey] | None
"""Threads whose items are meant; None for all."""


class ItemCandidate(NamedTuple):
    """An item that a name may mean."""

    item: str
    title: str | None
    """The title of its newest version."""
    source: str | None
    kind: str
    size: int | None
    """Bytes of its newest text; None if the trace has none."""
    content: Content | None
    """Its newest text."""
    threads: tuple[ThreadKey, ...]
    """Threads that mention it, in the order of the trace."""
    came: FirstMention
    """The first mention in the first of these threads."""


class ItemFound(NamedTuple):
    """Exactly one item matches."""

    candidate: ItemCandidate
    version: str | None
    """The version in `ID@VERSION`, as typed."""
    others: tuple[str, ...]
    """Known versions, if the trace does not know that one; else empty."""
    how: str | None
    """How the item matched, such as "by its title"; None for an id."""


class SeveralItems(NamedTuple):
    """Several items match equally well."""

    candidates: tuple[ItemCandidate, ...]
    """The candidates, the latest first."""
    how: str
    directory: str | None
    """Paths are shown relative to this directory."""
    words: tuple[str, ...]
    """The first words of listed candidates without a title; empty for redacted ones."""


class NoItem(NamedTuple):
    """No item matches."""

    near: tuple[str, ...]
    """Titles and ids that resemble the name, the nearest first."""
    elsewhere: tuple[ThreadKey, ...]
    """Threads outside the scope that have an item of that name."""
    some: tuple[str, ...]
    """Names of the first existing items, for a message without near ones."""


Answer = ItemFound | SeveralItems | NoItem


def resolve_item(inventory: Inventory, name: str, text: TextOf, scope: Scope = None) -> Answer:
    """Return the item that a name means among the items of some threads.

    It reads every text of those threads once if no name matches, else none. Redacted texts are not searched.

    Raises UsageError: `no-such-item` for an empty name or one of more than 10,000 characters.
    """
    if not name.strip() or len(name) > _MAX_NAME:
        raise UsageError("no-such-item", "an item without a name" if not name.strip() else "a name too long")
    shelves = {key: shelf for key, shelf in inventory.shelves.items() if scope is None or key in scope}
    directory = inventory.directory
    answer = _answer(shelves, name, text, directory)
    if answer is not None:
        return _of_call(shelves, answer)
    others = {key: shelf for key, shelf in inventory.shelves.items() if key not in shelves}
    having = (
        key
        for key, shelf in others.items()
        if _exact({key: shelf}, name) or _named({key: shelf}, name, directory)
    )
    known = [item for shelf in shelves.values() for item in shelf.came]
    some = _candidates(shelves, islice(dict.fromkeys(known), _FIRST))
    some.sort(key=lambda one: not one.title)
    called = dict.fromkeys(_called(one, directory) for one in some)
    return NoItem(_near(shelves, name, directory), tuple(having), tuple(called)[: _MAX_LISTED + 1])


def _answer(shelves: _Shelves, name: str, text: TextOf, directory: str | None) -> Answer | None:
    """Return what a name matches; None for nothing."""
    exact = _exact(shelves, name)
    if exact is not None:
        return exact
    marked = _MARKED.fullmatch(name)
    chosen = _chosen(shelves, marked["name"], marked["mark"], text, directory) if marked else None
    if chosen is not None:
        return chosen
    fitting = _named(shelves, name, directory)
    if fitting is None and len(name.strip()) >= _MIN_TEXT:
        fitting = _saying(shelves, name, text)
    if fitting is None or not fitting[0]:
        return None
    items, how = fitting
    found = _candidates(shelves, items)
    if len(found) == 1:
        return ItemFound(found[0], None, (), how)
    found.sort(key=lambda one: -one.came.line)
    return SeveralItems(tuple(found), how, directory, _beginnings(shelves, found, text))


def _beginnings(shelves: _Shelves, found: Sequence[ItemCandidate], text: TextOf) -> tuple[str, ...]:
    hidden = {ref for shelf in shelves.values() for ref in shelf.redacted}

    def beginning(one: ItemCandidate) -> str:
        shown = (
            one.content is not None and not one.title and not any(ItemRefs(one.item).by(r) for r in hidden)
        )
        return text(one.content)[:_MAX_READ] if shown and one.content is not None else ""

    return tuple(beginning(one) for one in found[:_MAX_LISTED])


def _of_call(shelves: _Shelves, answer: Answer) -> Answer:
    """Return the result if an answer is a call and its only result."""
    if not isinstance(answer, SeveralItems) or len(answer.candidates) != 2:
        return answer
    calls = [{shelf.call_of.get(one.item) for shelf in shelves.values()} for one in answer.candidates]
    result = next((one for one in answer.candidates if one.kind == "tool_result"), None)
    if result is None or calls[0] != calls[1] or len(calls[0] - {None}) != 1:
        return answer
    other = 2 - answer.candidates.index(result)
    return ItemFound(result, None, (), f"{answer.how}: the result; its call is #{other}")


def _chosen(
    shelves: _Shelves, name: str | None, mark: str, text: TextOf, directory: str | None
) -> Answer | None:
    """Return the match that a mark after a name selects, among all items if there is no name."""
    if name is None:
        items = dict.fromkeys(item for shelf in shelves.values() for item in shelf.came)
        everything = tuple(_candidates(shelves, items))
        fitting: Answer | None = SeveralItems(everything, "", directory, ())
    else:
        fitting = _answer(shelves, name, text, directory)
    if not isinstance(fitting, SeveralItems):
        one = isinstance(fitting, ItemFound) and (mark == "1" or ends_with(fitting.candidate.item, mark))
        return fitting if one else None
    if _NUMBER.fullmatch(mark):
        at = int(mark) - 1
        several = len(fitting.candidates)
        if name is None or not 0 <= at < several:
            return None
        return ItemFound(fitting.candidates[at], None, (), f"{fitting.how}, number {mark} of {several:,}")
    ended = tuple(one for one in fitting.candidates if ends_with(one.item, mark))
    ended = ended or tuple(one for one in fitting.candidates if head_ends_with(one.item, mark))
    how = f"{fitting.how} and by the end of its id".removeprefix(" and ")
    if len(ended) > 1:
        return SeveralItems(ended, how, directory, _beginnings(shelves, ended, text))
    return ItemFound(ended[0], None, (), how) if ended else None


def only_item(
    answer: Answer, name: str, *, where: str = "", any_version: bool = False,
    remark: Callable[[ItemCandidate], str] | None = None,
) -> ItemFound:  # fmt: skip
    """Return the item of an answer, if it is exactly one.

    Args:
        answer: The result of `resolve_item` for `name`.
        where: How to ask for an item of another thread, after "it is in THREAD; ".
        any_version: Whether a version that the trace does not know is accepted.
        remark: Returns what else distinguishes a candidate from the others.

    Raises UsageError: `ambiguous-item`, with the candidates; `no-such-item`, with near names.
    """
    if isinstance(answer, SeveralItems):
        raise ambiguous_item(answer, name, remark)
    if isinstance(answer, NoItem):
        raise no_such_item(answer, name, where)
    if answer.others and not any_version:
        listed = ", ".join(version[:200] for version in answer.others[:_MAX_LISTED])
        raise UsageError(
            "no-such-item",
            f"no version of {answer.candidate.item[:200]!r} is called {(answer.version or '')[:200]!r}",
            hint=f"there are: {listed}{', …' if len(answer.others) > _MAX_LISTED else ''}",
        )
    return answer


def ambiguous_item(
    answer: SeveralItems, name: str, remark: Callable[[ItemCandidate], str] | None = None
) -> UsageError:
    """Return the `ambiguous-item` error with the candidates."""
    found = answer.candidates
    listed = "; ".join(
        f"{number}. {_described(one, words, answer.directory, remark)}"
        for number, (one, words) in enumerate(zip(found[:_MAX_LISTED], answer.words, strict=True), start=1)
    )
    more = f"; and {len(found) - _MAX_LISTED:,} more, older ones" if len(found) > _MAX_LISTED else ""
    return UsageError(
        "ambiguous-item", f"{len(found):,} items match {name[:200]!r} {answer.how}",
        hint=f"choose one by its number, as in '{name[:60]} #2': {listed}{more}",
    )  # fmt: skip


def no_such_item(answer: NoItem, name: str, where: str = "") -> UsageError:
    """Return the `no-such-item` error with what exists instead."""
    if answer.elsewhere:
        sessions = {key.session for key in answer.elsewhere}
        named = [
            (prefix(key.thread, key.session if len(sessions) > 1 else None) or f"{key.thread}:").removesuffix(
                ":"
            )
            for key in answer.elsewhere[:_MAX_LISTED]
        ]
        more = len(answer.elsewhere) - _MAX_LISTED
        listed = ", ".join(named) + (f" and {more} more" if more > 0 else "")
        hint = f"it is in {listed}" + (f"; {where}" if where else "")
    elif answer.near:
        hint = f"did you mean {', '.join(answer.near)}?"
    elif answer.some:
        listed = ", ".join(one[:200] for one in answer.some[:_MAX_LISTED])
        hint = f"items are, for example: {listed}{', ...' if len(answer.some) > _MAX_LISTED else ''}"
    else:
        hint = "the trace has no items"
    return UsageError("no-such-item", f"no item is called {name[:200]!r}, and no text contains it", hint=hint)


# Looking ----------------------------------------------------------------------------------------------------

_Shelves = dict[ThreadKey, ThreadItems]


def _exact(shelves: _Shelves, name: str) -> ItemFound | None:
    """Return the item whose id, or `ID@VERSION`, equals a name."""
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


def _named(shelves: _Shelves, name: str, directory: str | None) -> tuple[list[str], str] | None:
    """Return the items that a name matches in the first successful way, and that way; or None."""
    for how, names_of, fits in _manners(name, directory):
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


def _both(shelf: ThreadItems, item: str) -> Iterable[str | None]:
    return (*_titles(shelf, item), *_sources(shelf, item))


_NamesOf = Callable[[ThreadItems, str], Iterable[str | None]]
_Manner = tuple[str, _NamesOf, Callable[[str], bool]]


def _manners(name: str, directory: str | None) -> Iterator[_Manner]:
    """Yield the ways to match a name, the closest first: the way, its kind of names, and the test."""
    low = name.casefold()
    near = local(name, directory).casefold()

    def shown(text: str) -> str:
        return local(text, directory).casefold()

    def same(text: str) -> bool:
        return text.casefold() == low or shown(text) == near

    def has(text: str) -> bool:
        return low in text.casefold() or low in shown(text)

    yield "by its title", _titles, same
    yield "by its source", _sources, same
    yield "by its id, in another case", _ids, same
    yield "by the beginning of its id", _ids, lambda text: text.startswith(name)
    if len(name) < _MIN_PART:
        return
    end = near.removeprefix("./")
    yield "by its path", _both, lambda text: path_ends_with(shown(text), end)
    yield "by a part of its title", _titles, has
    yield "by a part of its source", _sources, has
    if ELLIPSIS in near and near.strip(ELLIPSIS):
        yield "by its title, as it is shown", _titles, lambda text: is_cut_from(near, shown(text))
    words = low.split()
    if len(words) > 1:
        yield "by words of its title", _titles, lambda text: all(word in text.casefold() for word in words)


def _saying(shelves: _Shelves, piece: str, text: TextOf) -> tuple[list[str], str]:
    """Return the items whose text contains a piece, in any case; redacted texts are not searched.

    A piece in the quotation marks of `item_names` is the first words of an item without a title.
    """
    quoted = piece.startswith("“")
    wanted = piece.strip("“”").removesuffix(ELLIPSIS).casefold() if quoted else piece.casefold()
    words = [] if quoted else wanted.split()
    known: dict[Content, int] = {}
    found: dict[str, int] = {}
    hidden = {ref for shelf in shelves.values() for ref in shelf.redacted}

    def says(content: Content) -> int:
        """Return 2 if it contains the piece, 1 if it contains its words, else 0."""
        if content not in known:
            said = text(content)
            if quoted:
                known[content] = 2 * told(None, said, "").strip("“”").casefold().startswith(wanted)
            else:
                low = said.casefold()
                known[content] = 2 if wanted in low else int(all(word in low for word in words))
        return known[content]

    for shelf in shelves.values():
        for item in shelf.came:
            if quoted and any(_titles(shelf, item)):
                continue
            own = (version.content for version in shelf.book.history(item))
            contents = (*own, *shelf.in_blocks.get(item, ()))
            most = max((says(content) for content in contents if content is not None), default=0)
            if most and not any(ItemRefs(item).by(ref) for ref in hidden):
                found[item] = max(most, found.get(item, 0))
    best = max(found.values(), default=0)
    how = "by its first words" if quoted else "by its text" if best == 2 else "by words of its text"
    return [item for item, most in found.items() if most == best], how


def _near(shelves: _Shelves, name: str, directory: str | None) -> tuple[str, ...]:
    """Return titles and ids that resemble a name."""
    from rapidfuzz import fuzz, process

    known: dict[str, str] = {}
    for shelf in shelves.values():
        for item in shelf.came:
            if len(known) >= _MAX_COMPARED:
                break
            known.setdefault(item[:200], item)
            for title in _titles(shelf, item):
                if title:
                    known.setdefault((shown := local(title, directory))[:200], shown)
    found = process.extract(
        name[:200], list(known), scorer=fuzz.WRatio, score_cutoff=_CUTOFF, limit=_MAX_NEAR
    )
    # A name of one or two letters resembles everything that contains it.
    good = [near for near, _, _ in found if 2 * min(len(near), len(name)) >= max(len(near), len(name))]
    return tuple(dict.fromkeys(known[near] for near in good))


# Errors -----------------------------------------------------------------------------------------------------


def _candidate(shelves: _Shelves, item: str) -> ItemCandidate:
    return _candidates(shelves, [item])[0]


def _candidates(shelves: _Shelves, items: Iterable[str]) -> list[ItemCandidate]:
    """Return items as candidates, in their order. The threads are read once."""
    having: dict[str, _Shelves] = {item: {} for item in items}
    for key, shelf in shelves.items():
        for item in having.keys() & shelf.came.keys():
            having[item][key] = shelf
    return [_made_candidate(item, its) for item, its in having.items()]


def _made_candidate(item: str, having: _Shelves) -> ItemCandidate:
    versions = [version for shelf in having.values() for version in shelf.book.history(item)]
    records = [version.record for version in versions]
    content = next((version.content for version in versions if version.content is not None), None)
    return ItemCandidate(
        item,
        next((record.title for record in records if record.title), None),
        next((record.source for record in records if record.source), None),
        records[0].context_kind if records else "custom",
        content.size if content is not None else None,
        content,
        tuple(having),
        min(shelf.came[item] for shelf in having.values()),
    )


def _described(
    one: ItemCandidate, words: str, directory: str | None, remark: Callable[[ItemCandidate], str] | None
) -> str:
    """Return a candidate with what distinguishes it: name, kind, first turn, size, and a remark."""
    facts = [one.kind.replace("_", " ")]
    if one.came.turn > 0:
        facts.append(f"turn {one.came.turn}.{one.came.step}")
    if one.size is not None:
        facts.append(file_size(one.size))
    if remark is not None and (said := remark(one)):
        facts.append(said)
    return f"{_called(one, directory, words)} ({', '.join(facts)})"


def _called(one: ItemCandidate, directory: str | None, words: str = "") -> str:
    return fitted(told(one.title, words, one.item, directory), _NAME_CELLS)


class ItemRefs:
    """Returns whether a ref or a record is of an item (DESIGN section 2, identity)."""

    def __init__(self, item: str, others: Iterator[str] | frozenset[str] = frozenset()) -> None:
        self.item = item
        self._others = frozenset(others)
        """The thread's ids that begin with this one and an `@`."""

    def by(self, ref: str) -> bool:
        """Return whether a ref names it: by its id, or by its id with a version."""
        if ref == self.item:
            return True
        head, at, suffix = ref.rpartition("@")
        return bool(at and suffix) and head == self.item and ref not in self._others

    def in_item(self, record: Item) -> bool:
        """Return whether an item record is of it."""
        return self.by(record.item_id) and base_id(record, version_of(record)) in (self.item, record.item_id)
