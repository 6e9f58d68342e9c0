"""What the what-if screen shows, and what stays of it while the program runs.  Plain Python."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, Literal

from ctxctl.model.whatif import Supposition, Totals
from ctxctl.tui.screens.whatif.form import Form
from ctxctl.tui.screens.whatif.table import Chart, News, Table

_NO_STEPS: Final = Totals()

Phase = Literal["empty", "running", "done", "stopped", "failed"]


@dataclass(frozen=True, slots=True)
class View:
    """Everything but the table."""

    form: Form = field(default_factory=Form)
    phase: Phase = "empty"
    run: int = 0
    """Number of the last comparison that was asked for; what speaks of another one is late."""
    supposition: Supposition | None = None
    """What the table is of."""
    policy: str = "recorded"
    """What the recorded side is replayed under."""
    notes: tuple[str, ...] = ()
    reading: bool = False
    """The trace was still being read or written when this was simulated."""
    recorded: Totals = _NO_STEPS
    simulated: Totals = _NO_STEPS
    chart: Chart = field(default_factory=Chart)
    part: float = 0.0
    error: str = ""


@dataclass(slots=True)
class Memory:
    """The last what-if: it is there again when the screen is opened again."""

    view: View = field(default_factory=View)
    table: Table = field(default_factory=Table)
    cursor: int = 0


def begun(view: View, supposition: Supposition) -> View:
    """A comparison has been asked for."""
    fresh = View(form=view.form, policy=view.policy)
    return replace(fresh, phase="running", run=view.run + 1, supposition=supposition)


def told(view: View, news: News, *, done: bool) -> View:
    """More of it is known."""
    return replace(
        view,
        phase="done" if done else "running",
        recorded=news.recorded,
        simulated=news.simulated,
        chart=news.chart,
        part=1.0 if done else news.part,
    )


def left(view: View) -> View:
    """The screen is closed; what runs is stopped."""
    return replace(view, phase="stopped") if view.phase == "running" else view
