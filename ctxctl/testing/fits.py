"""Asserts that a planned context fits, or that a recorded one did."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from ctxctl.errors import UsageError
from ctxctl.model.sizes import limit_words, only_recorded, sent_of
from ctxctl.text import visible

if TYPE_CHECKING:
    from ctxctl.budget.distribution import Size
    from ctxctl.budget.estimate import Estimate
    from ctxctl.budget.plan import Model
    from ctxctl.model.results import Placement, Step, Window
    from ctxctl.model.vocab import LimitSource
    from ctxctl.session import Inspector

_WIDTH: Final = 100
_SHOWN: Final = 5


class Fits(NamedTuple):
    """What `assert_fits` found out about a recorded session that fits."""

    steps: int
    """The number of requests that were checked."""
    largest: int
    """Tokens of the largest request: as billed, else as expected, else as recorded."""
    headroom: int
    """The fewest tokens that were free at a request."""
    uncounted: int
    """The number of placements that count as 0, as the trace has neither their text nor their size."""
    unbilled: int = 0
    """The number of requests of which only the recorded part is known and counted."""


class _Overrun(NamedTuple):
    where: str
    size: str
    """How much was sent, and how that is known."""
    used: int
    cap: int
    source: LimitSource | None
    largest: str


def assert_fits(
    subject: str | PathLike[str],
    *,
    baseline: str | PathLike[str] | None = None,
    model: str | None = None,
    provider: str | None = None,
    window: int | None = None,
    reserve: int = 0,
    max_input: int | None = None,
    headroom: int = 0,
    uncounted: bool = False,
) -> Estimate | Fits:
    """Fail unless a plan (a ``.toml`` file) keeps its limits, or every request of a recorded session fits.

    A request is as large as it was billed, else as expected, else as recorded; its limit is the one given
    here, else that of the trace, else the model table's.  A plan holds all that it needs; the other arguments
    are for sessions, all of them in tokens.

    Args:
        subject: A plan; or a trace or foreign capture, with ``@ADDRESS`` a single frame of it.
        baseline: For a plan, the committed file that it is also compared with.
        model: Limits as ``ctxctl models`` knows them for this model, in place of the recorded ones.
        provider: The provider whose limits of the model count.
        window: The whole window, in place of what is recorded or known.
        reserve: The part of it that is kept for the answer.
        max_input: The most that a prompt may hold.
        headroom: What must be free besides.
        uncounted: Let placements with neither text nor size pass; otherwise one of them fails the test.

    Returns the `Estimate` of a plan or the `Fits` of a session.

    Raises:
        AssertionError: It does not fit; the message says where, by how much, and what is largest.
        CtxctlError: The plan, the baseline or the trace cannot be used, or no limit is known.
    """
    __tracebackhide__ = True
    name = fspath(subject)
    if name.endswith(".toml"):
        given = (model, provider, window, max_input)
        if any(value is not None for value in given) or reserve or headroom or uncounted:
            raise UsageError(
                "limits-in-plan",
                "a plan has its limits in itself",
                hint="put them into its [model] and [limits]",
            )
        return _plan_fits(name, None if baseline is None else Path(baseline))
    if baseline is not None:
        raise UsageError("baseline-of-plan", "a baseline is for a plan, and this is a trace")
    from ctxctl.budget.distribution import Size
    from ctxctl.budget.plan import Model

    if min(reserve, headroom, window or 0, max_input or 0) < 0:
        raise UsageError("bad-limit", "fewer than no tokens cannot be")
    limits = None
    if model is not None or window is not None or max_input is not None:
        limits = Model(
            name=model, provider=provider, window=_size(window), max_input=_size(max_input),
            reserve=Size(reserve),
        )  # fmt: skip
    return _session_fits(name, limits, reserve, headroom, uncounted=uncounted)


def estimate_plan(plan: str | PathLike[str]) -> Estimate:
    """Work out a plan; raises CtxctlError where that cannot be done."""
    from ctxctl import config
    from ctxctl.budget.estimate import estimate
    from ctxctl.budget.plan import load

    path = Path(plan)
    read, _ = load(path)
    return estimate(read, path.name, path.parent, config.load().models)


def _plan_fits(name: str, baseline: Path | None) -> Estimate:
    __tracebackhide__ = True
    from ctxctl.budget import baseline as kept
    from ctxctl.budget.check import limits_kept
    from ctxctl.report.budget import check_lines

    found = estimate_plan(name)
    findings = limits_kept(found)
    if baseline is not None:
        findings += kept.compare_with_baseline(found, baseline)
    if any(finding.level == "error" for finding in findings):
        lines = "\n".join(check_lines(findings, _WIDTH))
        raise AssertionError(f"{visible(name)} does not keep its limits\n{lines}")
    return found


def _size(tokens: int | None) -> Size | None:
    from ctxctl.budget.distribution import Size

    return None if tokens is None else Size(tokens)


def _session_fits(name: str, limits: Model | None, reserve: int, headroom: int, *, uncounted: bool) -> Fits:
    __tracebackhide__ = True
    from ctxctl import config
    from ctxctl.budget.estimate import plan_base
    from ctxctl.testing.sessions import open_session

    cap = None if limits is None else plan_base(limits, config.load().models).room.cap
    with open_session(name, weighed=True) as (inspector, address):
        looked = _StepCheck(inspector, cap, reserve, headroom)
        if address is not None:
            at = inspector.at(inspector.resolve(address))
            looked.at(at.step, at.placements)
        else:
            for at in inspector.steps():
                looked.at(at.step, at.placements)
    return looked.verdict(visible(name), uncounted=uncounted)


class _StepCheck:
    """Compares every step of a session with its cap, in memory that does not grow with their number."""

    def __init__(self, inspector: Inspector, cap: int | None, reserve: int, headroom: int) -> None:
        self._inspector = inspector
        self._cap, self._reserve, self._headroom = cap, reserve, headroom
        self.steps = self.items = self.largest = self.uncounted = self.unknown = self.many = 0
        self.unbilled = 0
        self.free: int | None = None
        self.over: list[_Overrun] = []
        self.unseen = ""
        """The first step with something uncounted."""

    def at(self, step: Step, placements: list[Placement]) -> None:
        """Compare one step with its cap."""
        window = step.window
        self.steps += 1
        self.items += len(placements)
        self.largest = max(self.largest, window.used)
        self.unbilled += only_recorded(window.used_method, window.unrecorded)
        if window.uncounted:
            self.uncounted += window.uncounted
            self.unseen = self.unseen or _where(step)
        cap = self._cap if self._cap is not None else self._in_force(step)
        source = window.limit_source if self._cap is None else None
        if cap is None:
            self.unknown += 1
            return
        free = cap - window.used
        self.free = free if self.free is None else min(free, self.free)
        if free < self._headroom:
            self.many += 1
            if len(self.over) < _SHOWN:
                largest = _largest(placements, window)
                self.over.append(_Overrun(_where(step), sent_of(window), window.used, cap, source, largest))

    def _in_force(self, step: Step) -> int | None:
        """Return the step's own cap, with at least `reserve` kept for the answer."""
        window = step.window
        if window.cap is None:
            return None
        return window.cap if window.limit is None else min(window.cap, window.limit - self._reserve)

    def verdict(self, name: str, *, uncounted: bool) -> Fits:
        """Return the result; raises AssertionError, or UsageError("unknown-window") without a known limit."""
        __tracebackhide__ = True
        if not self.items:
            raise AssertionError(f"{name} has no request with anything in it: nothing was looked at")
        if self.over:
            rest = self.many - len(self.over)
            lines = [
                f"  {o.where}: {o.size}, {o.used + self._headroom - o.cap:,} over"
                f" {self._bound(o)}; largest: {o.largest}"
                for o in self.over
            ]
            more = [f"  and at {rest:,} more"] if rest else []
            raise AssertionError(
                "\n".join([f"{name} does not fit at {self.many:,} of {self.steps:,} requests", *lines, *more])
            )
        if self.unknown:
            raise UsageError(
                "unknown-window",
                f"{name}: no limit is known for {self.unknown:,} of {self.steps:,} requests",
                hint="give window=, max_input= or model=",
            )
        if self.uncounted and not uncounted:
            raise AssertionError(
                f"{name}: it is not known whether it fits: from {self.unseen} on, items have neither text "
                "nor size in the trace; uncounted=True lets them pass as 0"
            )
        assert self.free is not None
        return Fits(self.steps, self.largest, self.free, self.uncounted, self.unbilled)

    def _bound(self, over: _Overrun) -> str:
        cap = limit_words(over.cap, over.source)
        return cap if not self._headroom else f"{cap} less {self._headroom:,} of headroom"


def _where(step: Step) -> str:
    from ctxctl.model.addresses import prefix

    return f"@{visible(prefix(step.thread))}{step.turn}.{step.step}"


def _largest(placements: list[Placement], window: Window) -> str:
    """Return the three largest parts of a request; what is not recorded of it counts as one part."""
    from heapq import nlargest

    parts = [(p.tokens, visible((p.title or p.item)[:60])) for p in placements]
    parts.append((window.unrecorded or 0, "what is not recorded"))
    top = nlargest(3, (part for part in parts if part[0] > 0), key=lambda part: part[0])
    return ", ".join(f"{name} {tokens:,}" for tokens, name in top)
