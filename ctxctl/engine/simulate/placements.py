"""Placements that a fitting policy makes: cut texts, swapped texts, and its own texts."""

from __future__ import annotations

from typing import Final

from ctxctl.engine.replay.placements import Placer
from ctxctl.engine.replay.rules import Trim
from ctxctl.model.fitting import Cut, Note, Swap
from ctxctl.model.results import Placement
from ctxctl.model.vocab import rank_of, segment_of

_MAX_CUT_TEXTS: Final = 4_096
"""Number of cut texts that are remembered, many times as many as a step has."""


class PlacementMaker:
    """Makes each placement once, so that an unchanged one is the same object at each step."""

    def __init__(self, policy: str, trim: Trim) -> None:
        self._policy = policy
        self.trim = trim
        self._cuts: dict[tuple[Placement, int, str], Placement] = {}
        self._others: dict[tuple[object, ...], Placement] = {}

    def cut(self, placer: Placer, p: Placement, cut: Cut) -> Placement:
        """Return the cut text; of an unknown text, only its size."""
        memo = (p, cut.tokens, cut.side)
        made = self._cuts.get(memo)
        if made is None:
            if p.content is None:
                made = placer.resized(p, min(p.tokens, cut.tokens))
            else:
                most = placer.weigher.scale.counted(p.kind, cut.tokens)
                made = placer.reworded(p, self.trim(placer.text(p.content), most, cut.side))
            if len(self._cuts) >= _MAX_CUT_TEXTS:
                self._cuts = {}
            made = self._cuts.setdefault(memo, made)
        return made

    def swapped(self, placer: Placer, p: Placement, swap: Swap) -> Placement:
        """Return the placement with another text."""
        memo = (p, swap.text)
        made = self._others.get(memo)
        if made is None:
            made = self._others.setdefault(memo, placer.reworded(p, swap.text))
        return made

    def note(self, placer: Placer, note: Note) -> Placement:
        """Return the placement of the policy's own text."""
        name = f"{self._policy}:{note.kind}"
        memo = (name, note.text, note.tokens, note.role)
        made = self._others.get(memo)
        if made is None:
            segment = segment_of(note.kind)
            plain = Placement(
                item=name, version=None, kind=note.kind, title=f"{note.kind} by {self._policy}",
                source=None, segment=segment, rank=rank_of(segment), tokens=0, method="uncounted",
                content=None, digest=None, key=0, line=0, role=note.role, simulated=True,
            )  # fmt: skip
            text = note.text
            made = placer.resized(plain, note.tokens or 0) if text is None else placer.reworded(plain, text)
            made = self._others.setdefault(memo, made)
        return made
