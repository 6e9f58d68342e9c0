"""From the requests of a recording to a learned set: what stands in every request of a kind of thread.

The assemblies of an event stream tell what each request carried: ids, kinds and texts, nothing more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from ctxctl.ingest.build import VERSION_DIGITS, Json, digest_of
from ctxctl.ingest.parts import string
from ctxctl.model import vocab
from ctxctl.session.learned.book import MAIN, STANDING, LearnedItem, LearnedSet, joined_sets


class HeldPlacement(NamedTuple):
    """A placement of a captured request: what the set is learned from."""

    kind: str
    role: str
    segment: str
    title: str | None
    text: str | None
    version: str = ""
    """Digest of the text, or of its canonical form where it was sent in another; empty without a text."""


class CarriedRequest(NamedTuple):
    """A captured request with its placements, in order."""

    session: str | None
    kind: str | None
    """Kind of its thread (`book.MAIN`, `agent:TYPE`); None: another one."""
    window: list[HeldPlacement]


class ItemStream:
    """The items of a stream as they were told last, by reference."""

    def __init__(self) -> None:
        self._known: dict[str, Json] = {}
        self._texts: dict[str, str] = {}
        """By SHA-256 hex, of contents that may be named again."""

    def take(self, data: Json) -> None:
        """Take in an item that was added or updated."""
        name, text = data.get("item_id"), data.get("content")
        if not isinstance(name, str):
            return
        ref = data.get("content_ref")
        if not isinstance(text, str) and isinstance(ref, str):
            text = self._texts.get(ref.removeprefix("sha256:"))
        kept = {**data, "content": text if isinstance(text, str) else None, "version": ""}
        if isinstance(text, str):
            digest = digest_of(text)
            self._texts[digest] = text
            # Blocks name the version: of the canonical form, where the text was sent in another.
            kept["version"] = string(_metadata(data).get("version")) or digest[:VERSION_DIGITS]
            self._known[f"{name}@{kept['version']}"] = kept
        self._known[name] = kept

    def held(self, block: Json) -> Iterator[HeldPlacement]:
        """What a block of an assembly places."""
        refs = block.get("item_refs")
        for ref in refs if isinstance(refs, list) else ():
            if not isinstance(ref, str):
                continue
            item = self._known.get(ref) or self._known.get(ref.rpartition("@")[0]) or {}
            segment = block.get("segment")
            title = item.get("title")
            yield HeldPlacement(
                str(item.get("context_kind") or ""),
                str(block.get("role") or ""),
                segment if isinstance(segment, str) else "",
                title if isinstance(title, str) else None,
                item.get("content"),
                item.get("version", ""),
            )


def requests(events: Iterable[Json]) -> Iterator[CarriedRequest]:
    """The requests of a stream, in order.  Assemblies that only append are left out."""
    items = ItemStream()
    windows: dict[str, list[Json]] = {}
    kinds: dict[tuple[Any, Any], str | None] = {}
    for event in events:
        data = event.get("data")
        if not isinstance(data, dict):
            continue
        if event.get("event_type") in (vocab.ITEM_ADDED, vocab.ITEM_UPDATED):
            items.take(data)
        elif event.get("event_type") == vocab.ASSEMBLY_CREATED and data.get("target") == vocab.MODEL:
            marks = marks_of(data)
            if marks.get("mode", "window") != "window":
                continue
            key = (string(event.get("session_id")) or None, string(event.get("thread_id")))
            kind = kinds.setdefault(key, thread_kind(key[1], marks))
            blocks = _spliced(data, marks, windows)
            if blocks is None:
                continue
            windows[str(data.get("assembly_id"))] = blocks
            yield CarriedRequest(key[0], kind, [held for block in blocks for held in items.held(block)])


def blocks_of(data: Json) -> list[Json]:
    """The blocks that an assembly lists."""
    blocks = data.get("ordered_blocks")
    return [block for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []


def marks_of(data: Json) -> Json:
    """An assembly's `metadata.ctxctl`."""
    marks = _metadata(data).get("ctxctl")
    return marks if isinstance(marks, dict) else {}


def _metadata(data: Json) -> Json:
    found = data.get("metadata")
    return found if isinstance(found, dict) else {}


