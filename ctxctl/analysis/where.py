"""At which steps a query holds: what `find`, `bisect` and `replay --where` ask of a replay."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ctxctl.analysis.query_context import QueryContexts
from ctxctl.analysis.search import SearchedStep
from ctxctl.engine.query import Query, Word
from ctxctl.engine.replay.cursor import StepAt
from ctxctl.engine.replay.run import Engine
from ctxctl.engine.replay.step_tracker import ThreadKey
from ctxctl.model.addresses import prefix
from ctxctl.model.content import Content
from ctxctl.model.results import Change, Placement, Step

if TYPE_CHECKING:
    from ctxctl.session.facade import Inspector, Progress
    from ctxctl.tokens.catalogue.rates import RateBook


class PredicateHolds(NamedTuple):
    """Whether a query holds of a step."""

    truth: bool | None
    """None: the trace does not say what it hangs on."""
    changes: tuple[Change, ...] = ()
    """The step's changes of which the query holds; none where it asks about steps as a whole."""


class WhereStep(NamedTuple):
    """One step of a replay with the answer."""

    ordinal: int
    at: StepAt
    held: PredicateHolds


class WhereQuery:
    """Asks one query of the steps of one replay, each of them once and in order."""

    def __init__(self, inspector: Inspector, query: Query, book: RateBook | None = None) -> None:
        self._query = query
        self._text = inspector.text
        self._arounds = QueryContexts(query, inspector.text, book)
        self._before: dict[ThreadKey, list[Placement]] = {}
        self._bit = {word: 1 << n for n, word in enumerate(query.words)}
        self._words: dict[Content, int] = {}

    def held(self, at: StepAt, engine: Engine) -> PredicateHolds:
        """Whether the query holds of the step that the engine has just finished."""
        query, step = self._query, at.step
        key = ThreadKey(step.session, step.thread)
        around = self._arounds.of(step, engine)
        truth = query.matches_step(step, around)
        before = self._before.get(key, [])
        self._before[key] = at.placements
        if query.about_steps or truth is False:
            return PredicateHolds(truth)
        look = SearchedStep(at, before, engine, key)
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
        return PredicateHolds(True if fitting else None if unknown else False, tuple(fitting))

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
) -> Iterator[WhereStep]:
    """Replay the trace, asking the query at each step.  With `settle`, `summary` and `problems` are of it."""
    asked = WhereQuery(inspector, query, book)
    listed = skipped or query.asks_skipped
    for ordinal, (at, engine) in enumerate(inspector.walk(progress, skipped=listed, settle=settle)):
        yield WhereStep(ordinal, at, asked.held(at, engine))


def address(step: Step, *, several: bool) -> str:
    """``[SESSION/][THREAD:]TURN.STEP`` of a step, raw; the session only where a trace has `several`."""
    return f"{prefix(step.thread, step.session if several else None)}{step.turn}.{step.step}"
