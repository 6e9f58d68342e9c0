"""Which item a user means: an id, `ID@VERSION`, a title, a source, or a piece of its text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from ctxctl.engine.book import base_id, version_of
from ctxctl.errors import UsageError
from ctxctl.inspector.why.chronicle import Chronicle, Entry
from ctxctl.inspector.why.reading import Named, Reader
from ctxctl.model.addresses import prefix
from ctxctl.model.content import Content
from ctxctl.model.records import Assembly, Item, Redaction

if TYPE_CHECKING:
    from ctxctl.inspector.facade import Inspector, Progress

_SHOWN: Final = 8
_LEAST_PREFIX: Final = 2
_LEAST_TEXT: Final = 3
_CUTOFF: Final = 75
_COMPARED: Final = 20_000
"""Items whose names are compared with one that nothing has."""


class Asked(NamedTuple):
    """What a name was understood as."""

    entry: Entry | None
    """None: the thread has no such item."""
    version: str | None
    how: tuple[str, ...]
    """How it was understood, one phrase each; empty for an id."""


class Resolver:
    """Finds the item of a name in the thread of one step."""

    def __init__(
        self, inspector: Inspector, chronicle: Chronicle, reader: Reader, ordinal: int,
        progress: Progress | None,
    ) -> None:  # fmt: skip
        self._inspector = inspector
        self._chronicle = chronicle
        self._reader = reader
        self._ordinal = ordinal
        self._thread = chronicle.thread_of(ordinal)
        self._progress = progress

    def find(self, name: str) -> Asked:
        """The item of a name; `entry` is None where nothing of the thread is called or says so.

        Raises UsageError: `ambiguous-item`; `no-such-item` where another thread has it.
        """
        entry = self._chronicle.find(self._thread, name)
        if entry is not None:
            return Asked(entry, None, ())
        head, at, version = name.rpartition("@")
        entry = self._chronicle.find(self._thread, head) if at and version else None
        if entry is not None:
            return Asked(entry, version, ())
        for how, field, fits in _manners(name):
            found = self._chronicle.fitting(self._thread, field, fits)
            if found:
                return Asked(self._only(name, [self._chronicle.entry(n) for n in found], how), None, (how,))
        if len(name.strip()) >= _LEAST_TEXT:
            saying = list(self._saying(name))
            if saying:
                return Asked(self._only(name, saying, "by its text"), None, ("by its text",))
        self._elsewhere(name)
        return Asked(None, None, ())

    def near(self, name: str) -> list[str]:
        """Names of the thread's items that resemble one."""
        from rapidfuzz import fuzz, process

        known: dict[str, str] = {}
        for number in self._chronicle.fitting(self._thread, "id", lambda _: True)[:_COMPARED]:
            entry = self._chronicle.entry(number)
            known.setdefault(entry.item[:200], entry.item)
            if entry.title:
                known.setdefault(entry.title[:200], entry.item)
        found = process.extract(name[:200], list(known), scorer=fuzz.WRatio, score_cutoff=_CUTOFF, limit=5)
        # A name of one or two letters resembles everything that holds them.
        good = [text for text, _, _ in found if 2 * min(len(text), len(name)) >= max(len(text), len(name))]
        return list(dict.fromkeys(known[text] for text in good))

    def _only(self, name: str, found: list[Entry], how: str) -> Entry:
        if len(found) == 1:
            return found[0]
        latest = sorted(found, key=lambda entry: (-entry.line, entry.number))
        listed = "; ".join(self._described(entry) for entry in latest[:_SHOWN])
        more = f"; and {len(found) - _SHOWN} more, older ones" if len(found) > _SHOWN else ""
        raise UsageError(
            "ambiguous-item", f"{len(found)} items fit {name[:200]!r} {how}",
            hint=f"name one by its id: {listed}{more}",
        )  # fmt: skip

    def _described(self, entry: Entry) -> str:
        """An item with what tells it from others: its title, since when it is there, and whether it is."""
        life = self._chronicle.life(entry.number, self._ordinal)
        told = [entry.kind.replace("_", " ")]
        if entry.title:
            told.append(entry.title if len(entry.title) <= 60 else entry.title[:59] + "…")
        if life:
            moment = self._reader.moment(life[0].first)
            there = life[-1].held > 0 and life[-1].status not in ("removed", "omitted", "gone")
            told.append(f"turn {moment.turn}.{moment.step}, {'in' if there else 'not in'} the window")
        return f"{entry.item} ({', '.join(told)})"

    def _elsewhere(self, name: str) -> None:
        """Raises UsageError where only other threads have what is asked for."""
        here = self._chronicle.threads[self._thread]
        others = []
        for number, key in enumerate(self._chronicle.threads):
            if number != self._thread and self._fits(number, name):
                session = None if key.session == here.session else key.session
                others.append((prefix(key.thread, session) or f"{key.thread}:").removesuffix(":"))
        if others:
            more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
            raise UsageError(
                "no-such-item", f"thread {here.thread} has no item {name[:200]!r}",
                hint=f"it is in {', '.join(others[:_SHOWN])}{more}; write TRACE@THREAD:TURN",
            )  # fmt: skip

    def _fits(self, thread: int, name: str) -> bool:
        if self._chronicle.find(thread, name) is not None:
            return True
        return any(self._chronicle.fitting(thread, field, fits) for _, field, fits in _manners(name))

    def _saying(self, text: str) -> Iterator[Entry]:
        """Items of the thread whose text holds a piece; what was redacted is not looked into."""
        wanted = text.casefold()
        span = self._reader.span(self._ordinal)
        known: dict[Content, bool] = {}
        found: dict[str, None] = {}
        hidden: set[str] = set()
        size = max(1, self._inspector.trace.source.size)
        read = self._inspector.text

        def says(content: Content) -> bool:
            if content not in known:
                known[content] = wanted in read(content).casefold()
            return known[content]

        for batch in self._inspector.trace.batches():
            if self._progress is not None:
                self._progress(batch[0].offset / size)
            for event in batch:
                record = event.record
                if event.thread_id not in (None, span.thread) or event.session_id not in (None, span.session):
                    continue
                if isinstance(record, Redaction):
                    hidden.add(record.item_id)
                elif isinstance(record, Item):
                    if record.redaction is not None:
                        hidden.add(base_id(record, version_of(record)))
                    if record.content is not None and says(record.content):
                        found[base_id(record, version_of(record))] = None
                elif isinstance(record, Assembly):
                    for block in record.blocks:
                        if block.content is not None and len(block.refs) == 1 and says(block.content):
                            found[block.refs[0]] = None
        for ref in found:
            entry = self._chronicle.find(self._thread, ref)
            entry = entry or self._chronicle.find(self._thread, ref.rpartition("@")[0])
            if entry is not None and not any(Named(entry.item).by(other) for other in hidden):
                yield entry


def _manners(name: str) -> Iterable[tuple[str, str, Callable[[str], bool]]]:
    """Ways in which an item may be meant, the closest first: how, by which field, and what fits."""
    low = name.casefold()

    def same(text: str) -> bool:
        return text.casefold() == low

    def has(text: str) -> bool:
        return low in text.casefold()

    yield "by its title", "title", same
    yield "by its source", "source", same
    yield "by its id, in other letters", "id", same
    if len(name) >= _LEAST_PREFIX:
        yield "by the beginning of its id", "id", lambda text: text.startswith(name)
        yield "by a part of its title", "title", has
        yield "by a part of its source", "source", has
