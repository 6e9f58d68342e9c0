"""The report of a trace as Markdown, small enough for an issue or a pull request on GitHub.

One walk gathers sums and the few turns and steps that stand out.  Text of a trace stands in code spans, where
nothing is markup, a link or a mention.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from ctxctl.analysis.costs import Costs
from ctxctl.analysis.request_cost import StepCost
from ctxctl.item_names import ItemNames
from ctxctl.lint.run import LintedWalk
from ctxctl.model.addresses import prefix
from ctxctl.model.annotations import Compacted
from ctxctl.model.findings import Finding
from ctxctl.model.results import Change, Step, Turn, Window
from ctxctl.report.bill_notes import misses_text, partial_lines, sum_text, with_mark
from ctxctl.report.changes import tokens_text
from ctxctl.report.costs import spent_money, spent_tokens
from ctxctl.report.heading import Header, how_known, learned_text
from ctxctl.report.sent import known_by, limit_text, size_of_limit, unrecorded_text
from ctxctl.report.totals import Totals
from ctxctl.session import Inspector
from ctxctl.session.item_words import ItemWords, broken_name
from ctxctl.session.survey import row_of
from ctxctl.text import ELLIPSIS, visible
from ctxctl.tokens.catalogue.rates import RateBook
from ctxctl.wording import SIGNS, dollars, number, plural, signed

Only = Callable[[Step | Turn], bool]

LIMIT: Final = 65_536
"""Characters that GitHub takes in an issue, a pull request or a comment."""
_ROOM: Final = 64_000
_CHANGES: Final = 40
_NAME: Final = 120
"""Cells of what an item is called."""
_FINDINGS: Final = 40
_SPENT: Final = 12


def write(
    inspector: Inspector,
    header: Header,
    progress: Callable[[float], None],
    *,
    prices: RateBook,
    rules: LintedWalk,
    only: Only | None,
) -> Iterator[bytes]:
    """The report; nothing where no step is asked for.

    Args:
        rules: What looks for findings meanwhile.
        only: Which steps and turns; findings of the other ones are left out too.
    """
    found = Gathered(Costs(prices, lambda placement: placement.kind))
    shown: set[int] = set()
    words = ItemWords(inspector)
    for ordinal, one in enumerate(rules.steps(progress)):
        at = one.at
        words.see(at)
        if only is None or only(at.step):
            if only is not None:
                shown.add(ordinal)
            found.step(
                at.step, found.costs.add(at.step, at.placements, one.delta), row_of(ordinal, at.step).broken
            )
        if at.turn is not None and (only is None or only(at.turn)):
            found.turn(at.turn)
    if not found.totals.steps:
        return
    findings = [
        finding for finding in rules.result().findings if only is None or finding.place.ordinal in shown
    ]
    report = _Report(words.names())
    yield report.text(inspector, header, found, findings).encode()


class _Report:
    """Lines of a report, as many as there is room for."""

    def __init__(self, names: ItemNames) -> None:
        self._names = names
        self._lines: list[str] = []
        self._left = _ROOM
        self._dropped: list[str] = []

    def text(self, inspector: Inspector, header: Header, found: Gathered, findings: Sequence[Finding]) -> str:
        """The whole report as Markdown."""
        self._part("summary", [f"## Context of {self._say(header.trace)}", ""])
        self._part("summary", [*self._summary(inspector, header, found, findings), ""])
        for finding in findings[:_FINDINGS]:
            if finding is findings[0]:
                self._part("findings", ["### Findings", ""])
            self._part("findings", self._finding(finding))
        if len(findings) > _FINDINGS:
            self._part("findings", [f"… and {number(len(findings) - _FINDINGS)} more findings.", ""])
        turns = found.turns
        if turns:
            self._part("turns", [*([""] if findings else []), "### Turns with the most change", ""])
        for turn in turns:
            self._part("turns", self._turn(turn))
        self._part("compactions", self._compactions(found))
        self._part("cache breaks", self._breaks(found))
        self._part("costs", self._spent(found))
        said = "".join(f"{line}\n" for line in self._lines)
        if self._dropped:
            dropped = ", ".join(
                f"{name} ({self._dropped.count(name)} parts)" for name in dict.fromkeys(self._dropped)
            )
            said += f"Left out, for GitHub takes {number(LIMIT)} characters: {dropped}.\n"
        return said

    def _part(self, name: str, lines: Sequence[str]) -> None:
        """Add lines, all or none of them."""
        size = sum(len(line) + 1 for line in lines)
        if size > self._left:
            self._dropped.append(name)
            return
        self._left -= size
        self._lines += lines

    def _say(self, text: str | None, most: int = 80) -> str:
        return code(text, most) if text else ""

    def _summary(
        self, inspector: Inspector, header: Header, found: Gathered, findings: Sequence[Finding]
    ) -> list[str]:
        totals, costs = found.totals, found.costs
        threads = f" in {plural(totals.threads, 'thread')}" if totals.threads > 1 else ""
        rows = [["steps", f"{number(totals.steps)} in {plural(len(totals.turns), 'turn')}{threads}"]]
        if header.turn is not None:
            rows.append(["only", f"turns {self._say(header.turn)}"])
        if found.peak is not None:
            window, where = found.peak
            parts = [f"peak {size_of_limit(window)}, at {self._say(address(where))}", known_by(window)]
            if totals.over:
                parts.append(f"{plural(totals.over, 'step')} over")
            if (said := limit_text(window)) is not None:
                parts.append(said)
            if (said := unrecorded_text(window)) is not None:
                parts.append(f"{number(window.recorded)} recorded, {said}")
            rows.append(["sent", "; ".join(parts)])
        flow = f"{signed(totals.new)} new, {signed(-totals.freed)} freed tokens"
        if totals.reweighed:
            flow += f", {signed(totals.reweighed)} counted anew"
        rows.append(["recorded", f"{number(totals.before)} before, {flow}, {number(totals.after)} after"])
        rows.append(
            ["of note", f"{plural(found.compacted, 'compaction')}, {plural(found.broken, 'cache break')}"]
        )
        if costs.misses.whole.number:
            rows.append(["cache misses", misses_text(costs)])
        if any(costs.sources):
            billed = f"{dollars(costs.billed.total)} billed, " if costs.steps > costs.unreported else ""
            if costs.partial_outputs.requests:
                believed = with_mark(dollars(costs.partial_outputs.money.total), True)
                billed += f"{believed} with partial outputs as counted, "
            whole = "not known" if costs.cost is None else f"{sum_text(costs)} in all"
            rows.append(["cost", f"{billed}{whole}"])
        rows += [["outputs", line] for line in partial_lines(costs.partial_outputs)]
        if findings:
            rows.append(["findings", number(len(findings))])
        if inspector.problem_count:
            rows.append(["problems", f"{number(inspector.problem_count)} in the trace"])
        if header.learned is not None:
            rows.append(["learned", self._say(learned_text(header.learned), 400)])
        encoding = self._say(header.encoding) + how_known(header)
        model = f", model {self._say(header.model)}" if header.model else ""
        supposed = "; its limits are supposed, so this is simulated" if header.limits.given else ""
        rows.append(
            [
                "replayed as",
                f"format {self._say(header.format)}, policy {self._say(header.policy)}{model}, "
                f"encoding {encoding}, target {self._say(header.target)}; ctxctl {header.version}{supposed}",
            ]
        )
        return table(["", ""], rows)

    def _finding(self, finding: Finding) -> list[str]:
        place = finding.place
        where = f"line {number(place.line)}" if place.turn is None else self._say(address(place))  # type: ignore[arg-type]
        more = f", and {plural(finding.count - 1, 'other place')}" if finding.count > 1 else ""
        cost = "" if finding.tokens is None else f"; {plural(finding.tokens, 'token')}"
        money = "" if finding.money is None else f", {dollars(finding.money)}"
        return [
            f"- **{finding.code}** {finding.severity}: {self._say(finding.message, 400)}",
            f"  at {where}{more}{cost}{money}. {self._say(finding.fix, 400)}",
        ]

    def _turn(self, turn: Turn) -> list[str]:
        ledger, counts = turn.ledger, turn.counts
        thread = "" if turn.thread == "main" else " of another thread"
        signs = " ".join(
            f"{sign}{getattr(counts, name)}" for name, sign in SIGNS.items() if getattr(counts, name)
        )
        again = f", {signed(ledger.reweighed)} counted anew" if ledger.reweighed else ""
        summary = (
            f"Turn {turn.turn}{thread}: {signed(ledger.new)} new, {signed(-ledger.freed)} freed{again}, "
            f"{number(ledger.window_after)} tokens recorded after it; items {signs}"
        )
        head = [
            f"At {self._say(address(turn))}" + (f": {self._say(turn.title, 200)}" if turn.title else ""),
            "",
        ]
        changes = [change for change in turn.changes if change.status != "skipped"]
        listed = changes[:_CHANGES]
        named = [self._names.row(one.item, one.title, f"{one.status} {one.kind}") for one in listed]
        called = self._names.listed(named, _NAME)
        rows = [self._change(change, name) for change, name in zip(listed, called, strict=True)]
        made = table(["", "item", "kind", "tokens", "new", "freed", "why"], rows, {3, 4, 5}) if rows else []
        if len(changes) > _CHANGES:
            made += ["", f"… and {number(len(changes) - _CHANGES)} more changes."]
        return details(summary, head + made)

    def _change(self, change: Change, name: str) -> list[str]:
        why = [self._say(part) for part in (change.cause, change.reason) if part]
        if change.into:
            why.append(f"into {self._say(change.into)}")
        if change.provenance != "native":
            why.append(change.provenance)
        return [
            f"{SIGNS[change.status]} {change.status}", self._say(name, _NAME), self._say(change.kind, 30),
            tokens_text(change), number(change.new) if change.new else "",
            number(change.freed) if change.freed else "", ", ".join(why),
        ]  # fmt: skip

    def _compactions(self, found: Gathered) -> list[str]:
        rows = [
            self._compaction(where, step, one)
            for where, step in found.compactions
            for one in step.annotations.compactions or (None,)
        ]
        if not rows:
            return []
        heads = ["at", "method", "trigger", "items", "into", "freed", "coverage", "loss notes"]
        more = found.compacted - len(found.compactions)
        lines = table(heads, rows[:40], {3, 5}) + ([f"… and {number(more)} more."] if more > 0 else [])
        return ["### Compactions", "", *lines, ""]

    def _compaction(self, where: Where, step: Step, record: Compacted | None) -> list[str]:
        freed = signed(-step.ledger.freed)
        if record is None:
            return [self._say(address(where)), "", "", "", "", freed, "", ""]
        coverage = ", ".join(f"{name} {value}" for name, value in list(record.coverage.items())[:4])
        return [
            self._say(address(where)), self._say(record.method, 40), self._say(record.trigger, 40),
            number(len(record.source_item_refs)), self._say(record.summary, 40), freed,
            self._say(coverage, 160), self._say("; ".join(record.loss_notes[:3]), 300),
        ]  # fmt: skip

    def _breaks(self, found: Gathered) -> list[str]:
        rows = []
        for cost in found.breaks:
            by = cost.step.cache.broken_by
            name = broken_name(cost.step, self._names)
            item = (self._say(name, _NAME), by.status) if by is not None else ("", "")
            rows.append([self._say(address(cost.step)), *item, dollars(cost.broken)])
        if not rows:
            return []
        return [
            "### Costliest cache breaks (derived)",
            "",
            *table(["at", "broken by", "how", "cost"], rows, {3}),
            "",
        ]

    def _spent(self, found: Gathered) -> list[str]:
        costs = found.costs
        rows = [
            [self._say(spent.name, 40), number(spent.steps), spent_tokens(spent), spent_money(spent)]
            for spent in costs.spent()[:_SPENT]
        ]
        if not rows:
            return []
        if not any(costs.sources):
            rows = [[*row[:3], "-"] for row in rows]
        notes = [f"Prices: {self._say(note, 200)}" for note in list(costs.notes)[:5]]
        lines = table(["kind", "steps", "tokens", "counted"], rows, {1, 2, 3})
        return details("What the context was spent on, by kind", [*lines, "", *notes])


_RUN: Final = re.compile("`+")
_LONGEST: Final = 8
"""Backticks in a row that a fence goes around; parsers give up on very long fences."""


def code(text: str, most: int = 80) -> str:
    """A text as one code span, cut to `most` characters; one line, also where it stands in a table.

    A pipe would end the cell of a table whatever stands around it, so it is written as its code point.
    """
    shown = visible(text[: most * 2])
    if len(shown) > most or len(text) > most * 2:
        shown = shown[:most] + ELLIPSIS
    shown = shown.replace("|", "⟨U+007C⟩")
    longest = max((len(run) for run in _RUN.findall(shown)), default=0)
    if longest > _LONGEST:
        shown = shown.replace("`", "⟨U+0060⟩")
        longest = 0
    if not shown.strip():
        return "` `"
    fence = "`" * (longest + 1)
    pad = " " if shown[0] in "` " or shown[-1] in "` " else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def table(heads: list[str], rows: list[list[str]], right: set[int] | None = None) -> list[str]:
    """A table; cells are markdown already."""
    rule = ["---:" if right and n in right else "---" for n in range(len(heads))]
    lines = [heads, rule, *rows]
    return [f"| {' | '.join(cells)} |" for cells in lines]


def details(summary: str, lines: list[str]) -> list[str]:
    """A part that is opened by a click; `summary` holds no text of a trace."""
    return ["<details>", f"<summary>{summary}</summary>", "", *lines, "", "</details>", ""]


TURNS: Final = 10
COMPACTIONS: Final = 20
BREAKS: Final = 10


class Where(NamedTuple):
    """A place in the trace."""

    session: str | None
    thread: str
    turn: int
    step: int | None


class Gathered:
    """What stands out so far."""

    def __init__(self, costs: Costs) -> None:
        self.costs = costs
        self.totals = Totals()
        self.peak: tuple[Window, Where] | None = None
        self.compacted = 0
        self.broken = 0
        self.compactions: list[tuple[Where, Step]] = []
        self._turns: list[tuple[int, int, Turn]] = []
        self._breaks: list[tuple[Any, int, StepCost]] = []
        self._count = 0

    def step(self, step: Step, cost: StepCost, broken: bool) -> None:
        """Take in a step."""
        self.totals.add(step)
        here = Where(step.session, step.thread, step.turn, step.step)
        if self.peak is None or step.window.used > self.peak[0].used:
            self.peak = (step.window, here)
        if step.annotations.compactions or "compacted" in step.flags:
            self.compacted += 1
            if len(self.compactions) < COMPACTIONS:
                self.compactions.append((here, step))
        self.broken += broken
        self._count += 1
        if cost.broken:
            _keep(self._breaks, (cost.broken, -self._count, cost), BREAKS)

    def turn(self, turn: Turn) -> None:
        """Take in a turn."""
        size = turn.ledger.new + turn.ledger.freed
        if size or turn.changes:
            _keep(self._turns, (size, -self._count, turn), TURNS)

    @property
    def turns(self) -> list[Turn]:
        """The turns with the most change, the greatest first."""
        return [turn for _, _, turn in sorted(self._turns, key=lambda one: one[:2], reverse=True)]

    @property
    def breaks(self) -> list[StepCost]:
        """The dearest cache breaks."""
        return [cost for _, _, cost in sorted(self._breaks, key=lambda one: one[:2], reverse=True)]


def _keep(heap: list[Any], one: tuple[Any, ...], most: int) -> None:
    if len(heap) < most:
        heapq.heappush(heap, one)
    elif one > heap[0]:
        heapq.heapreplace(heap, one)


def address(where: Where | Step | Turn) -> str:
    """`TURN.STEP`, with the thread where that is not the main one."""
    step = getattr(where, "step", None)
    return f"{prefix(where.thread)}{where.turn}" + (f".{step}" if step is not None else "")
