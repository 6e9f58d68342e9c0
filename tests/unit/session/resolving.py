"""The doors at which a person names an item, each asked in the same way, for tests."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from random import Random

from ctxctl.analysis.blame import blame_frame
from ctxctl.analysis.by_name import copies_by_name, life_by_name
from ctxctl.analysis.why.answer import explain_item
from ctxctl.errors import UsageError
from ctxctl.model.blame import Blame
from ctxctl.session import Inspector
from ctxctl.session.inventory import Inventory

NONE = "none"
_HELD = re.compile(r"this frame holds no copy of '(.*)'|'(.*)' was in no frame")


def _log(inspector: Inspector, _last: int, name: str) -> str:
    return life_by_name(inspector, name, None)[0]


def _why(inspector: Inspector, last: int, name: str) -> str:
    found = explain_item(inspector, last, name)
    return NONE if found.state in ("unknown", "unread") else found.item


def _blame(inspector: Inspector, last: int, name: str) -> str:
    return copies_by_name(inspector, _blamed(inspector, last), name)[0]


@lru_cache(maxsize=1)
def _blamed(inspector: Inspector, last: int) -> Blame:
    """The same for every name."""
    return blame_frame(inspector, last)


def _drop(inspector: Inspector, _last: int, name: str) -> str:
    found = inspector.edits_of([f"item:{name}"], {})
    return found.told.drops[0].selector.removeprefix("item:")


def _set(inspector: Inspector, _last: int, name: str) -> str:
    return inspector.edits_of([], {name: "x"}).told.texts[0].item


DOORS: dict[str, Callable[[Inspector, int, str], str]] = {
    "log": _log, "why": _why, "blame": _blame, "drop": _drop, "set": _set,
}  # fmt: skip


def answers(inspector: Inspector, name: str) -> dict[str, str]:
    """By door, the item that it finds at the last step: an id, how many fit and how, or `none`."""
    found: dict[str, str] = {}
    last = len(inspector.places().spans) - 1
    for door, ask in DOORS.items():
        try:
            found[door] = ask(inspector, last, name)
        except UsageError as error:
            held = _HELD.match(error.message)
            if held is not None:
                found[door] = held[1] or held[2]
            elif error.slug == "ambiguous-item":
                found[door] = error.message
            else:
                found[door] = NONE
    return found


def names(inspector: Inspector, most: int) -> Iterator[str]:
    """Names to ask for: ids, versions, titles, sources, their parts, pieces of texts, and unknown ones."""
    known: Inventory = inspector.items()
    some = Random(7)
    items = [(shelf, item) for shelf in known.shelves.values() for item in shelf.book.latest]
    yield from ("", "no such thing at all, 8e21", "@", "a", "e")
    for shelf, item in some.sample(items, min(most, len(items))):
        version = shelf.book.latest[item]
        record = version.record
        yield item
        yield item.swapcase()
        yield item[: max(1, len(item) // 2)]
        if version.version:
            yield f"{item}@{version.version}"
        if record.content_digest:
            yield f"{item}@{record.content_digest[:8]}"
        for text in (record.title, record.source):
            if text:
                yield from (text, text[len(text) // 3 :], text.upper())
        if record.content is not None:
            text = inspector.text(record.content)
            at = some.randrange(max(1, len(text)))
            yield text[at : at + 30].strip() or "?"
