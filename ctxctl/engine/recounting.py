"""A thread that goes on with a model of another encoding: what stands in its window is counted anew.

Each step is counted as its own model counts.  What entered before under another encoding has another size
from that step on, though nothing entered or left: that is a term of its own in the ledger (`reweighed`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxctl.engine.frames import delta_of, recorded_sum

if TYPE_CHECKING:
    from ctxctl.engine.rules import Rules
    from ctxctl.engine.thread import ThreadState


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
    anew = thread.placer.recount()
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
