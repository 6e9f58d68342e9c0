"""The HTML report of a trace, written piece by piece in one walk.

Its frame is markup, style and script of our own, with a policy that lets nothing else run.  Each step has one
small row: what the list and the chart show without opening anything.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Collection, Iterator
from html import escape
from importlib.resources import files
from typing import Any, Final, NamedTuple

from ctxctl.analysis.costs import Costs
from ctxctl.analysis.request_cost import StepCost
from ctxctl.engine.replay.walked import Walked
from ctxctl.lint.run import LintedWalk
from ctxctl.model.findings import Finding
from ctxctl.model.problem import Problem
from ctxctl.model.records import Assembly, Item
from ctxctl.model.results import Step
from ctxctl.model.vocab import WARNINGS, UsedMethod
from ctxctl.report import jsonout
from ctxctl.report.costs import spent_object, sum_object
from ctxctl.report.fidelity import measured
from ctxctl.report.heading import Header
from ctxctl.report.html.contents import Texts, dumped, escaped, limit_for, packed, without_empty
from ctxctl.report.html.frames import Frames, Thread
from ctxctl.session import Inspector
from ctxctl.session.item_words import directory_of
from ctxctl.session.survey import row_of
from ctxctl.text import visible
from ctxctl.tokens.catalogue.rates import RateBook
from ctxctl.wording import dollars, tables

Progress = Callable[[float], None]
VERSION: Final = 2
"""Version of the data in the page."""
MOST_STEPS: Final = 5000
"""Steps that a page holds: a browser keeps what is told of each of them in memory."""
_PROBLEMS: Final = 1000
_SPENT: Final = 40


def write(
    inspector: Inspector,
    header: Header,
    progress: Progress,
    *,
    prices: RateBook,
    rules: LintedWalk,
    max_content: int | None,
    report: Callable[[Problem], None] = lambda _: None,
) -> Iterator[bytes]:
    """The page, piece by piece; reads the trace twice where texts have to be cut.

    Memory is that of the replay, a number for each distinct content, and some megabytes of blocks.  It holds
    the first `MOST_STEPS` steps; sums, costs and findings are of all, and `report` is told of the rest.

    Args:
        rules: What looks for findings meanwhile.
        max_content: Bytes that all texts together may have; the longest lose their middle. None: all whole.
    """
    limit, before = None, 0
    if max_content is not None:
        limit, before = limit_for(_sizes(inspector, progress), max_content), 1
    frame = page(header.trace, {"version": VERSION, "header": without_empty(jsonout.trace(header))})
    yield frame.head
    made = _Report(inspector, prices, limit)
    for one in rules.steps(lambda share: progress((before + share) / (before + 1))):
        made.add(one)
        yield from made.taken()
    made.end(rules.result().findings)
    yield from made.taken()
    yield frame.tail
    if made.beyond is not None:
        report(_cut(made.beyond, made.rest))


def _cut(first: Step, rest: int) -> Problem:
    """What is told of the steps that a page does not hold."""
    where = f"turn {first.turn}, step {first.step} of thread {first.thread}"
    held = f"the first {MOST_STEPS:,} of {MOST_STEPS + rest:,} steps"
    what = f"the page holds {held}; the others begin with {where}"
    hint = "sums, costs and findings are of all; `ctxctl show TRACE@TURN.STEP` shows each later step"
    return Problem(first.first_line, first.first_byte, "export-cut", f"{what}; {hint}")


def _sizes(inspector: Inspector, progress: Progress) -> Collection[int]:
    """Bytes of each content that is inline in the trace."""
    found: dict[str, int] = {}
    size = max(1, inspector.trace.source.size)
    for count, event in enumerate(inspector.trace.events()):
        record = event.record
        if isinstance(record, Item):
            held = [record.content]
        elif isinstance(record, Assembly):
            held = [block.content for block in record.blocks]
        else:
            continue
        found.update((content.digest, content.size) for content in held if content is not None)
        if not count & 1023:
            progress(event.offset / size / 2)
    return found.values()


class _Report:
    """What is gathered while a trace is replayed for its page."""

    def __init__(self, inspector: Inspector, prices: RateBook, limit: int | None) -> None:
        self._inspector = inspector
        self._limit = limit
        self._made: list[bytes] = []
        self._texts = Texts(inspector, self._made.append, limit)
        self._frames = Frames(self._texts, self._made.append, directory_of(inspector))
        self._rows = Rows(self._made.append)
        self._costs = Costs(prices, lambda placement: placement.kind)
        self._threads: list[list[Any]] = []
        self._titles: dict[int, str] = {}
        self._first: dict[int, int] = {}
        """By thread, the ordinal of the first step of its open turn."""
        self.beyond: Step | None = None
        """The first step that the page does not hold."""
        self.rest = 0
        """How many there are of these."""

    def taken(self) -> Iterator[bytes]:
        """The blocks that are finished."""
        yield from self._made
        self._made.clear()

    def add(self, one: Walked) -> None:
        """Take in the next step."""
        step, placements, turn = one.at
        ordinal = self._rows.count
        if ordinal == MOST_STEPS:
            self.beyond = self.beyond or step
            self.rest += 1
            self._costs.add(step, placements, one.delta)
            return
        thread = self._frames.add(ordinal, step, placements, one.delta)
        if thread.number == len(self._threads):
            self._threads.append(self._named(step, thread))
        if step.step == 1:
            self._first[thread.number] = ordinal
        self._rows.add(thread.number, step, self._costs.add(step, placements, one.delta))
        if turn is not None and turn.title is not None:
            self._titles[self._first.get(thread.number, ordinal)] = turn.title

    def _named(self, step: Step, thread: Thread) -> list[Any]:
        origin = step.annotations.origin
        shown = None if origin is None else without_empty(origin)
        return [step.session, step.thread, shown]

    def end(self, findings: list[Finding]) -> None:
        """Close what is open, and put what is known only now behind it."""
        self._texts.flush()
        self._frames.flush()
        self._rows.flush()
        self._made.append(packed("index", (dumped(self._index(findings)),)))

    def _index(self, findings: list[Finding]) -> dict[str, Any]:
        inspector, texts = self._inspector, self._texts
        problems = [jsonout.problem(problem) for problem in inspector.problems[:_PROBLEMS]]
        summary = inspector.summary
        said = {
            "models": self._rows.models,
            "threads": self._threads,
            "titles": [[ordinal, title] for ordinal, title in self._titles.items()],
            "problems": problems,
            "problem_count": inspector.problem_count,
            "summary": None if summary is None else without_empty(jsonout.summary(summary)),
            "fidelity": None if summary is None else measured(summary.fidelity),
            "cost": sum_object(self._costs),
            "findings": [_finding(finding) for finding in findings],
            "spent": [spent_object("kind", spent) for spent in self._costs.spent()[:_SPENT]],
        }
        return {
            "columns": COLUMNS,
            "rows": self._rows.count,
            "rest": self.rest,
            "row_blocks": self._rows.blocks,
            "runs": self._frames.runs,
            "texts": {
                "count": texts.count, "blocks": texts.blocks, "characters": texts.characters,
                "cut": texts.cut, "left_out": texts.left_out, "withheld": texts.withheld,
                "limit": self._limit,
            },
            **said,
        }  # fmt: skip


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity,
        "message": finding.message,
        "fix": finding.fix,
        "item": finding.item,
        "count": finding.count,
        "tokens": finding.tokens,
        "money": dollars(finding.money),
        "note": finding.note,
        "line": finding.place.line,
        "ordinal": finding.place.ordinal,
        "more": [place.ordinal for place in finding.more if place.ordinal is not None],
    }


SCRIPTS: Final = (
    "base.js", "text.js", "data.js", "diff.js", "chart.js", "steps.js", "step.js", "item.js",
    "report.js", "search.js", "keys.js", "main.js",
)  # fmt: skip
"""Parts of the one script, in their order."""
_OPEN: Final = "<!-- data -->"


class Page(NamedTuple):
    """What stands before the data and after it."""

    head: bytes
    tail: bytes


def page(name: str, meta: dict[str, Any]) -> Page:
    """The page around the data of a trace.

    Args:
        name: What the page is called.
        meta: What it knows before anything is unpacked.
    """
    style = asset("style.css")
    script = (
        f"'use strict';\n(() => {{\nconst LABELS = {dumped(tables()).decode()};\n"
        + "".join(map(asset, SCRIPTS))
        + "})();\n"
    )
    policy = (
        f"default-src 'none'; script-src '{hashed(script)}'; style-src '{hashed(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    head, _, tail = asset("page.html").partition(_OPEN)
    head = head.replace("{{policy}}", escape(policy)).replace("{{style}}", style)
    head = head.replace("{{name}}", escape(visible(name)))
    before, _, after = tail.partition("{{meta}}")
    data = escaped(dumped(meta))
    return Page(head.encode(), before.encode() + data + after.replace("{{script}}", script).encode())


def asset(name: str) -> str:
    """A file that pages are made of."""
    return files("ctxctl.report.html").joinpath("assets", name).read_text(encoding="utf-8")


def hashed(text: str) -> str:
    """A source expression of Content Security Policy: what stands between the tags, to the last byte."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


