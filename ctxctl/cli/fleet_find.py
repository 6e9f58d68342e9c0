"""``ctxctl find DIR``: the steps of all captures of a directory at which a query holds."""

from __future__ import annotations

import os
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import structs

from ctxctl.analysis.known_values import UnknownValue, unknown_to_both, unknown_values
from ctxctl.analysis.shared_requests import RequestsHeld
from ctxctl.cli.fleet import Told, asked_settings, failure, tell_all, verdict
from ctxctl.cli.fleet_answers import ask_all, shared_note
from ctxctl.cli.found_steps import Counts, FindOptions, print_steps
from ctxctl.cli.options import CommonOptions
from ctxctl.cli.output import HeldOutput, narrate
from ctxctl.cli.run import Run, header, inspector_of
from ctxctl.config import Settings
from ctxctl.fleet.asking import Question
from ctxctl.fleet.captures import UNREAD, lasting
from ctxctl.fleet.packing import packed
from ctxctl.model.problem import Problem

if TYPE_CHECKING:
    from ctxctl.cli.fleet import Fleet
    from ctxctl.engine.query import Query
    from ctxctl.fleet.captures import CaptureFile

_WORK: Final = "ctxctl.cli.fleet_find:work"
_MOST_KEPT: Final = 1 << 20
"""Bytes of output from which on it is not kept."""


class _Words(msgspec.Struct, frozen=True, array_like=True):
    settings: Settings
    query: str
    json: bool
    everything: bool
    ids: bool
    wish: FindOptions
    width: int
    painted: bool
    encoding: str
    oneline: bool


class _Answer(msgspec.Struct, frozen=True, array_like=True):
    printed: bytes
    counts: Counts
    problems: list[Problem]
    problem_count: int
    finding_count: int
    requests: bytes
    """As `shared_requests.RequestsHeld` packs them."""
    unknown: tuple[UnknownValue, ...] = ()
    """The query's values that this capture does not know."""


class _More(msgspec.Struct, frozen=True, array_like=True):
    """What is said of one capture."""

    name: bytes
    """That its lines go by."""
    without: list[int]
    """Keys of requests that are looked at in another capture."""


_DECODER: Final = msgspec.msgpack.Decoder(_Answer)


def find_in_fleet(
    fleet: Fleet, query: Query, run: Run, wish: FindOptions
) -> tuple[Counts, int, tuple[UnknownValue, ...]]:
    """Print the steps that are found, capture by capture.

    Returns what was counted, the exit code of problems alone, and the query's values that no capture knows.
    """
    from ctxctl.report.find import sum_line

    out = run.out
    words = _Words(
        asked_settings(run.settings), str(query), run.json, run.everything, run.options.ids,
        wish._replace(several=True), out.width, out.is_painted, out.encoding,
        run.options.oneline,
    )  # fmt: skip
    question = Question(_WORK, msgspec.msgpack.encode(words), fleet.rests_on)
    answers = ask_all(fleet, question, lambda data: _DECODER.decode(data).requests, partial(_more, fleet))
    told: list[Told] = []
    whole, hit, findings = Counts(), 0, 0
    unknown: tuple[UnknownValue, ...] | None = None
    for name in answers.names():
        if name in answers.lost:
            told.append(failure(name, answers.lost[name]))
            findings += 1
            continue
        answer = _DECODER.decode(answers.found[name])
        out.write(answer.printed)
        whole = Counts(*(a + b for a, b in zip(whole, answer.counts, strict=True)))
        hit += bool(answer.counts.steps)
        unknown = answer.unknown if unknown is None else unknown_to_both(unknown, answer.unknown)
        findings += answer.finding_count + answers.copies(name)
        told.append(answers.told(name, answer.problems, answer.problem_count, "looked at there"))
    out.flush()
    if not run.json:
        looked_at = sum(one.format != UNREAD for one in fleet.captures)
        narrate(f"{fleet.directory}: {sum_line(*whole)}, in {hit:,} of {looked_at:,} captures")
        if shared := shared_note(answers.owned, "each was looked at once"):
            narrate(f"{fleet.directory}: {shared}")
    tell_all(fleet.directory, told, run)
    out.flush()
    return whole, verdict(findings, run), unknown or ()


def _more(fleet: Fleet, one: CaptureFile, keys: list[int]) -> bytes:
    name = os.fsencode(os.path.join(fleet.directory, one.name))
    return msgspec.msgpack.encode(_More(name, keys))


def work(path: str, format_name: str, words: bytes, more: bytes) -> tuple[bytes, bool]:
    """What `find` prints of one capture, as an encoded `_Answer`; `more`: an encoded `_More`."""
    from ctxctl.report import jsonout

    asked, query = _asked(words)
    settings = msgspec.structs.replace(asked.settings, read_as=format_name)
    out = HeldOutput(asked.width, asked.encoding, painted=asked.painted)
    options = CommonOptions(
        json=asked.json, everything=asked.everything, ids=asked.ids, oneline=asked.oneline
    )
    run = Run(options, settings, settings, out)
    said = msgspec.msgpack.decode(more, type=_More)
    name = os.fsdecode(said.name)
    with inspector_of(path, run) as inspector:
        if asked.json:
            out.json(jsonout.trace(structs.replace(header(inspector, thread=asked.wish.thread), trace=name)))
        held = RequestsHeld(inspector.params.original_format, said.without)
        unknown = unknown_values(inspector, query)
        counts, _ = print_steps(inspector, name, query, run, asked.wish, held.is_copy)
        problems = inspector.problems
        made = _Answer(
            out.taken(), counts, problems, inspector.problem_count, inspector.finding_count, held.packed(),
            unknown,
        )  # fmt: skip
    keep = len(made.printed) <= _MOST_KEPT and lasting(format_name, settings.policy, problems)
    return packed(made), keep


@lru_cache(maxsize=4)
def _asked(words: bytes) -> tuple[_Words, Query]:
    from ctxctl.engine.query import parse_query

    asked = msgspec.msgpack.decode(words, type=_Words)
    return asked, parse_query(asked.query)
