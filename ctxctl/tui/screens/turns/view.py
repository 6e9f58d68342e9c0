"""What is being looked at: one immutable value.  Plain Python: no widget, no event loop, no file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from ctxctl.engine.query import Query
from ctxctl.model.results import Change, Step, Turn, Window
from ctxctl.tui.changes import Arrangement, ChangeTable, Facet, Note, Order, place_notes
from ctxctl.tui.cost_column import CostColumn
from ctxctl.tui.document import Document
from ctxctl.tui.finding_marks import NO_MARKS, FindingMarks, Marks
from ctxctl.tui.folding import Folding
from ctxctl.tui.outline import Turns
from ctxctl.tui.step_words import KnownWords
from ctxctl.tui.tabs import Tab, Tabs
from ctxctl.tui.thread_tree import HEADING, Place, TurnEntry
from ctxctl.tui.watching import Watching
from ctxctl.wording import plural

Pane = Literal["turns", "changes", "item"]
PANES: Final[tuple[Pane, ...]] = ("turns", "changes", "item")
Phase = Literal["opening", "reading", "ready"]


@dataclass(frozen=True, slots=True)
class Trace:
    """What is known of the open trace as a whole."""

    name: str
    format: str = "native"
    encoding: str = ""
    """Counting method and encoding, such as ``exact:o200k_base``."""
    assumed: str = ""
    """One sentence where the encoding was assumed, else empty."""
    policy: str = "recorded"
    problems: int = 0
    late: int = 0
    """Events for steps that were over."""
    live: bool = False
    """Whether it is being watched while it is written."""
    watching: Watching | None = None
    """How the watch stands."""
    places: tuple[str, ...] = ()
    """Where captures of its format come from, and what has to be switched on for them."""
    size: int = 0
    """Bytes of the trace; 0: unknown."""


@dataclass(frozen=True, slots=True)
class Target:
    """What the cursor in the list of turns asks for: a step, or a whole turn (its last step's frame)."""

    ordinal: int
    whole_turn: bool
    first: int
    """The step whose previous frame is compared with: the turn's first, or the step itself."""
    epoch: int = 0
    """As `State.epoch`: the same ordinal means another step once the view began afresh."""


@dataclass(frozen=True, slots=True)
class Detail:
    """One frame's facts, or why there are none.  `turn` is None where a single step was asked for."""

    target: Target
    step: Step | None
    turn: Turn | None
    table: ChangeTable
    with_skipped: bool = False
    error: str | None = None
    stale: Mapping[str, int] = field(default_factory=dict)
    """Tokens of older copies, by segment."""


@dataclass(frozen=True, slots=True)
class ItemKey:
    """Which item's text is wanted, and in which comparison."""

    target: Target
    change: Change

    def same(self, other: ItemKey | None) -> bool:
        """Whether both ask for the same text."""
        return other is not None and self.target == other.target and self.change == other.change


@dataclass(frozen=True, slots=True)
class ItemText:
    """An item's text and its difference to the version in the frame before; None with a reason in words."""

    key: ItemKey
    content: Document | None
    diff: Document | None
    note: str = ""
    """Why there is no content."""
    diff_note: str = ""
    """Why there is no diff, or what is special about it."""


class Visit(NamedTuple):
    """Where the cursor was."""

    ordinal: int
    step: bool
    """Whether it was on the step's own line."""
    pane: Pane
    item: str | None


@dataclass(frozen=True, slots=True)
class State:
    """The whole view; see the fields' types for what each part holds."""

    trace: Trace
    epoch: int = 0
    """How often the view began afresh: with another session, or another content of the file."""
    phase: Phase = "opening"
    progress: float | None = None
    """Part of the trace read, 0 to 1, while `phase` is `reading`."""
    list: Folding = field(default_factory=lambda: Folding(Turns()))
    cursor: int = 0
    """Line in the list of turns."""
    held: tuple[Place, Target] | None = None
    """A turn that went on while its changes were being looked at, and what is shown of it until the user
    comes back to the list or moves on.
    """
    pane: Pane = "turns"
    detail: Detail | None = None
    change: int = 0
    """Line in the table of changes."""
    item: str | None = None
    """Item that the cursor in the changes stays on when the frame changes."""
    folded: frozenset[str] = frozenset()
    """Keys of the groups of changes that are folded: statuses, kinds, sources …"""
    order: Order = "frame"
    """How the changes of a group are sorted."""
    reverse: bool = False
    by: Facet = "status"
    """What the changes are grouped by."""
    only: Query | None = None
    """Only changes are listed of which this holds."""
    following: bool = False
    """Whether the cursor goes with the newest turn."""
    newer: int = 0
    """Turns that came since the cursor was last on the newest, of a trace that is being written."""
    seeking: bool = False
    """Whether `item` is to be found even among what was skipped."""
    visits: tuple[Visit, ...] = ()
    """Where jumps came from, the last one at the end."""
    skipped: bool = False
    """Whether skipped items are listed."""
    tab: Tab | None = None
    """None: the diff of what was updated, the content of everything else."""
    text: ItemText | None = None
    tabs: Tabs = field(default_factory=Tabs)
    """What else is known of the selected item."""
    costs: CostColumn = field(default_factory=CostColumn)
    """What steps cost; grows in place."""
    priced: int = 0
    """Steps of which that is known."""
    said: KnownWords = field(default_factory=KnownWords)
    """What was done in steps that are listed; grows in place."""
    marked: int | None = None
    """Ordinal of the step whose frame others are compared with."""
    findings: FindingMarks = NO_MARKS
    """What lint finds, once it was looked for."""

    @property
    def place(self) -> Place | None:
        """The turn or step under the cursor."""
        return self.list.at(self.cursor) if self.list.count else None

    @property
    def entry(self) -> TurnEntry | None:
        """The turn under the cursor, or that of the step under it."""
        place = self.place
        return None if place is None else self.list.turns.entries[place.turn]

    @property
    def target(self) -> Target | None:
        """The frame that the cursor asks for.

        Of a turn that is still being read, its first step's; of one that is still being written, its last
        so far.
        """
        place, entry = self.place, self.entry
        if place is None or entry is None:
            return None
        if self.held is not None and self.held[0] == place and self.pane != "turns":
            return self.held[1]
        first = entry.ordinals[0]
        if place.step is not None and place.step != HEADING:
            ordinal = entry.ordinals[place.step]
            return Target(ordinal, whole_turn=False, first=ordinal, epoch=self.epoch)
        if entry.whole or (self.trace.live and self.phase == "ready"):
            return Target(entry.last, whole_turn=True, first=first, epoch=self.epoch)
        return Target(first, whole_turn=False, first=first, epoch=self.epoch)

    @property
    def shown(self) -> Detail | None:
        """The detail, if it is the one that the cursor asks for."""
        return self.detail if self.detail is not None and self.detail.target == self.target else None

    @property
    def table(self) -> ChangeTable:
        """The changes to show; those of the last frame stay until the next ones are there.

        Of a trace without a turn, what to do about that.
        """
        if self.detail is not None:
            return self.detail.table
        empty = self.phase == "ready" and not self.list.count
        return ChangeTable.of((), _nothing_found(self.trace)) if empty else ChangeTable()

    @property
    def selected(self) -> Change | None:
        """The change under the cursor."""
        return self.table.change_at(self.change)

    @property
    def wanted(self) -> ItemKey | None:
        """The text that the item pane asks for."""
        detail, change = self.shown, self.selected
        return None if detail is None or change is None else ItemKey(detail.target, change)

    @property
    def shown_text(self) -> ItemText | None:
        """The item's text, if it is the one asked for."""
        wanted = self.wanted
        return self.text if self.text and wanted and wanted.same(self.text.key) else None

    @property
    def shown_tab(self) -> Tab:
        """Which of content and diff is in view."""
        if self.tab is not None:
            return self.tab
        return "diff" if self.selected is not None and self.selected.status == "updated" else "content"

    @property
    def found_here(self) -> Marks:
        """What lint finds at the turn or step under the cursor of the turns, or of the item in front."""
        if self.pane != "turns":
            return () if self.selected is None else self.findings.items.get(self.selected.item, ())
        place, entry = self.place, self.entry
        if place is None or entry is None or place.step == HEADING:
            return ()
        if place.step is None:
            return self.findings.turns.get((entry.session, entry.thread, entry.turn), ())
        return self.findings.steps.get(entry.ordinals[place.step], ())

    @property
    def last_line(self) -> tuple[object, ...]:
        """What the last line of the screen hangs on."""
        return self.pane, self.trace, self.cursor, self.found_here

    @property
    def arrangement(self) -> Arrangement:
        """How the changes are to be listed."""
        return Arrangement(self.order, self.reverse, self.by, self.only)

    @property
    def window(self) -> Window | None:
        """The window of the frame shown."""
        return None if self.detail is None or self.detail.step is None else self.detail.step.window


def _nothing_found(trace: Trace) -> Sequence[Note]:
    """What to say of a trace in which there is no turn."""
    if trace.live:
        return [Note("no request to a model so far: turns are listed as they are written")]
    said = [Note("no request to a model was found in this file", warning=True)]
    if trace.problems:
        said.append(Note(f":problems lists what could not be read ({plural(trace.problems, 'problem')})"))
    said.append(Note(":about says what captures of this format record"))
    return [*said, *place_notes(trace.places)]
