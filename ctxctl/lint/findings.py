"""Hits become findings: one for each rule, thread and subject, bounded in number."""

from __future__ import annotations

from decimal import Decimal
from typing import Final, NamedTuple

import msgspec

from ctxctl.lint.rule import Hit, Rule
from ctxctl.model.findings import Finding, Place, Tally, findings_order

KEPT: Final = 200
"""Findings kept of one rule; more are only counted."""
_PLACES: Final = 4
"""Places told of a finding beside the first."""
_LONGEST: Final = 500
"""Characters of a message: titles may be of any length."""
_TOLD_APART: Final = 1 << 16


class _Key(NamedTuple):
    code: str
    session: str | None
    thread: str
    subject: str


class _Group:
    """One finding in the making."""

    def __init__(self, rule: Rule, hit: Hit) -> None:
        self.rule = rule
        self.first = hit
        self.count = 0
        self.places: list[Place] = []
        self.tokens: int | None = None
        self.money: Decimal | None = Decimal(0)
        self.note = hit.note

    def add(self, hit: Hit) -> None:
        """One more place."""
        if self.count and len(self.places) < _PLACES:
            self.places.append(hit.place)
        self.count += hit.steps
        if hit.tokens is not None:
            self.tokens = (self.tokens or 0) + hit.tokens
        if self.money is not None:
            self.money = None if hit.money is None else self.money + hit.money


class GatheredHits:
    """All hits of one trace."""

    def __init__(self) -> None:
        self.tally = Tally()
        self._groups: dict[_Key, _Group] = {}
        self._of_rule: dict[str, int] = {}
        self._beyond: set[int] = set()

    def add(self, rule: Rule, hit: Hit) -> None:
        """Take one in."""
        place = hit.place
        key = _Key(rule.code, place.session, place.thread, hit.subject)
        group = self._groups.get(key)
        if group is None:
            held = self._of_rule.get(rule.code, 0)
            if held >= KEPT:
                name = hash(key)
                if name not in self._beyond and len(self._beyond) < _TOLD_APART:
                    self._beyond.add(name)
                    self.tally.more[rule.code] = self.tally.more.get(rule.code, 0) + 1
                return
            self._of_rule[rule.code] = held + 1
            group = self._groups[key] = _Group(rule, hit)
        group.add(hit)

    def findings(self, trace: str, *, several: bool) -> list[Finding]:
        """In their order; `several`: the trace holds more sessions than one."""
        found = [_finding(group, trace, several=several) for group in self._groups.values()]
        return sorted(found, key=findings_order)


def _finding(group: _Group, trace: str, *, several: bool) -> Finding:
    rule, hit = group.rule, group.first

    def told(place: Place) -> Place:
        return msgspec.structs.replace(place, session_needed=True) if several else place

    return Finding(
        code=rule.code,
        name=rule.name,
        severity=rule.severity,
        message=hit.message if len(hit.message) <= _LONGEST else f"{hit.message[: _LONGEST - 1]}…",
        fix=rule.fix,
        place=told(hit.place),
        item=hit.item,
        subject=hit.subject,
        count=group.count,
        more=tuple(told(place) for place in group.places),
        tokens=group.tokens,
        money=group.money if group.tokens is not None else None,
        note=group.note,
        trace=trace,
    )
