"""From the requests of a recording to a learned set: what stands in every request of a kind of thread.

The assemblies of an event stream tell what each request carried: ids, kinds and texts, nothing more.
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
    """A captured request and its window, which is good until the next request is asked for."""

    session: str | None
    kind: str | None
    """Kind of its thread (`book.MAIN`, `agent:TYPE`); None: another one."""
    window: CarriedWindow


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
        """Yield what a block of an assembly places."""
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
    """Yield the requests of a stream, in order.  Assemblies that only append are left out.

    A window takes the place of the one that it was made from.
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
    """The whole window of an assembly; what it builds upon is taken from `windows`, and given up there.

    None if that is not known any more (two assemblies build upon one).
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
    """Return whether these are splices in order, that use up so many blocks."""
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


_SPARE: Final = 4_000_000
"""Placements of windows that are built upon another thread's that are compared for one recording."""


class LearnedGatherer:
    """What is learned of one recording; its sessions count as recordings of their own.

    Args:
        clean: Takes secrets out of a text.
    """

    def __init__(self, clean: Callable[[str], str] = lambda text: text) -> None:
        self._clean = clean
        self._common: dict[tuple[str | None, str], Common] = {}
        """By session and kind of thread: what all requests so far have, in order."""
        self._counts: Counter[str | None] = Counter()
        """By session, its requests of those kinds."""
        self._spare = _SPARE
        self.client: str | None = None
        """As the requests themselves say; None if they do not."""
        self.version: str | None = None
        self.requests = 0
        self.is_cut = False
        """Whether the windows were compared up to a bound only: requests beyond it are not counted."""

    def take(self, events: Iterable[Json]) -> None:
        """Take in all requests of a recording's events."""
        for carried in requests(events):
            if carried.kind is None:
                carried.window.met = None  # what goes with this request is not seen by the next one
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
            # What all requests had, its base had: only what has gone since can be missing.
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
        """The set, all sessions joined; None if no request has anything that all of its thread have."""
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
