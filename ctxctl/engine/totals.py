"""Running totals of a replay."""

from __future__ import annotations

from ctxctl.engine.track import ThreadKey
from ctxctl.model.records import Fidelity
from ctxctl.model.results import Counts, Step, Summary


class Totals:
    """Sums over all steps so far."""

    def __init__(self) -> None:
        self.events = 0
        self.steps = 0
        self.turns = 0
        self.new = 0
        self.freed = 0
        self.reweighed = 0
        self.fidelity: tuple[Fidelity, ...] = ()
        """What imports measured, in line order."""
        self._counts = [0, 0, 0, 0, 0]
        self._last: dict[ThreadKey, dict[str, int]] = {}
        """By thread, the tokens of its last window by counting method."""

    def copy(self) -> Totals:
        """An independent copy, for a snapshot of a replay."""
        twin = Totals()
        twin.__dict__.update(self.__dict__)
        twin._counts = list(self._counts)
        twin._last = dict(self._last)
        return twin

    def add(self, step: Step) -> None:
        """Count a finished step."""
        self.steps += 1
        self.new += step.ledger.new
        self.freed += step.ledger.freed
        self.reweighed += step.ledger.reweighed
        counts = step.counts
        sums = self._counts
        sums[0] += counts.added
        sums[1] += counts.updated
        sums[2] += counts.removed
        sums[3] += counts.skipped
        sums[4] += counts.omitted
        self._last[ThreadKey(step.session, step.thread)] = step.window.by_method

    def summary(self, *, problems: int, unique_contents: int) -> Summary:
        """The totals as a value."""
        added, updated, removed, skipped, omitted = self._counts
        by_method: dict[str, int] = {}
        for window in self._last.values():
            for method, tokens in window.items():
                by_method[method] = by_method.get(method, 0) + tokens
        return Summary(
            sessions=len({key.session for key in self._last}),
            threads=len(self._last),
            turns=self.turns,
            steps=self.steps,
            events=self.events,
            problems=problems,
            new=self.new,
            freed=self.freed,
            counts=Counts(added, updated, removed, skipped, omitted),
            unique_contents=unique_contents,
            by_method=by_method,
            fidelity=self.fidelity,
            reweighed=self.reweighed,
        )
