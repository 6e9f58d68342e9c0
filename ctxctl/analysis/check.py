"""Check a recorded session against conditions, all in one walk through the trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from ctxctl.analysis.conditions import (
    Condition,
    MaxCost,
    MaxGrowth,
    MaxSent,
    MaxToolResult,
    NoCompaction,
    NoMisses,
    QueryCondition,
    StablePrefix,
)
from ctxctl.analysis.frame_pair import several_sessions
from ctxctl.analysis.where import WhereQuery
from ctxctl.engine.query import parse_query
from ctxctl.model.findings import Place
from ctxctl.session.item_words import ItemWords
from ctxctl.session.walked import walked
from ctxctl.tokens.catalogue.rates import RateBook

if TYPE_CHECKING:
    from ctxctl.item_names import ItemNames
    from ctxctl.model.checks import CheckRules, ConditionResult
    from ctxctl.model.results import Step
    from ctxctl.session.facade import Inspector, Progress


def check_trace(
    inspector: Inspector,
    rules: CheckRules,
    models: Mapping[str, dict[str, Any]],
    progress: Progress | None = None,
    *,
    thread: str | None = None,
    left_out: Callable[[Step], bool] | None = None,
) -> list[ConditionResult]:
    """Return the result of each condition, in the order of the command line.

    Args:
        inspector: The inspector of the trace. The walk sets its `problems` and `summary`.
        rules: The conditions, with valid bounds.
        models: The user's own models, as in the settings.
        progress: Called with the share of the trace read so far.
        thread: Only requests of this thread are checked.
        left_out: Called with every step; returns whether it is skipped.
    """
    words = ItemWords(inspector)
    queries = [(name, text, parse_query(text)) for name, text in _queries(rules)]
    asked = list(_conditions(rules, words.names(), models))
    if queries:
        book = RateBook(dict(models))
        names = words.names()
        asked += [
            QueryCondition(name, text, WhereQuery(inspector, query, book), names)
            for name, text, query in queries
        ]
    several = several_sessions(inspector)
    skipped = any(query.asks_skipped for _, _, query in queries)
    for ordinal, one in enumerate(walked(inspector, progress, skipped=skipped, settle=True)):
        step = one.at.step
        words.see(one.at)
        passed_over = left_out is not None and left_out(step)
        place = Place(
            ordinal, step.session, step.thread, step.turn, step.step, step.first_line, None, several
        )
        for condition in asked:
            condition.take(one, place, judged=not passed_over and thread in (None, step.thread))
    return [condition.result() for condition in asked]


def _conditions(rules: CheckRules, names: ItemNames, models: Mapping[str, Any]) -> Iterator[Condition]:
    """Yield the conditions that are no queries."""
    if rules.max is not None:
        yield MaxSent(rules.max)
    if rules.max_growth is not None:
        yield MaxGrowth(rules.max_growth)
    if rules.max_tool_result is not None:
        yield MaxToolResult(rules.max_tool_result, names)
    if rules.max_cost is not None:
        yield MaxCost(Decimal(rules.max_cost), RateBook(dict(models)))
    if rules.stable_prefix:
        yield StablePrefix(names)
    if rules.no_misses:
        yield NoMisses()
    if rules.no_compaction:
        yield NoCompaction()


def _queries(rules: CheckRules) -> Iterator[tuple[str, str]]:
    """Yield each query with its option."""
    yield from (("never", text) for text in rules.never)
    yield from (("always", text) for text in rules.always)
