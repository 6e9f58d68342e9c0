"""Insert learned items at the start of a log's frames, each marked as derived.

Learned texts that the log itself holds are not added.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Final, NamedTuple

import orjson

from ctxctl.ingest.build import VERSION_DIGITS, Block, Json, canonical, digest_of, text_item
from ctxctl.model import vocab
from ctxctl.session.learned.book import LearnedItem, LearnedSet
from ctxctl.session.learned.gather import ItemStream, blocks_of, marks_of, thread_kind
from ctxctl.session.learned.window import HeldPlacement

_LACKING: Final = "not recorded"
PREFIX: Final = "learned:"
"""Prefix of the ids of learned items."""


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
        """Return the facts that its items tell."""
        return {_FACTS[item["context_kind"]] for item in self.items if item["context_kind"] in _FACTS}


class LearnedInserter:
    """Rewrites one event stream.

    A learned item is left out if the log's first request of the thread holds it. If that holds a part, only
    the rest is added. The first request decides for its thread.
    """

    def __init__(self, learned: LearnedSet) -> None:
        self.learned = learned
        self.shown = 0
        """Number of items added so far, over all threads."""
        self._items: dict[tuple[Any, Any], ItemStream] = {}
        """Items that the log named before its first request, by thread."""
        self._heads: dict[tuple[Any, Any], _Head | None] = {}
        self._rewritten: set[str] = set()
        """Ids of assemblies with added items."""
        self._count = 0
        self._told: Counter[str] = Counter()
        """Number of requests that have a fact from the added items, by fact."""

    def events(self, events: Iterable[Json]) -> Iterator[Json]:
        """Yield the rewritten stream."""
        for event in events:
            data = event.get("data")
            if isinstance(data, dict):
                key = (event.get("session_id") or None, event.get("thread_id"))
                if event.get("event_type") in (vocab.ITEM_ADDED, vocab.ITEM_UPDATED):
                    if key not in self._heads:
                        self._items.setdefault(key, ItemStream()).take(data)
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
        """Return the capture's fidelity facts, with those from the added items as derived."""
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
        stream = self._items.pop(key, None) or ItemStream()
        kind = thread_kind(key[1], marks)
        items = self.learned.threads.get(kind) if kind is not None else None
        if not items:
            return None
        window = [held for block in blocks_of(data) for held in stream.held(block)]
        own = LogTexts(window)
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

    def _item(self, name: str, item: LearnedItem, text: str, version: str, *, whole: bool) -> Json:
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
        """Return the assembly with the items: inserted into a whole window, else with moved splices."""
        name = str(data.get("assembly_id"))
        known = marks.get("base") in self._rewritten
        self._rewritten.add(name)
        if not known:
            return {**data, "ordered_blocks": [*head.blocks, *blocks_of(data)]}
        moved = [[at + len(head.blocks), removed, inserted] for at, removed, inserted in marks["splices"]]
        metadata = {**data["metadata"], "ctxctl": {**marks, "splices": moved}}
        return {**data, "metadata": metadata}


def _version(kind: str, text: str) -> str:
    """Return an item's version as importers make it; a tool's is that of its canonical form.

    Its text is the one that was sent.
    """
    if kind == "tool_definition":
        # It may be free text, or no valid JSON after masking.
        with suppress(orjson.JSONDecodeError):
            text = canonical(orjson.loads(text))
    return digest_of(text)[:VERSION_DIGITS]


_MIN_SEARCHED: Final = 24
"""Shortest text that is searched in others, in characters."""
_MIN_LINE: Final = 12
"""Shortest line that is distinctive, in characters."""
_DEEP: Final = 12


class LogTexts:
    """The texts of a log's own frame, for comparison with a learned text."""

    def __init__(self, window: Iterable[HeldPlacement]) -> None:
        self._digests: set[str] = set()
        self._tools: set[str] = set()
        self._lines: set[str] = set()
        self._long: list[str] = []
        for held in window:
            if not held.text:
                continue
            self._digests.add(digest_of(held.text))
            if held.kind == "tool_definition" and held.title:
                self._tools.add(held.title)
            for text in _texts(held.text):
                self._lines.update(_lines(text))
                if len(text.strip()) >= _MIN_SEARCHED:
                    self._long.append(text.strip())
        self._long.sort(key=len, reverse=True)

    def lacks(self, kind: str, title: str | None, text: str) -> list[str]:
        """Return the pieces of a learned text that the log lacks, in order; none if it holds all of it.

        A tool is held if one has its name. A text is held if all its lines are (or, for JSON, its strings).
        Otherwise the log's own texts are cut out of it.
        """
        if digest_of(text) in self._digests or (kind == "tool_definition" and title in self._tools):
            return []
        lines = {line for one in _texts(text) for line in _lines(one)}
        if lines and lines <= self._lines:
            return []
        if kind == "tool_definition":
            return [text]
        pieces = [text]
        for own in self._long:
            pieces = [rest for piece in pieces for rest in piece.split(own)]
        return [piece for piece in pieces if piece.strip()]


def _lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        line = line.strip()
        if len(line) >= _MIN_LINE:
            yield line


def _texts(text: str) -> Iterator[str]:
    """Yield the text itself, or the strings in it if it is JSON."""
    if text[:1] in "{[":
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError:
            pass
        else:
            yield from _strings(value, _DEEP)
            return
    yield text


def _strings(value: Any, deep: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif deep and isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner, deep - 1)
