"""The HTML report of a trace, written piece by piece in one replay."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, Final

from ctxctl.analysis.costs import Costs
from ctxctl.labels import dollars
from ctxctl.model.findings import Finding
from ctxctl.model.records import Assembly, Item
from ctxctl.model.results import Placement, Step, Turn
from ctxctl.report import jsonout
from ctxctl.report.costs import spent_object, sum_object
from ctxctl.report.fidelity import measured
from ctxctl.report.findings import Looking
from ctxctl.report.header import Header
from ctxctl.report.html.frames import Frames, Thread
from ctxctl.report.html.pack import dumped, packed, plain
from ctxctl.report.html.page import page
from ctxctl.report.html.rows import COLUMNS, Rows
from ctxctl.report.html.texts import Texts, limit_for
from ctxctl.session import Inspector
from ctxctl.tokens.catalogue.rates import RateBook

Progress = Callable[[float], None]
VERSION: Final = 2
"""Of the data in the page."""
_PROBLEMS: Final = 1000
_SPENT: Final = 40


def write(
    inspector: Inspector,
    header: Header,
    progress: Progress,
    *,
    prices: RateBook,
    rules: Looking,
    max_content: int | None,
) -> Iterator[bytes]:
    """The page, piece by piece; reads the trace twice where texts have to be cut.

    Memory is that of the replay, a number for each distinct content, and some megabytes of blocks.

    Args:
        rules: What looks for findings meanwhile.
        max_content: Bytes that all texts together may have; the longest lose their middle. None: all whole.
    """
    limit, before = None, 0
    if max_content is not None:
        limit, before = limit_for(_sizes(inspector, progress), max_content), 1
    frame = page(header.trace, {"version": VERSION, "header": plain(jsonout.trace(header))})
    yield frame.head
    report = _Report(inspector, prices, limit)
    walk = inspector.walk(
        lambda share: progress((before + share) / (before + 1)), seen=rules.seen, settle=True
    )
    for at, engine in walk:
        report.add(at.step, at.placements, at.turn)
        rules.step(at, engine)
        yield from report.taken()
    report.end(rules.findings())
    yield from report.taken()
    yield frame.tail


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
        self._frames = Frames(self._texts, self._made.append)
        self._rows = Rows(self._made.append)
        self._costs = Costs(prices, lambda placement: placement.kind)
        self._threads: list[list[Any]] = []
        self._titles: dict[int, str] = {}
        self._first: dict[int, int] = {}
        """By thread, the ordinal of the first step of its open turn."""

    def taken(self) -> Iterator[bytes]:
        """The blocks that are finished."""
        yield from self._made
        self._made.clear()

    def add(self, step: Step, placements: list[Placement], turn: Turn | None) -> None:
        """Take in the next step."""
        ordinal = self._rows.count
        thread = self._frames.add(ordinal, step, placements)
        if thread.number == len(self._threads):
            self._threads.append(self._named(step, thread))
        if step.step == 1:
            self._first[thread.number] = ordinal
        self._rows.add(thread.number, step, self._costs.add(step, placements))
        if turn is not None and turn.title is not None:
            self._titles[self._first.get(thread.number, ordinal)] = turn.title

    def _named(self, step: Step, thread: Thread) -> list[Any]:
        origin = step.told.origin
        told = None if origin is None else plain(origin)
        return [step.session, step.thread, told]

    def end(self, findings: list[Finding]) -> None:
        """Close what is open, and put what is known only now behind it."""
        self._texts.flush()
        self._frames.flush()
        self._rows.flush()
        self._made.append(packed("index", dumped(self._index(findings))))

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
            "summary": None if summary is None else plain(jsonout.summary(summary)),
            "fidelity": None if summary is None else measured(summary.fidelity),
            "cost": sum_object(self._costs),
            "findings": [_finding(finding) for finding in findings],
            "spent": [spent_object("kind", spent) for spent in self._costs.spent()[:_SPENT]],
        }
        return {
            "columns": COLUMNS,
            "rows": self._rows.count,
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
