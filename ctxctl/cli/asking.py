"""Predicates on a command line: read, with the place of a mistake shown, and asked with the user's prices."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxctl.analysis.where import WhereStep
    from ctxctl.cli.only import Only
    from ctxctl.cli.session import Manner
    from ctxctl.engine.query import Query
    from ctxctl.model.results import Step, Turn
    from ctxctl.report.find import Narrowed
    from ctxctl.session import Inspector
    from ctxctl.tokens.catalogue.rates import RateBook

_SHOWN = 60


def query_of(text: str) -> Query:
    """The predicate; a mistake in it is shown in its place, and raised as UsageError("bad-query")."""
    from ctxctl.cli.address import plain
    from ctxctl.cli.output import note
    from ctxctl.engine.query import QueryError, parse_query
    from ctxctl.text import cells, visible

    text = plain(text)
    try:
        return parse_query(text)
    except QueryError as error:
        start = max(0, error.column - _SHOWN)
        shown = visible(text[start : error.column + _SHOWN])
        note(f"  {shown}\n  {' ' * cells(visible(text[start : error.column]))}^")
        raise


def prices(query: Query, how: Manner) -> RateBook | None:
    """Where prices are from; None if the predicate does not speak of money."""
    if not query.asks_cost:
        return None
    from ctxctl.tokens.catalogue.rates import RateBook

    return RateBook(how.settings.models)


def wanted(text: str | None, *, alone: bool) -> Query | None:
    """What ``--where`` asks for; raises UsageError for a mistake, and where it does not stand `alone`."""
    from ctxctl.errors import UsageError

    if text is None:
        return None
    if not alone:
        raise UsageError(
            "bad-predicate",
            "--where and --compare do not go together",
            hint="`ctxctl find` takes --policy, --model and the like: ask both sides one after the other",
        )
    return query_of(text)


class Replayed:
    """The steps and turns of a replay that were chosen, each with whether ``--where`` leaves it to be shown.

    A turn is shown with any of its steps.
    """

    def __init__(self, inspector: Inspector, how: Manner, query: Query | None, chosen: Only) -> None:
        self._inspector = inspector
        self._how = how
        self._query = query
        self._chosen = chosen
        self._steps = self._fit = self._undecided = 0

    @property
    def where(self) -> Narrowed | None:
        """How many steps were shown so far; None without a predicate."""
        from ctxctl.report.find import Narrowed

        if self._query is None:
            return None
        return Narrowed(str(self._query), self._fit, self._steps - self._fit, self._undecided)

    def __iter__(self) -> Iterator[tuple[Step | Turn, bool]]:
        how, inspector, query, chosen = self._how, self._inspector, self._query, self._chosen
        if query is None:
            for result in inspector.replay(how.out.progressed, skipped=how.everything):
                if chosen(result):
                    yield result, True
            return
        from ctxctl.analysis.where import steps_where

        book = prices(query, how)
        yield from self._narrowed(
            steps_where(inspector, query, how.out.progressed, book=book, skipped=how.everything)
        )

    def _narrowed(self, stops: Iterator[WhereStep]) -> Iterator[tuple[Step | Turn, bool]]:
        fits: set[tuple[str | None, str]] = set()
        for stop in stops:
            step, turn = stop.at.step, stop.at.turn
            key = (step.session, step.thread)
            if self._chosen(step):
                self._steps += 1
                self._undecided += stop.held.truth is None
                if stop.held.truth:
                    self._fit += 1
                    fits.add(key)
                yield step, bool(stop.held.truth)
            if turn is not None:
                if self._chosen(turn):
                    yield turn, key in fits
                fits.discard(key)
