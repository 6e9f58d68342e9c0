"""What the UI works out of a trace, without a terminal: the states of its main screen, and what it answers.

The process that counts imports this once counters are in, as all else of `ctxctl` comes with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from ctxctl.engine.query import parse_query
from ctxctl.model.whatif import Supposition
from ctxctl.session import Inspector
from ctxctl.session.live import LiveSession
from ctxctl.tui.answers import ANSWERS, trace_facts
from ctxctl.tui.answers.context import AnswerContext
from ctxctl.tui.loader import Follower
from ctxctl.tui.messages import Grown
from ctxctl.tui.outline import Grouping
from ctxctl.tui.requests import Asked, PlaceRequest, Request
from ctxctl.tui.screens.assembled.requests import AssembledRequest
from ctxctl.tui.screens.diff.requests import ComparisonRequest, TextRequest
from ctxctl.tui.screens.diff.values import FrameName, Pair, TextKey
from ctxctl.tui.screens.overview import lines as overview
from ctxctl.tui.screens.overview.chart import chart, chart_room
from ctxctl.tui.screens.pointers.requests import (
    BlameRequest,
    CompactionsRequest,
    FindingsRequest,
    WhyRequest,
)
from ctxctl.tui.screens.search.requests import SearchRequest
from ctxctl.tui.screens.turns import lines, state
from ctxctl.tui.screens.turns.requests import (
    CostRequest,
    DetailRequest,
    ItemRequest,
    LifeRequest,
    MarksRequest,
    ReadingRequest,
    RecordRequest,
    VersionRequest,
    WordsRequest,
)
from ctxctl.tui.screens.whatif.requests import RecordedRequest, SimulationRequest

_WIDTH: Final = 100
_LISTED: Final = 8
"""How many steps are listed at once."""
_PIECES: Final = 4
"""In how many pieces the list of turns is told."""


class _Line:
    """The way back to a screen that is not there: what is sent is kept."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def check(self, _asked: Asked | None) -> None:
        """Go on."""

    def reply(self, _asked: Asked, value: object) -> None:
        """Take a part of an answer."""
        self.told.append(value)


