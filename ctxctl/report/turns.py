"""The short report of a replay: what it is, how full, what it cost and what happened in ten lines or so, then
a row for each turn.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from ctxctl.analysis.compacting import Compacting
from ctxctl.analysis.left_out import LeftOutItems
from ctxctl.analysis.turn_sums import TurnSum, TurnSums
from ctxctl.item_names import NAMELESS, ItemNames
from ctxctl.model.addresses import prefix
from ctxctl.model.missed import unrecorded_cut
from ctxctl.model.results import Cut, Step, Summary, Turn
from ctxctl.model.vocab import MAIN_THREAD, UNRECORDED
from ctxctl.report.bill_notes import sum_text, turn_cost, with_mark
from ctxctl.report.compaction_words import kinds_text, largest_text, triggers_text
from ctxctl.report.cost_sums import scope_text, total_text
from ctxctl.report.fidelity import LOOKED_AT, WRITTEN_BY, not_understood
from ctxctl.report.heading import (
    Header,
    calibration_text,
    doubts_text,
    edited_facts,
    late_text,
    learned_text,
    supposed_text,
)
from ctxctl.report.oneline import turn_line
from ctxctl.report.paint import Paint
from ctxctl.report.replay import fits_text, held
from ctxctl.report.sent import (
    NOT_RECORDED,
    known_by,
    limit_text,
    size_of_limit,
    size_text,
    threshold_text,
    unrecorded_text,
)
from ctxctl.report.step import has_bill
from ctxctl.report.tables import Column, labelled, ordered_segments, table, width_of
from ctxctl.report.totals import Totals
from ctxctl.text import cells, clip, preview, visible
from ctxctl.tokens.catalogue.rates import RateBook
from ctxctl.wording import (
    BREAK,
    COMPACTION,
    MINUS,
    NOT_KNOWN,
    STATED,
    WARNING,
    cost_text,
    dollars,
    flag_words,
    noun,
    number,
    plural,
    share,
    short,
    short_kind,
    unshown,
)

_PLACES: Final = 3
"""Addresses that a line names before it says how many more there are."""
_CUTS: Final = 10
"""Turns of which a cut without a record is explained; the others have their mark."""
_TITLE: Final = 120
_NAME: Final = 48
"""Cells of an item's name."""
_WIDE: Final = 110
"""Cells from which on the table of turns has all of its columns, and tokens have all their digits."""
_MINUTE: Final = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)")
_COLUMNS: Final = (
    Column("turn", least=28),
    Column("steps", right=True),
    Column("sent", right=True),
    Column("full", right=True),
    Column("new", right=True),
    Column("freed", right=True),
    Column("cost", right=True),
    Column("notes"),
    Column("prompt", least=16),
)
_ROOMY: Final = (4, 5)
"""Columns that only a wide table has: what entered and what left."""


def _ended(address: str, wide: int) -> str:
    """An address in so many cells: its turn stays, which tells a row from the others of its session."""
    at = max(address.rfind("/"), address.rfind(":"))
    end = address[at:]
    if cells(address) <= wide or at < 0 or cells(end) >= wide - 1:
        return address
    return clip(address[:at], wide - cells(end)) + end


LinesOf = Callable[[Cut], tuple[int, int]]
"""The lines of the capture that may hold the cause of a cut."""
NamesOf = Callable[[TurnSum, Compacting], ItemNames]
"""How the items that a turn's compaction took are called."""


def _by_title(_row: TurnSum, _one: Compacting) -> ItemNames:
    return NAMELESS


