"""Where a replay under a policy is not what was recorded: the first difference, with what it comes from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ctxctl.labels import plural
from ctxctl.model.results import StageView, Step
from ctxctl.model.vocab import Verdict
from ctxctl.report.totals import Totals
from ctxctl.text import visible

_SHOWN = 12
"""Values of a difference that are shown; all of them are in the JSON report."""


def held(totals: Totals) -> Iterator[tuple[str, str]]:
    """Labelled lines of a summary: how many steps are as recorded, and what the first other one is about."""
    steps = totals.differs + totals.matches + totals.untold
    if not steps:
        return
    told = plural(steps, "step")
    if totals.differs:
        verb = "differs" if totals.differs == 1 else "differ"
        yield "policy", f"{totals.differs:,} of {told} held against the record {verb}"
        yield from _first(totals.first_differing, "differs")
    elif not totals.untold:
        yield "policy", f"{told} held against the record, all as recorded"
    elif totals.matches:
        yield "policy", f"{totals.matches:,} of {told} held against the record as recorded, none that differs"
    if totals.untold:
        yield "policy", f"{totals.untold:,} of {told} held against the record cannot be told"
        yield from _first(totals.first_untold, "cannot_tell")


def _first(step: Step | None, verdict: Verdict) -> Iterator[tuple[str, str]]:
    assert step is not None
    where = f"turn {step.turn} step {step.step}" + (
        f" of {visible(step.thread)}" if step.thread != "main" else ""
    )
    for name, view in step.stages.items():
        if view.verdict == verdict:
            yield "first", f"{where}, {name}: {'; '.join(_told(view))}"


def _told(view: StageView) -> Iterator[str]:
    facts = view.facts
    if "reason" in facts:
        yield visible(facts["reason"])
    for side in ("expected", "recorded"):
        if side in facts:
            yield f"{side} {_value(_narrow(facts[side], facts.get('differing')))}"
    if facts.get("inputs"):
        yield f"from {_value(facts['inputs'])}"


def _narrow(value: Any, differing: Any) -> Any:
    """Of two sets of numbers those that are not the same."""
    if isinstance(value, dict) and isinstance(differing, list):
        return {name: value[name] for name in differing if name in value} or value
    return value


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{visible(str(k))} {_value(v)}" for k, v in value.items()) or "nothing"
    if isinstance(value, list | tuple):
        more = f", {len(value) - _SHOWN:,} more" if len(value) > _SHOWN else ""
        return (", ".join(_value(v) for v in value[:_SHOWN]) or "nothing") + more
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "none"
    return (
        f"{value:,}"
        if isinstance(value, int)
        else f"{value:g}"
        if isinstance(value, float)
        else visible(str(value))
    )
