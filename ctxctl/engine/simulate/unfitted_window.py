"""The window if nothing had ever been left out of it, which a fitting policy is given.

A runtime compacts, cuts or omits content under its own limit, and would decide otherwise under another one.
So what it removed for want of room stays here, in its old place (a ghost), and the replacing summary is
hidden. So is the rest of a cut item, as long as the whole item is here. An item that was removed before it
was ever sent comes after what was there when it came. What left for another reason (detached, cleared, a
branch, not recorded) is gone here too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from ctxctl.engine.replay.changes import Cause
from ctxctl.engine.replay.frames import FrameDelta
from ctxctl.errors import CtxctlError
from ctxctl.model.results import Placement
from ctxctl.model.vocab import rank_of

FOR_ROOM = frozenset({"compacted", "truncated"})
"""Causes of removal that mean a want of room."""
_CONVERSATION = rank_of("history")
"""Rank of the segments after tools and system prompt. A system message among the messages keeps the system's
rank."""
_MAX_SCANNED_ROWS = 20_000_000
"""Most rows scanned because something was left out, or came back, in the middle of a thread. A session of a
hundred compactions and ten thousand items needs a twentieth of it."""
ROOM_REASONS = frozenset({"budget_limit", "too_large", "superseded_by_summary"})
"""Reasons of an omission that mean a want of room."""


class State(IntEnum):
    """A row's state in the recorded window."""

    RECORDED = 0
    GHOST = 1
    """The recorded window left it out."""
    HIDDEN = 2
    """The recorded window has it in place of what was left out."""


class Row(NamedTuple):
    """One placement of the history."""

    placement: Placement
    state: State


class UnplacedItem(NamedTuple):
    """Items left out for want of room before they were ever placed."""

    gone: Sequence[Placement] = ()
    """Items left out whole, in the order in which they came."""
    cut: Mapping[str, Placement] = {}
    """Cut items by id, each as it was before the cut. The window has the rest of it."""


ALL_SENT = UnplacedItem()


