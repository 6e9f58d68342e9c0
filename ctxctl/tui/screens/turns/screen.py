"""The main screen: turns, what changed in one, and an item's text, under the window's use."""

from __future__ import annotations

from asyncio import TimerHandle, get_running_loop
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Final

from textual import events, on
from textual.app import ComposeResult
from textual.screen import Screen

from ctxctl.model.results import Step
from ctxctl.tui import keys
from ctxctl.tui.changes import Arrangement
from ctxctl.tui.document import Document
from ctxctl.tui.layout import Parts, Piece, spread
from ctxctl.tui.literal import shown
from ctxctl.tui.outline import Growth
from ctxctl.tui.requests import Handlers, ask
from ctxctl.tui.screens.turns import actions, header, lines, navigation, requests
from ctxctl.tui.screens.turns import state as moves
from ctxctl.tui.screens.turns.actions import Remark, SearchPart
from ctxctl.tui.screens.turns.budget_bar import bar, legend
from ctxctl.tui.screens.turns.item_pane import ItemPane
from ctxctl.tui.screens.turns.state import PANES, Pane, State, Target, Trace
from ctxctl.tui.screens.turns.view import Detail
from ctxctl.tui.screens.whatif.screen import WhatIf
from ctxctl.tui.screens.whatif.state import Memory
from ctxctl.tui.tabs import Tab
from ctxctl.tui.watching import Watching
from ctxctl.tui.widgets.canvas import Board
from ctxctl.tui.widgets.keyline import KeyLine
from ctxctl.tui.widgets.paint import Banner
from ctxctl.tui.widgets.pane import Backdrop
from ctxctl.tui.widgets.pane import Pane as Frame
from ctxctl.tui.widgets.prompt import Prompt
from ctxctl.tui.widgets.rows import Rows
from ctxctl.tui.widgets.textview import TextView
from ctxctl.wording import plural


class BudgetBar(Banner):
    """Two lines: the bar, and its legend with tokens."""

    def __init__(self, *, ident: str | None = None) -> None:
        super().__init__(lambda width: [self._bar(width), self._legend(width)], ident=ident)
        self._detail: Detail | None = None

    def show(self, detail: Detail | None) -> None:
        """Show the window of a frame; None shows an empty bar."""
        if detail is not self._detail:
            self._detail = detail
            self.update()

    @property
    def _step(self) -> Step | None:
        return None if self._detail is None else self._detail.step

    def _bar(self, width: int) -> Parts:
        stale = None if self._detail is None else self._detail.stale
        return bar(self._step, width, stale)

    def _legend(self, width: int) -> Parts:
        return legend(self._step, width)


MOST: Final = 0.03
"""Seconds that a paint waits: a frame's changes mostly come sooner, and then one paint shows both."""
_SETTLING: Final = 0.008
"""Seconds until the screen has heard of all that is to be painted: each widget tells it by a message."""


class PaintHold:
    """Holds a screen's painting back, from a request until its answer, or until it has waited long enough."""

    def __init__(self, screen: Screen[None], late: Callable[[], None]) -> None:
        self._screen = screen
        self._late = late
        """Called where the answer has not come in time."""
        self.waiting = False
        """Whether the answer is awaited: what it will change need not be made ready now."""
        self._held = ExitStack()
        self._timer: TimerHandle | None = None

    def begin(self) -> None:
        """Hold back; what is held already is not held longer."""
        self.waiting = True
        if self._timer is None:
            self._held.enter_context(self._screen.app.batch_update())
            self._timer = get_running_loop().call_later(MOST, self.release)

    def answered(self) -> None:
        """What was waited for has come, and is being shown."""
        self.waiting = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = get_running_loop().call_later(_SETTLING, self.release)

    def release(self) -> None:
        """Paint what was held back."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            if self.waiting:
                self.waiting = False
                self._late()
            self._held.close()
            self._screen.check_idle()


TWO: Final = 60
"""Columns from which the changes stand beside the turns."""
THREE: Final = 160
"""Columns from which the item's text stands beside both."""
TALL: Final = 40
"""Lines from which the window by turn has two."""

_EMPTY: Final = Document("")


