"""A thread at its first event, under the rules of its replay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxctl.engine.fitting import Fitting, LimitsOf
from ctxctl.engine.limits import in_force
from ctxctl.engine.scales import Plain
from ctxctl.engine.simulate import Simulation
from ctxctl.engine.thread import Declared, ThreadState

if TYPE_CHECKING:
    from ctxctl.engine.rules import Rules
    from ctxctl.engine.track import ThreadKey
    from ctxctl.model.records import Budget
    from ctxctl.model.whatif import Limits


def limits_under(rules: Rules) -> LimitsOf:
    """What finds the limits that a policy is to keep."""

    def find(budget: Budget | None, model: str | None, provider: str | None, client: str | None) -> Limits:
        named = rules.model or model or rules.first_model
        return in_force(budget, named, provider, rules, client=client).limits

    return find


def started(key: ThreadKey, rules: Rules) -> ThreadState:
    """A new thread: nothing is in it yet, and what decides over its frames is at hand."""
    thread = ThreadState(key, rules.target, rules.store, rules.count)
    thread.placer.weigher.keeps = not isinstance(rules.scales, Plain)
    thread.placer.weigher.scale = rules.scales.scale(rules.model or rules.first_model, None)
    thread.placer.weigher.encoding = rules.encoding if rules.encodings is not None else None
    if rules.policy is not None:
        thread.simulation = Simulation(rules.policy)
        thread.mode = Declared(rules.policy.mode, True)
    if rules.fitter is not None:
        thread.fitting = Fitting(rules.fitter, limits_under(rules), rules.trim, alone=rules.limits.given)
    if rules.edits is not None:
        thread.edit(rules.edits.of(key))
    return thread
