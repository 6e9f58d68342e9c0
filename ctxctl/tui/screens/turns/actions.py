"""Actions that lead from the main screen to other turns, frames, texts and screens, and back from them.

Each function is an action of the screen that hosts it; how the screen calls it is in `ctxctl.tui.keymap`.
`SearchPart` leads to the search and from hit to hit, and lists only the changes that fit a query.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ctxctl.engine.query import QueryError, parse_query
from ctxctl.tui import keys
from ctxctl.tui.document import Document
from ctxctl.tui.finding_marks import phrase
from ctxctl.tui.layout import Piece
from ctxctl.tui.lineedit import History
from ctxctl.tui.literal import shown
from ctxctl.tui.requests import ask
from ctxctl.tui.screens.assembled.screen import AssembledScreen
from ctxctl.tui.screens.diff.screen import DiffScreen
from ctxctl.tui.screens.diff.values import against
from ctxctl.tui.screens.overview.screen import Overview
from ctxctl.tui.screens.pointers.requests import CompactionsRequest, FindingsRequest, Goal, PageRequest
from ctxctl.tui.screens.pointers.screen import PointerScreen, blame_of, why_at
from ctxctl.tui.screens.reader import Reader
from ctxctl.tui.screens.search.screen import search_screen
from ctxctl.tui.screens.turns import navigation
from ctxctl.tui.screens.turns import state as moves
from ctxctl.tui.screens.turns.host import Host
from ctxctl.tui.screens.turns.requests import MarksRequest, ReadingKind, ReadingRequest
from ctxctl.tui.screens.turns.state import Pane, State, Target
from ctxctl.tui.widgets.prompt import Prompt
from ctxctl.tui.widgets.rows import Rows
from ctxctl.wording import COMPACTION, FINDING

# Other turns


def jump_back(host: Host) -> None:
    """Go back to where a jump came from."""
    if not host.state.visits:
        host.say("no jump to go back from")
    host.apply(navigation.jump_back(host.state))


def next_notable(host: Host, by: int) -> None:
    """Go to another turn with something of note."""
    new = navigation.next_notable(host.state, by)
    if new is host.state or new.cursor == host.state.cursor:
        host.say(
            f"no compaction, cache break, warning or omission {'after' if by > 0 else 'before'} this turn"
        )
    host.apply(new)


def overview(host: Host) -> None:
    """Show the whole session on one screen, and go to the turn that is chosen there."""
    if host.state.phase != "opening":
        host.screen.app.push_screen(Overview(lambda: host.state), lambda ordinal: _go(host, ordinal))


# Other frames


def mark(host: Host) -> None:
    """Mark the frame, or no frame any more."""
    target = host.state.target
    if target is None:
        return
    again = host.state.marked == target.ordinal
    host.apply(replace(host.state, marked=None if again else target.ordinal))
    row = host.state.list.turns.rows[target.ordinal]
    text = (
        "no frame is marked"
        if again
        else f"step {row.turn}.{row.step} is marked: {keys.key_of('frames')} compares another with it"
    )
    host.screen.app.notify(shown(text), markup=False, timeout=3)


def compare_frames(host: Host) -> None:
    """Hold the frame against the marked one, else against the one before."""
    target = host.state.target
    if target is not None:
        pair = against(target.ordinal, target.first, host.state.marked)
        host.screen.app.push_screen(DiffScreen(pair))


# Texts


def read_assembled(host: Host) -> None:
    """Read the step's assembled text, and go to the item that is chosen there."""
    target = host.state.target
    if target is not None:
        ordinal = target.ordinal
        screen = AssembledScreen(ordinal)
        host.screen.app.push_screen(screen, lambda item: _go(host, None if item is None else ordinal, item))


def read_stages(host: Host) -> None:
    """Read the step's stages, from what was available to what was injected."""
    target, entry = host.state.target, host.state.entry
    if target is not None and entry is not None:
        step = host.state.list.turns.rows[target.ordinal].step
        read(host, ReadingRequest("stages", f"stages of step {entry.turn}.{step}", target.ordinal))


def read_problems(host: Host) -> None:
    """Read what was wrong with the trace."""
    _read_of_trace(host, "problems", "problems")


def read_about(host: Host) -> None:
    """Read what the trace records, and what it does not."""
    _read_of_trace(host, "about", "recorded")


def _read_of_trace(host: Host, kind: ReadingKind, title: str) -> None:
    if host.state.phase != "opening":
        read(host, ReadingRequest(kind, title))


def read(host: Host, request: ReadingRequest) -> None:
    """Open the reader on what a request brings."""
    reader = Reader(request.title)
    host.screen.app.push_screen(reader)
    ask(reader, request)


def read_notes(host: Host) -> bool:
    """Read the notes above the changes whole, where the cursor is on one; whether it is.

    That of a compaction leads to all that it took.
    """
    notes = moves.notes_at(host.state)
    if notes and notes[host.state.change].text.startswith(COMPACTION):
        compactions(host)
    elif notes:
        lines = [("!" if note.warning else " ", note.text) for note in notes]
        host.screen.app.push_screen(Reader("notes on the frame", Document.of_lines(lines)))
    return bool(notes)


# Why, blame, findings and compactions


def why(host: Host) -> None:
    """Tell why the item under the cursor of the changes is, or is not, in the window."""
    here = _here(host)
    if here is None:
        return
    if here.item is None:
        host.say("the cursor is on no item")
        return
    _point(host, why_at(here.ordinal, here.item, lambda ordinal: _address(host, ordinal)), here)


def blame(host: Host) -> None:
    """Tell whose the blocks of the frame are, and since when."""
    here = _here(host)
    if here is not None:
        _point(host, blame_of(here.ordinal, lambda ordinal: _address(host, ordinal)), here)


