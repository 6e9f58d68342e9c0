"""Compactions that do not say what was lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ctxctl.lint.rule import Hit, Rule

if TYPE_CHECKING:
    from ctxctl.lint.context import StepContext


class CompactionWithoutCoverage(Rule):
    """A compaction names neither what its summary covers nor what it leaves out.

    Nobody can say later whether a decision was lost there.  Agent Context has `coverage` and `loss_notes`.
    """

    code = "CTX017"
    name = "compaction-without-coverage"
    severity = "info"
    needs = "compaction records"
    fix = "Record coverage (what the summary speaks of) and loss_notes (what it does not)."

    def step(self, look: StepContext) -> Iterator[Hit]:
        """Compactions of the step."""
        for told in look.step.told.compactions:
            if not told.coverage and not told.loss_notes:
                what = told.compaction_id or told.summary or "a compaction"
                count = len(told.source_item_refs)
                of = f" of {count:,} items" if count else ""
                yield Hit("", f"{what}{of} has neither coverage nor loss notes", look.place(), told.summary)
