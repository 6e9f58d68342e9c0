"""What of a trace a command line selects: a frame, turns, a thread, or the steps that a query fits.

`shielded` keeps apart from options what looks like one: ``-@3``, of standard input, and ``-has:x``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ctxctl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxctl.analysis.where import WhereStep
    from ctxctl.cli.run import Run
    from ctxctl.engine.query import Query
    from ctxctl.model.results import Step, Turn
    from ctxctl.report.find import Narrowed
    from ctxctl.session import Inspector
    from ctxctl.session.item_words import ItemWords
    from ctxctl.session.naming import NamedPlace
    from ctxctl.tokens.catalogue.rates import RateBook

_RANGE = re.compile(r"(-?\d{1,9})?(\.\.)?(-?\d{1,9})?")
_HINT = "write a turn, for example 3 or -1, or a range of turns, for example 3..5 or -3..-1"


class Place(Protocol):
    """A step or a turn, or where one is, as the index of a trace knows it."""

    @property
    def session(self) -> str | None:
        """Its session."""
        ...

    @property
    def thread(self) -> str:
        """Its thread."""
        ...

    @property
    def turn(self) -> int:
        """Its turn, from 1."""
        ...


class TurnSelection(NamedTuple):
    """Which steps and turns are shown; turns are ready to compare, per session and thread."""

    first: int | None
    last: int | None
    thread: str | None
    ends: dict[tuple[str | None, str], int]
    """Last turn of each thread; filled only where a negative number needs it."""
    step: int | None = None
    """Only this step of the turn, and not the turn itself."""
    session: str | None = None
    """Only this session; None: all."""

    @property
    def is_all(self) -> bool:
        """Whether nothing is left out."""
        return self.thread is None and self.first is None and self.last is None

    @property
    def named_turn(self) -> str | None:
        """The turn or turns as a header names them; None: all."""
        if self.first is None and self.last is None:
            return None
        if self.first == self.last:
            return f"{self.first}" if self.step is None else f"{self.first}.{self.step}"
        return f"{self.first or ''}..{self.last or ''}"

    def __call__(self, result: Place) -> bool:
        """Whether a step or turn is shown."""
        if self.thread is not None and result.thread != self.thread:
            return False
        if self.session is not None and result.session != self.session:
            return False
        if self.step is not None and getattr(result, "step", None) != self.step:
            return False
        first, last = self.first, self.last
        if first is None and last is None:
            return True
        end = self.ends.get((result.session, result.thread), 0)
        low = 1 if first is None else first if first > 0 else end + first + 1
        high = result.turn if last is None else last if last > 0 else end + last + 1
        return low <= result.turn <= high


def selected_turns(
    turn: str | None, thread: str | None, rows: Callable[[], Sequence[Place]]
) -> TurnSelection:
    """Read ``--turn`` and ``--thread``; `rows` is called only for negative turns.

    Raises UsageError (`bad-turn`).
    """
    first = last = None
    if turn is not None:
        match = _RANGE.fullmatch(turn.strip())
        if (
            match is None
            or not (match[1] or match[3])
            or "0" in (match[1], match[3])
            or (match[3] and not match[2])
        ):
            raise UsageError("bad-turn", f"{turn!r} is not a turn", hint=_HINT)
        first = int(match[1]) if match[1] else None
        last = int(match[3]) if match[3] else None if match[2] else first
    ends: dict[tuple[str | None, str], int] = {}
    if (first is not None and first < 0) or (last is not None and last < 0):
        for row in rows():
            ends[row.session, row.thread] = max(row.turn, ends.get((row.session, row.thread), 0))
    return TurnSelection(first, last, thread, ends)


def place_selected(
    inspector: Inspector, address: str | None, turn: str | None, thread: str | None
) -> TurnSelection:
    """The selection of ``TRACE@ADDRESS``, or of ``--turn`` and ``--thread`` where there is no address.

    A turn without a thread is one of the main thread, as wherever a frame is named.  Raises UsageError:
    `bad-turn`, and what `naming.locate` raises.
    """
    from ctxctl.session.addresses import names_step
    from ctxctl.session.naming import locate

    if address is None:
        return selected_turns(turn, thread, lambda: inspector.places().spans)
    span = inspector.places().spans[locate(inspector, address, turn, thread)]
    step = span.step if names_step(address) else None
    return TurnSelection(span.turn, span.turn, span.thread, {}, step, span.session)


def check_thread(inspector: Inspector, thread: str | None) -> None:
    """Raises UsageError (`no-such-frame`) for a thread that the trace does not have; reads its index."""
    if thread is not None:
        spans = inspector.places().spans
        if all(span.thread != thread for span in spans):
            raise nothing_there(None, thread, spans)


def nothing_there(turn: str | None, thread: str | None, rows: Sequence[Place]) -> UsageError:
    """The error for a selection that fits no step, with what there is."""
    threads = list(dict.fromkeys(row.thread for row in rows))
    if thread is not None and thread not in threads:
        there = ", ".join(threads[:8]) + (", ..." if len(threads) > 8 else "")
        return UsageError("no-such-frame", f"no thread is called {thread!r}", hint=f"there are: {there}")
    turns = max((row.turn for row in rows if thread in (None, row.thread)), default=0)
    return UsageError("no-such-frame", f"no turn {turn}", hint=f"the trace has turns 1 to {turns}")


_SHIELD = "\0"
"""In front of ``-@3``, which the parser would take for an option; no argument of a process can hold it."""
_TAKE_FRAMES = ("show", "diff", "blame", "why", "replay", "cost", "compactions", "export", "lint", "log")
_TAKE_QUERIES = ("find", "bisect")


def shielded(arguments: Sequence[str]) -> list[str]:
    """The arguments of a command line, in which frames of standard input and queries that begin with a
    minus can be told from options.
    """
    if arguments and arguments[0] in _TAKE_QUERIES:
        return [_SHIELD + argument if _negates(argument) else argument for argument in arguments]
    if not arguments or arguments[0] not in _TAKE_FRAMES:
        return list(arguments)
    return [_SHIELD + argument if argument.startswith("-@") else argument for argument in arguments]


def _negates(argument: str) -> bool:
    """Whether it is a query such as ``-has:x``, and no option: those have two dashes, but for ``-h``."""
    return len(argument) > 2 and argument[0] == "-" and argument[1] != "-"


def _unshielded(argument: str) -> str:
    """An argument as it was before `shielded`."""
    return argument.removeprefix(_SHIELD)


def split_frame(argument: str, *, same: str | None = None) -> NamedPlace:
    """As `naming.split`, of an argument as `shielded` left it."""
    from ctxctl.session import naming

    return naming.split_name(_unshielded(argument), same=same)


def split_trace(argument: str) -> NamedPlace:
    """As `split_frame`; where nothing in front of an ``@`` is a file, the argument is a trace as it stands,
    so that what is said of it says what was typed.
    """
    from ctxctl.session.naming import NamedPlace

    place = split_frame(argument)
    if place.address is None or place.trace == "-" or os.path.exists(place.trace):
        return place
    return NamedPlace(_unshielded(argument), None)


def whole_trace(argument: str, hint: str) -> str:
    """The trace of a command that looks at whole traces.

    Raises UsageError (`whole-trace`) where a turn of it is named; `hint`: which command takes one, with
    ``{}`` for the argument.
    """
    from ctxctl.text import pasted

    place = split_trace(argument)
    if place.address is None:
        return place.trace
    raise UsageError(
        "whole-trace", f"{_unshielded(argument)!r} names a turn, but this command reads whole traces",
        hint=hint.replace("{}", pasted(_unshielded(argument))),
    )  # fmt: skip


_SHOWN = 60


def query_of(text: str) -> Query:
    """The query; a mistake in it is shown in its place, and raised as UsageError("bad-query")."""
    from ctxctl.cli.output import note
    from ctxctl.engine.query import QueryError, parse_query
    from ctxctl.text import cells, visible

    text = _unshielded(text)
    try:
        return parse_query(text)
    except QueryError as error:
        start = max(0, error.column - _SHOWN)
        shown = visible(text[start : error.column + _SHOWN])
        note(f"  {shown}\n  {' ' * cells(visible(text[start : error.column]))}^")
        raise


def price_book(query: Query, run: Run) -> RateBook | None:
    """Where prices are from; None if the query does not speak of money."""
    if not query.asks_cost:
        return None
    from ctxctl.tokens.catalogue.rates import RateBook

    return RateBook(run.settings.models)


def where_query(text: str | None, *, alone: bool) -> Query | None:
    """What ``--where`` asks for; raises UsageError for a mistake, and where it does not stand `alone`."""
    from ctxctl.errors import UsageError

    if text is None:
        return None
    if not alone:
        raise UsageError(
            "where-and-compare",
            "--where and --compare cannot be combined",
            hint="search each side separately: `ctxctl find` takes --policy, --model and the like",
        )
    return query_of(text)


class SelectedResults:
    """The steps and turns of a replay that were chosen, each with whether ``--where`` leaves it to be shown.

    A turn is shown with any of its steps.
    """

    def __init__(self, inspector: Inspector, run: Run, query: Query | None, chosen: TurnSelection) -> None:
        self._inspector = inspector
        self._how = run
        self._query = query
        self._chosen = chosen
        self._steps = self._fit = self._undecided = 0
        self.words: ItemWords | None = None
        """Told of each step before its results are given, so that the items in them can be called."""

    @property
    def where(self) -> Narrowed | None:
        """How many steps were shown so far; None without a query."""
        if self._query is None:
            return None
        from ctxctl.report.find import Narrowed

        return Narrowed(str(self._query), self._fit, self._steps - self._fit, self._undecided)

    def __iter__(self) -> Iterator[tuple[Step | Turn, bool]]:
        run, inspector, query, chosen = self._how, self._inspector, self._query, self._chosen
        if query is None:
            for result in self._results():
                if chosen(result):
                    yield result, True
            return
        from ctxctl.analysis.known_values import unknown_error, unknown_values
        from ctxctl.analysis.where import steps_where

        for unknown in unknown_values(inspector, query, run.out.progressed):
            raise unknown_error(unknown)
        book = price_book(query, run)
        yield from self._narrowed(
            steps_where(inspector, query, run.out.progressed, book=book, skipped=run.everything)
        )

    def _results(self) -> Iterator[Step | Turn]:
        run, inspector, words = self._how, self._inspector, self.words
        if words is None:
            yield from inspector.replay(run.out.progressed, skipped=run.everything)
            return
        stops = (
            (at for at, _ in inspector.walk(run.out.progressed, skipped=True, settle=True))
            if run.everything
            else inspector.steps(run.out.progressed, settle=True)
        )
        for at in stops:
            words.see(at)
            yield from at.done

    def _narrowed(self, stops: Iterator[WhereStep]) -> Iterator[tuple[Step | Turn, bool]]:
        fits: set[tuple[str | None, str]] = set()
        for stop in stops:
            step, turn = stop.at.step, stop.at.turn
            if self.words is not None:
                self.words.see(stop.at)
            key = (step.session, step.thread)
            if self._chosen(step):
                self._steps += 1
                self._undecided += stop.held.truth is None
                if stop.held.truth:
                    self._fit += 1
                    fits.add(key)
                yield step, bool(stop.held.truth)
            if turn is not None:
                if self._chosen(turn):
                    yield turn, key in fits
                fits.discard(key)
