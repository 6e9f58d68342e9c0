"""Sums over the steps of a replay, as its report and its JSON have them."""

from __future__ import annotations

from typing import Final

import msgspec

from ctxctl.model.results import Counts, Step, Summary
from ctxctl.model.vocab import UsedMethod
from ctxctl.report.sent import limit_sources

_SOURCES: Final = 8
"""How many sentences on limits are kept."""
Thread = tuple[str | None, str]


class Totals:
    """Sums over the steps that were shown; `before` and `after` are over the threads that they belong to."""

    def __init__(self) -> None:
        self.steps = 0
        self.turns: set[tuple[Thread, int]] = set()
        self.new = 0
        self.freed = 0
        self.reweighed = 0
        self.over = 0
        """Steps over their cap."""
        self.first_over: Step | None = None
        self.capped = 0
        """Steps whose cap is known."""
        self.largest: Step | None = None
        """The step that sent most."""
        self.sources: dict[str, None] = {}
        """Where limits and the runtime's lines are from."""
        self.methods: dict[UsedMethod, int] = {}
        """Steps by how it is known what they sent."""
        self.differs = 0
        """Steps with a stage that a recomputing policy found to differ from the record."""
        self.matches = 0
        """Steps with stages that it recomputed, none of which differs."""
        self.untold = 0
        """Steps with a stage of which the trace lacks what it would take to tell, and none that differs."""
        self.first_untold: Step | None = None
        self.first_differing: Step | None = None
        self._counts = dict.fromkeys(Counts.__struct_fields__, 0)
        self._before: dict[Thread, int] = {}
        self._last: dict[Thread, Step] = {}
        self._sessions: set[str | None] = set()
        self._said: set[tuple[str | None, int | None, str | None]] = set()
        """What windows say of their limits, as far as it is in `sources`."""

    def add(self, step: Step) -> None:
        """Count one step."""
        thread = (step.session, step.thread)
        self.steps += 1
        self.turns.add((thread, step.turn))
        self.new += step.ledger.new
        self.freed += step.ledger.freed
        self.reweighed += step.ledger.reweighed
        verdicts = {stage.verdict for stage in step.stages.values()}
        if "differs" in verdicts:
            self.differs += 1
            self.first_differing = self.first_differing or step
        elif "cannot_tell" in verdicts:
            self.untold += 1
            self.first_untold = self.first_untold or step
        elif "matches" in verdicts:
            self.matches += 1
        self.capped += step.window.cap is not None
        window = step.window
        said = (window.limit_note, window.threshold, window.threshold_source)
        if said not in self._said and len(self.sources) < _SOURCES:
            self._said.add(said)
            self.sources.update(dict.fromkeys(limit_sources(window)))
        method = step.window.used_method
        self.methods[method] = self.methods.get(method, 0) + 1
        if self.largest is None or step.window.used > self.largest.window.used:
            self.largest = step
        if step.window.over:
            self.over += 1
            self.first_over = self.first_over or step
        for name in self._counts:
            self._counts[name] += getattr(step.counts, name)
        self._before.setdefault(thread, step.ledger.window_before)
        self._last[thread] = step
        self._sessions.add(step.session)

    @property
    def before(self) -> int:
        """Tokens in the windows before the first step shown of each thread."""
        return sum(self._before.values())

    @property
    def after(self) -> int:
        """Tokens in the windows after the last step shown of each thread."""
        return sum(step.ledger.window_after for step in self._last.values())

    @property
    def last(self) -> list[Step]:
        """The last step shown of each thread."""
        return list(self._last.values())

    @property
    def threads(self) -> int:
        """Threads that have a step here."""
        return len(self._last)

    @property
    def sessions(self) -> int:
        """Sessions that have a step here."""
        return len(self._sessions)

    @property
    def counts(self) -> Counts:
        """Changes by status."""
        return Counts(**self._counts)

    @property
    def by_method(self) -> dict[str, int]:
        """Tokens in the last window of each thread, by counting method; they add up to `after`."""
        found: dict[str, int] = {}
        for step in self._last.values():
            for method, tokens in step.window.by_method.items():
                found[method] = found.get(method, 0) + tokens
        return found

    def narrow(self, summary: Summary) -> Summary:
        """The summary with its sums over what was shown; events, problems and contents stay the trace's."""
        return msgspec.structs.replace(
            summary,
            sessions=self.sessions,
            threads=self.threads,
            turns=len(self.turns),
            steps=self.steps,
            new=self.new,
            freed=self.freed,
            reweighed=self.reweighed,
            counts=self.counts,
            by_method=self.by_method,
        )
