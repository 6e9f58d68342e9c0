"""The items of a trace by thread, among which typed names are searched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ctxctl.engine.query.facts import first_tool_server
from ctxctl.engine.replay.item_table import ItemTable
from ctxctl.engine.replay.step_tracker import StepTracker, ThreadKey
from ctxctl.model.content import Content
from ctxctl.model.event import Event
from ctxctl.model.records import Assembly, Budget, Compaction, Item, Redaction, Selection
from ctxctl.model.vocab import ABOUT_THE_TRACE, ITEM_REMOVED, SESSION_ENDED
from ctxctl.session.params import working_directory
from ctxctl.trace.reader import Trace

_CALL, _RESULT = "tool_call", "tool_result"
_MAX_TEXTS = 4
"""Most texts of an item's blocks that are checked for a repeat. Another copy only costs time."""
_UNKNOWN = "custom"
"""Kind of an item that is only referred to."""


class ItemFacets(NamedTuple):
    """What an item can be selected by, besides its id."""

    kind: str
    source: str | None
    server: str | None


class FirstMention(NamedTuple):
    """When a thread mentions an item for the first time."""

    line: int
    turn: int
    step: int


class ThreadItems:
    """The items of one thread."""

    def __init__(self, target: str) -> None:
        self.book = ItemTable(target)
        self.facets: dict[str, tuple[ItemFacets, ...]] = {}
        """The facets of all versions, by item."""
        self.members: dict[str, list[str]] = {}
        """The call and its results, by tool call."""
        self.call_of: dict[str, str] = {}
        """The call, by tool call or result."""
        self.into: dict[str, set[str]] = {}
        """The items that a summary replaces, by summary."""
        self.came: dict[str, FirstMention] = {}
        """When each item was first mentioned, also one only named (such as an omitted candidate)."""
        self.in_blocks: dict[str, list[Content]] = {}
        """Texts that only blocks of assemblies give, by item."""
        self.redacted: set[str] = set()
        """Refs of items with redacted content."""
        self._open: dict[str, None] = {}
        """Calls without a result so far, in order."""
        self._met: set[str] = set()
        """Refs that were processed already."""

    def item(self, record: Item, came: FirstMention) -> None:
        """Add one item record."""
        version = self.book.learn(record, came.line)
        item, kind = version.item, record.context_kind
        self.came.setdefault(item, came)
        if record.redaction is not None:
            self.redacted.add(item)
        facets = ItemFacets(kind, record.source, _server(record.source, record.title, item))
        known = self.facets.get(item, ())
        if facets in known:
            return
        self.facets[item] = (*known, facets)
        if kind == _CALL:
            if item not in self.call_of:
                self.call_of[item] = item
                self.members[item] = [item]
                self._open[item] = None
        elif kind == _RESULT and item not in self.call_of:
            self.call_of[item] = call = self._call_of(item)
            self.members.setdefault(call, [call]).append(item)
            self._open.pop(call, None)

    def _call_of(self, result: str) -> str:
        """Return the call in a result's id (`ID/result`), else the oldest call without a result."""
        named = result.removesuffix("/result")
        if named != result and self.call_of.get(named) == named:
            return named
        return next(iter(self._open), result)

    def assembly(self, record: Assembly, came: FirstMention) -> None:
        """Add what only assemblies mention."""
        for block in record.blocks:
            if not block.refs and block.block_id is not None:
                self._referred(f"block:{block.block_id}", came)
            for ref in block.refs:
                if ref not in self._met:
                    self._met.add(ref)
                    self._referred(self.book.item_of(ref), came)
            if block.content is not None and len(block.refs) == 1:
                texts = self.in_blocks.setdefault(self.book.item_of(block.refs[0]), [])
                if not any(text is block.content for text in texts[-_MAX_TEXTS:]):
                    texts.append(block.content)

    def _referred(self, item: str, came: FirstMention) -> None:
        self.came.setdefault(item, came)
        if item not in self.facets:
            self.facets[item] = (ItemFacets(_UNKNOWN, None, _server(item)),)

    def named(self, refs: Iterator[str], came: FirstMention) -> None:
        """Add items that a decision names, whether or not a frame ever has them."""
        for ref in refs:
            self.came.setdefault(self.book.item_of(ref), came)

    def compaction(self, record: Compaction) -> None:
        """Add what a summary replaces."""
        if record.summary is not None:
            sources = {self.book.item_of(ref) for ref in record.sources}
            self.into.setdefault(self.book.item_of(record.summary), set()).update(sources)


class Inventory:
    """The items of all threads so far, from one pass that counts no tokens."""

    def __init__(self, trace: Trace, target: str, progress: Callable[[float], None] | None = None) -> None:
        self.shelves: dict[ThreadKey, ThreadItems] = {}
        self.size = trace.source.size
        """Bytes of the trace that it covers."""
        self.directory = working_directory(trace)
        """Where the session ran; None if not recorded."""
        self._target = target
        tracker = StepTracker()
        for batch in trace.batches():
            if progress is not None:
                progress(batch[0].offset / max(1, self.size))
            for event in batch:
                self._take(event, tracker)

    def items(self) -> Iterator[tuple[ThreadKey, str, tuple[ItemFacets, ...]]]:
        """Yield every item with its facets."""
        for key, shelf in self.shelves.items():
            for item, facets in shelf.facets.items():
                yield key, item, facets

    def _take(self, event: Event, tracker: StepTracker) -> None:
        if event.event_type in ABOUT_THE_TRACE:
            if event.event_type == SESSION_ENDED:
                tracker.ended(event)
            return
        cursor = tracker.place(event).cursor
        key, came = cursor.key, FirstMention(event.line, cursor.turn, cursor.step)
        record = event.record
        if not isinstance(record, Item | Assembly | Compaction | Selection | Budget | Redaction):
            return
        shelf = self.shelves.get(key)
        if shelf is None:
            shelf = self.shelves[key] = ThreadItems(self._target)
        if isinstance(record, Item):
            if event.event_type != ITEM_REMOVED:
                shelf.item(record, came)
        elif isinstance(record, Assembly):
            if record.target == self._target:
                shelf.assembly(record, came)
        elif isinstance(record, Selection):
            named = (*record.candidates, *record.selected, *record.omitted)
            shelf.named((one.ref for one in named), came)
        elif isinstance(record, Budget):
            shelf.named((one.ref for one in record.truncations if one.dropped), came)
        elif isinstance(record, Redaction):
            shelf.redacted.add(record.item_id)
        else:
            shelf.compaction(record)
            summary = (record.summary,) if record.summary is not None else ()
            shelf.named(iter(summary), came)


def _server(*names: str | None) -> str | None:
    """Return the tool server in a source, a title or an id; a source may be just `mcp:SERVER`."""
    first = names[0]
    if first is not None and first.startswith("mcp:") and first[4:] and not set(first[4:]) & set(":/"):
        return first[4:]
    return first_tool_server(*names)