class TurnsScreen(Board[None]):
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
        self._costing: requests.CostRequest | None = None
        """What was last asked for of costs."""
        self._costs_due = False
        """Whether its answer is still to come."""
        self._marking = -1
        """The last epoch for which it was asked what lint finds."""
        self._worded: tuple[int, ...] = ()
        """Steps of which it was last asked what was done in them."""
        self._hold = PaintHold(self, self._surround)
        self._item = ItemPane(self)
        self._search = SearchPart(self)
        self._remark = Remark()

    def compose(self) -> ComposeResult:
        """Lay out four strips and three panes."""
        self._size_up(*self.app.size, update=False)
        yield Banner(self._head, ident="head")
        yield BudgetBar(ident="budget")
        with Backdrop(ident="panes"):
            with Frame(ident="pane-turns"):
                yield Banner(self._turn_heading, ident="turn-heading", classes="columns")
                yield Rows(lambda line, width: lines.turn_line(self.state, line, width), "turns")
            with Frame(ident="pane-changes"):
                yield Banner(self._change_heading, ident="change-heading", classes="columns")
                yield Rows(lambda line, width: self._change_line(line, width), "changes")
            with Frame(ident="pane-item"):
                yield Banner(self._item.head, ident="item-head")
                yield TextView(ident="item")
        yield KeyLine(self._keys)

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
        if kept is not None:
            state.costs.cut(kept)
            state.said.cut(kept)
        if kept is not None and self._asked is not None and moves.outdated(state, self._asked[0], kept):
            self._asked = None
        self.apply(state, growing=True)

    def anew(self, name: str, why: str, *, closed: bool = False) -> None:
        """Another session is watched from here on; `closed`: views that spoke of the one before were."""
        self._asked = self._costing = None
        self._costs_due, self._worded = False, ()
        self._item.forget()
        self._whatif = Memory()
        self.apply(moves.anew(self.state, name))
        said = [why, "the open views of the replaced session were closed" if closed else ""]
        if any(said):
            self.app.notify(shown("; ".join(word for word in said if word)), markup=False)

    def watched(self, watching: Watching, problems: int) -> None:
        """Show how the watch stands."""
        self.apply(moves.watched(self.state, watching, problems))

    def outlined(self, growth: Growth, trace: Trace) -> None:
        """All turns are known."""
        self.apply(moves.outlined(self.state, growth, trace), growing=True)

    def handlers(self) -> Handlers:
        """By kind of value, what is done with a frame's changes, and with what the item pane asks for."""
        return {
            Detail: self._detailed,
            requests.Costs: self._costed,
            requests.Said: self._said,
            requests.Marked: self._marked,
            **self._item.handlers(),
        }

    def _detailed(self, detail: Detail) -> None:
        self._hold.answered()
        self.apply(moves.detailed(self.state, detail))

    def _costed(self, told: requests.Costs) -> None:
        if told.epoch != self.state.epoch:
            return
        self._costs_due = self._costs_due and not told.done
        self.apply(moves.costed(self.state, told.paids), growing=True)

    def _said(self, told: requests.Said) -> None:
        if told.epoch == self.state.epoch:
            self.state.said.take(told.words)
            turns = self.query_one("#turns", Rows)
            turns.repaint(turns.count)
            self._ask_words()

    def _marked(self, told: requests.Marked) -> None:
        if told.epoch == self.state.epoch:
            self.apply(replace(self.state, findings=told.findings))
            for name in ("turns", "changes"):
                rows = self.query_one(f"#{name}", Rows)
                rows.repaint(rows.count)

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
        self._ask_costs()
        self._ask_words()
        self._marking = actions.ask_marks(self, self._marking)
        self._item.show()
        texts_only = not growing and replace(new, text=old.text, tabs=old.tabs) == old
        if not self._hold.waiting and not texts_only:
            self._surround()
        # Of a trace that grows, the old state's places are not those of the list any more.
        if growing or new.last_line != old.last_line:
            self.query_one("#keys", Banner).update()
        if self._remark.is_of_the_past(new):
            self.say("")

    def say(self, text: str) -> None:
        """Say something in the last line, until one moves on."""
        self._remark.say(text, self.state)
        self.query_one("#keys", Banner).update()

    def jump(self, ordinal: int, item: str | None = None) -> None:
        """Go to a step, and to an item in it; `action_jump_back` leads back to where one was."""
        self.apply(navigation.jump(self.state, ordinal, item))

    def _surround(self) -> None:
        """Paint what stands around the lists, where it differs."""
        if self.is_attached:
            self._titles()
            for name in ("head", "turn-heading", "change-heading"):
                self.query_one(f"#{name}", Banner).update()
            self.query_one("#budget", BudgetBar).show(self.state.detail)

    def _ask_detail(self, *, hold: bool) -> None:
        """Ask for the frame under the cursor if it is another one than before, or lacks its skipped items.

        `hold`: wait a moment with painting; a trace that grows all the time would never be painted.
        """
        new = self.state
        arrangement = new.arrangement
        if new.target is None or self._asked == (new.target, new.skipped, arrangement):
            return
        moved = self._asked is None or self._asked[0] != new.target
        self._asked = (new.target, new.skipped, arrangement)
        listed = new.shown is not None and new.shown.with_skipped
        has = new.shown is not None and (listed == new.skipped or (listed and arrangement.by == "status"))
        if moved or not has or new.table.arrangement != arrangement:
            ask(self, requests.DetailRequest(new.target, new.skipped, arrangement))
            if moved and hold:
                self._hold.begin()

    def _ask_costs(self) -> None:
        """Ask what steps cost, once they are known, and again for those that came since."""
        state = self.state
        request = requests.CostRequest(state.epoch, len(state.costs), state.list.turns.settled)
        if state.phase != "ready" or self._costs_due or request.start >= request.stop:
            return
        if request != self._costing:
            self._costing, self._costs_due = request, True
            ask(self, request)

    def _ask_words(self) -> None:
        """Ask what was done in the steps that are seen, and in those a page above and below."""
        listing = self.state.list
        if not listing.unfolded:
            return
        turns = self.query_one("#turns", Rows)
        top, height = round(turns.scroll_y), turns.size.height
        seen = range(max(top - height, 0), min(top + 2 * height, listing.count))
        places = [listing.at(line) for line in seen]
        entries = listing.turns.entries
        ordinals = [
            entries[place.turn].ordinals[place.step]
            for place in places
            if place.step is not None and place.step >= 0
        ]
        settled = listing.turns.settled
        missing = self.state.said.missing(ordinal for ordinal in ordinals if ordinal < settled)
        if missing and missing != self._worded:
            self._worded = missing
            ask(self, requests.WordsRequest(self.state.epoch, missing))

    def _head(self, width: int) -> Sequence[Parts]:
        return header.head(self.state, width, tall=self.has_class("-tall"))

    def _change_line(self, line: int, width: int) -> Parts:
        return lines.change_line(self.state.table, line, width, self.state.findings)

    def _turn_heading(self, width: int) -> Sequence[Parts]:
        bar = self.query_one("#turns", Rows).show_vertical_scrollbar
        return [_indented(lines.turn_heading(self.state, width - 1 - bar))]

    def _change_heading(self, width: int) -> Sequence[Parts]:
        bar = self.query_one("#changes", Rows).show_vertical_scrollbar
        return [_indented(lines.change_heading(self.state.table, width - 1 - bar))]

    def _keys(self, width: int) -> Sequence[Parts]:
        some = self.state.entry is not None
        found = keys.hints(("turns", "list", "text"), self.state.pane, nothing=not some)
        shown = [Piece(word, "hint", rank, key) for key, word, rank in found]
        if self._compacted():
            shown.insert(0, Piece("compaction", "hint", 98, keys.key_of("compactions")))
        if self.state.found_here:
            shown.insert(0, Piece("finding", "hint", 97, keys.key_of("findings")))
        if self.state.pane == "turns" and getattr(self.app, "came_from", None) is not None:
            shown.append(Piece("sessions", "hint", 92, keys.key_of("back")))
        bad = self.state.trace.problems
        right = [Piece(plural(bad, "problem"), "warning", 101, "p")] if bad else []
        return [spread(shown, [self._remark.piece(), *right], width)]

    def _compacted(self) -> bool:
        """Whether a compaction is recorded in the turn or step in front."""
        place, entry = self.state.place, self.state.entry
        if place is None or entry is None:
            return False
        return entry.compacted if place.step is None else moves.row_of(self.state, place).compacted

    def _titles(self) -> None:
        titles = lines.pane_titles(self.state)
        step = None if self.state.detail is None else self.state.detail.step
        error = None if self.state.shown is None else self.state.shown.error
        basis = error or ("" if step is None else f"{step.layer} · from {step.basis}")
        found = actions.finding_phrase(self.state)
        feet = {"changes": error or found or basis, "item": found if self.state.pane == "item" else ""}
        for pane in PANES:
            self.query_one(f"#pane-{pane}", Frame).entitle(titles[pane], feet.get(pane, ""))

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
        self.call_after_refresh(self._item.show)

    def _size_up(self, width: int, height: int, *, update: bool = True) -> None:
        """Take the place there is; without `update`, before there is anything to style."""
        classes = {
            "-one": width < TWO,
            "-two": TWO <= width < THREE,
            "-three": width >= THREE,
            "-tight": width < 100,
            "-roomy": width >= 116,
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
        if not actions.read_notes(self):
            self.apply(moves.enter(self.state))

    def action_go_back(self) -> None:
        """Go one level out; from the turns, to the list of sessions that one came from."""
        if self.state.pane == "turns" and self.state.only is None:
            self.call_later(self.app.run_action, "out")
            return
        self.apply(moves.back(self.state))

    def action_pane(self, by: int) -> None:
        """Focus another pane."""
        self.apply(moves.cycle(self.state, by))

    def action_skipped(self) -> None:
        """List skipped items, or only their number."""
        self.apply(moves.toggle_skipped(self.state))

    def action_follow(self) -> None:
        """Go with the newest turn."""
        self.apply(moves.followed(self.state))

    def action_fold_all(self) -> None:
        """Fold or unfold all groups of changes, or all threads below others."""
        toggle = moves.toggle_threads if self.state.pane == "turns" else moves.toggle_groups
        self.apply(toggle(self.state))

    def action_sort(self) -> None:
        """Sort the changes by the next thing."""
        self.apply(moves.sort(self.state))

    def action_reverse(self) -> None:
        """Sort the changes the other way round."""
        self.apply(moves.reverse(self.state))

    def action_group(self) -> None:
        """Group the changes by the next thing."""
        self.apply(moves.group(self.state))

    def action_whatif(self) -> None:
        """Suppose another window, model or policy, and go to the turn that is chosen there."""
        if self.state.phase != "opening":
            ordinal = None if self.state.target is None else self.state.target.ordinal
            screen = WhatIf(self.state.trace.name, self._whatif, ordinal, self.state.list.turns.tree.names)
            self.app.push_screen(screen, lambda chosen: None if chosen is None else self.jump(chosen))

    # Actions that lead elsewhere, and back

    action_jump_back = actions.jump_back
    action_notable = actions.next_notable
    action_overview = actions.overview
    action_mark = actions.mark
    action_frames = actions.compare_frames
    action_assembled = actions.read_assembled
    action_stages = actions.read_stages
    action_problems = actions.read_problems
    action_about = actions.read_about
    action_why = actions.why
    action_blame = actions.blame
    action_findings = actions.findings
    action_compactions = actions.compactions

    # The item, the search and the filter

    def action_diff(self) -> None:
        """Show the diff instead of the content, or the other way round."""
        self._item.toggle_diff()

    def action_tab(self, tab: Tab) -> None:
        """Show the item's life or record, or its text again."""
        self._item.to_tab(tab)

    def action_version(self, by: int) -> None:
        """Compare with an older or newer version."""
        self._item.to_version(by)

    @on(TextView.Chosen)
    def step_chosen(self, message: TextView.Chosen) -> None:
        """Enter on a line of the life: go to that step."""
        if self._item.go_to_step(message.ordinal):
            message.stop()

    def action_search(self) -> None:
        """Search the whole trace."""
        self._search.open_search()

    def action_hit(self, by: int) -> None:
        """Go to another hit of the search."""
        self._search.next_hit(by)

    def action_filter(self) -> None:
        """Ask which changes are to be listed."""
        self._search.open_filter()

    @on(Prompt.Changed, ".filter")
    def filter_typed(self, message: Prompt.Changed) -> None:
        """Say what is wrong with the query."""
        message.stop()
        self._search.check_filter(message.prompt, message.value)

    @on(Prompt.Accepted, ".filter")
    def filter_accepted(self, message: Prompt.Accepted) -> None:
        """List the changes that fit the query."""
        message.stop()
        self._search.take_filter(message.prompt, message.value)

    @on(Prompt.Cancelled, ".filter")
    def filter_cancelled(self, message: Prompt.Cancelled) -> None:
        """Leave the list as it was."""
        message.stop()
        self._search.close_filter(message.prompt)


def _indented(parts: Parts) -> Parts:
    """Room for the cursor's mark."""
    return [(" ", ""), *parts]


def _pane(name: str) -> Pane:
    return next(pane for pane in PANES if pane == name)
