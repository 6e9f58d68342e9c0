"""``ctxctl check DIR``: all captures of a directory held to conditions, as if each of them had been named."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import structs

from ctxctl.analysis.check import check_trace
from ctxctl.analysis.shared_requests import RequestsHeld, unpacked_keys
from ctxctl.cli.fleet import Told, asked_settings, failure, tell_all, verdict
from ctxctl.cli.fleet_answers import ask_all, keys_alone, shared_note
from ctxctl.cli.options import CommonOptions
from ctxctl.cli.output import HeldOutput, narrate
from ctxctl.cli.run import Run, header, inspector_of
from ctxctl.config import Settings
from ctxctl.fleet.asking import Question
from ctxctl.fleet.captures import NATIVE, lasting
from ctxctl.fleet.packing import packed
from ctxctl.model.checks import CheckRules, ConditionResult
from ctxctl.model.problem import Problem
from ctxctl.report.check import CheckedTrace

if TYPE_CHECKING:
    from ctxctl.cli.fleet import Fleet

_WORK: Final = "ctxctl.cli.fleet_check:work"


class _Words(msgspec.Struct, frozen=True, array_like=True):
    settings: Settings
    rules: CheckRules
    thread: str | None


class _Answer(msgspec.Struct, frozen=True, array_like=True):
    header: dict[str, Any]
    """The line of JSON that names what was read."""
    results: list[ConditionResult]
    """None where all requests are looked at in other captures."""
    problems: list[Problem]
    problem_count: int
    finding_count: int
    requests: bytes
    """As `shared_requests.RequestsHeld` packs them."""


_DECODER: Final = msgspec.msgpack.Decoder(_Answer)


def check_fleet(fleet: Fleet, rules: CheckRules, run: Run) -> tuple[list[CheckedTrace], int]:
    """What came of the conditions in each capture, and the exit code of what could not be read."""
    words = msgspec.msgpack.encode(_Words(asked_settings(run.settings), rules, run.options.thread))
    checked: list[CheckedTrace] = []
    told: list[Told] = []
    code = bad = 0
    formats = {one.name: one.format for one in fleet.captures}
    question = Question(_WORK, words, fleet.rests_on)
    answers = ask_all(fleet, question, lambda data: _DECODER.decode(data).requests, keys_alone)
    for name in answers.names():
        if name in answers.lost:
            told.append(failure(name, answers.lost[name]))
            code = max(code, answers.lost[name].code)
            continue
        answer = _DECODER.decode(answers.found[name])
        path = os.path.join(fleet.directory, name)
        if run.json:
            run.out.json({**answer.header, "trace": path})
        if answer.results:
            results = [structs.replace(one, trace=path) for one in answer.results]
            checked.append(CheckedTrace(path, results[0].steps, results, formats[name] != NATIVE))
        bad += answer.finding_count + answers.copies(name)
        told.append(answers.told(name, answer.problems, answer.problem_count, "looked at there"))
    if not run.json and (shared := shared_note(answers.owned, "each was looked at once")):
        narrate(f"{fleet.directory}: {shared}")
    tell_all(fleet.directory, told, run)
    return checked, max(code, int(verdict(bad, run)))


def work(path: str, format_name: str, words: bytes, more: bytes) -> tuple[bytes, bool]:
    """What came of one capture, as an encoded `_Answer`; `more`: keys as `packed_keys` has them."""
    from ctxctl.report import jsonout

    asked = msgspec.msgpack.decode(words, type=_Words)
    settings = structs.replace(asked.settings, read_as=format_name)
    run = Run(CommonOptions(), settings, settings, HeldOutput(80, "utf-8", painted=False))
    elsewhere = unpacked_keys(more)
    with inspector_of(path, run) as inspector:
        first = jsonout.trace(header(inspector, thread=asked.thread))
        held = RequestsHeld(inspector.params.original_format, elsewhere)
        made = check_trace(
            inspector, asked.rules, settings.models, thread=asked.thread, left_out=held.is_copy
        )
        if elsewhere and not made[0].steps:
            made = []
        problems = inspector.problems
        answer = _Answer(
            first, made, problems, inspector.problem_count, inspector.finding_count, held.packed()
        )
    return packed(answer), lasting(format_name, settings.policy, problems)
