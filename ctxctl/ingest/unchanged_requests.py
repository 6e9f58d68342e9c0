"""Tells when no request of an import differs from the first, though tools were called in between."""

from __future__ import annotations

from typing import Any, Final

from ctxctl.ingest.build import Json
from ctxctl.model import vocab
from ctxctl.model.problem import Problem

_RESULT: Final = "tool_result"
_CALL: Final = "tool_call"
_THREADS: Final = 1000
_ITEMS: Final = 10_000


class UnchangedWindows:
    """Watches the events of one import until a window changes; constant work and memory an event."""

    def __init__(self) -> None:
        self.moved = False
        """Whether a request differed from the first of all; nothing more needs to be seen then."""
        self._again = 0
        """Requests of a thread that had one before."""
        self._calls = self._results = 0
        self._first: dict[str, list[Any]] = {}
        """By thread, the window of its first request."""
        self._told = False
        """Whether a result stands in a window."""
        self._items: set[str] = set()

    def see(self, event: Json) -> None:
        """Take one event into account; it is not changed."""
        kind, data = event.get("event_type"), event.get("data")
        if not isinstance(data, dict):
            return
        if kind == vocab.ITEM_ADDED:
            self._item(data)
        elif kind == vocab.ASSEMBLY_CREATED and data.get("target", vocab.MODEL) == vocab.MODEL:
            self._assembly(f"{event.get('session_id')}/{event.get('thread_id')}", data)

    def _item(self, data: Json) -> None:
        what = data.get("context_kind")
        self._calls += what == _CALL
        if what == _RESULT:
            self._results += 1
            if isinstance(data.get("item_id"), str) and len(self._items) < _ITEMS:
                self._items.add(data["item_id"])

    def _assembly(self, thread: str, data: Json) -> None:
        metadata = data.get("metadata")
        marks = metadata.get("ctxctl") if isinstance(metadata, dict) else None
        marks = marks if isinstance(marks, dict) else {}
        told = data.get("ordered_blocks")
        blocks = [block for block in told if isinstance(block, dict)] if isinstance(told, list) else []
        named = (block.get("block_id") for block in blocks)
        self._told = self._told or any(isinstance(name, str) and name in self._items for name in named)
        refs = [block.get("item_refs") for block in blocks]
        first = self._first.get(thread)
        if first is None:
            self._first[thread] = refs
            self.moved = len(self._first) > _THREADS
            return
        self._again += 1
        self.moved = bool(marks.get("splices")) if "base" in marks else refs != first

    def problems(self) -> list[Problem]:
        """One where the whole import is of one window, and results of tools are in no window."""
        if self.moved or self._told or not (self._again and self._calls and self._results):
            return []
        message = (
            f"every one of {self._again + len(self._first):,} requests has the window of the first, and the "
            f"capture tells of {self._calls:,} tool calls and {self._results:,} results that are in none: "
            "their order was not understood"
        )
        return [Problem(0, 0, "same-window", message)]
