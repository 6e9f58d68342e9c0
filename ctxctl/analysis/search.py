"""Search a whole trace. Hits are found in the order of the steps."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Final, NamedTuple

from ctxctl.analysis.known_values import unknown_error, unknown_values
from ctxctl.analysis.query_context import QueryContexts
from ctxctl.engine.query import Query, QueryContext, Word
from ctxctl.engine.query.terms import casefolded
from ctxctl.engine.replay.walked import Walked
from ctxctl.model.content import Content
from ctxctl.model.hits import Excerpt, Found, Hit
from ctxctl.model.results import Change, Placement, Step
from ctxctl.session.walked import walked

if TYPE_CHECKING:
    from ctxctl.session.facade import Inspector

KEPT: Final = 10_000
"""Most hits returned; further ones are only counted."""
_RESULT_INTERVAL: Final = 0.1
"""Seconds between two results. The first hit is returned at once."""
_BEFORE: Final = 60
_AFTER: Final = 240
_MAX_HEAD: Final = 120
_MAX_UNKNOWN: Final = 1 << 16
"""Most items without a text that are counted one by one."""
_CAME: Final = frozenset({"added", "updated"})
"""Statuses of new items, whose copies are all in the delta, so that no frame is searched."""

Pause = Callable[[], None]
"""Called every few milliseconds of work; may raise to cancel."""


def search_trace(inspector: Inspector, query: Query, pause: Pause) -> Iterator[Found]:
    """Search the trace once. The last value has `done`.

    An unchanged item is no hit, unless the query asks for unchanged ones. Each distinct text is read once,
    and none if the query searches no texts. Content redacted in a thread is not searched from that step on.

    Raises UsageError (`unknown-value`) if the query names a value that neither ctxctl nor the trace knows.
    """
    for unknown in unknown_values(inspector, query, lambda _part: pause()):
        raise unknown_error(unknown)
    search = _Search(inspector, query, pause)
    yield from search.run()


class _Known(NamedTuple):
    """The words that a content has, and what a hit shows of it."""

    words: int
    """Bit n says whether the content has the query's nth word."""
    excerpt: Excerpt | None
    head: str


class _Search:
    def __init__(self, inspector: Inspector, query: Query, pause: Pause) -> None:
        self._inspector = inspector
        self._query = query
        self._pause = pause
        self._bit = {word: 1 << n for n, word in enumerate(query.words)}
        self._shown = sum(self._bit[word] for word in query.shown)
        self._known: dict[Content, _Known | int] = {}
        """By content: all that a hit shows of it, or only its words as bits."""
        self._fresh: list[Hit] = []
        self._total = 0
        self._part = 0.0
        self._textless: set[int] = set()
        self._withheld: set[int] = set()

    def run(self) -> Iterator[Found]:
        query, last_shown = self._query, 0.0
        arounds = QueryContexts(query, self._inspector.text)
        ordinal = -1
        walk = walked(self._inspector, self._progress, skipped=query.asks_skipped)
        for ordinal, one in enumerate(walk):
            self._pause()
            step = one.at.step
            around = arounds.of(one)
            truth = query.matches_step(step, around)
            if truth is not False:
                if query.about_steps:
                    if truth:
                        self._hit(_of_step(ordinal, step))
                else:
                    self._changes(ordinal, SearchedStep(one, around))
            now = monotonic()
            if now - last_shown >= _RESULT_INTERVAL or (self._fresh and self._total == len(self._fresh)):
                last_shown = now
                yield self._found(ordinal + 1)
        self._part = 1.0
        yield self._found(ordinal + 1)._replace(done=True)

    def _progress(self, part: float) -> None:
        self._part = part
        self._pause()

    def _found(self, steps: int) -> Found:
        fresh, self._fresh = tuple(self._fresh), []
        return Found(fresh, self._total, self._part, steps, len(self._textless), len(self._withheld))

    def _hit(self, hit: Hit) -> None:
        self._total += 1
        if self._total <= KEPT:
            self._fresh.append(hit)

    def _changes(self, ordinal: int, look: SearchedStep) -> None:
        query, step = self._query, look.step
        for change in step.changes:
            if change.status == "skipped" and not query.asks_skipped:
                continue

            def contains(word: Word, change: Change = change) -> bool | None:
                content = look.content(change)
                if content is None:
                    self._unknown(look, change)
                    return None
                known = self._known.get(content)
                if known is None:
                    known = self._read(content)
                return bool((known if isinstance(known, int) else known.words) & self._bit[word])

            segment = look.segment(change) if query.asks_segment else None
            if query.matches_change(step, change, contains, segment, look.around):
                if self._total < KEPT:
                    self._hit(self._of_change(ordinal, look, change))
                else:
                    self._total += 1

    def _unknown(self, look: SearchedStep, change: Change) -> None:
        found = self._withheld if change.item in look.step.annotations.withheld else self._textless
        if len(found) < _MAX_UNKNOWN:
            found.add(hash((look.one.key, change.item, change.version or change.previous_version)))

    def _read(self, content: Content) -> _Known | int:
        """Search a text for all words. The part for a hit is only kept if a hit may follow."""
        self._pause()
        text = self._inspector.text(content)
        low = casefolded(text) if any(word.any_case for word in self._bit) else ""
        words = 0
        for word, bit in self._bit.items():
            if word.needle in (low if word.any_case else text):
                words |= bit
        known: _Known | int = words
        if self._total < KEPT and words & self._shown:
            first = next(word for word in self._query.shown if words & self._bit[word])
            known = _Known(words, excerpt(text, first), text[:_MAX_HEAD])
        self._known[content] = known
        return known

    def _of_change(self, ordinal: int, look: SearchedStep, change: Change) -> Hit:
        step = look.step
        content = look.content(change) if self._shown or not change.title else None
        known = self._known.get(content) if content is not None else None
        if content is not None and known is None and self._shown:
            known = self._read(content)  # the title has the word, and the text may
        words = ""
        if not change.title and content is not None:
            words = known.head if isinstance(known, _Known) else self._inspector.text(content)[:_MAX_HEAD]
        return Hit(
            ordinal=ordinal, session=step.session, thread=step.thread, turn=step.turn, step=step.step,
            status=change.status, item=change.item, kind=change.kind, title=change.title, words=words,
            tokens=change.size, cause=change.cause, reason=change.reason,
            excerpt=known.excerpt if isinstance(known, _Known) else None,
        )  # fmt: skip