class UnfittedWindow:
    """The rows of one thread, updated from frame to frame.

    If nothing was left out, the rows are the recorded window. Else a step that only appends costs what it
    appends (and a copy of the list), and any other step costs a pass over the rows.
    """

    def __init__(self) -> None:
        self._rows: list[Row] | None = None
        """None if the rows are as recorded."""
        self._window: list[Placement] = []
        """The unfitted window. It is not modified once it was returned."""
        self._ghosts: set[int] = set()
        """Keys of the ghosts."""
        self._whole: set[str] = set()
        """Items with a whole ghost. The window's rest of such an item is hidden."""
        self.grown: tuple[list[Placement], int] = ([], 0)
        """The previous window, and the length of the head that the current one surely shares with it."""
        self.tokens = 0
        """Tokens of all rows that are not hidden."""
        self.restored = 0
        """Number of ghosts and hidden rows."""
        self._passed = 0
        """Number of rows scanned so far, for the bound."""

    def copy(self) -> UnfittedWindow:
        """Return an independent copy, for a snapshot of a replay."""
        twin = UnfittedWindow()
        twin._rows = list(self._rows) if self._rows is not None else None
        twin._window, twin._ghosts, twin._whole = self._window, self._ghosts, self._whole
        twin.tokens, twin.restored, twin._passed = self.tokens, self.restored, self._passed
        return twin

    @property
    def rows(self) -> list[Row]:
        """All rows in order: recorded, ghosts and hidden."""
        return [Row(p, State.RECORDED) for p in self._window] if self._rows is None else self._rows

    def visible(self) -> list[Placement]:
        """Return the unfitted window, in order; not to be modified."""
        return self._window

    def weight(self) -> int:
        """Return the number of list entries that no frame shares."""
        return 2 * len(self._rows) if self._rows is not None else 0

    def move_to(
        self, delta: FrameDelta, cause_of: Callable[[str], Cause], unsent: UnplacedItem = ALL_SENT
    ) -> None:
        """Follow the recorded window from one frame to the next.

        Raises CtxctlError("what-if-too-large") if so much was left out so often that it would take too long.
        """
        self.grown = (self._window, 0)
        appended = not delta.removed and not delta.reordered and delta.prefix == len(delta.before)
        if appended and unsent is ALL_SENT and not self._comes_back(delta.inserted):
            self.grown = (self._window, len(self._window))
            if self._rows is None:
                self._window = delta.after
            elif delta.inserted:
                self._rows += [Row(p, State.RECORDED) for p in delta.inserted]
                self._window = self._window + delta.inserted
            self.tokens += sum(p.tokens for p in delta.inserted)
            return
        left = self._left(delta, cause_of, unsent)
        if self._rows is None and not left.ghosts and not left.hidden and unsent is ALL_SENT:
            self._window = delta.after
            self.tokens += sum(p.tokens for p in delta.inserted) - sum(p.tokens for p in delta.removed)
            return
        self._passed += len(self._rows or ()) + len(delta.after)
        if self._passed > _MAX_SCANNED_ROWS:
            raise too_large()
        rows = self._merged(delta.after, left, unsent)
        self._window = [row.placement for row in rows if row.state != State.HIDDEN]
        self.tokens = sum(p.tokens for p in self._window)
        self.restored = sum(row.state != State.RECORDED for row in rows)
        self._rows = rows if self.restored else None
        ghosts = [row.placement for row in rows if row.state == State.GHOST]
        self._ghosts = {placement.key for placement in ghosts}
        self._whole = {placement.item for placement in ghosts if not placement.truncated}

    def _comes_back(self, inserted: Sequence[Placement]) -> bool:
        """Return whether a ghost, or the rest of one, is placed again."""
        return bool(self._ghosts) and any(
            p.key in self._ghosts or (p.truncated and p.item in self._whole) for p in inserted
        )

    def _left(self, delta: FrameDelta, cause_of: Callable[[str], Cause], unsent: UnplacedItem) -> _Left:
        """Return which removed placements become ghosts, and which inserted ones are hidden."""
        came = {p.item: p for p in delta.inserted if not p.stale}
        concealed = {row.placement for row in self._rows or () if row.state == State.HIDDEN}
        staying: set[str] | None = None
        ghosts: set[Placement] = set()
        hidden = {
            p for item, p in came.items() if p.truncated and (item in self._whole or item in unsent.cut)
        }
        for placement in delta.removed:
            item = placement.item
            if placement.stale or placement.simulated:
                continue
            new = came.get(item)
            if new is not None:
                if new.truncated and not placement.truncated:
                    ghosts.add(placement)
                    hidden.add(new)
                continue
            cause = cause_of(item)
            if cause.cause in FOR_ROOM or (cause.cause == "omitted" and cause.reason in ROOM_REASONS):
                if staying is None:
                    staying = {p.item for p in delta.after if not p.stale}
                if item in staying:
                    continue
                if placement not in concealed:
                    ghosts.add(placement)
                if cause.into is not None and cause.into in came:
                    hidden.add(came[cause.into])
        return _Left(ghosts, hidden, {p.key for p in delta.inserted})

    def _merged(self, after: list[Placement], left: _Left, unsent: UnplacedItem) -> list[Row]:
        """Return the recorded window with each ghost after the row that it followed."""
        there = {p: at for at, p in enumerate(after)}
        back = {p.key: p for p in after if p.key in self._ghosts}
        behind: dict[Placement | None, list[Row]] = {}
        anchor: Placement | None = None
        states: dict[Placement, State] = {}
        rows = self.rows
        stays = [there[r.placement] for r in rows if r.state == State.RECORDED and r.placement in there]
        passed = 0
        for row in rows:
            placement = row.placement
            if row.state != State.GHOST and placement in there:
                # A hidden row may come after the place where its own would be.
                if row.state == State.RECORDED or anchor is None or there[placement] > there[anchor]:
                    anchor = placement
                passed += row.state == State.RECORDED
                states[placement] = row.state
            elif row.state == State.GHOST and placement.key in left.came:
                found = back[placement.key]
                # Unless it comes back at another place than before.
                if there[found] < (stays[passed] if passed < len(stays) else len(after)) and (
                    anchor is None or there[found] > there[anchor]
                ):
                    anchor = found
            elif placement in left.ghosts or row.state == State.GHOST:
                behind.setdefault(anchor, []).append(Row(placement, State.GHOST))
        behind.setdefault(anchor, []).extend(Row(placement, State.GHOST) for placement in unsent.gone)
        merged: list[Row] = []
        # A notice that a runtime puts after its system prompt still precedes the conversation.
        held: list[Row] = behind.pop(None, [])
        for placement in after:
            talk = rank_of(placement.segment) == _CONVERSATION
            if held and talk:
                merged += held
                held = []
            state = State.HIDDEN if placement in left.hidden else states.get(placement, State.RECORDED)
            whole = unsent.cut.get(placement.item) if state == State.HIDDEN else None
            if whole is not None:
                merged.append(Row(whole, State.GHOST))
            merged.append(Row(placement, state))
            held += behind.pop(placement, ())
            if talk:
                merged += held
                held = []
        return merged + held


def too_large() -> CtxctlError:
    """Return the error of a what-if that would take too long."""
    return CtxctlError(
        "what-if-too-large",
        "so much was left out so often that what would be sent under this policy is not worked out",
        hint="without --policy, the replay shows what was sent",
    )


class _Left(NamedTuple):
    ghosts: set[Placement]
    hidden: set[Placement]
    came: set[int]
    """Keys of the inserted placements."""
