"""What an export may say of a trace: nothing that was redacted anywhere in it, before or after."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ctxctl.engine.book import base_id, version_of
from ctxctl.engine.told import UNREDACTED
from ctxctl.inspector import Inspector
from ctxctl.inspector.leaks import Watch
from ctxctl.model.event import Event
from ctxctl.model.problem import Problem
from ctxctl.model.records import Assembly, Item, Redaction
from ctxctl.model.results import (
    BrokenBy,
    Cache,
    Change,
    Counts,
    Ledger,
    Placement,
    StageView,
    Step,
    Summary,
    UsageView,
    Window,
)
from ctxctl.model.told import Bound, Compacted, Ids, MissingContext, Origin, Redacted

MASK: Final = "[redacted]"
_DEPTH: Final = 200
_OWN: Final = frozenset(
    name
    for kind in (
        Step, Change, Window, Ledger, Counts, StageView, BrokenBy, Cache, UsageView, Summary, Ids,
        MissingContext, Compacted, Redacted, Bound, Origin, Problem,
    )
    for name in kind.__struct_fields__
)  # fmt: skip
"""Keys that are ours: a secret that happens to be such a word would make the page unreadable."""


class Veil:
    """What was redacted in a trace, learnt in one pass over its events before anything is written.

    Args:
        sizes: Also note how large each content is.
    """

    def __init__(self, inspector: Inspector, progress: Callable[[float], None], *, sizes: bool) -> None:
        self._watch = Watch(inspector.trace)
        self._redacted: set[str] = set()
        self.sizes: dict[str, int] = {}
        """Bytes of each content that is inline in the trace, by digest."""
        size = max(1, inspector.trace.source.size)
        for count, event in enumerate(inspector.trace.events()):
            for _ in self._watch.see(event):
                pass
            self._note(event, sizes)
            if not count & 1023:
                progress(event.offset / size / 2)

    def _note(self, event: Event, sizes: bool) -> None:
        record = event.record
        if isinstance(record, Redaction):
            if record.redaction_state not in UNREDACTED:
                self._redacted |= {record.item_id, record.item_id.rpartition("@")[0]} - {""}
        elif isinstance(record, Item):
            if record.redaction is not None:
                self._redacted.add(base_id(record, version_of(record)))
            if sizes and record.content is not None:
                self.sizes[record.content.digest] = record.content.size
        elif sizes and isinstance(record, Assembly):
            for block in record.blocks:
                if block.content is not None:
                    self.sizes[block.content.digest] = block.content.size

    def withholds(self, placement: Placement) -> bool:
        """Whether a placement says what its item said before it was redacted."""
        return placement.item in self._redacted and (
            placement.redaction is None or placement.redaction in UNREDACTED
        )

    def secret(self, text: str) -> bool:
        """Whether a text holds something that was redacted."""
        return bool(self._watch) and self._watch.secret_in(text) is not None

    def masked(self, value: Any, depth: int = 0) -> Any:
        """A JSON value with everything redacted masked in its texts, keys included."""
        if not self._watch:
            return value
        if isinstance(value, str):
            return self._watch.masked(value, MASK)
        if depth > _DEPTH:
            return value
        if isinstance(value, dict):
            return {
                key if key in _OWN else self.masked(key, depth + 1): self.masked(one, depth + 1)
                for key, one in value.items()
            }
        return [self.masked(v, depth + 1) for v in value] if isinstance(value, list | tuple) else value
