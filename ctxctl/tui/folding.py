"""What is unfolded in the list of turns, and which line stands for what.  Plain Python.

A turn at the top and everything below it is a block.  Most blocks are one line; those that are longer are
kept as their lines, so that a line is found by bisection, and a change costs the number of such blocks.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate, count
from operator import sub
from typing import NamedTuple

from ctxctl.tui.outline import Turns
from ctxctl.tui.thread_names import ThreadName
from ctxctl.tui.thread_tree import HEADING, Place, Session, Thread

Block = tuple[Place, ...]


class _Span(NamedTuple):
    """The lines of one session."""

    session: Session
    start: int
    heading: int
    """1 where the session has a heading, else 0."""
    wide: list[int]
    """Turns at the top whose blocks are longer than a line, ascending."""
    before: list[int]
    """By number of such blocks, the lines that they have more than one each."""
    lines: int


class Folding:
    """Immutable, but for the turns themselves, which grow; `grown` makes the one that knows of the growth."""

    __slots__ = ("_blocks", "_spans", "_starts", "closed", "shut", "turns", "unfolded")

    def __init__(
        self,
        turns: Turns,
        unfolded: Iterable[int] = (),
        shut: frozenset[ThreadName] = frozenset(),
        closed: frozenset[str | None] = frozenset(),
        *,
        blocks: Mapping[int, Block] | None = None,
    ) -> None:
        self.turns = turns
        self.unfolded = frozenset(turn for turn in unfolded if turn < len(turns.entries))
        """Turns whose steps are listed."""
        self.shut = shut
        """Threads of which only the first turn is listed."""
        self.closed = closed
        """Sessions of which only the heading is listed."""
        self._blocks = dict(self._made() if blocks is None else blocks)
        self._spans = self._spread()
        self._starts = [span.start for span in self._spans]

    def _made(self) -> Iterator[tuple[int, Block]]:
        tree = self.turns.tree
        for root in {*tree.parents, *(tree.root(turn) for turn in self.unfolded)}:
            block = self._block(root)
            if len(block) > 1:
                yield root, block

    def _spread(self) -> list[_Span]:
        """Where each session's lines are."""
        sessions = self.turns.tree.sessions
        heading = int(len(sessions) > 1)
        wide: dict[str | None, list[int]] = {name: [] for name in sessions}
        longer = sorted(self._blocks)
        if len(sessions) == 1:
            wide = dict.fromkeys(sessions, longer)
        else:
            for root in longer:
                wide[self.turns.entries[root].session].append(root)
        spans: list[_Span] = []
        start = 0
        for name, session in sessions.items():
            longer = wide[name]
            lengths = map(len, map(self._blocks.__getitem__, longer))
            before = list(map(sub, accumulate(lengths, initial=0), count()))
            closed = heading and name in self.closed
            lines = heading if closed else heading + len(session.roots) + before[-1]
            spans.append(_Span(session, start, heading, longer, before, lines))
            start += lines
        return spans

    def _block(self, root: int) -> Block:
        lines: list[Place] = []
        self._list(root, lines)
        return tuple(lines)

    def _list(self, turn: int, lines: list[Place]) -> None:
        """A turn, its steps where they are listed, and the threads that began in it."""
        lines.append(Place(turn, None))
        tree, steps = self.turns.tree, self.turns.entries[turn].steps
        kids = sorted(
            (tree.threads[name] for name in tree.kids.get(turn, ())),
            key=lambda thread: (thread.at.step or 0 if thread.at else 0, thread.turns[0]),
        )
        listed = turn in self.unfolded
        done = 0
        for kid in kids:
            upto = min((kid.at.step or 0 if kid.at else 0) + 1, steps) if listed else 0
            lines += [Place(turn, step) for step in range(done, upto)]
            done = max(done, upto)
            for index in kid.turns[:1] if kid.name in self.shut else kid.turns:
                self._list(index, lines)
        if listed:
            lines += [Place(turn, step) for step in range(done, steps)]

    # Lines and places

    @property
    def count(self) -> int:
        """Lines of the list; those of turns that came since this was made are counted in."""
        if not self._spans:
            return 0
        last = self._spans[-1]
        return last.start + last.lines

    def at(self, line: int) -> Place:
        """The place that line `line` of the list stands for (0 ≤ line < count)."""
        span = self._spans[bisect_right(self._starts, line) - 1]
        roots = span.session.roots
        below = line - span.start - span.heading
        if below < 0:
            return Place(roots[0], HEADING)
        k = (
            bisect_right(
                range(len(span.wide)), below, key=lambda k: bisect_left(roots, span.wide[k]) + span.before[k]
            )
            - 1
        )
        if k >= 0:
            root = span.wide[k]
            inside = below - bisect_left(roots, root) - span.before[k]
            block = self._blocks[root]
            if inside < len(block):
                return block[inside]
        return Place(roots[below - span.before[k + 1]], None)

    def line(self, place: Place) -> int:
        """The line of a place; of one that is not listed, the nearest listed one above it."""
        tree = self.turns.tree
        root = tree.root(place.turn)
        session = tree.session_of(root)
        span = next(span for span in self._spans if span.session is session)
        if (span.heading and place.step == HEADING) or span.lines == span.heading:
            return span.start
        start = span.start + span.heading + bisect_left(session.roots, root)
        start += span.before[bisect_left(span.wide, root)]
        block = self._blocks.get(root)
        if block is None:
            return start
        return start + self._inside(block, place)

    def _inside(self, block: Block, place: Place) -> int:
        tree = self.turns.tree
        if place in block:
            return block.index(place)
        turn = Place(place.turn, None)
        while turn not in block:  # its thread is folded, or one above it
            thread = tree.thread_of(turn.turn)
            first = Place(thread.turns[0], None)
            if first in block:
                return block.index(first)
            assert thread.at is not None
            turn = Place(thread.at.turn, None)
        return block.index(turn)

    # What is folded

    def is_unfolded(self, turn: int) -> bool:
        """Whether the turn's steps are listed."""
        return turn in self.unfolded

    def leads(self, turn: int) -> Thread | None:
        """The thread that can be folded at a turn: its first, below another, with something to hide."""
        thread = self.turns.tree.thread_of(turn)
        return thread if thread.at is not None and thread.turns[0] == turn and len(thread.turns) > 1 else None

    def grown(self) -> Folding:
        """The same list, now that the turns have grown; costs the blocks that did, and how many long ones
        there are.
        """
        tree, entries = self.turns.tree, self.turns.entries
        touched, tree.touched = tree.touched, set()
        blocks = {root: block for root, block in self._blocks.items() if root not in touched}
        opened = {tree.root(turn) for turn in self.unfolded if turn < len(entries)}
        for root in touched:
            if root < len(entries) and (root in tree.kids or root in opened) and tree.root(root) == root:
                block = self._block(root)
                if len(block) > 1:
                    blocks[root] = block
        return Folding(self.turns, self.unfolded, self.shut, self.closed, blocks=blocks)

    def with_turns(self, unfolded: Iterable[int]) -> Folding:
        """The same list with the steps of exactly these turns."""
        return Folding(self.turns, unfolded, self.shut, self.closed)

    def toggled(self, turn: int) -> Folding:
        """The same list with one turn's steps listed, or not."""
        return self._with(self.unfolded ^ {turn}, self.shut, {self.turns.tree.root(turn)})

    def toggled_thread(self, name: ThreadName) -> Folding:
        """The same list with one thread folded, or not."""
        turn = self.turns.tree.threads[name].turns[0]
        return self._with(self.unfolded, self.shut ^ {name}, {self.turns.tree.root(turn)})

    def with_threads(self, shut: frozenset[ThreadName]) -> Folding:
        """The same list with exactly these threads folded."""
        return Folding(self.turns, self.unfolded, shut, self.closed)

    def toggled_session(self, name: str | None) -> Folding:
        """The same list with one session folded, or not."""
        return Folding(self.turns, self.unfolded, self.shut, self.closed ^ {name}, blocks=self._blocks)

    def _with(self, unfolded: frozenset[int], shut: frozenset[ThreadName], roots: set[int]) -> Folding:
        made = Folding(self.turns, unfolded, shut, self.closed, blocks=self._blocks)
        for root in roots:
            block = made._block(root)
            made._blocks.pop(root, None)
            if len(block) > 1:
                made._blocks[root] = block
        made._spans = made._spread()
        return made._started()

    def _started(self) -> Folding:
        self._starts = [span.start for span in self._spans]
        return self
