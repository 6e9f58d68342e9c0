"""The work of finding out what one capture's requests cost, for `cost_groups` to add up."""

from __future__ import annotations

from array import array
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import blake2b
from typing import Final

import msgspec

from ctxctl.analysis.cost_groups import CostPart, CostWords, SessionCosts
from ctxctl.analysis.costs import add_cost, cost_of
from ctxctl.fleet.captures import lasting
from ctxctl.importers.whereabouts import whereabouts
from ctxctl.model.cost_sums import CostSums
from ctxctl.model.results import Step
from ctxctl.session.facade import Inspector
from ctxctl.tokens.catalogue.rates import RateBook
from ctxctl.tokens.catalogue.table import load_table

_ITS_OWN_IDS: Final = frozenset({"claude-code"})
"""Formats that call a step by the provider's id of the answer, which every copy keeps."""
_Key = tuple[str | None, str | None, str | None, str | None]


def work(path: str, format_name: str, words: bytes, more: bytes) -> tuple[bytes, bool]:
    """What a capture's requests cost, as encoded `SessionCosts`.

    Args:
        path: The capture.
        format_name: Its format.
        words: Encoded `CostWords`.
        more: Encoded list of the keys of requests that count in another capture.

    Raises what `Inspector.open` raises.
    """
    asked, book = _asked(words)
    without = frozenset(msgspec.msgpack.decode(more, type=list[int])) if more else frozenset()
    with Inspector.open(
        path, target=asked.target, model=asked.model, encoding=asked.encoding, policy=asked.policy,
        format=format_name, calibration=asked.calibration, learned=asked.learned, own_models=asked.models,
    ) as inspector:  # fmt: skip
        where = whereabouts(path, inspector.format)
        parts: dict[_Key, CostPart] = {}
        requests: dict[int, int] = {}
        for step in inspector.replay():
            if not isinstance(step, Step):
                continue
            told = moment(step.time)
            key = request_key(inspector.format, step)
            if key is not None:
                requests[key] = 0 if told is None else max(0, int(told.timestamp() * 1000))
                if key in without:
                    continue
            day = None if told is None else told.date().isoformat()
            _add(parts, step, day, where.branch(step.time), book)
        problems, table = inspector.problems, load_table()
        learned = inspector.learned
        made = SessionCosts(
            format=inspector.format,
            directory=where.directory,
            learned=None if learned is None else f"{learned.learned.client}@{learned.learned.version}",
            as_of=book.as_of,
            catalogue=(table.date, list(table.sources)),
            parts=list(parts.values()),
            requests=array("Q", requests).tobytes() + array("Q", requests.values()).tobytes(),
            problems=problems,
            problem_count=inspector.problem_count,
            finding_count=inspector.finding_count,
        )
    return msgspec.msgpack.encode(made), lasting(format_name, asked.policy, problems)


@lru_cache(maxsize=4)
def _asked(words: bytes) -> tuple[CostWords, RateBook]:
    """The settings, and where prices are from: what was looked up for one capture serves the next."""
    asked = msgspec.msgpack.decode(words, type=CostWords)
    return asked, RateBook(asked.models, asked.provider, asked.as_of)


def _add(
    parts: dict[_Key, CostPart], step: Step, day: str | None, branch: str | None, book: RateBook
) -> None:
    key = (step.session, day, branch, step.model)
    part = parts.get(key)
    if part is None:
        part = CostPart(*key, None, None, CostSums())
    times = [time for time in (part.first, part.last, step.time) if time is not None]
    parts[key] = msgspec.structs.replace(part, first=min(times, default=None), last=max(times, default=None))
    add_cost(part.sums, cost_of(step, book))


def moment(time: str | None) -> datetime | None:
    """A step's time in UTC; None where there is none, or it is no time."""
    if time is None:
        return None
    try:
        told = datetime.fromisoformat(time)
        return (told if told.tzinfo is not None else told.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def request_key(format_name: str, step: Step) -> int | None:
    """What a request and its copies in other captures have in common and no other request has.

    None where nothing tells: a request without a bill, or of nobody's session.  Where steps are called by ids
    of the provider, that and what the prompt was billed; else the session, thread, step and time, which a
    copied file has too.
    """
    usage, cache = step.usage, step.cache
    if usage is None or usage.reported_input is None:
        return None
    said: tuple[object, ...] = (
        format_name, step.step_id, usage.reported_input, cache.reported_cached, cache.reported_cache_write,
    )  # fmt: skip
    if format_name not in _ITS_OWN_IDS or step.step_id is None:
        if step.time is None or step.session is None:
            return None
        said += (step.session, step.thread, step.turn, step.step, step.time, step.model)
    return int.from_bytes(blake2b(repr(said).encode(), digest_size=8).digest(), "little")