class TurnsReport:
    """Takes the stream of a replay and gives the report at its end; holds a row for each turn."""

    def __init__(
        self, header: Header, width: int, paint: Paint, book: RateBook, names: NamesOf = _by_title,
        lines: LinesOf = lambda cut: cut.lines,
    ) -> None:  # fmt: skip
        self.totals = Totals()
        self._sums = TurnSums(book)
        self._header = header
        self._width = width
        self._paint = paint
        self._names = names
        self._lines = lines
        self._left_out = LeftOutItems() if header.fitting else None

    def feed(self, result: Step | Turn) -> None:
        """Take in a step or a turn."""
        if isinstance(result, Step):
            self.totals.add(result)
            self._sums.step(result)
            if self._left_out is not None:
                self._left_out.step(result)
        else:
            self._sums.turn(result)

    def end(self, summary: Summary) -> Iterator[str]:
        """The summary, and a row for each turn."""
        for label, text in self._facts(summary):
            yield from labelled(label, text, self._width)
        if self._sums.turns:
            yield ""
            yield from self._rows()

    def oneline(self, path: str) -> Iterator[str]:
        """A line for each turn, for other programs; `path`: the trace as it was typed."""
        several = self.totals.sessions > 1
        return (turn_line(path, row, several=several) for row in self._sums.turns)

    # The summary --------------------------------------------------------------------------------------------

    def _facts(self, summary: Summary) -> Iterator[tuple[str, str]]:
        totals, header = self.totals, self._header
        yield "trace", ", ".join(self._identity())
        if header.late:
            yield "late", late_text(header.late)
        threads = plural(totals.threads, "thread")
        several = f" of {plural(totals.sessions, 'session')}" if totals.sessions > 1 else ""
        yield (
            "holds",
            f"{plural(len(totals.turns), 'turn')}, {plural(totals.steps, 'step')}, {threads}{several}",
        )
        yield from self._sent()
        if totals.steps:
            yield "cost", self._cost()
            yield "happened", "; ".join(self._happened())
        if header.limits.given:
            yield "supposed", supposed_text(header.limits, header.policy, fitting=header.fitting)
            yield "", fits_text(totals, self._address)
        if self._left_out is not None and totals.steps:
            yield "left out", self._what_is_out(self._left_out)
        if header.edited.given:
            yield from edited_facts(header.edited)
        yield from held(totals)
        if header.calibration is not None:
            yield "sizes", calibration_text(header.calibration)
        elif header.encoding_known:
            yield "sizes", f"counted with {visible(header.encoding)}"
        else:
            yield "assumed", visible(header.assumed)
        if header.learned is not None:
            yield "learned", learned_text(header.learned)
        if header.doubts:
            yield "not read", doubts_text(header.doubts)
        for one in summary.fidelity:
            for label, text in not_understood(one):
                if label == WRITTEN_BY:
                    yield "version", f"{label} {text}"
                elif label != LOOKED_AT:
                    yield label, text
        if summary.problems:
            yield "problems", f"{number(summary.problems)} in the trace"

    def _identity(self) -> Iterator[str]:
        header, sums = self._header, self._sums
        yield visible(header.trace)
        yield visible(header.format)
        if header.policy != "recorded":
            yield f"policy {visible(header.policy)}"
        if header.model is not None:
            yield f"counted as for {visible(header.model)}"
        models = dict.fromkeys(step.model for step in self.totals.last if step.model)
        yield from (visible(model) for model in list(models)[:_PLACES])
        if header.target != "model":
            yield f"target {visible(header.target)}"
        if header.thread is not None:
            yield f"only thread {visible(header.thread)}"
        if sums.first_time is not None and sums.last_time is not None:
            yield _span(sums.first_time, sums.last_time)

    def _sent(self) -> Iterator[tuple[str, str]]:
        """What the last request sent and of what it is made; the largest one, where that is another."""
        totals = self.totals
        if not totals.last:
            return
        last = self._last()
        window = last.window
        if window.used_method == "recorded":
            parts = [f"{size_text(window)}; what was sent is not known: {self._unbilled()}"]
        else:
            parts = [size_of_limit(window), known_by(window, billed=has_bill(last))]
        parts += [said for said in (limit_text(window), threshold_text(window)) if said is not None]
        yield "sent", f"at the last step, {self._place(last)}: {'; '.join(parts)}"
        if segments := _segments(last):
            counted = "" if (window.unrecorded or 0) >= 0 else f"; {unrecorded_text(window)}"
            yield "", segments + counted
        largest = totals.largest
        if largest is not None and largest is not last and largest.window.used > window.used:
            yield "peak", f"{size_of_limit(largest.window)}, at {self._place(largest)}"

    def _unbilled(self) -> str:
        """Why the size is not known: no bill was read, or only the last total is stated."""
        totals = [*self._sums.costs.stated.totals.values()]
        if not totals:
            return "no bill was read"
        last = next((one for one in reversed(totals) if one.total.input_tokens is not None), totals[-1])
        return f"only a total is stated ({total_text(last.total)}, {scope_text(last)})"

    def _last(self) -> Step:
        """The last step, of the main thread where there is one."""
        last = self.totals.last
        return next((step for step in reversed(last) if step.thread == MAIN_THREAD), last[-1])

    def _what_is_out(self, items: LeftOutItems) -> str:
        """What the supposed policy left out of the last request."""
        last = self._last()
        out = items.after(last)
        text = f"at the last step, {self._place(last)}: "
        if out.items:
            kinds = ", ".join(
                f"{short_kind(visible(kind))} {number(tokens)} ({number(held)})"
                for kind, held, tokens in out.kinds
            )
            text += f"{plural(out.items, 'item')}, {plural(out.tokens, 'token')}: {kinds}"
            if out.largest:
                rows = [NAMELESS.row(one.item, one.title, one.kind) for one in out.largest]
                named = zip(NAMELESS.listed(rows, _NAME), out.largest, strict=True)
                text += f"; largest: {', '.join(f'{name} {number(one.tokens)}' for name, one in named)}"
        else:
            text += "nothing"
        if "still_over_budget" in last.flags:
            text += "; still over: the rest is protected or not recorded (protect_recent, protect_head)"
        elif last.window.over and last.window.used_method == "reported":
            text += "; over because more was billed than was expected when the policy decided"
        return f"{text} (simulated)"

    def _cost(self) -> str:
        costs = self._sums.costs
        if costs.stated_cost is not None and self._left_out is None:
            said = sum_text(costs).removesuffix(STATED)
            if costs.stated.is_priced:
                return f"{said} for the tokens that the runtime states, by the table's prices"
            unpriced = visible(next(iter(costs.unpriced), "no price is known"))
            unbilled = "no request's own bill is in the file"
            return (
                f"{said} stated by the runtime ({unbilled if costs.unreported == costs.steps else unpriced})"
            )
        if not any(costs.sources):
            why = next(iter(costs.unpriced), None)
            known = "only tokens are stated" if costs.stated.totals else "not known"
            return known + (f": {visible(why)}" if why else "")
        if not costs.is_sized:
            if not costs.unsized_tokens:
                return "not known: no request was billed, and no content is recorded"
            return "not known: no bill tells how much was sent besides the recorded content"
        billed = costs.steps - costs.unreported
        text = sum_text(costs)
        if self._left_out is not None:  # what was sent is simulated: only what was billed is of this session
            if not billed:
                return "not known: no request was billed"
            least = bool(costs.not_priced or costs.unpriced)
            text = f"by the recorded bills: {cost_text(costs.billed.total, counted=False, least=least)}"
        text += f"; {number(billed)} of {plural(costs.steps, 'request')} billed"
        if partial := costs.partial_outputs.requests:
            billed_sum = cost_text(costs.billed.total, counted=False, least=costs.at_least)
            text += f", {billed_sum}; {plural(partial, 'output')} logged before the answer's end as counted"
        if without := sum(costs.unpriced.values()):
            text += f", {number(without)} without a known price"
        if costs.unsized:
            text += f", {number(costs.unsized)} of unknown size"
        tokens = costs.sent_tokens if self._left_out is None else costs.billed_tokens
        if self._sums.reported and tokens.context:
            read = tokens.cached + tokens.audio_cached
            text += f"; {share(read, tokens.context)} of the input read from a cache"
        return text

    def _happened(self) -> Iterator[str]:
        sums, totals = self._sums, self.totals
        yield from self._compacted()
        breaks = [self._address(row) for row in sums.turns if row.breaks]
        if breaks:
            yield f"{plural(sum(row.breaks for row in sums.turns), 'cache break')}{_named(breaks, 'turn')}"
        elif sums.compared:
            yield "no cache break"
        misses = sums.costs.misses.whole
        if misses.number:
            money = "not priced" if misses.unpriced == misses.number else dollars(misses.money)
            missed = [self._address(row) for row in sums.turns if row.misses]
            yield (
                f"{plural(misses.number, 'cache miss', 'cache misses')}{_named(missed, 'turn')}: "
                f"{plural(misses.tokens, 'token')}, {money}"
            )
        if totals.over:
            yield f"{plural(totals.over, 'step')} over the limit"
        flags: dict[str, int] = {}
        for row in sums.turns:
            for flag, steps in row.flags.items():
                flags[flag] = flags.get(flag, 0) + steps
        if totals.over:
            flags.pop("over_budget", None)  # said already
        for flag, steps in flags.items():
            said = f"{visible(flag_words(flag))} in {plural(steps, 'step')}"
            if flag == "failed":
                said = f"{plural(steps, 'step')} failed"
            elif flag == "still_over_budget" and not totals.over:
                said += ", by the policy's own count"  # what was billed, or expected from it, fits
            yield said

    def _compacted(self) -> Iterator[str]:
        """The compactions; under a policy, the session's own are undone."""
        places: dict[bool, list[str]] = {False: [], True: []}
        for row, one in self._sums.compactions:
            places[self._is_undone(one)].append(f"{self._prefix(row)}{one.turn}.{one.step}")
        done, undone = places[False], places[True]
        if done:
            yield f"{plural(len(done), 'compaction')}{_named(done)}"
        if undone:
            yield f"{plural(len(undone), 'recorded compaction')} undone{_named(undone)}"
        if not done and not undone:
            yield "no compaction recorded"

    def _is_undone(self, one: Compacting) -> bool:
        """Whether a compaction of the session has no effect: a supposed policy decides in its place."""
        return self._left_out is not None and not one.items

    # The turns ----------------------------------------------------------------------------------------------

    def _rows(self) -> Iterator[str]:
        turns = self._sums.turns
        amount = number if self._width >= _WIDE else short
        rows = [self._cells(row, amount) for row in turns]
        if self._width < _WIDE:
            rows = [tuple("" if n in _ROOMY else cell for n, cell in enumerate(row)) for row in rows]
        wide = width_of(_COLUMNS, rows, 0, self._width)
        listed = table(_COLUMNS, [(_ended(row[0], wide), *row[1:]) for row in rows], self._width)
        for line in listed.head:
            yield self._paint("dim", line)
        told = 0
        for row, lines in zip(turns, listed.rows, strict=True):
            yield from lines
            for one in row.compactions:
                if not self._is_undone(one):
                    yield from self._compacting(row, one)
            if row.cut is not None and told < _CUTS:
                told += 1
                yield from self._cut(row, *row.cut)

    def _cells(self, row: TurnSum, amount: Callable[[int], str]) -> tuple[str, ...]:
        window = row.window
        assert window is not None
        is_known = window.used_method != "recorded"
        sent = with_mark(amount(window.used), window.used_method == "expected") if is_known else NOT_KNOWN
        return (
            self._address(row),
            number(row.steps),
            sent,
            share(window.used, window.cap) if window.cap and is_known else NOT_KNOWN,
            f"+{amount(row.new)}" if row.new else "0",
            f"{MINUS}{amount(row.freed)}" if row.freed else "0",
            turn_cost(row),
            _marks(row, sum(not self._is_undone(one) for one in row.compactions)),
            preview(row.title, _TITLE) if row.title else "",
        )

    def _compacting(self, row: TurnSum, one: Compacting) -> Iterator[str]:
        """What a compaction took: how much, of what kinds, and the largest."""
        text = f"compaction{triggers_text(one)} at {self._prefix(row)}{one.turn}.{one.step}"
        if not one.items:
            text += f": {unshown(one.named)}"
        else:
            text += f" took {plural(one.items, 'item')}, {plural(one.tokens, 'token')}: {kinds_text(one)}"
        if one.largest:
            text += f"; largest: {largest_text(one, self._names(row, one))}"
        yield from labelled(COMPACTION, text, self._width, indent=2, tab=2)

    def _cut(self, row: TurnSum, step: int, cut: Cut) -> Iterator[str]:
        """The first cut without a record of a turn."""
        text = f"at {self._prefix(row)}{row.turn}.{step}, {unrecorded_cut(cut, self._lines(cut))}"
        if (steps := row.flags.get("unrecorded_cut", 0)) > 1:
            text += f"; likewise in {plural(steps - 1, 'other step')} of the turn"
        yield from labelled(WARNING, text, self._width, indent=2, tab=2)

    def _prefix(self, place: TurnSum | Step) -> str:
        session = place.session if self.totals.sessions > 1 else None
        return visible(prefix(place.thread, session))

    def _address(self, place: TurnSum | Step) -> str:
        return f"{self._prefix(place)}{place.turn}"

    def _place(self, step: Step) -> str:
        return f"{self._address(step)}.{step.step}"


