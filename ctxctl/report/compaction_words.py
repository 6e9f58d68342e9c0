"""What a compaction took, in words: by kind, and the largest items."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ctxctl.item_names import ItemNames
from ctxctl.text import visible
from ctxctl.wording import number, short_kind

if TYPE_CHECKING:
    from ctxctl.analysis.compacting import Compacting, Taken

_NAME: Final = 48
"""Cells of an item's name."""


def triggers_text(taken: Compacting) -> str:
    """What set it off, in brackets; empty where that is not recorded."""
    return f" ({', '.join(visible(trigger) for trigger in taken.triggers)})" if taken.triggers else ""


def taken_facts(taken: Compacting, names: ItemNames) -> Iterator[tuple[str, str]]:
    """Labelled: what was taken by kind, and the largest items."""
    if taken.kinds:
        yield "took", kinds_text(taken)
    if taken.largest:
        yield "largest", largest_text(taken, names)


def kinds_text(taken: Compacting) -> str:
    """``result 101,335 (69), call 23,286 (68)``: tokens and items by kind."""
    return ", ".join(
        f"{short_kind(visible(kind))} {number(tokens)} ({number(items)})"
        for kind, items, tokens in taken.kinds
    )


def largest_text(taken: Compacting, names: ItemNames) -> str:
    """The largest items by name, with their tokens."""
    rows = [names.row(item.item, item.title, item.kind) for item in taken.largest]
    found = names.listed(rows, _NAME)
    return ", ".join(
        f"{name}{_beside(item, names, alike=found.count(name) > 1)} {number(item.tokens)}"
        for name, item in zip(found, taken.largest, strict=True)
    )


def _beside(item: Taken, names: ItemNames, *, alike: bool) -> str:
    """What tells an item from another of its name, a call from its result; and its id where that is asked."""
    kind = f" ({short_kind(visible(item.kind))})" if alike else ""
    return f"{kind} [{visible(item.item)}]" if names.ids else kind
