"""The main screen: turns, what changed in one, and an item's text, under the window's use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from textual import events, on
from textual.app import ComposeResult

from ctxctl.labels import plural
from ctxctl.tui import header, keys, lines, wants
from ctxctl.tui import state as moves
from ctxctl.tui.changes import Arrangement
from ctxctl.tui.document import Document
from ctxctl.tui.lines import Parts, Piece
from ctxctl.tui.literal import shown
from ctxctl.tui.messages import ask
from ctxctl.tui.outline import Growth
from ctxctl.tui.screens.hold import Hold
from ctxctl.tui.screens.reader import Reader
from ctxctl.tui.screens.searching import Searching
from ctxctl.tui.screens.steering import Steering
from ctxctl.tui.screens.whatif import WhatIf
from ctxctl.tui.state import PANES, Pane, State, Target, Trace
from ctxctl.tui.watching import Watching
from ctxctl.tui.whatif.state import Memory
from ctxctl.tui.widgets.budget import BudgetBar
from ctxctl.tui.widgets.paint import Banner
from ctxctl.tui.widgets.pane import Backdrop
from ctxctl.tui.widgets.pane import Pane as Frame
from ctxctl.tui.widgets.rows import Rows
from ctxctl.tui.widgets.textview import TextView

TWO: Final = 60
"""Columns from which the changes stand beside the turns."""
THREE: Final = 160
"""Columns from which the item's text stands beside both."""
TALL: Final = 40
"""Lines from which the window by turn has two."""

_EMPTY: Final = Document("")


