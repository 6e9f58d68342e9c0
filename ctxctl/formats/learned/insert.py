"""A log's events with the learned items at the head of its frames, each marked as derived."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Final, NamedTuple

import orjson

from ctxctl.formats.build import VERSION_DIGITS, Block, Json, canonical, digest_of, text_item
from ctxctl.formats.learned.book import Item, Learned
from ctxctl.formats.learned.cover import Own
from ctxctl.formats.learned.frames import Items, blocks_of, marks_of, thread_kind
from ctxctl.model import vocab

_LACKING: Final = "not recorded"
PREFIX: Final = "learned:"
"""Begins the ids of such items."""


_FACTS: Final = {
    "system_prompt": "system_prompt",
    "developer_instruction": "system_prompt",
    "tool_definition": "tool_definitions",
}
"""Facts of fidelity that are counted by request, by kind of item."""


class _Head(NamedTuple):
    blocks: list[Json]
    items: list[Json]

    def facts(self) -> set[str]:
        """The facts that its items tell."""
        return {_FACTS[item["context_kind"]] for item in self.items if item["context_kind"] in _FACTS}


class Inserted:
    """Rewrites one event stream.

    A learned item that the log's own first request of the thread holds is left out; of one that it holds in
    part, the rest is shown.  The first request decides for its thread.
    """

    def __init__(self, learned: Learned) -> None:
        self.learned = learned
        self.shown = 0
        """Items put in so far, over all threads."""
        self._items: dict[tuple[Any, Any], Items] = {}
        """By thread: what it told before its first request."""
        self._heads: dict[tuple[Any, Any], _Head | None] = {}
        self._rewritten: set[str] = set()
        """Ids of assemblies that have the head."""
        self._count = 0
        self._told: Counter[str] = Counter()
        """By fact of fidelity: requests that have it from the head."""

    def events(self, events: Iterable[Json]) -> Iterator[Json]:
        """The stream, rewritten."""
        for event in events:
            data = event.get("data")
            if isinstance(data, dict):
                key = (event.get("session_id"), event.get("thread_id"))
                if event.get("event_type") in (vocab.ITEM_ADDED, vocab.ITEM_UPDATED):
                    if key not in self._heads:
                        self._items.setdefault(key, Items()).take(data)
                elif event.get("event_type") == vocab.ASSEMBLY_CREATED:
                    yield from self._assembly(event, data, key)
                    continue
                elif event.get("event_type") == vocab.FIDELITY_MEASURED:
                    event = {**event, "data": self._measured(data)}
            yield event

    def _assembly(self, event: Json, data: Json, key: tuple[Any, Any]) -> Iterator[Json]:
        marks = marks_of(data)
        if data.get("target") != vocab.MODEL or marks.get("mode", "window") != "window":
            yield event
            return
        if key not in self._heads:
            head = self._heads[key] = self._head(key, marks, data)
            if head is not None:
                for item in head.items:
                    yield self._added(event, item)
        head = self._heads[key]
        self._told.update(head.facts() if head is not None else ())
        yield event if head is None else {**event, "data": self._with(head, data, marks)}

    def _measured(self, data: Json) -> Json:
        """What the capture told of each fact, with what it lacked and the head has as derived."""
        facts = data.get("facts")
        if not isinstance(facts, dict):
            return data
        made = dict(facts)
        for fact, requests in self._told.items():
            counts = dict(made.get(fact, {}))
            moved = min(requests, counts.get(_LACKING, 0))
            if moved:
                counts[_LACKING] -= moved
                counts["derived"] = counts.get("derived", 0) + moved
                made[fact] = {level: count for level, count in counts.items() if count}
        return {**data, "facts": made}

    def _head(self, key: tuple[Any, Any], marks: Json, data: Json) -> _Head | None:
        told = self._items.pop(key, None) or Items()
        kind = thread_kind(key[1], marks)
        items = self.learned.threads.get(kind) if kind is not None else None
        if not items:
            return None
        window = [held for block in blocks_of(data) for held in told.held(block)]
        own = Own(window)
        head = _Head([], [])
        for number, item in enumerate(items, 1):
            text = self.learned.contents[item.digest]
            rest = own.lacks(item.kind, item.title, text)
            for piece, part in enumerate(rest, 1):
                name = f"{PREFIX}{kind}/{number}" + (f".{piece}" if len(rest) > 1 else "")
                version = _version(item.kind, part)
                head.items.append(self._item(name, item, part, version, whole=part == text))
                head.blocks.append(Block(f"{name}@{version}", name, item.role, segment=item.segment).record())
        self.shown += len(head.items)
        return head if head.items else None

    def _item(self, name: str, item: Item, text: str, version: str, *, whole: bool) -> Json:
        marks: Json = {"derived": True, "identity": "derived", "learned": self.learned.name}
        if item.varies:
            marks["varies"] = True
        if not whole:
            marks["part"] = True
        source = f"learned from {self.learned.name}"
        refs = [{"schema_version": vocab.SCHEMA_VERSION, "source_id": source}]
        metadata: Json = {"ctxctl": marks}
        if not digest_of(text).startswith(version):
            metadata["version"] = version
        return text_item(name, item.kind, text, title=item.title, source_refs=refs, metadata=metadata)

    def _added(self, event: Json, item: Json) -> Json:
        self._count += 1
        made = {
            name: value
            for name, value in event.items()
            if name in ("schema_version", "source", "time", "session_id", "thread_id", "turn_id", "step_id")
        }
        return {**made, "event_id": f"learned-{self._count}", "event_type": vocab.ITEM_ADDED, "data": item}

    def _with(self, head: _Head, data: Json, marks: Json) -> Json:
        """The assembly with the head: put in where it lists the whole window, else its splices moved on."""
        name = str(data.get("assembly_id"))
        known = marks.get("base") in self._rewritten
        self._rewritten.add(name)
        if not known:
            return {**data, "ordered_blocks": [*head.blocks, *blocks_of(data)]}
        moved = [[at + len(head.blocks), removed, inserted] for at, removed, inserted in marks["splices"]]
        metadata = {**data["metadata"], "ctxctl": {**marks, "splices": moved}}
        return {**data, "metadata": metadata}


def _version(kind: str, text: str) -> str:
    """An item's version as importers make it: that of a tool's definition is of its canonical form.

    Its text is the one that was sent.
    """
    if kind == "tool_definition":
        # It can be free text, or no JSON any more with what was redacted in it.
        with suppress(orjson.JSONDecodeError):
            text = canonical(orjson.loads(text))
    return digest_of(text)[:VERSION_DIGITS]
