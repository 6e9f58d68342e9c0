"""Where a replay under a policy is not what was recorded: the first difference, with what it comes from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ctxctl.model.results import StageView
from ctxctl.report.tables import plural
from ctxctl.report.totals import Totals
from ctxctl.text import visible

_SHOWN = 12
"""Values of a difference that are shown; all of them are in the JSON report."""


def held(totals: Totals) -> Iterator[tuple[str, str]]:
    """Labelled lines of a summary: how many steps are as recorded, and what the first other one is about."""
    if not totals.differs and not totals.matches:
        return
    steps = totals.differs + totals.matches
    if not totals.differs:
        yield "policy", f"{plural(steps, 'step')} held against the record, all as recorded"
        return
    verb = "differs" if totals.differs == 1 else "differ"
    yield "policy", f"{totals.differs:,} of {plural(steps, 'step')} held against the record {verb}"
    step = totals.first_differing
    assert step is not None
    where = f"turn {step.turn} step {step.step}" + (
        f" of {visible(step.thread)}" if step.thread != "main" else ""
    )
    for name, view in step.stages.items():
        if view.verdict == "differs":
            yield "first", f"{where}, {name}: {'; '.join(_told(view))}"


def _told(view: StageView) -> Iterator[str]:
    facts = view.facts
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
