"""Items that were taken away and are still there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ctxctl.engine.replay.item_table import base_id, version_of
from ctxctl.lint.rule import Hit, Rule
from ctxctl.model import vocab
from ctxctl.model.records import Assembly, Selection

if TYPE_CHECKING:
    from ctxctl.engine.replay.step_tracker import ThreadKey
    from ctxctl.lint.context import SeenRecord, StepContext

_MOST: Final = 1 << 14


class RemovedStillCited(Rule):
    """An item was removed, and a later assembly or selection names it.

    The model still reads what the user detached, or the record speaks of something that is not there.
    """

    code = "CTX019"
    name = "removed-still-cited"
    severity = "error"
    needs = "removals of items, and assemblies or selections"
    fix = "Take the item's blocks out of the assembly when the item is removed, or add the item again first."

    def __init__(self) -> None:
        self._gone: dict[ThreadKey, dict[str, int]] = {}
        """Removed items by thread, with the lines that removed them."""
        self._assembled: dict[ThreadKey, int] = {}
        """Line of the last assembly for the model."""

    def seen(self, seen: SeenRecord) -> Iterator[Hit]:
        """Removals, and refs to what was removed."""
        record, key = seen.record, seen.thread.key
        item = seen.item
        if item is not None:
            gone = self._gone.setdefault(key, {})
            if seen.event.event_type == vocab.ITEM_REMOVED:
                if len(gone) < _MOST:
                    gone[seen.thread.book.item_of(item.item_id)] = seen.event.line
            elif gone:
                gone.pop(base_id(item, version_of(item)), None)
        elif isinstance(record, Assembly):
            if record.target == vocab.MODEL:
                self._assembled[key] = seen.event.line
        elif isinstance(record, Selection) and seen.event.event_type == vocab.SELECTION_COMPLETED:
            gone = self._gone.get(key, {})
            for ref in record.selected if gone else ():
                name = seen.thread.book.item_of(ref.ref)
                if name in gone:
                    message = f"{name} was removed at line {gone[name]:,} and is selected again"
                    yield Hit(name, message, seen.place, name)

    @property
    def repeats(self) -> bool:
        """An item that was removed may come back in the very same record."""
        return any(self._gone.values())

    def step(self, look: StepContext) -> Iterator[Hit]:
        """Removed items in the frame of an assembly that came after."""
        gone = self._gone.get(look.key)
        if not gone or look.step.mode == "append" or look.step.basis != "assembly":
            return
        assembled = self._assembled.get(look.key, 0)
        for placement in look.placements:
            line = gone.get(placement.item)
            if line is not None and line < assembled and not placement.stale:
                name = placement.title or placement.item
                message = f"{name} was removed at line {line:,} and is in the window all the same"
                tokens = placement.tokens
                yield Hit(placement.item, message, look.place(), placement.item, tokens, look.money(tokens))
