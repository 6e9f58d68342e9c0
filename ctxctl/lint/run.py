"""One pass of the rules over a trace.

Hits become findings: one for each rule, thread and subject, bounded in number.  A report that walks through a
trace anyway lets the rules look on (`LintedWalk`), so that no second replay is made.  Rules look at records
and at what the engine knows, so the trace is replayed for them; what they found is kept with its replay.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from ctxctl.engine.replay.step_tracker import ThreadKey
from ctxctl.engine.replay.walked import Walked, walked_by
from ctxctl.fleet.surroundings import surroundings
from ctxctl.lint.context import SeenRecord, StepContext, ThreadSums, TraceContext
from ctxctl.lint.rule import Hit, Rule
from ctxctl.model.event import Event
from ctxctl.model.findings import Finding, Place, Tally, findings_order
from ctxctl.model.records import Item
from ctxctl.session.answer_cache import answers_of
from ctxctl.session.walked import walked
from ctxctl.tokens.catalogue.rates import RateBook
from ctxctl.typed_decoding import from_msgpack

if TYPE_CHECKING:
    from ctxctl.engine.replay.cursor import StepAt
    from ctxctl.engine.replay.run import Engine
    from ctxctl.lint.registry import RuleChoice
    from ctxctl.lint.rule import Hit, Rule
    from ctxctl.model.event import Event
    from ctxctl.model.results import Step
    from ctxctl.session.facade import Inspector, Progress

_RECORDS: Final = 1 << 15
"""Item records remembered so that equal ones are shown to the rules once."""
_IGNORING: Final = 1 << 14
"""Items whose own records ask for findings to be ignored."""


class LintResult:
    """The findings of one trace, and what was held against it."""

    def __init__(self, findings: list[Finding], tally: Tally) -> None:
        self.findings = findings
        self.tally = tally


def lint(
    inspector: Inspector,
    choice: RuleChoice,
    own: dict[str, dict[str, Any]] | None = None,
    progress: Progress | None = None,
) -> Iterator[Finding]:
    """What the chosen rules find in a trace, in the order of `model.findings.order`; one replay of it.

    `own` are models of the user's own, as the settings have them.
    """
    yield from lint_with_tally(inspector, choice, own, progress).findings


def lint_with_tally(
    inspector: Inspector,
    choice: RuleChoice,
    own: dict[str, dict[str, Any]] | None = None,
    progress: Progress | None = None,
    left_out: Callable[[Step], bool] | None = None,
) -> LintResult:
    """As `lint`, with the tally of what was looked at.

    `left_out` is told of every step, and says whether what is found there is told elsewhere.
    """
    if left_out is not None:
        run = LintPass(inspector, choice, own, left_out)
        for at, engine in inspector.walk(progress, seen=run.seen):
            run.step(at, engine)
        return run.over()
    walk = LintedWalk(inspector, choice, own)
    kept = inspector.kept_replay()
    if walk.kept is None or kept is None:
        deque(walk.steps(progress, settle=False), 0)
    else:
        inspector.take_over(kept, settle=False)
    return walk.result()


class LintPass:
    """The rules beside one walk: tell it each event and each step of it, then ask for the sum."""

    def __init__(
        self,
        inspector: Inspector,
        choice: RuleChoice,
        own: dict[str, dict[str, Any]] | None,
        left_out: Callable[[Step], bool] | None = None,
    ) -> None:
        self._left_out = left_out
        self._copied = 0
        """Steps that are left out."""
        self._own: set[ThreadKey] = set()
        """Threads with a step that is not."""
        self._name = inspector.name
        self._around = TraceContext(inspector, RateBook(own))
        self._rules = [made for made in (rule(choice) for rule in choice.rules) if made is not None]
        self._of_records = [rule for rule in self._rules if rule.sees_records()]
        self._of_steps = [rule for rule in self._rules if rule.sees_steps()]
        self._gathered = GatheredHits()
        self._gathered.tally.rules = tuple(rule.code for rule in self._rules)
        self._running: dict[ThreadKey, ThreadSums] = {}
        self._pending: dict[ThreadKey, list[tuple[Rule, Hit]]] = {}
        """What records showed in steps that are still open."""
        self._known: set[Item] = set()
        self._steps = 0
        self._ignored: dict[str, tuple[str, ...]] = {}
        """By item, what its records ask to ignore."""
        self._here: dict[ThreadKey, tuple[str, ...]] = {}
        """What other records of the open step ask to ignore at that step."""

    def seen(self, event: Event, engine: Engine) -> None:
        """Show a record to the rules; a repeated item record only to those that want repeats."""
        record, thread = event.record, engine.current
        if record is None or thread is None:
            return
        rules: Iterable[Rule] = self._of_records
        if type(record) is Item:
            if record in self._known:
                rules = [rule for rule in self._of_records if rule.repeats]
                if not rules:
                    return
            else:
                if len(self._known) >= _RECORDS:
                    self._known.clear()
                self._known.add(record)
        self._around.named(event.line, event.event_id)
        asked = _asked(getattr(record, "metadata", None))
        if asked:
            self._ask(record, asked, thread.key, engine)
        shown = SeenRecord(self._around, event, record, thread)
        for rule in rules:
            for hit in rule.seen(shown):
                self._pending.setdefault(thread.key, []).append((rule, hit))

    def _ask(self, record: Any, asked: tuple[str, ...], key: ThreadKey, engine: Engine) -> None:
        if isinstance(record, Item):
            if len(self._ignored) < _IGNORING:
                self._ignored[engine.threads[key].book.item_of(record.item_id)] = asked
        else:
            self._here[key] = self._here.get(key, ()) + asked

    def step(self, at: StepAt, engine: Engine) -> None:
        """A step with its frame."""
        key = (at.step.session, at.step.thread)
        thread = engine.threads[key]  # type: ignore[index]
        key = thread.key
        running = self._running.get(key)
        if running is None:
            running = self._running[key] = ThreadSums()
        assert engine.sealed is not None
        look = StepContext(self._around, self._steps, at.step, at.placements, engine.sealed, thread, running)
        here = self._here.pop(key, ())
        copied = self._left_out is not None and self._left_out(at.step)
        if copied:
            self._copied += 1
            self._pending.pop(key, None)
        else:
            self._own.add(key)
        for rule, hit in self._pending.pop(key, ()):
            place = hit.place
            if (place.turn, place.step) == (at.step.turn, at.step.step):
                place = msgspec.structs.replace(place, ordinal=self._steps)
            self._take(rule, hit._replace(place=place), here)
        for rule in self._of_steps:
            for hit in rule.step(look):  # of a copy too: what comes after it is held against it
                if not copied:
                    self._take(rule, hit, here)
        running.steps += 1
        if look.rate is None:
            running.unpriced += 1
        else:
            running.rates += look.rate
        self._steps += 1

    def _take(self, rule: Rule, hit: Hit, here: tuple[str, ...] = ()) -> None:
        asked = here if hit.item is None else here + self._ignored.get(hit.item, ())
        if asked and any(rule.code.startswith(name) or rule.name == name for name in asked):
            ignored = self._gathered.tally.ignored
            ignored[rule.code] = ignored.get(rule.code, 0) + 1
            return
        self._gathered.add(rule, hit)

    def over(self) -> LintResult:
        """The trace has ended."""
        waiting = [hits for key, hits in self._pending.items() if self._is_own(key)]
        for rule, hit in chain.from_iterable(waiting):
            self._take(rule, hit)
        for rule in self._rules:
            for hit in rule.end():
                if self._is_own(ThreadKey(hit.place.session, hit.place.thread)):
                    self._take(rule, hit)
        tally = self._gathered.tally
        tally.steps = self._steps - self._copied
        several = len({key.session for key in self._running}) > 1
        return LintResult(self._gathered.findings(self._name, several=several), tally)

    def _is_own(self, key: ThreadKey) -> bool:
        """Whether a thread has steps that are not left out, or none at all."""
        return not self._copied or key in self._own or key not in self._running


def _asked(metadata: object) -> tuple[str, ...]:
    """Codes and names under `metadata.ctxctl.lint.ignore`; a single text stands for a list of one."""
    for name in ("ctxctl", "lint", "ignore"):
        if not isinstance(metadata, dict):
            return ()
        metadata = metadata.get(name)
    names = [metadata] if isinstance(metadata, str) else metadata
    if not isinstance(names, list):
        return ()
    return tuple(name for name in names if isinstance(name, str) and name)


MOST_FINDINGS: Final = 200
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
    """Gathers the hits of one trace into findings."""

    def __init__(self) -> None:
        self.tally = Tally()
        self._groups: dict[_Key, _Group] = {}
        self._of_rule: dict[str, int] = {}
        self._beyond: set[int] = set()

    def add(self, rule: Rule, hit: Hit) -> None:
        """Take in a hit of a rule."""
        place = hit.place
        key = _Key(rule.code, place.session, place.thread, hit.subject)
        group = self._groups.get(key)
        if group is None:
            held = self._of_rule.get(rule.code, 0)
            if held >= MOST_FINDINGS:
                name = hash(key)
                if name not in self._beyond and len(self._beyond) < _TOLD_APART:
                    self._beyond.add(name)
                    self.tally.more[rule.code] = self.tally.more.get(rule.code, 0) + 1
                return
            self._of_rule[rule.code] = held + 1
            group = self._groups[key] = _Group(rule, hit)
        group.add(hit)

    def findings(self, trace: str, *, several: bool) -> list[Finding]:
        """The findings, the worst first; `several`: the trace holds more sessions than one."""
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


class LintedWalk:
    """Rules that look on while somebody walks through a trace.

    Args:
        inspector: On the trace.
        choice: The rules.
        own: Models of the user's own, as the settings have them.
    """

    def __init__(
        self, inspector: Inspector, choice: RuleChoice, own: Mapping[str, dict[str, Any]] | None
    ) -> None:
        self._inspector = inspector
        self._choice = choice
        self._own = dict(own or {})
        self._question = _question(choice, self._own)
        self._answers = answers_of(inspector) if self._question is not None else None
        self._pass: LintPass | None = None
        self.kept = self._kept()
        """What they found at an earlier time."""

    def steps(self, progress: Progress | None = None, *, settle: bool = True) -> Iterator[Walked]:
        """Each step in order, as `walked` gives them."""
        if self.kept is not None:
            yield from walked(self._inspector, progress, settle=settle)
            return
        self._pass = LintPass(self._inspector, self._choice, self._own)
        for at, engine in self._inspector.walk(progress, seen=self._pass.seen, settle=settle):
            self._pass.step(at, engine)
            yield walked_by(engine, at)

    def result(self) -> LintResult:
        """What was found; to be asked once, when the walk is over."""
        if self._pass is None:
            assert self.kept is not None
            return self.kept
        found = self._pass.over()
        if self._answers is not None and self._question is not None:
            self._answers.keep(self._question, msgspec.msgpack.encode(_Kept(found.findings, found.tally)))
        return found

    def _kept(self) -> LintResult | None:
        if self._answers is None or self._question is None:
            return None
        data = self._answers.find(self._question)
        if data is None:
            return None
        try:
            kept = from_msgpack(data, _Kept)
        except msgspec.MsgspecError:
            return None
        name = self._inspector.name
        return LintResult([msgspec.structs.replace(one, trace=name) for one in kept.findings], kept.tally)


class _Kept(msgspec.Struct, frozen=True, array_like=True):
    findings: list[Finding]
    tally: Tally


def _question(choice: RuleChoice, own: Mapping[str, dict[str, Any]]) -> str | None:
    """All that findings depend on besides the trace and what it is replayed under; None where there is a rule
    of a plug-in: nobody knows when that changes.
    """
    named = []
    for rule in choice.rules:
        if not rule.rule.__module__.startswith("ctxctl."):
            return None
        named.append((rule.rule.code, sorted(rule.values.items())))
    return f"lint {named} {sorted(own.items())} {surroundings(())}"
