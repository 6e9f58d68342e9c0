"""A replay for what each step holds and how large that is: nothing that only views show is worked out."""

from __future__ import annotations

from collections.abc import Callable

from ctxctl.engine.replay.finish import settle_step
from ctxctl.engine.replay.rules import ReplayRules
from ctxctl.engine.replay.run import Engine
from ctxctl.engine.replay.thread import ThreadState
from ctxctl.model.problem import Problem
from ctxctl.model.results import Step, Turn

Closed = Callable[[ThreadState], None]
"""Told of a thread whose step has just been closed: its frame and its ids are still that step's."""


class SizingEngine(Engine):
    """Takes events as `Engine` does and gives no steps and no turns: `closed` is told of each step."""

    def __init__(self, rules: ReplayRules, report: Callable[[Problem], None]) -> None:
        super().__init__(rules, report)
        self.closed: Closed | None = None
        """Not copied."""

    def _seal(self, thread: ThreadState) -> None:
        if thread.mode is None:
            thread.mode = self._mode(thread)
        thread.seal(only_sizes=True)

    def _close(self, thread: ThreadState, *, new_turn: bool) -> list[Step | Turn]:
        if thread.ids is None:
            return []
        if thread.sealed is None:
            self._seal(thread)
        settle_step(thread, self.rules)
        if self.closed is not None:
            self.closed(thread)
        if self._order is not None:
            self._order.done(thread.key)
        if new_turn:
            thread.ids = None
        return []