class SearchedStep:
    """One step, and the texts of its changes. A frame is searched only on demand."""

    def __init__(self, one: Walked, around: QueryContext | None = None) -> None:
        self.one = one
        self.step = one.at.step
        self.around = around
        self._known: dict[tuple[str, bool], dict[str, Placement]] = {}

    def _placement(self, change: Change) -> Placement | None:
        """Return the copy of a change; for a removal, the last copy in the previous frame."""
        gone = change.status == "removed"
        delta = self.one.delta
        if gone or change.status in _CAME:
            found = self._in("moved", gone, delta.removed if gone else delta.inserted).get(change.item)
            if found is not None:
                return found
        return self._in("frame", gone, delta.before if gone else self.one.at.placements).get(change.item)

    def _in(self, where: str, gone: bool, placements: Sequence[Placement]) -> dict[str, Placement]:
        """Return the last copies of a list by item; the list is read once."""
        found = self._known.get((where, gone))
        if found is None:
            found = self._known[where, gone] = {p.item: p for p in placements if not p.stale}
        return found

    def segment(self, change: Change) -> str | None:
        """Return the window segment of the item, now or before; None if it never was in one."""
        placement = None if change.status == "omitted" else self._placement(change)
        return placement.segment if placement is not None else None

    def content(self, change: Change) -> Content | None:
        """Return the text of the version that a change names; None if none may be shown."""
        withheld = change.item in self.step.annotations.withheld
        if change.status in ("removed", "omitted") and withheld:
            return None
        if change.status == "omitted":
            return self.one.omitted.get((change.item, change.version))
        placement = self._placement(change)
        return placement.content if placement is not None else None


def _of_step(ordinal: int, step: Step) -> Hit:
    return Hit(
        ordinal=ordinal, session=step.session, thread=step.thread, turn=step.turn, step=step.step,
        tokens=step.window.used, cap=step.window.cap, flags=step.flags, counts=step.counts,
        method=step.window.used_method,
    )  # fmt: skip


def excerpt(text: str, word: Word) -> Excerpt:
    """Return the text around a word's first occurrence, approximately if case folding shifts offsets."""
    at, end = place(text, word)
    start = max(at - _BEFORE, 0)
    return Excerpt(text[start:at], text[at:end][:_AFTER], text[end : end + _AFTER], start == 0)


def place(text: str, word: Word) -> tuple[int, int]:
    """Return where a word first occurs in a text that contains it."""
    if not word.any_case or text.isascii():
        at = (casefolded(text) if word.any_case else text).find(word.needle)
        return (at, at + len(word.needle)) if at >= 0 else (0, 0)
    match = re.compile(re.escape(word.text), re.IGNORECASE).search(text)
    if match is not None:
        return match.span()
    at = min(max(casefolded(text).find(word.needle), 0), len(text))
    return at, min(at + len(word.needle), len(text))
