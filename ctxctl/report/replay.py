"""The plain report of a replay: parameters, steps, turns, and a summary of the steps shown that adds up.

Under a policy it also says where the replay first differs from what was recorded, and what that comes from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from ctxctl.item_names import ItemNames
from ctxctl.model.addresses import prefix
from ctxctl.model.results import StageView, Step, Summary, Turn
from ctxctl.model.vocab import UsedMethod, Verdict
from ctxctl.report.changes import counts_line, counts_short
from ctxctl.report.fidelity import measured_lines
from ctxctl.report.find import Narrowed
from ctxctl.report.heading import Header, header_lines
from ctxctl.report.paint import Paint
from ctxctl.report.sent import size_of_limit, size_text
from ctxctl.report.step import ledger_flow, ledger_sum, methods, step_lines
from ctxctl.report.tables import labelled
from ctxctl.report.totals import Thread, Totals
from ctxctl.text import cells, clip, preview, visible
from ctxctl.wording import flag_words, plural

_KNOWN: Final[dict[UsedMethod, str]] = {
    "reported": "billed",
    "expected": "expected",
    "recorded": "recorded content only",
}


class ReplayReport:
    """Takes the stream of a replay and gives lines as they are complete; holds no step longer than needed."""

    def __init__(
        self, header: Header, width: int, paint: Paint, names: ItemNames, *, skipped: bool = False
    ) -> None:
        self.totals = Totals()
        self._header = header
        self._width = width
        self._paint = paint
        self._names = names
        self._skipped = skipped
        self._session: str | None = None
        self._started = False
        self._open: tuple[Thread, int] | None = None

    def feed(self, result: Step | Turn) -> Iterator[str]:
        """The lines of one step, or of a turn that is over."""
        if isinstance(result, Step):
            yield from self._step(result)
        else:
            yield from self._turn(result)

    def pass_over(self, result: Step | Turn) -> None:
        """Count what is not shown."""
        if isinstance(result, Step):
            self.totals.add(result)

    def _step(self, step: Step) -> Iterator[str]:
        if not self._started:
            self._started = True
            self._session = step.session
            yield from self._head(step)
        turn = ((step.session, step.thread), step.turn)
        if turn != self._open:
            again = turn in self.totals.turns
            self._open = turn
            title = f"turn {self._address(step)}"
            if step.turn_id and self._names.ids:
                title += f" ({visible(step.turn_id)})"
            yield ""
            yield self._paint("head", clip(title + (", continued" if again else ""), self._width))
        self.totals.add(step)
        yield from step_lines(step, self._width, self._paint, self._names, skipped=self._skipped)

    def _head(self, step: Step) -> Iterator[str]:
        declared = "declared" if step.mode_declared else "inferred"
        yield from header_lines(self._header, self._width, mode=f"{step.mode} ({declared})")

    def _address(self, place: Step | Turn) -> str:
        """The turn as an address of this trace: the session and the thread only where they are needed."""
        session = place.session if place.session != self._session else None
        return f"{visible(prefix(place.thread, session))}{place.turn}"

    def _turn(self, turn: Turn) -> Iterator[str]:
        ledger = turn.ledger
        text = (
            f"{plural(turn.steps, 'step')}, {counts_short(turn.counts)}, "
            f"{ledger_flow(ledger)} = {ledger.window_after:,} recorded"
        )
        if turn.flags:
            text += "; " + ", ".join(visible(flag_words(flag)) for flag in turn.flags)
        label = f"= turn {self._address(turn)}: "
        yield from labelled(label, text, self._width, indent=2, tab=cells(label))
        if turn.title:
            yield from labelled("prompt", preview(turn.title, self._width - 13), self._width, indent=4, tab=9)

    def _sent(self) -> Iterator[tuple[str, str]]:
        """The largest request, what the last ones of the threads sent, and how that is known."""
        totals, largest = self.totals, self.totals.largest
        if largest is None:
            return
        said = f"peak {size_of_limit(largest.window)}, at {self._address(largest)}.{largest.step}"
        if totals.threads == 1:
            said += f"; {size_text(totals.last[0].window)} at the last step"
        known = ", ".join(
            f"{_KNOWN[method]} {totals.methods[method]:,}" for method in _KNOWN if method in totals.methods
        )
        yield "sent", f"{said}; steps: {known}"
        if totals.sources:
            yield "limits", " ".join(totals.sources)

    def end(self, summary: Summary, narrowed: Narrowed | None = None) -> Iterator[str]:
        """The summary, of what was not shown too; the header, where there was no step."""
        if not self._started:
            yield from header_lines(self._header, self._width)
        totals = self.totals
        summary = totals.narrow(summary)
        yield ""
        yield self._paint("head", "summary")
        places = ", ".join(
            (
                plural(summary.sessions, "session"),
                plural(summary.threads, "thread"),
                plural(summary.turns, "turn"),
                plural(summary.steps, "step"),
            )
        )
        where = "window" if summary.threads == 1 else f"windows of {plural(summary.threads, 'thread')}"
        sums = ledger_sum(totals.before, summary.new, summary.freed, totals.reweighed)
        tokens = f"{sums} = {totals.after:,} recorded in the last {where}"
        contents = plural(summary.unique_contents, "distinct content")
        facts = [
            ("shown" if narrowed is None else "of all", places),
            ("changes", counts_line(summary.counts)),
            *self._sent(),
            ("ledger", tokens),
            ("counted", methods(summary.by_method) or "nothing"),
            (
                "trace",
                f"{plural(summary.events, 'event')}, {contents}, {plural(summary.problems, 'problem')}",
            ),
        ]
        if narrowed is not None:
            facts.insert(0, ("shown", narrowed.text()))
        if self._header.limits.given:
            facts.append(("supposed", fits_text(totals, self._address)))
        facts += held(totals)
        for label, text in facts:
            yield from labelled(label, text, self._width, indent=2, tab=9)
        if summary.fidelity:
            yield ""
            yield self._paint("head", "what the capture holds")
            yield from measured_lines(summary.fidelity, self._width)


def fits_text(totals: Totals, address: Callable[[Step], str]) -> str:
    """Which steps the supposed limits leave no room for; `address` names a step's turn."""
    first, alone = totals.first_over, _alone(totals)
    if not totals.capped:
        return "no limit is known, so ctxctl cannot tell (simulated)"
    if first is None:
        return f"no step is over{alone} (simulated)"
    return (
        f"{totals.over:,} of {plural(totals.steps, 'step')} over, the first at {address(first)}.{first.step}"
        f" by {first.window.over:,} tokens{alone} (simulated)"
    )


def _alone(totals: Totals) -> str:
    """Of how many steps nobody knows more than what is recorded."""
    alone = totals.methods.get("recorded", 0)
    return f"; of {plural(alone, 'step')} only what is recorded is known" if alone else ""


_SHOWN = 12
"""How many values of a difference are shown; the JSON report has all."""


def held(totals: Totals) -> Iterator[tuple[str, str]]:
    """Labelled lines of a summary: how many steps are as recorded, and what the first other one is about."""
    steps = totals.differs + totals.matches + totals.untold
    if not steps:
        return
    number = plural(steps, "step")
    if totals.differs:
        verb = "differs" if totals.differs == 1 else "differ"
        yield "policy", f"{totals.differs:,} of {number} compared with the record {verb}"
        yield from _first(totals.first_differing, "differs")
    elif not totals.untold:
        yield "policy", f"{number} compared with the record, all as recorded"
    elif totals.matches:
        yield (
            "policy",
            f"{totals.matches:,} of {number} compared with the record as recorded, none that differs",
        )
    if totals.untold:
        yield "policy", f"{totals.untold:,} of {number} compared with the record: cannot tell"
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
    """The numbers of a set that differ from the other set's."""
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
