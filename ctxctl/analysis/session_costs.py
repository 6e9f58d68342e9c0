"""Compute what one capture's requests cost, for `cost_groups` to sum up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import NamedTuple

import msgspec

from ctxctl.analysis.cost_groups import CostPart, CostWords, SessionCosts
from ctxctl.analysis.request_cost import add_cost, cost_of
from ctxctl.analysis.shared_requests import RequestsHeld, moment, unpacked_keys
from ctxctl.fleet.captures import lasting
from ctxctl.fleet.packing import packed
from ctxctl.importers.whereabouts import whereabouts
from ctxctl.model.cost_sums import CostSums, StatedSums
from ctxctl.model.problem import Problem
from ctxctl.model.results import Step, Turn
from ctxctl.session.billed_steps import billed_steps
from ctxctl.tokens.catalogue.rates import RateBook
from ctxctl.tokens.catalogue.table import load_table

_Key = tuple[str | None, str | None, str | None, str | None]


class _Reading(NamedTuple):
    """One capture's requests, and what is told of it once they are through."""

    format: str
    original: str
    """The format that an imported trace was made from, else `format`."""
    results: Iterable[Step | Turn]
    told: Callable[[], tuple[str | None, list[Problem], int, int]]
    """The learned set; problems, how many there were, and how many are findings."""


def work(path: str, format_name: str, words: bytes, more: bytes) -> tuple[bytes, bool]:
    """Return what a capture's requests cost, as encoded `SessionCosts`.

    Args:
        path: The capture.
        format_name: Its format.
        words: Encoded `CostWords`.
        more: The keys of requests that count in another capture (`packed_keys`).

    Raises what `Inspector.open` raises.
    """
    asked, book = _asked(words)
    with _reading(path, format_name, asked) as read:
        where = whereabouts(path, read.format)
        parts: dict[_Key, CostPart] = {}
        totals, places = StatedSums(), {}
        held = RequestsHeld(read.original, unpacked_keys(more))
        for step in read.results:
            if not isinstance(step, Step) or held.is_copy(step):
                continue
            told = moment(step.time)
            day = None if told is None else told.date().isoformat()
            part = _part(parts, step, day, where.branch(step.time))
            add_cost(part.sums, cost_of(step, book), totals)
            if step.stated:
                places[step.session, step.thread, step.turn, step.step] = part
        for key, one in totals.totals.items():
            places[one.session, one.thread, one.turn, one.step].sums.stated.totals[key] = one
        for part in list(parts.values())[-1:]:
            part.sums.stated.open = totals.open
        table = load_table()
        learned, problems, number, findings = read.told()
        made = SessionCosts(
            format=read.format,
            directory=where.directory,
            learned=learned,
            as_of=book.as_of,
            catalogue=(table.date, list(table.sources)),
            parts=list(parts.values()),
            requests=held.packed(),
            problems=problems,
            problem_count=number,
            finding_count=findings,
        )
    return packed(made), lasting(format_name, asked.policy, problems)


@contextmanager
def _reading(path: str, format_name: str, asked: CostWords) -> Iterator[_Reading]:
    """A capture by its bills where they are all that is asked for and they are sure, else replayed."""
    billed = None if asked.contents else billed_steps(
        path, format_name, target=asked.target, model=asked.model, encoding=asked.encoding,
        policy=asked.policy, calibration=asked.calibration, learned=asked.learned,
    )  # fmt: skip
    if billed is not None:
        told = (None, billed.problems, len(billed.problems), billed.findings)
        yield _Reading(billed.format, billed.format, billed.steps, lambda: told)
        return
    from ctxctl.session.facade import Inspector  # the engine: slow to load

    with Inspector.open(
        path, target=asked.target, model=asked.model, encoding=asked.encoding, policy=asked.policy,
        format=format_name, calibration=asked.calibration, learned=asked.learned, own_models=asked.models,
    ) as inspector:  # fmt: skip

        def told_of() -> tuple[str | None, list[Problem], int, int]:
            used = inspector.learned
            learned = None if used is None else f"{used.learned.client}@{used.learned.version}"
            return learned, inspector.problems, inspector.problem_count, inspector.finding_count

        yield _Reading(inspector.format, inspector.params.original_format, inspector.replay(), told_of)


@lru_cache(maxsize=4)
def _asked(words: bytes) -> tuple[CostWords, RateBook]:
    """Return the settings and the source of prices, whose lookups are reused for the next capture."""
    asked = msgspec.msgpack.decode(words, type=CostWords)
    return asked, RateBook(asked.models, asked.provider, asked.as_of)


def _part(parts: dict[_Key, CostPart], step: Step, day: str | None, branch: str | None) -> CostPart:
    key = (step.session, day, branch, step.model)
    part = parts.get(key)
    if part is None:
        part = CostPart(*key, None, None, CostSums())
    times = [time for time in (part.first, part.last, step.time) if time is not None]
    part = msgspec.structs.replace(part, first=min(times, default=None), last=max(times, default=None))
    parts[key] = part
    return part
