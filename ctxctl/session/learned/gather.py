"""Derive a learned set from the requests of a recording: what every request of a kind of thread contains.

The assemblies of an event stream give the ids, kinds and texts of each request.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from ctxctl.ingest.build import VERSION_DIGITS, Json, digest_of
from ctxctl.ingest.parts import string
from ctxctl.model import vocab
from ctxctl.session.learned.book import MAIN, LearnedItem, LearnedSet, joined_sets
from ctxctl.session.learned.window import CarriedWindow, Common, HeldPlacement


class CarriedRequest(NamedTuple):
    """A captured request and its window, which is valid until the next request is read."""

    session: str | None
    kind: str | None
    """Kind of its thread (`book.MAIN`, `agent:TYPE`); None for another one."""
    window: CarriedWindow


class ItemStream:
    """The current items of a stream, by reference."""

    def __init__(self) -> None:
        self._known: dict[str, Json] = {}
        self._texts: dict[str, str] = {}
        """Texts that may be referred to, by SHA-256 hex."""

    def take(self, data: Json) -> None:
        """Add an item that was added or updated."""
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
            # Blocks name the version of the canonical form, even if the text was sent in another form.
            kept["version"] = string(_metadata(data).get("version")) or digest[:VERSION_DIGITS]
            self._known[f"{name}@{kept['version']}"] = kept
        self._known[name] = kept

    def held(self, block: Json) -> Iterator[HeldPlacement]:
        """Yield the placements of an assembly's block."""
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
    """Yield the requests of a stream, in order, without assemblies that only append.

    A window replaces the one that it was made from.
    """
    items = ItemStream()
    windows: dict[str, CarriedWindow] = {}
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
            window = _window(data, marks, windows, items)
            if window is None:
                continue
            windows[str(data.get("assembly_id"))] = window
            yield CarriedRequest(key[0], kind, window)


def _window(
    data: Json, marks: Json, windows: dict[str, CarriedWindow], items: ItemStream
) -> CarriedWindow | None:
    """Return the whole window of an assembly, and remove its base from `windows`.

    None if the base is gone, because another assembly was based on it too.
    """
    blocks = blocks_of(data)
    if marks.get("base") is None:
        return CarriedWindow([list(items.held(block)) for block in blocks])
    splices = marks.get("splices")
    if not isinstance(splices, list) or not _are_splices(splices, len(blocks)):
        return None
    window = windows.pop(str(marks["base"]), None)
    if window is not None:
        window.splice(splices, [list(items.held(block)) for block in blocks])
    return window


def blocks_of(data: Json) -> list[Json]:
    """Return the blocks that an assembly lists."""
    blocks = data.get("ordered_blocks")
    return [block for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []


def marks_of(data: Json) -> Json:
    """Return an assembly's `metadata.ctxctl`."""
    marks = _metadata(data).get("ctxctl")
    return marks if isinstance(marks, dict) else {}


def _metadata(data: Json) -> Json:
    found = data.get("metadata")
    return found if isinstance(found, dict) else {}


def thread_kind(thread: Any, marks: Json) -> str | None:
    """Return the kind of a thread, by its name and the marks of its first assembly."""
    if thread is None or thread == vocab.MAIN_THREAD:
        return MAIN
    kind = marks.get("agent_type")
    return f"agent:{kind}" if isinstance(kind, str) and kind else None


def _are_splices(found: list[Any], blocks: int) -> bool:
    """Return whether these are splices in order that use up the blocks."""
    end = 0
    for value in found:
        if not (
            isinstance(value, list) and len(value) == 3 and all(type(n) is int and n >= 0 for n in value)
        ):
            return False
        at, removed, inserted = value
        if at < end:
            return False
        end, blocks = at + removed, blocks - inserted
    return blocks == 0


_BILLING: Final = re.compile(
    r"x-anthropic-billing-header:\s*cc_version=(\d+(?:\.\d+)+?)(?:\.[0-9a-f]{3})?\s*(?:;|$)"
)
_REDACTED: Final = re.compile(r"\[redacted [a-z0-9-]{1,40}, \d{1,9} chars, #[0-9a-f]{12}\]")


_MAX_COMPARED: Final = 4_000_000
"""Most compared placements, for one recording, of windows based on another thread's."""


class LearnedGatherer:
    """Gathers what one recording teaches; its sessions count as separate recordings.

    Args:
        clean: Masks secrets in a text.
    """

    def __init__(self, clean: Callable[[str], str] = lambda text: text) -> None:
        self._clean = clean
        self._common: dict[tuple[str | None, str], Common] = {}
        """What all requests so far have in common, in order, by session and kind of thread."""
        self._counts: Counter[str | None] = Counter()
        """Number of requests of those kinds, by session."""
        self._spare = _MAX_COMPARED
        self.client: str | None = None
        """The client as the requests name it; None if they do not."""
        self.version: str | None = None
        self.requests = 0
        self.is_cut = False
        """Whether comparing stopped at a bound, so that later requests are not counted."""

    def take(self, events: Iterable[Json]) -> None:
        """Process all requests of a recording's events."""
        for carried in requests(events):
            if carried.kind is None:
                carried.window.met = None  # the next request does not see what this one removes
            else:
                self._meet((carried.session, carried.kind), carried.window)
                if self.is_cut:
                    return
            self.requests += 1

    def _meet(self, key: tuple[str | None, str], window: CarriedWindow) -> None:
        for held in window.fresh:
            self._name(held.text or "")
        window.fresh.clear()
        known = self._common.get(key)
        if known is not None and window.met is known:
            # Its base had everything that all requests had, so only removals since then matter.
            for name in window.gone:
                known.pop(name, None)
        else:
            compared = window.placements if known is None else len(known)
            self._spare -= 0 if window.is_whole else compared
            if self._spare < 0:
                self.is_cut = True
                return
            if known is None:
                known = self._common[key] = window.standing()
            for name in [name for name in known if name not in window.present]:
                del known[name]
        window.met = known
        self._counts[key[0]] += 1

    def _name(self, text: str) -> None:
        if self.version is None and text.startswith("x-anthropic-billing-header:"):
            found = _BILLING.match(text)
            if found is not None:
                self.client, self.version = "claude-code", found[1]

    def learned(self, client: str, version: str) -> LearnedSet | None:
        """Return the set of all sessions; None if no request has anything common to its thread."""
        sessions: dict[str | None, dict[str, Common]] = {}
        for (session, kind), common in self._common.items():
            held_by_all = sessions.setdefault(session, {})
            if common:
                held_by_all[kind] = common
        sets = [self._of(session, common, client, version) for session, common in sessions.items() if common]
        return joined_sets(*sets) if sets else None

    def _of(self, session: str | None, common: dict[str, Common], client: str, version: str) -> LearnedSet:
        threads: dict[str, tuple[LearnedItem, ...]] = {}
        contents: dict[str, str] = {}
        stubs = 0
        for kind, held_by_all in common.items():
            items = []
            for held in held_by_all.values():
                text = held.text or ""
                clean = self._clean(text)
                stubs += len(_REDACTED.findall(clean)) - len(_REDACTED.findall(text))
                digest = digest_of(clean)
                contents[digest] = clean
                items.append(LearnedItem(held.kind, held.role, digest, held.title, held.segment))
            threads[kind] = tuple(items)
        return LearnedSet(client, version, threads, contents, requests=self._counts[session], redacted=stubs)
