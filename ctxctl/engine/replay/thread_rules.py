"""Apply the rules of a replay to a thread: at its first event, and when its model changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxctl.engine.replay.frames import delta_of, recorded_sum
from ctxctl.engine.replay.thread import DeclaredMode, ThreadState
from ctxctl.engine.sizes.limits import limits_in_force
from ctxctl.engine.sizes.scales import Uncalibrated

if TYPE_CHECKING:
    from ctxctl.engine.replay.rules import ReplayRules
    from ctxctl.engine.replay.step_tracker import ThreadKey
    from ctxctl.engine.simulate.policy_run import LimitsOf
    from ctxctl.model.records import Budget
    from ctxctl.model.whatif import Limits


def follow_model(thread: ThreadState, model: str | None, rules: ReplayRules) -> None:
    """Count a thread as a model counts. If the encoding changes, recount the window.

    Each step is counted as its own model counts. Content from before the change gets another size without
    entering or leaving; the ledger has a separate term for it (`reweighed`). Nothing changes if the user
    named a model or an encoding, or if a policy makes its own frames.
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
    if thread.sent_part is not None:
        thread.sent_part.recount(anew.all)
    if thread.editing is not None:
        thread.editing.recount(anew.all)
        thread.recorded_used += recorded_sum(thread.recorded()) - recorded


def limits_under(rules: ReplayRules) -> LimitsOf:
    """Return a function that finds the limits that a policy must keep."""

    def find(budget: Budget | None, model: str | None, provider: str | None, client: str | None) -> Limits:
        named = rules.model or model or rules.first_model
        return limits_in_force(budget, named, provider, rules, client=client).limits

    return find


def new_thread(key: ThreadKey, rules: ReplayRules) -> ThreadState:
    """Return a new thread with the policies and edits of the rules."""
    thread = ThreadState(key, rules.target, rules.store, rules.count)
    thread.placer.weigher.keeps = not isinstance(rules.scales, Uncalibrated)
    thread.placer.weigher.scale = rules.scales.scale(rules.model or rules.first_model, None)
    thread.placer.weigher.encoding = rules.encoding if rules.encodings is not None else None
    if rules.policy is not None:
        from ctxctl.engine.simulate.policy_step import Simulation

        thread.simulation = Simulation(rules.policy)
        thread.mode = DeclaredMode(rules.policy.mode, True)
    if rules.fitter is not None:
        from ctxctl.engine.simulate.policy_run import Fitting

        thread.fitting = Fitting(rules.fitter, limits_under(rules), rules.trim, alone=rules.limits.given)
    if rules.edits is not None:
        thread.edit(rules.edits.of(key))
    return thread