class _Opened:
    """A trace whose turns are listed."""

    def __init__(self, inspector: Inspector, item: str) -> None:
        self.inspector, self.item = inspector, item
        rows = inspector.outline().rows
        grouping = Grouping()
        self.state = state.opened(state.State(trace_facts.trace(inspector)), trace_facts.trace(inspector))
        for piece in range(1, _PIECES):
            self.state = state.grown(self.state, grouping.take(rows[: len(rows) * piece // _PIECES]))
        growth = grouping.take(rows, complete=True)
        self.state = state.outlined(self.state, growth, trace_facts.trace(inspector))

    @property
    def last(self) -> int:
        """The ordinal of the last step."""
        return len(self.inspector.known) - 1

    def target(self, *, whole: bool = False) -> state.Target:
        """The frame of the last step, or of its turn."""
        entry = next(one for one in self.state.list.turns.entries if self.last in one.ordinals)
        return state.Target(self.last, whole, entry.ordinals[0] if whole else self.last)

    def answer(self, request: Request) -> Any:
        """What a request is answered with."""
        context = AnswerContext(_Line(), self.inspector)
        context.asked = Asked(request)
        return ANSWERS[type(request)](context, request)

    def key(self) -> state.ItemKey:
        """A change of the last step, for what is asked of an item."""
        detail = self.answer(DetailRequest(self.target(), with_skipped=True))
        changes = [change for group in detail.table.groups for change in group.changes]
        named = [change for change in changes if change.item == self.item]
        if not changes:
            raise _NothingToAskError
        return state.ItemKey(self.target(), [*named, *changes][0])


class _NothingToAskError(Exception):
    """The last step changed nothing."""


@contextmanager
def _opened(trace: Path, item: str) -> Iterator[_Opened]:
    with Inspector.open(trace) as inspector:
        yield _Opened(inspector, item)


def _walk(trace: Path, item: str) -> None:
    """Open the trace, unfold all, go down the list line by line, look at every line; then the overview."""
    with _opened(trace, item) as opened:
        now = opened.state
        now = replace(now, list=now.list.with_turns(range(len(now.list.turns.entries))))
        lines.turn_heading(now, _WIDTH)
        now = state.to_line(now, 0)
        for line in range(now.list.count):
            lines.turn_line(now, line, _WIDTH)
            now = state.to_line(now, line)
            assert now.target is not None or now.place is not None
        now = state.to_line(now, 0)
        for _ in now.list.turns.entries:
            now = state.next_turn(now, 1)
        view = overview.opened(now)
        overview.total_lines(now, view, _WIDTH)
        axis = overview.axis_of(view, now.list.turns, chart_room(_WIDTH))
        chart(axis, _WIDTH, 12)
        for _ in now.list.turns.entries:
            view = overview.to_turn(view, 1)
            overview.turn_in_front(now, view, _WIDTH, 40)


def _listing(trace: Path, item: str) -> None:
    """The changes of the last step, every line of them, folded and sorted."""
    with _opened(trace, item) as opened:
        for whole in (False, True):
            detail = opened.answer(DetailRequest(opened.target(whole=whole), with_skipped=True))
            now = state.detailed(state.to_line(opened.state, opened.state.list.count - 1), detail)
            for line in range(detail.table.count):
                lines.change_line(detail.table, line, _WIDTH)
            state.toggle_groups(now)


def _watch(trace: Path, item: str) -> None:
    """Follow a file to which a runtime appends an event at a time, as the UI does."""
    growing = trace.with_name(f"growing{trace.suffix}")
    growing.touch()
    now = state.State(state.Trace(growing.name, live=True))
    told: list[object] = []
    live = LiveSession(growing)
    follower = Follower(live, told.append, lambda _inspector: None)
    try:
        with growing.open("ab", buffering=0) as file:
            for line in trace.read_bytes().splitlines(keepends=True):
                file.write(line)
                follower.look(lambda: False, lambda: None)
                while told:
                    value = told.pop(0)
                    if isinstance(value, Grown):
                        now = state.grown(now, value.growth)
    finally:
        live.close()


def _asks(make: Callable[[_Opened], Request]) -> Callable[[Path, str], None]:
    def view(trace: Path, item: str) -> None:
        with _opened(trace, item) as opened, suppress(_NothingToAskError):
            opened.answer(make(opened))

    return view


def _pair(opened: _Opened) -> Pair:
    return Pair(FrameName(max(0, opened.last - 1)), FrameName(opened.last))


ASKED: Final[dict[type[Request], Callable[[_Opened], Request]]] = {
    DetailRequest: lambda opened: DetailRequest(opened.target(whole=True), with_skipped=True),
    ReadingRequest: lambda opened: ReadingRequest("stages", "", opened.last),
    PlaceRequest: lambda opened: PlaceRequest("1", opened.inspector.known[0].session),
    SearchRequest: lambda _opened: SearchRequest(parse_query("tokens>1"), 1),
    ItemRequest: lambda opened: ItemRequest(opened.key()),
    LifeRequest: lambda opened: LifeRequest(opened.key()),
    RecordRequest: lambda opened: RecordRequest(opened.key()),
    VersionRequest: lambda opened: VersionRequest(opened.key(), 1),
    CostRequest: lambda opened: CostRequest(1, 0, opened.last + 1),
    WordsRequest: lambda opened: WordsRequest(1, tuple(range(opened.last + 1))[-_LISTED:]),
    MarksRequest: lambda _opened: MarksRequest(1),
    RecordedRequest: lambda opened: RecordedRequest(opened.last),
    SimulationRequest: lambda _opened: SimulationRequest(1, Supposition(policy="fifo", window=500)),
    ComparisonRequest: lambda opened: ComparisonRequest(lambda _inspector: _pair(opened)),
    TextRequest: lambda opened: TextRequest(TextKey(_pair(opened), None, True, True)),
    AssembledRequest: lambda opened: AssembledRequest(opened.last),
    WhyRequest: lambda opened: WhyRequest("", opened.last, opened.key().change.item),
    BlameRequest: lambda opened: BlameRequest("", opened.last),
    FindingsRequest: lambda _opened: FindingsRequest(""),
    CompactionsRequest: lambda opened: CompactionsRequest("", range(opened.last + 1)),
}
"""By kind of request, one that asks for as much as the UI does at once."""

VIEWS: Final[dict[str, Callable[[Path, str], None]]] = {
    "walk": _walk,
    "listing": _listing,
    "watch": _watch,
    **{kind.__name__: _asks(make) for kind, make in ASKED.items()},
}
"""By name, what is done with a trace and one of its items."""
