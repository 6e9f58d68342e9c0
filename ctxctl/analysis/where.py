"""The steps that match a query, for `find`, `bisect` and `replay --where`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ctxctl.analysis.query_context import QueryContexts
from ctxctl.analysis.search import SearchedStep
from ctxctl.engine.query import Query, Word
from ctxctl.engine.replay.cursor import StepAt
from ctxctl.model.addresses import prefix
from ctxctl.model.content import Content
from ctxctl.model.results import Change, Step
from ctxctl.session.walked import walked

if TYPE_CHECKING:
    from ctxctl.engine.replay.walked import Walked
    from ctxctl.session.facade import Inspector, Progress
    from ctxctl.tokens.catalogue.rates import RateBook


class QueryHolds(NamedTuple):
    """Whether a query matches a step."""

    truth: bool | None
    """None if the trace does not say."""
    changes: tuple[Change, ...] = ()
    """The step's changes that match; none if the query is about whole steps."""


class WhereStep(NamedTuple):
    """One step of a walk with its answer."""

    ordinal: int
    at: StepAt
    held: QueryHolds


class WhereQuery:
    """Matches one query against the steps of one walk, each once and in order."""

    def __init__(self, inspector: Inspector, query: Query, book: RateBook | None = None) -> None:
        self._query = query
        self._text = inspector.text
        self._arounds = QueryContexts(query, inspector.text, book)
        self._bit = {word: 1 << n for n, word in enumerate(query.words)}
        self._words: dict[Content, int] = {}

    def held(self, one: Walked) -> QueryHolds:
        """Return whether the query matches the next step."""
        query, step = self._query, one.at.step
        around = self._arounds.of(one)
        truth = query.matches_step(step, around)
        if query.about_steps or truth is False:
            return QueryHolds(truth)
        look = SearchedStep(one)
        fitting: list[Change] = []
        unknown = False
        for change in step.changes:
            if change.status == "skipped" and not query.asks_skipped:
                continue

            def contains(word: Word, change: Change = change) -> bool | None:
                return self._says(look.content(change), word)

            segment = look.segment(change) if query.asks_segment else None
            found = query.verdict(step, change, contains, segment, around)
            if found:
                fitting.append(change)
            unknown = unknown or found is None
        return QueryHolds(True if fitting else None if unknown else False, tuple(fitting))

    def _says(self, content: Content | None, word: Word) -> bool | None:
        if content is None:
            return None
        bits = self._words.get(content)
        if bits is None:
            text = self._text(content)
            bits = sum(bit for one, bit in self._bit.items() if one.is_in(text))
            self._words[content] = bits
        return bool(bits & self._bit[word])


def steps_where(
    inspector: Inspector,
    query: Query,
    progress: Progress | None = None,
    *,
    book: RateBook | None = None,
    skipped: bool = False,
    settle: bool = True,
    whole: bool = True,
    frames: bool = True,
) -> Iterator[WhereStep]:
    """Yield each step of the trace with whether the query matches it.

    With `settle`, the walk sets `summary` and `problems`. `whole` means that all steps will be read, and
    `frames` that the caller reads the steps' frames.
    """
    asked = WhereQuery(inspector, query, book)
    listed = skipped or query.asks_skipped
    walk = walked(
        inspector, progress, skipped=listed, settle=settle, whole=whole, frames=frames or query.asks_frames
    )
    for ordinal, one in enumerate(walk):
        yield WhereStep(ordinal, one.at, asked.held(one))


def address(step: Step, *, several: bool) -> str:
    """Return ``[SESSION/][THREAD:]TURN.STEP`` of a step, raw; the session only if there are `several`."""
    return f"{prefix(step.thread, step.session if several else None)}{step.turn}.{step.step}"