def thread_kind(thread: Any, marks: Json) -> str | None:
    """The kind of a thread, by its name and the marks of its first assembly."""
    if thread is None or thread == vocab.MAIN_THREAD:
        return MAIN
    kind = marks.get("agent_type")
    return f"agent:{kind}" if isinstance(kind, str) and kind else None


def _spliced(data: Json, marks: Json, windows: dict[str, list[Json]]) -> list[Json] | None:
    """The whole block list of an assembly; what it builds upon is taken from `windows`, and given up there.

    None where that is not known any more (two assemblies build upon one).
    """
    blocks = blocks_of(data)
    if marks.get("base") is None:
        return blocks
    base = windows.pop(str(marks["base"]), None)
    splices = marks.get("splices")
    if base is None or not isinstance(splices, list):
        return None
    made: list[Json] = []
    at = used = 0
    for splice in splices:
        if not _is_splice(splice):
            return None
        start, removed, inserted = splice
        made += base[at:start]
        made += blocks[used : used + inserted]
        at, used = start + removed, used + inserted
    return made + base[at:]


def _is_splice(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 3 and all(type(n) is int and n >= 0 for n in value)


_KINDS: Final = STANDING | {"policy_note", "runtime_state", "durable_memory", "external_resource"}
_BILLING: Final = re.compile(
    r"x-anthropic-billing-header:\s*cc_version=(\d+(?:\.\d+)+?)(?:\.[0-9a-f]{3})?\s*(?:;|$)"
)
_REDACTED: Final = re.compile(r"\[redacted [a-z0-9-]{1,40}, \d{1,9} chars, #[0-9a-f]{12}\]")


class LearnedGatherer:
    """What is learned of one recording; its sessions count as recordings of their own.

    Args:
        clean: Takes secrets out of a text.
    """

    def __init__(self, clean: Callable[[str], str] = lambda text: text) -> None:
        self._clean = clean
        self._common: dict[tuple[str | None, str], dict[tuple[str, str], tuple[HeldPlacement, str]]] = {}
        """By session and kind of thread: what all requests so far have, by kind and version, in order."""
        self._counts: dict[tuple[str | None, str], int] = {}
        self.client: str | None = None
        """As the requests themselves say; None where they do not."""
        self.version: str | None = None
        self.requests = 0

    def take(self, events: Iterable[Json]) -> None:
        """Take in all requests of a recording's events."""
        for carried in requests(events):
            self.requests += 1
            if carried.kind is not None:
                self._meet((carried.session, carried.kind), carried)

    def _meet(self, key: tuple[str | None, str], carried: CarriedRequest) -> None:
        present: dict[tuple[str, str], tuple[HeldPlacement, str]] = {}
        for held in carried.window:
            if held.kind in _KINDS and held.text:
                self._name(held.text)
                present.setdefault((held.kind, held.version), (held, held.text))
        known = self._common.get(key)
        if known is None:
            self._common[key] = present
        else:
            self._common[key] = {name: value for name, value in known.items() if name in present}
        self._counts[key] = self._counts.get(key, 0) + 1

    def _name(self, text: str) -> None:
        if self.version is None and text.startswith("x-anthropic-billing-header:"):
            found = _BILLING.match(text)
            if found is not None:
                self.client, self.version = "claude-code", found[1]

    def learned(self, client: str, version: str) -> LearnedSet | None:
        """The set, all sessions joined; None where no request has anything that all of its thread have."""
        made: LearnedSet | None = None
        sessions = dict.fromkeys(session for session, _ in self._common)
        for session in sessions:
            one = self._of(session, client, version)
            if one is not None:
                made = one if made is None else joined_sets(made, one)
        return made

    def _of(self, session: str | None, client: str, version: str) -> LearnedSet | None:
        threads: dict[str, tuple[LearnedItem, ...]] = {}
        contents: dict[str, str] = {}
        stubs = 0
        for (its, kind), common in self._common.items():
            if its != session or not common:
                continue
            items = []
            for held, text in common.values():
                clean = self._clean(text)
                stubs += len(_REDACTED.findall(clean)) - len(_REDACTED.findall(text))
                digest = digest_of(clean)
                contents[digest] = clean
                items.append(LearnedItem(held.kind, held.role, digest, held.title, held.segment))
            threads[kind] = tuple(items)
        if not threads:
            return None
        count = sum(number for (its, _), number in self._counts.items() if its == session)
        return LearnedSet(client, version, threads, contents, requests=count, redacted=stubs)
