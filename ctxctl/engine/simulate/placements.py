"""Placements that a fitting policy makes: texts that are cut, swapped, or its own."""

from __future__ import annotations

from typing import Final

from ctxctl.engine.replay.placements import Placer
from ctxctl.engine.replay.rules import Trim
from ctxctl.model.fitting import Cut, Note, Swap
from ctxctl.model.results import Placement
from ctxctl.model.vocab import rank_of, segment_of

_CUTS: Final = 4_096
"""Cut texts that are remembered: many times as many as any step has."""


class PlacementMaker:
    """Makes each placement once, so that one that stays is the same object from step to step."""

    def __init__(self, policy: str, trim: Trim) -> None:
        self._policy = policy
        self.trim = trim
        self._cuts: dict[tuple[Placement, int, str], Placement] = {}
        self._others: dict[tuple[object, ...], Placement] = {}

    def cut(self, placer: Placer, p: Placement, cut: Cut) -> Placement:
        """What stays of a text that is cut; of one that nobody knows, its size."""
        memo = (p, cut.tokens, cut.side)
        made = self._cuts.get(memo)
        if made is None:
            if p.content is None:
                made = placer.resized(p, min(p.tokens, cut.tokens))
            else:
                most = placer.weigher.scale.counted(p.kind, cut.tokens)
                made = placer.reworded(p, self.trim(placer.text(p.content), most, cut.side))
            if len(self._cuts) >= _CUTS:
                self._cuts = {}
            made = self._cuts.setdefault(memo, made)
        return made

    def swapped(self, placer: Placer, p: Placement, swap: Swap) -> Placement:
        """Another text in the place of one."""
        memo = (p, swap.text)
        made = self._others.get(memo)
        if made is None:
            made = self._others.setdefault(memo, placer.reworded(p, swap.text))
        return made

    def note(self, placer: Placer, note: Note) -> Placement:
        """A text of the policy's own."""
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
