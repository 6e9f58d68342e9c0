"""``ctxctl cost DIR``: what all sessions of a directory cost."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import msgspec

from ctxctl import __version__
from ctxctl.analysis.cost_groups import CostGroups, CostWords, RequestsAlone, SessionCosts
from ctxctl.cli.fleet import Told, failure, problem_lines, tell_all, verdict
from ctxctl.cli.fleet_answers import ask_all, keys_alone
from ctxctl.fleet.asking import Question
from ctxctl.report import fleet_costs as report
from ctxctl.report.jsonout import line

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
    told = _Printed(fleet, by, words, answers)
    if run.json:
        for line in told.json():
            run.out.write(line)
    else:
        told.plain(run, top)
    run.out.flush()
    return verdict(told.findings, run)


class _Printed:
    """What is printed of all answers."""

    def __init__(self, fleet: Fleet, by: str, words: CostWords, answers: FleetAnswers) -> None:
        self._fleet = fleet
        self._by = by
        self._answers = answers
        self._groups = groups = CostGroups(by)
        found, lost = answers.found, answers.lost
        formats: dict[str, int] = {}
        self.findings = len(lost)
        self._troubled: set[str] = set()
        """Captures that have problems of their own."""
        for name in sorted(found):
            costs = _DECODER.decode(found[name])
            groups.add(name, costs)
            formats[costs.format] = formats.get(costs.format, 0) + 1
            self.findings += costs.finding_count + answers.copies(name)
            if costs.problem_count:
                self._troubled.add(name)
        self._header = report.FleetHeader(
            fleet.directory, os.path.isdir(fleet.directory), len(found), len(lost), formats,
            answers.owned.requests, words.target, words.model, words.encoding, words.policy,
            words.calibration, __version__,
            None if groups.catalogue is None else groups.catalogue[0], words.contents,
        )  # fmt: skip

    def json(self) -> Iterator[bytes]:
        """Lines of JSON."""
        yield line(report.fleet_object(self._header))
        for group in self._groups.ordered():
            yield line(report.group_object(self._by, group, self._header.contents))
        yield line(report.sum_object(self._groups, self._header.contents))
        yield from problem_lines(self._problems())

    def plain(self, run: Run, top: int) -> None:
        """Print tables and sentences, and problems on standard error."""
        out, groups = run.out, self._groups
        sent = groups.whole.sums.sent
        out.lines([*report.header_lines(self._header, out.width), ""])
        out.lines(report.groups_table(self._by, groups.ordered(), sent, out.width, top))
        out.lines(["", *report.summary(groups, out.width, self._header.contents)])
        out.flush()
        tell_all(self._fleet.directory, self._problems(), run)

    def _problems(self) -> Iterator[Told]:
        """Each capture's problems, by name."""
        answers = self._answers
        for name in answers.names():
            if name in answers.lost:
                yield failure(name, answers.lost[name])
            elif name in self._troubled:
                costs = _DECODER.decode(answers.found[name])
                yield answers.told(name, costs.problems, costs.problem_count, "counted there")
            else:
                yield answers.told(name, (), 0, "counted there")
