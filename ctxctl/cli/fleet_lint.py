"""``ctxctl lint DIR``: what is found in all captures of a directory, as if each of them had been named."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import structs

from ctxctl.analysis.shared_requests import RequestsHeld, unpacked_keys
from ctxctl.cli.fleet import Told, asked_settings, failure, tell_all, verdict
from ctxctl.cli.fleet_answers import ask_all, keys_alone, shared_note
from ctxctl.cli.lint_rules import RuleWords, chosen_rules
from ctxctl.cli.options import CommonOptions
from ctxctl.cli.output import HeldOutput, narrate
from ctxctl.cli.run import Run, header, inspector_of
from ctxctl.config import Settings
from ctxctl.fleet.asking import Question
from ctxctl.fleet.captures import NATIVE, lasting
from ctxctl.fleet.packing import packed
from ctxctl.model.findings import Finding, Tally
from ctxctl.model.problem import Problem

if TYPE_CHECKING:
    from ctxctl.cli.fleet import Fleet
    from ctxctl.cli.lint_rules import Found
    from ctxctl.lint.registry import RuleChoice

_WORK: Final = "ctxctl.cli.fleet_lint:work"
_MOST_KEPT: Final = 1 << 20
"""Bytes of findings from which on they are not kept."""


class _Words(msgspec.Struct, frozen=True, array_like=True):
    settings: Settings
    rules: RuleWords


class _Answer(msgspec.Struct, frozen=True, array_like=True):
    header: dict[str, Any]
    """The line of JSON that names what was read."""
    findings: list[Finding]
    tally: Tally
    problems: list[Problem]
    problem_count: int
    finding_count: int
    requests: bytes
    """As `shared_requests.RequestsHeld` packs them."""


_DECODER: Final = msgspec.msgpack.Decoder(_Answer)


def lint_fleet(fleet: Fleet, asked: RuleWords, run: Run, found: Found) -> None:
    """Add what is found in each capture; the trace of a finding is the capture's path."""
    words = msgspec.msgpack.encode(_Words(asked_settings(run.settings), asked))
    told: list[Told] = []
    bad = 0
    formats = {one.name: one.format for one in fleet.captures}
    question = Question(_WORK, words, fleet.rests_on)
    answers = ask_all(fleet, question, lambda data: _DECODER.decode(data).requests, keys_alone)
    for name in answers.names():
        if name in answers.lost:
            told.append(failure(name, answers.lost[name]))
            found.code = max(found.code, answers.lost[name].code)
            continue
        answer = _DECODER.decode(answers.found[name])
        path = os.path.join(fleet.directory, name)
        if run.json:
            run.out.json({**answer.header, "trace": path})
        found.findings += [structs.replace(finding, trace=path) for finding in answer.findings]
        found.tallies[path] = answer.tally
        if formats[name] != NATIVE:
            found.foreign.add(path)
        bad += answer.finding_count + answers.copies(name)
        told.append(answers.told(name, answer.problems, answer.problem_count, "findings are reported there"))
    if not run.json and (shared := shared_note(answers.owned, "each was looked at once")):
        narrate(f"{fleet.directory}: {shared}")
    tell_all(fleet.directory, told, run)
    found.code = max(found.code, int(verdict(bad, run)))


def work(path: str, format_name: str, words: bytes, more: bytes) -> tuple[bytes, bool]:
    """What the rules find in one capture, as an encoded `_Answer`; `more`: keys as `packed_keys` has them."""
    from ctxctl.lint.run import lint_with_tally
    from ctxctl.report import jsonout

    asked, choice = _asked(words)
    settings = structs.replace(asked.settings, read_as=format_name)
    run = Run(CommonOptions(), settings, settings, HeldOutput(80, "utf-8", painted=False))
    with inspector_of(path, run) as inspector:
        first = jsonout.trace(header(inspector))
        held = RequestsHeld(inspector.params.original_format, unpacked_keys(more))
        made = lint_with_tally(inspector, choice, settings.models, left_out=held.is_copy)
        problems = inspector.problems
        answer = _Answer(
            first, list(made.findings), made.tally, problems, inspector.problem_count,
            inspector.finding_count, held.packed(),
        )  # fmt: skip
    data = packed(answer)
    return data, len(data) <= _MOST_KEPT and lasting(format_name, settings.policy, problems)


@lru_cache(maxsize=4)
def _asked(words: bytes) -> tuple[_Words, RuleChoice]:
    asked = msgspec.msgpack.decode(words, type=_Words)
    return asked, chosen_rules(asked.rules)