class TurnsScreen(Steering, Searching):
    """Shows a `State` and turns keys into the next one; asks for what the new one lacks."""

    BINDINGS = keys.bindings("turns")

    def __init__(self, name: str) -> None:
        super().__init__(id="turns-screen")
        self.state = State(Trace(name))
        self._whatif = Memory()
        """The last what-if."""
        self._asked: tuple[Target, bool, Arrangement] | None = None
        """What was last asked for; the list of turns grows in place, so an older state cannot say."""
        self._styled_widths: object = None
        self._hold = Hold(self, self._surround)

    def compose(self) -> ComposeResult:
        """Four strips and three panes."""
        self._size_up(*self.app.size, update=False)
        yield Banner(self._head, ident="head")
        yield BudgetBar(ident="budget")
        with Backdrop(ident="panes"):
            with Frame(ident="pane-turns"):
                yield Banner(self._turn_heading, ident="turn-heading", classes="columns")
                yield Rows(lambda line, width: lines.turn_line(self.state, line, width), "turns")
            with Frame(ident="pane-changes"):
                yield Banner(self._change_heading, ident="change-heading", classes="columns")
                yield Rows(lambda line, width: lines.change_line(self.state.table, line, width), "changes")
            with Frame(ident="pane-item"):
                yield Banner(self.item_head, ident="item-head")
                yield TextView(ident="item")
        yield Banner(self._keys, ident="keys")

    def on_mount(self) -> None:
        """Show that the trace is being opened."""
        self._front()
        self._titles()

    # What the loader says, by way of the app

    def opened(self, trace: Trace) -> None:
        """The trace is open."""
        self.apply(moves.opened(self.state, trace))

    def grown(self, growth: Growth, part: float, kept: int | None = None) -> None:
        """A part of it has been read, with these turns; steps from `kept` on may be others than before."""
        state = moves.progressed(self.state, part)
        state = moves.grown(state, growth) if growth.entries or kept is not None else state
        if kept is not None and self._asked is not None and moves.outdated(state, self._asked[0], kept):
            self._asked = None
        self.apply(state, growing=True)

    def anew(self, name: str, why: str, *, closed: bool = False) -> None:
        """Another session is watched from here on; `closed`: views that spoke of the one before were."""
        self._asked = None
        self.forget_item()
        self._whatif = Memory()
        self.apply(moves.anew(self.state, name))
        said = [why, "what was open was of the session as it was before, and is closed" if closed else ""]
        if any(said):
            self.app.notify(shown("; ".join(word for word in said if word)), markup=False)

    def watched(self, watching: Watching, problems: int) -> None:
        """How the watch stands."""
        self.apply(moves.watched(self.state, watching, problems))

    def outlined(self, growth: Growth, trace: Trace) -> None:
        """All turns are known."""
        self.apply(moves.outlined(self.state, growth, trace), growing=True)

    @on(wants.Detailed)
    def detailed(self, message: wants.Detailed) -> None:
        """A frame's changes are there."""
        self._hold.answered()
        self.apply(moves.detailed(self.state, message.detail))

    # Painting

    def apply(self, new: State, *, growing: bool = False) -> None:
        """Show another state: repaint what differs, ask for what it lacks.

        The lists' own cursors may be ahead of the state by keys whose messages are still under way: they are
        set only where the state's differ from before.  `growing`: the list of turns is the same, but longer.
        """
        old, self.state = self.state, new
        if new is old or not self.is_attached or not self.app.is_running:
            return  # while the program ends, growth goes on and widgets are gone
        turns = self.query_one("#turns", Rows)
        if growing:
            turns.grow(new.list.count, new.cursor - old.cursor)
        elif new.list is not old.list:
            turns.show(new.list.count, new.cursor)
        elif new.cursor != old.cursor:
            turns.place(new.cursor)
        changes = self.query_one("#changes", Rows)
        if new.table is not old.table:
            changes.show(new.table.count, new.change)
        elif new.change != old.change:
            changes.place(new.change)
        if new.pane != old.pane:
            self._front()
        self._ask_detail(hold=not growing)
        self.show_item()
        texts_only = not growing and replace(new, text=old.text, tabs=old.tabs) == old
        if not self._hold.waiting and not texts_only:
            self._surround()
        if new.pane != old.pane or new.trace != old.trace:
            self.query_one("#keys", Banner).update()
        self.moved_on(new)

    def _surround(self) -> None:
        """Paint what stands around the lists, where it differs."""
        if self.is_attached:
            self._titles()
            for name in ("head", "turn-heading", "change-heading"):
                self.query_one(f"#{name}", Banner).update()
            self.query_one("#budget", BudgetBar).show(self.state.detail, self.state.trace.unrecorded)

    def _ask_detail(self, *, hold: bool) -> None:
        """Ask for the frame under the cursor if it is another one than before, or lacks its skipped items.

        `hold`: wait a moment with painting; a trace that grows all the time would never be painted.
        """
        new = self.state
        how = new.arrangement
        if new.target is None or self._asked == (new.target, new.skipped, how):
            return
        moved = self._asked is None or self._asked[0] != new.target
        self._asked = (new.target, new.skipped, how)
        listed = new.shown is not None and new.shown.with_skipped
        has = new.shown is not None and (listed == new.skipped or (listed and how.by == "status"))
        if moved or not has or new.table.arrangement != how:
            ask(self, wants.WantDetail(new.target, new.skipped, how))
            if moved and hold:
                self._hold.begin()

    def _head(self, width: int) -> Sequence[Parts]:
        return header.head(self.state, width, tall=self.has_class("-tall"))

    def _turn_heading(self, width: int) -> Sequence[Parts]:
        bar = self.query_one("#turns", Rows).show_vertical_scrollbar
        return [_indented(lines.turn_heading(self.state, width - 1 - bar))]

    def _change_heading(self, width: int) -> Sequence[Parts]:
        bar = self.query_one("#changes", Rows).show_vertical_scrollbar
        return [_indented(lines.change_heading(self.state.table, width - 1 - bar))]

    def _keys(self, width: int) -> Sequence[Parts]:
        shown = [
            Piece(word, "hint", rank, key)
            for key, word, rank in keys.hints(("turns", "list", "text"), self.state.pane)
        ]
        bad = self.state.trace.problems
        right = [Piece(plural(bad, "problem"), "warning", 101, "p")] if bad else []
        return [lines.spread(shown, [self.hit_piece(), *right], width)]

    def _titles(self) -> None:
        titles = lines.pane_titles(self.state)
        step = None if self.state.detail is None else self.state.detail.step
        error = None if self.state.shown is None else self.state.shown.error
        basis = error or ("" if step is None else f"{step.layer} · from {step.basis}")
        for pane in PANES:
            self.query_one(f"#pane-{pane}", Frame).entitle(titles[pane], basis if pane == "changes" else "")

    def _front(self) -> None:
        """Mark and focus the pane in front."""
        for pane in PANES:
            self.query_one(f"#pane-{pane}", Frame).put_front(pane == self.state.pane)
        self.set_class(self.state.pane == "item", "-item", update=False)
        self.set_class(self.state.pane != "turns", "-inside", update=False)
        if self._widths() != self._styled_widths:
            self._styled_widths = self._widths()
            self.update_node_styles()
        # Not the widget's own `focus`, which does it later: the next key may be there before.
        self.set_focus(self.query_one(f"#{self.state.pane}"), scroll_visible=False)

    def _widths(self) -> object:
        """What of the state decides which panes are seen, and how wide: the rules in ``app.tcss``."""
        pane = self.state.pane
        if self.has_class("-one"):
            return pane
        inside = self.has_class("-tight") and pane != "turns"
        return self.has_class("-two") and (pane == "item", inside)

    # Size and focus

    def on_resize(self, event: events.Resize) -> None:
        """Choose how many panes stand side by side."""
        self._size_up(event.size.width, event.size.height)
        self.call_after_refresh(self.show_item)

    def _size_up(self, width: int, height: int, *, update: bool = True) -> None:
        """Take the place there is; without `update`, before there is anything to style."""
        classes = {
            "-one": width < TWO,
            "-two": TWO <= width < THREE,
            "-three": width >= THREE,
            "-tight": width < 100,
            "-roomy": width >= 130,
            "-wide": width >= 190,
            "-tall": height >= TALL,
            "-short": height < 20,
            "-shortest": height < 12,
        }
        self.update_classes(classes, update=update)

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """A click may have focused another pane."""
        pane = event.widget.id
        if event.widget is self.focused and pane in PANES and pane != self.state.pane:
            self.apply(moves.focused(self.state, _pane(pane)))

    @on(Rows.Moved, "#turns")
    def turn_moved(self, event: Rows.Moved) -> None:
        """The cursor in the list of turns has moved."""
        self.apply(moves.to_line(self.state, event.line))

    @on(Rows.Moved, "#changes")
    def change_moved(self, event: Rows.Moved) -> None:
        """The cursor in the changes has moved."""
        self.apply(moves.to_change(self.state, event.line))

    @on(Rows.Chosen)
    def chosen(self) -> None:
        """A double click opens."""
        self.action_enter()

    # Actions

    def action_turn(self, by: int) -> None:
        """Go to another turn."""
        self.apply(moves.next_turn(self.state, by))

    def action_steps(self, unfold: bool) -> None:
        """Right and left: unfold and fold turns, go in and out elsewhere."""
        if self.state.pane == "turns":
            self.apply(moves.toggle_steps(self.state, unfold))
        elif unfold:
            self.action_enter()
        else:
            self.action_go_back()

    def action_fold(self) -> None:
        """Fold or unfold what is under the cursor."""
        toggle = moves.toggle_group if self.state.pane == "changes" else moves.toggle_steps
        self.apply(toggle(self.state))

    def action_enter(self) -> None:
        """Go one level in; from a note above the changes, to the whole of all notes."""
        notes = moves.notes_at(self.state)
        if notes:
            said = [("!" if note.warning else " ", note.text) for note in notes]
            self.app.push_screen(Reader("notes on the frame", Document.of_lines(said)))
            return
        self.apply(moves.enter(self.state))

    def action_go_back(self) -> None:
        """Go one level out."""
        self.apply(moves.back(self.state))

    def action_pane(self, by: int) -> None:
        """Focus another pane."""
        self.apply(moves.cycle(self.state, by))

    def action_skipped(self) -> None:
        """List skipped items, or only their number."""
        self.apply(moves.toggle_skipped(self.state))

    def action_stages(self) -> None:
        """Read the step's stages, from what was available to what was injected."""
        self._read("stages", wants.WantStages)

    def _read(self, what: str, want: type[wants.WantReading]) -> None:
        """Open the reader on something of the step."""
        target, entry = self.state.target, self.state.entry
        if target is None or entry is None:
            return
        step = self.state.list.turns.rows[target.ordinal].step
        title = f"{what} of step {entry.turn}.{step}"
        self._open(want(title, target.ordinal))

    def action_whatif(self) -> None:
        """Suppose another window, model or policy."""
        if self.state.phase != "opening":
            ordinal = None if self.state.target is None else self.state.target.ordinal
            screen = WhatIf(self.state.trace.name, self._whatif, ordinal)
            self.app.push_screen(screen, self._from_whatif)

    def _from_whatif(self, ordinal: int | None) -> None:
        """Go to the turn that was chosen there, if one was."""
        if ordinal is not None:
            self.jump(ordinal)

    def action_problems(self) -> None:
        """Read what was wrong with the trace."""
        if self.state.phase != "opening":
            self._open(wants.WantProblems("problems"))

    def action_about(self) -> None:
        """Read what the trace records, and what it does not."""
        if self.state.phase != "opening":
            self._open(wants.WantAbout("recorded"))

    def _open(self, want: wants.WantReading) -> None:
        reader = Reader(want.title)
        self.app.push_screen(reader)
        ask(reader, want)


def _indented(parts: Parts) -> Parts:
    """Room for the cursor's mark."""
    return [(" ", ""), *parts]


def _pane(name: str) -> Pane:
    return next(pane for pane in PANES if pane == name)
