"""Resolve a typed name to an item's life for `log`, or to its copies in a frame for `blame`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ctxctl.engine.replay.step_tracker import ThreadKey
from ctxctl.errors import UsageError
from ctxctl.session.resolver import ASK_THERE, ItemCandidate, only_item, resolve_item

if TYPE_CHECKING:
    from ctxctl.model.blame import Blame
    from ctxctl.model.outline import Life
    from ctxctl.session.facade import Inspector


class NamedLife(NamedTuple):
    """An item that a name means, and its life."""

    item: str
    lives: list[Life]
    title: str | None = None
    """None also if the name is the item's id, because the title was not looked up then."""


def life_by_name(inspector: Inspector, name: str, thread: str | None) -> NamedLife:
    """Return the item that a name means in a thread, or in any, and its life.

    Raises UsageError: `ambiguous-item`, `no-such-item`.
    """
    lives = inspector.life(name, thread=thread)
    if lives:
        return NamedLife(name, lives)
    inventory = inspector.items()
    scope = None if thread is None else {key for key in inventory.shelves if key.thread == thread}
    meant = only_item(resolve_item(inventory, name, inspector.text, scope), name).candidate
    item = meant.item
    lives = inspector.life(item, thread=thread)
    if not lives:
        raise UsageError(
            "no-such-item", f"{item[:200]!r} was in no frame",
            hint="`ctxctl why TRACE@TURN ITEM` tells what became of it",
        )  # fmt: skip
    return NamedLife(item, lives, meant.title)


def copies_by_name(inspector: Inspector, found: Blame, name: str) -> tuple[str, str | None]:
    """Return the id of the item that a name means in a frame's thread, and the named version, if any.

    Raises UsageError: `ambiguous-item`; `no-such-item`, also if the frame holds no copy of the item.
    """
    held = {block.placement.item for block in found.blocks}
    if name in held:
        return name, None

    def remark(one: ItemCandidate) -> str:
        return f"{'in' if one.item in held else 'not in'} the window"

    scope = {ThreadKey(found.step.session, found.step.thread)}
    answer = resolve_item(inspector.items(), name, inspector.text, scope)
    meant = only_item(answer, name, where=ASK_THERE, remark=remark)
    item = meant.candidate.item
    if item not in held:
        raise UsageError(
            "no-such-item", f"this frame holds no copy of {item[:200]!r}",
            hint="`ctxctl show` lists its items, `ctxctl log` tells where an item went",
        )  # fmt: skip
    return item, meant.version
