"""``ctxctl cost DIR``: what all sessions of a directory cost."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import msgspec

from ctxctl import __version__
from ctxctl.analysis.cost_groups import CostGroups, CostWords, RequestsAlone, SessionCosts
from ctxctl.cli.fleet import Told, failure, tell_all, verdict
from ctxctl.cli.fleet_answers import ask_all, keys_alone
from ctxctl.fleet.asking import Question
from ctxctl.report import fleet_costs as report

if TYPE_CHECKING:
    from ctxctl.cli.fleet import Fleet
    from ctxctl.cli.fleet_answers import FleetAnswers
    from ctxctl.cli.run import Run
    from ctxctl.errors import Exit

_WORK: Final = "ctxctl.analysis.session_costs:work"
_DECODER: Final = msgspec.msgpack.Decoder(SessionCosts)
_REQUESTS: Final = msgspec.msgpack.Decoder(RequestsAlone)


def fleet_cost(fleet: Fleet, by: str, top: int, words: CostWords, run: Run) -> Exit:
    """Print what the sessions cost, by themselves or in groups, and in sum; the exit code."""
    question = Question(_WORK, msgspec.msgpack.encode(words), fleet.rests_on)
    answers = ask_all(fleet, question, lambda data: _REQUESTS.decode(data).requests, keys_alone)
    found, lost = answers.found, answers.lost
    groups = CostGroups(by)
    formats: dict[str, int] = {}
    findings, troubled = len(lost), set[str]()
    for name in sorted(found):
        costs = _DECODER.decode(found[name])
        groups.add(name, costs)
        formats[costs.format] = formats.get(costs.format, 0) + 1
        findings += costs.finding_count + answers.copies(name)
        if costs.problem_count:
            troubled.add(name)
    header = report.FleetHeader(
        fleet.directory, os.path.isdir(fleet.directory), len(found), len(lost), formats,
        answers.owned.requests, words.target, words.model, words.encoding, words.policy, words.calibration,
        __version__,
        None if groups.catalogue is None else groups.catalogue[0],
    )  # fmt: skip
    out, ordered = run.out, groups.ordered()
    if run.json:
        out.json(report.fleet_object(header))
        for group in ordered:
            out.json(report.group_object(by, group))
        out.json(report.sum_object(groups))
    else:
        out.lines([*report.header_lines(header, out.width), ""])
        out.lines(report.groups_table(by, ordered, groups.whole.sums.sent, out.width, top))
        out.lines(["", *report.summary(groups, out.width)])
    out.flush()
    tell_all(fleet.directory, _told(answers, troubled), run)
    out.flush()
    return verdict(findings, run)


def _told(answers: FleetAnswers, troubled: set[str]) -> Iterator[Told]:
    """Each capture's problems, by name; `troubled` have some of their own."""
    for name in answers.names():
        if name in answers.lost:
            yield failure(name, answers.lost[name])
            continue
        if name not in troubled:
            yield answers.told(name, (), 0, "counted there")
            continue
        costs = _DECODER.decode(answers.found[name])
        yield answers.told(name, costs.problems, costs.problem_count, "counted there")
