"""What rules are shown: a step with its frame, and a record with its line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Final

from ctxctl.analysis.request_cost import StepCost, cost_of
from ctxctl.item_names import told
from ctxctl.model.findings import Place
from ctxctl.model.records import Item

if TYPE_CHECKING:
    from ctxctl.engine.replay.step_tracker import ThreadKey
    from ctxctl.engine.replay.thread import SealedStep, ThreadState
    from ctxctl.model.content import Content
    from ctxctl.model.event import Event
    from ctxctl.model.records import Record
    from ctxctl.model.results import Placement, Step
    from ctxctl.session.facade import Inspector
    from ctxctl.tokens.catalogue.rates import RateBook

LONGEST: Final = 1 << 20
"""Bytes up to which a text is read by a rule; what is longer is only measured."""


class TraceContext:
    """What stays the same over a whole trace."""

    def __init__(self, inspector: Inspector, book: RateBook) -> None:
        self.inspector = inspector
        self.book = book
        self.native = inspector.format == "native"
        self._lines: dict[int, str | None] = {}

    def text(self, content: Content) -> str:
        """Read the text of a content, without what was redacted."""
        return self.inspector.text(content)

    def named(self, line: int, event_id: str | None) -> None:
        """Remember the id of the event of a line, for as many as fit."""
        if event_id is not None and len(self._lines) < _IDS:
            self._lines[line] = event_id

    def event_id(self, line: int) -> str | None:
        """The id of the event of a line, where it is remembered."""
        return self._lines.get(line)


_IDS: Final = 1 << 15


class ThreadSums:
    """Sums over the steps of one thread so far, so that what goes on for many costs nothing at each."""

    def __init__(self) -> None:
        self.steps = 0
        self.rates = Decimal(0)
        """Sum over the steps of what a token of their context cost on average, in US dollars."""
        self.unpriced = 0
        """Steps whose price is not known."""


class StepContext:
    """A step with its frame, as rules are shown it."""

    def __init__(
        self,
        around: TraceContext,
        ordinal: int,
        step: Step,
        placements: list[Placement],
        sealed: SealedStep,
        thread: ThreadState,
        running: ThreadSums,
    ) -> None:
        self.around = around
        self.ordinal = ordinal
        self.step = step
        self.placements = placements
        self.sealed = sealed
        self.thread = thread
        self.running = running
        """Sums over the thread before this step."""

    @property
    def key(self) -> ThreadKey:
        """The thread that the step is of."""
        return self.thread.key

    @cached_property
    def _moved(self) -> tuple[list[Placement], list[Placement]]:
        """What came and what left; what only changed its place did neither."""
        delta = self.sealed.delta
        if not delta.inserted or not delta.removed:
            return delta.inserted, delta.removed
        both = Counter(p.key for p in delta.inserted) & Counter(p.key for p in delta.removed)
        if not both:
            return delta.inserted, delta.removed
        return _less(delta.inserted, both.copy()), _less(delta.removed, both)

    @property
    def came(self) -> list[Placement]:
        """Placements that came into the frame, against the step before, in its order."""
        return self._moved[0]

    @property
    def left(self) -> list[Placement]:
        """Placements that left it, in the order of the frame before."""
        return self._moved[1]

    @property
    def before(self) -> list[Placement]:
        """The frame of the step before."""
        return self.sealed.before.placements

    @cached_property
    def cost(self) -> StepCost:
        """What the request cost."""
        return cost_of(self.step, self.around.book)

    @cached_property
    def rate(self) -> Decimal | None:
        """What a token that was sent cost on average, in US dollars; None: unknown."""
        sent, used = self.cost.sent, self.step.window.used
        if sent is None or used <= 0:
            return None
        return sent.context / used

    def money(self, tokens: int) -> Decimal | None:
        """What so many tokens of the context cost in this request, at its average; None: unknown."""
        return None if self.rate is None else self.rate * tokens

    def text(self, placement: Placement) -> str | None:
        """The text of a placement; None where the trace has none, or a very long one."""
        content = placement.content
        if content is None or content.size > LONGEST:
            return None
        return self.around.text(content)

    def called(self, placement: Placement) -> str:
        """What an item is called in a sentence: its title, else the first words of its text, else its id."""
        words = "" if placement.title else self.text(placement) or ""
        return placement.title or told(None, words, placement.item)

    def place(self, line: int | None = None) -> Place:
        """The step, and the line that shows it: its first where none is given."""
        step = self.step
        line = line or step.first_line
        return Place(
            self.ordinal, step.session, step.thread, step.turn, step.step, line, self.around.event_id(line)
        )

    def current(self) -> Iterator[Placement]:
        """Placements that are not stale."""
        return (p for p in self.placements if not p.stale)


def _less(placements: list[Placement], fewer: Counter[int]) -> list[Placement]:
    """The placements less as many of each key as `fewer` says."""
    rest = []
    for placement in placements:
        if fewer[placement.key] > 0:
            fewer[placement.key] -= 1
        else:
            rest.append(placement)
    return rest


class SeenRecord:
    """One record of the trace, in its thread."""

    def __init__(self, around: TraceContext, event: Event, record: Record, thread: ThreadState) -> None:
        self.around = around
        self.event = event
        self.record = record
        self.thread = thread

    @property
    def item(self) -> Item | None:
        """The record, if it is an item's."""
        return self.record if type(self.record) is Item else None

    @property
    def place(self) -> Place:
        """The open step of the thread; it has no ordinal before it is over."""
        ids, key = self.thread.ids, self.thread.key
        return Place(
            None, key.session, key.thread, ids.turn if ids is not None else None,
            ids.step if ids is not None else None, self.event.line, self.event.event_id,
        )  # fmt: skip
