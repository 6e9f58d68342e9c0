"""``ctxctl cost DIR``: what all sessions of a directory cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import msgspec

from ctxctl import __version__
from ctxctl.analysis.cost_groups import CostGroups, CostWords, SessionCosts, owned_requests
from ctxctl.cli.fleet import Told, failure, tell_all, verdict
from ctxctl.fleet.asking import Failed, Question
from ctxctl.model.problem import Problem
from ctxctl.report import fleet_costs as report

if TYPE_CHECKING:
    from ctxctl.analysis.cost_groups import Owned
    from ctxctl.cli.fleet import Fleet
    from ctxctl.cli.run import Run
    from ctxctl.errors import Exit

_WORK: Final = "ctxctl.analysis.session_costs:work"
_DECODER: Final = msgspec.msgpack.Decoder(SessionCosts)


def fleet_cost(fleet: Fleet, by: str, top: int, words: CostWords, run: Run) -> Exit:
    """Print what the sessions cost, by themselves or in groups, and in sum; the exit code."""
    question = Question(_WORK, msgspec.msgpack.encode(words), fleet.rests_on)
    found: dict[str, bytes] = {}
    lost: dict[str, Failed] = {}
    owned = _asked(fleet, question, found, lost)
    groups = CostGroups(by)
    formats: dict[str, int] = {}
    findings = len(lost)
    for name in sorted(found):
        costs = _DECODER.decode(found[name])
        groups.add(name, costs)
        formats[costs.format] = formats.get(costs.format, 0) + 1
        findings += costs.finding_count + len(owned.owners.get(name, ()))
    header = report.FleetHeader(
        fleet.directory, len(found), len(lost), formats, owned.requests, words.target, words.model,
        words.encoding, words.policy, words.calibration, __version__,
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
    tell_all(fleet.directory, _told(found, lost, owned), run)
    out.flush()
    return verdict(findings, run)


def _asked(fleet: Fleet, question: Question, found: dict[str, bytes], lost: dict[str, Failed]) -> Owned:
    """Ask every capture, and once more those of whose requests some count in another one."""
    held: dict[str, bytes] = {}
    for one, data in fleet.asker.ask(question, fleet.captures):
        if isinstance(data, Failed):
            lost[one.name] = data
        else:
            found[one.name] = data
            held[one.name] = _DECODER.decode(data).requests
    owned = owned_requests(held)
    again = [one for one in fleet.captures if one.name in owned.without]
    more = {name: msgspec.msgpack.encode(keys) for name, keys in owned.without.items()}
    for one, data in fleet.asker.ask(question, again, more):
        if isinstance(data, Failed):
            lost[one.name] = data
            del found[one.name]
        else:
            found[one.name] = data
    return owned


def _told(found: dict[str, bytes], lost: dict[str, Failed], owned: Owned) -> Iterator[Told]:
    """Each capture's problems, by name; that its requests count elsewhere is one."""
    for name in sorted({*found, *lost}):
        if name in lost:
            yield failure(name, lost[name])
            continue
        costs = _DECODER.decode(found[name])
        copied = [
            Problem(0, 0, "carried-history", _carried(count, owner))
            for owner, count in sorted(owned.owners.get(name, {}).items())
        ]
        yield Told(name, [*copied, *costs.problems], costs.problem_count + len(copied))


def _carried(count: int, owner: str) -> str:
    calls = "1 request stands" if count == 1 else f"{count:,} requests stand"
    return f"{calls} in {owner} too: counted there"
