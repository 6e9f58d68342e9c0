"""A thread at its first event, under the rules of its replay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxctl.engine.fitting import Fitting
from ctxctl.engine.simulate import Simulation
from ctxctl.engine.thread import Declared, ThreadState

if TYPE_CHECKING:
    from ctxctl.engine.rules import Rules
    from ctxctl.engine.track import ThreadKey


def started(key: ThreadKey, rules: Rules) -> ThreadState:
    """A new thread: nothing is in it yet, and what decides over its frames is at hand."""
    thread = ThreadState(key, rules.target, rules.store, rules.count)
    if rules.policy is not None:
        thread.simulation = Simulation(rules.policy)
        thread.mode = Declared(rules.policy.mode, True)
    if rules.fitter is not None:
        thread.fitting = Fitting(rules.fitter, rules.limits, rules.trim)
    if rules.edits is not None:
        thread.edit(rules.edits.of(key))
    return thread