def _span(first: str, last: str) -> str:
    """From when to when, to the minute where the times are written as dates."""
    one, two = _MINUTE.match(first), _MINUTE.match(last)
    if one is None or two is None:
        return f"{visible(first)} to {visible(last)}"
    begin, end = f"{one[1]} {one[2]}", f"{two[1]} {two[2]}"
    if begin == end:
        return begin
    return f"{begin} to {two[2] if one[1] == two[1] else end}"


def _segments(step: Step) -> str:
    """What a request is made of, by segment, the largest first."""
    held = [
        (name, step.segments[name]) for name in ordered_segments(step.segments) if step.segments[name] > 0
    ]
    whole = sum(tokens for _, tokens in held)
    # Which part of what was sent each segment has is not known then.
    is_cut = step.cut is not None and step.cut.unsent > 0
    return ", ".join(
        f"{NOT_RECORDED if name == UNRECORDED else visible(name)} {number(tokens)}"
        + ("" if is_cut else f" ({share(tokens, whole)})")
        for name, tokens in sorted(held, key=lambda one: -one[1])
    )


def _named(places: Sequence[str], what: str = "") -> str:
    """The first places, in brackets, and how many more there are."""
    more = f" and {len(places) - _PLACES:,} more" if len(places) > _PLACES else ""
    lead = f"{noun(len(places), what)} " if what else ""
    return f" ({lead}{', '.join(places[:_PLACES])}{more})"


def _marks(row: TurnSum, compactions: int) -> str:
    """What happened in a turn, in signs and words."""
    marks = [(COMPACTION, compactions), (BREAK, row.breaks), (f"{BREAK}miss", row.misses)]
    said = [sign if times == 1 else f"{sign}{times}" for sign, times in marks if times]
    if row.over:
        said.append("over" if row.over == 1 else f"over {row.over:,}")
    return " ".join([*said, *([WARNING] if row.flags else [])])
