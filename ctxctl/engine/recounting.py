"""A thread that goes on with a model of another encoding: what stands in its window is counted anew.

Each step is counted as its own model counts.  What entered before under another encoding has another size
from that step on, though nothing entered or left: that is a term of its own in the ledger (`reweighed`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from ctxctl.engine.frames import delta_of, recorded_sum
from ctxctl.engine.weighing import Count, Weigher
from ctxctl.model.results import Placement

if TYPE_CHECKING:
    from ctxctl.engine.rules import Rules
    from ctxctl.engine.thread import ThreadState

_COUNTED: Final = frozenset(("counted", "calibrated", "estimated"))
"""Methods that rest on a count of the text."""


class Encodings(NamedTuple):
    """What models count with."""

    of: Callable[[str], str]
    """The encoding of a model; where nobody publishes it, the one that its estimates are made with."""
    counting: Callable[[str], Count]
    """What counts with an encoding."""


def follow(thread: ThreadState, model: str | None, rules: Rules) -> None:
    """Have a thread counted as a model counts; costs the window where that is another encoding.

    Not where the user named a model or an encoding, and not under a policy that makes frames of its own.
    """
    kinds = rules.encodings
    if kinds is None or model is None or thread.sealed is not None or thread.own_frames:
        return
    encoding, weigher = kinds.of(model), thread.placer.weigher
    if encoding == weigher.encoding:
        return
    weigher.counts_with(encoding, kinds.counting(encoding))
    weigher.scale = rules.scales.scale(model, thread.running.thread)
    _recount(thread)


def _recount(thread: ThreadState) -> None:
    anew = Anew(thread.placer.weigher)
    thread.placer.forget()
    frame, standing = thread.frame, thread.frame.placements
    before, recorded = frame.used, recorded_sum(thread.recorded())
    after = anew.all(standing)
    frame.move_to(after, delta_of(standing, after))
    thread.reweighed += frame.used - before
    thread.laid_out = anew.all(thread.laid_out)
    thread.assembled, thread.ahead = anew.all(thread.assembled), anew.all(thread.ahead)
    thread.windows.recount(anew)
    if thread.editing is not None:
        thread.editing.recount(anew.all)
        thread.recorded_used += recorded_sum(thread.recorded()) - recorded


class Anew:
    """Placements with the sizes that they have now; equal ones, and equal lists, stay one object."""

    def __init__(self, weigher: Weigher) -> None:
        self._weigher = weigher
        self._made: dict[Placement, Placement] = {}
        self._lists: dict[int, tuple[list[Placement], list[Placement]]] = {}

    def all(self, placements: list[Placement]) -> list[Placement]:
        """A list of them."""
        known = self._lists.get(id(placements))
        if known is None:
            # The old list is kept so that its identity stays its own.
            known = self._lists[id(placements)] = placements, [self.one(p) for p in placements]
        return known[1]

    def one(self, placement: Placement) -> Placement:
        """One of them; what has no text, or a declared size, stays as it is."""
        made = self._made.get(placement)
        if made is None:
            made = self._made[placement] = self._weighed(placement)
        return made

    def _weighed(self, placement: Placement) -> Placement:
        if placement.content is None or placement.method not in _COUNTED:
            return placement
        size = self._weigher.size(placement.content, None, placement.kind, placement.key)
        return msgspec.structs.replace(
            placement, tokens=size.tokens, method=size.method, counted=size.counted
        )
