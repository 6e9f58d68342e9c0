"""What the item pane is told: texts, life and record of one item."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from textual.message import Message

from ctxctl.model.outline import Life
from ctxctl.tui import item, itemwants, timeline, wants
from ctxctl.tui.answers.desk import Desk
from ctxctl.tui.state import ItemKey

if TYPE_CHECKING:
    from ctxctl.tui.answers.desk import Answer
    from ctxctl.tui.messages import Want

_UPDATE: Final = 0.3
"""Seconds between two tellings of what is known so far."""


def _item(desk: Desk, want: wants.WantItem) -> Message:
    return wants.Texted(item.item(desk.inspector, want.key, desk.check))


def _record(desk: Desk, want: itemwants.WantRecord) -> Message:
    return itemwants.Recorded(want.key, item.whole_record(desk.inspector, want.key, desk.check))


def _life(desk: Desk, want: itemwants.WantLife) -> Message:
    moments = _moments(desk, want.key, telling=True)
    return itemwants.Lived(want.key, timeline.document(moments, want.key.target.ordinal))


def _version(desk: Desk, want: itemwants.WantVersion) -> Message:
    moments = _moments(desk, want.key, telling=False)
    found = item.compared(desk.inspector, want.key, want.back, moments, desk.check)
    return itemwants.ComparedWith(want.key, found)


def _moments(desk: Desk, key: ItemKey, *, telling: bool) -> list[Life]:
    """An item's life in the thread of the frame in view; kept for the next time."""
    step = desk.inspector.step(key.target.ordinal)
    name = (key.change.item, step.session, step.thread)
    found: list[Life] = desk.kept(("life", *name), lambda: _replayed(desk, key, name, telling))
    return found


def _replayed(desk: Desk, key: ItemKey, name: tuple[str, str | None, str], telling: bool) -> list[Life]:
    moments: list[Life] = []
    told = monotonic()

    def progress(part: float) -> None:
        nonlocal told
        desk.check()
        if telling and monotonic() - told > _UPDATE:
            document = timeline.document(moments, key.target.ordinal, part=part)
            desk.tell(itemwants.Lived(key, document))
            told = monotonic()

    item_id, session, thread = name
    for moment in desk.inspector.moments(item_id, session=session, thread=thread, progress=progress):
        moments.append(moment)
    return moments


ANSWERS: Final[dict[type[Want], Answer[Any]]] = {
    wants.WantItem: _item,
    itemwants.WantLife: _life,
    itemwants.WantRecord: _record,
    itemwants.WantVersion: _version,
}