def findings(host: Host) -> None:
    """Tell what the rules find in the trace."""
    if host.state.phase != "opening":
        target = host.state.target
        near = range(0) if target is None else range(target.first, target.ordinal + 1)
        _point(host, FindingsRequest("findings", near), _here(host))


_LINTED: Final = 64 << 20
"""Bytes of a trace up to which lint looks at it without being asked: a few seconds in the background."""


def ask_marks(host: Host, asked: int) -> int:
    """Ask what lint finds, once the whole trace is known, for the marks of the lists.

    Of a trace that is being written, or a very large one, they are looked for when `!` asks for them.
    Returns the last epoch for which was asked; `asked` is the one before.
    """
    state = host.state
    trace = state.trace
    if state.phase != "ready" or trace.live or asked == state.epoch or not 0 < trace.size <= _LINTED:
        return asked
    ask(host.screen, MarksRequest(state.epoch))
    return state.epoch


def finding_phrase(state: State) -> str:
    """What lint finds of what is in front, with its sign; empty where it finds nothing."""
    found = state.found_here
    return f"{FINDING} {phrase(found)}" if found else ""


def compactions(host: Host) -> None:
    """Tell what the compactions of the turn or step in front took, and what of it is handed on."""
    target = host.state.target
    if target is None:
        return
    ordinals = range(target.first, target.ordinal + 1)
    _point(host, CompactionsRequest("compactions", ordinals), _here(host))


def _here(host: Host) -> Goal | None:
    """The frame in front, and the item under the cursor, which may be ahead of the state."""
    target = host.state.target
    if target is None:
        return None
    cursor = host.screen.query_one("#changes", Rows).cursor
    change = moves.to_change(host.state, cursor).selected
    return Goal(target.ordinal, None if change is None else change.item)


def _address(host: Host, ordinal: int) -> str:
    """A step in words: its thread, where that is not the main one, its turn and step."""
    row = host.state.list.turns.rows[ordinal]
    return host.state.list.turns.tree.names.place(row.session, row.thread, row.turn, row.step)


def _point(host: Host, request: PageRequest, here: Goal | None) -> None:
    screen = PointerScreen(request, here, lambda ordinal: _address(host, ordinal))
    host.screen.app.push_screen(screen, lambda goal: _go(host, *goal) if goal is not None else None)


def _go(host: Host, ordinal: int | None, item: str | None = None) -> None:
    """Go to what was chosen on a screen, if anything was."""
    if ordinal is not None:
        host.jump(ordinal, item)


class Remark:
    """What the last line says, such as which hit of the search one is at, until one has moved on."""

    def __init__(self) -> None:
        self._text = ""
        self._said_at: tuple[Target | None, int, Pane] | None = None
        """Where one was when it was said."""

    def say(self, text: str, state: State) -> None:
        """Say something where one is; nothing takes back what was said."""
        self._text = text
        self._said_at = (state.target, state.change, state.pane)

    def is_of_the_past(self, new: State) -> bool:
        """Whether one has moved on; the state before cannot be asked: lists grow, and shrink, in place."""
        if not self._text or self._said_at is None:
            return False
        target, change, pane = self._said_at
        stays = self._text.startswith("hit ") or (change, pane) == (new.change, new.pane)
        return target != new.target or not stays

    def piece(self) -> Piece:
        """The words for the last line."""
        return Piece(self._text, "warning", 102)


class SearchPart:
    """Leads from a screen to the search; the hits lead to the screen."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._filters = History()

    # The search

    @property
    def state(self) -> State:
        """The main screen's."""
        return self._host.state

    def open_search(self) -> None:
        """Search the whole trace."""
        if self.state.phase != "opening":
            app = self._host.screen.app
            app.push_screen(search_screen(app, self))

    def next_hit(self, by: int) -> None:
        """Go to another hit of the search."""
        self.tell_hit(search_screen(self._host.screen.app, self).step(by))

    def lead(self, ordinal: int, item: str | None) -> None:
        """Go to a hit, which is listed whatever was listed before."""
        self._host.apply(replace(self.state, only=None))
        self._host.jump(ordinal, item)

    def tell_hit(self, text: str) -> None:
        """Say in the last line which hit one is at, and which keys lead on and back, until one moves on."""
        ways = [keys.key_of(action) for action in ("hit.next", "hit.previous", "jump.back")]
        on = text.startswith("hit ") and all(ways)
        self._host.say(f"{text} · {ways[0]} {ways[1]} · {ways[2]} back" if on else text)

    # The filter

    def open_filter(self) -> None:
        """Ask which changes are to be listed."""
        if self.state.detail is None:
            return
        only = "" if self.state.only is None else str(self.state.only)
        prompt = Prompt("only", value=only, history=self._filters, classes="filter")
        prompt.open_over(self._host.screen)
        prompt.choose()

    def check_filter(self, prompt: Prompt, text: str) -> None:
        """Say what is wrong with what is typed."""
        try:
            query = parse_query(text or "x")
        except QueryError as error:
            prompt.note = error.what
        else:
            own = [f"{field} '{value.text}'" for field, value in query.unvouched]
            prompt.note = f"ctxctl knows no {own[0]}; this trace may" if own else ""

    def take_filter(self, prompt: Prompt, text: str) -> None:
        """List these changes; all, where nothing is typed."""
        try:
            only = parse_query(text) if text.strip() else None
        except QueryError as error:
            prompt.note = error.what
            return
        self.close_filter(prompt)
        self._host.apply(replace(self.state, only=only))

    def close_filter(self, prompt: Prompt) -> None:
        """List what was listed before."""
        prompt.close()
        screen = self._host.screen
        screen.set_focus(screen.query_one(f"#{self.state.pane}"), scroll_visible=False)