_BLOCK: Final = 4096
COLUMNS: Final = (
    "thread", "turn", "step", "used", "new", "freed", "cap", "limit", "stale", "added", "updated",
    "removed", "skipped", "omitted", "marks", "reported", "cached", "answered", "uncounted", "billed",
    "counted", "model", "time", "recorded", "method", "threshold",
)  # fmt: skip
"""What the places of a row say.  Money in millionths of a US dollar; `model` by its place in the list,
`method` by that in `METHODS`."""
METHODS: Final[tuple[UsedMethod, ...]] = ("reported", "expected", "recorded")
"""How it is known what a step sent."""

COMPACTED, BROKEN, OVER, WARNED, SIMULATED, PARTIAL, MISSED = 1, 2, 4, 8, 16, 32, 64
"""Marks of a row, added up.  PARTIAL: its output was logged before the answer's end; `answered` and `billed`
have it as counted."""


class Rows:
    """Packs rows as they come.

    Args:
        emit: Takes each finished block.
    """

    def __init__(self, emit: Callable[[bytes], None]) -> None:
        self._emit = emit
        self._open: list[list[Any]] = []
        self._models: dict[str, int] = {}
        self.count = 0
        self.blocks = 0

    @property
    def models(self) -> list[str]:
        """Names of the models, in the order in which they are met."""
        return list(self._models)

    def add(self, thread: int, step: Step, cost: StepCost) -> None:
        """Take in the next step."""
        row = row_of(self.count, step)
        counts = row.counts
        marks = (
            COMPACTED * row.compacted
            | BROKEN * row.broken
            | OVER * bool(step.window.over)
            | WARNED * (not WARNINGS.isdisjoint(row.flags))
            | SIMULATED * ("simulated" in row.flags)
            | PARTIAL * bool(row.has_partial_output)
            | MISSED * (row.missed > 0)
        )
        model = None if row.model is None else self._models.setdefault(row.model, len(self._models))
        self._open.append(
            [
                thread, row.turn, row.step, row.used, row.new, row.freed, row.cap, row.limit, row.stale,
                counts.added, counts.updated, counts.removed, counts.skipped, counts.omitted, marks,
                row.reported, row.cached, row.answered, row.uncounted, _dollars(cost.believed),
                _dollars(cost.counted), model, row.time, step.window.recorded,
                METHODS.index(step.window.used_method), step.window.threshold,
            ]
        )  # fmt: skip
        self.count += 1
        if len(self._open) >= _BLOCK:
            self.flush()

    def flush(self) -> None:
        """Close the open block."""
        if self._open:
            self._emit(packed(f"r{self.blocks}", (dumped(self._open),)))
            self.blocks += 1
            self._open = []


def _dollars(money: Any) -> str | None:
    return None if money is None else dollars(money.total)
