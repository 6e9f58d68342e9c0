"""The stages of a step in one line, each with its verdict.  Plain Python."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from ctxctl.labels import number, share, short
from ctxctl.model.results import StageView, Step
from ctxctl.model.vocab import STAGES, Verdict
from ctxctl.report.bill_notes import doubt_text, miss_text
from ctxctl.text import cells
from ctxctl.tui.layout import Parts
from ctxctl.tui.sizes import EXPECTED, full_of, method_of

VERDICTS: Final[dict[Verdict, str]] = {
    "recorded": "✓",
    "matches": "✓",
    "differs": "≠",
    "cannot_tell": "?",
    "not_recorded": "·",
}
"""What a verdict looks like without colour."""

_STYLES: Final[dict[Verdict, str]] = {
    "recorded": "good",
    "matches": "good",
    "differs": "warning",
    "cannot_tell": "muted",
    "not_recorded": "muted",
}


class _Words(NamedTuple):
    """A stage in words of three lengths."""

    whole: str
    brief: str
    least: str


_WORDS: Final[dict[str, _Words]] = {
    "surface": _Words("surface", "surf", "s"),
    "selection": _Words("selected", "sel", "l"),
    "budget": _Words("budget", "bud", "b"),
    "window": _Words("window", "win", "w"),
    "assembly": _Words("assembly", "asm", "a"),
    "injection": _Words("injected", "inj", "i"),
    "evidence": _Words("billed", "bill", "$"),
}


class _Form(NamedTuple):
    """How much is said."""

    length: int
    """Which of a stage's words."""
    figures: int
    """2: all figures; 1: the most telling ones, short; 0: none."""
    arrow: str


_FORMS: Final = (
    _Form(0, 2, " ─▶ "),
    _Form(0, 2, " ▶ "),
    _Form(0, 1, " ▶ "),
    _Form(1, 1, " ▶ "),
    _Form(1, 0, " ▶ "),
    _Form(1, 0, "▶"),
    _Form(2, 0, " "),
    _Form(2, 0, ""),
)
"""From the most that can be said to the least: words go before verdicts."""


def strip(step: Step | None, width: int) -> Parts:
    """All stages from left to right; where there is little room, words are shortened, then figures go."""
    if step is None:
        return [(" " * width, "")]
    room = max(width - 2, 0)
    made = next((made for form in _FORMS if _size(made := _stages(step, form)) <= room), None)
    if made is None:
        return [(" " * width, "")]
    return [(" " * min(width, 1), ""), *made, (" " * (width - min(width, 1) - _size(made)), "")]


def _size(parts: Parts) -> int:
    return sum(cells(text) for text, _ in parts)


def _stages(step: Step, form: _Form) -> Parts:
    parts: Parts = []
    for name in STAGES:
        view = step.stages.get(name, StageView("not_recorded"))
        if parts:
            parts.append((form.arrow, "muted"))
        style, sign = _STYLES[view.verdict], VERDICTS[view.verdict]
        if name == "budget" and step.window.over and view.verdict != "differs":
            style, sign = "warning", "!"  # a tick beside a share above 100 % would be read as "all is well"
        word = _WORDS[name][form.length]
        said = _figure(name, view, step, form.figures) if form.figures else ""
        parts.append((word, "muted" if view.verdict == "not_recorded" else ""))
        parts.append(((" " if form.length < 2 else "") + sign, style))
        if said:
            parts.append((f" {said}" if form.figures == 2 else said, ""))
    return parts


def _figure(name: str, view: StageView, step: Step, figures: int) -> str:
    """The number that tells most of a stage."""
    facts = view.facts
    if name == "surface":
        return _count(facts.get("items") or facts.get("sources"))
    if name == "selection":
        return _count(facts.get("selected"))
    if name == "budget":
        return _share(step)
    if name == "assembly":
        return _count(facts.get("blocks")) if figures == 2 else ""
    if name == "evidence":
        return _bill(step, whole=figures == 2)
    return ""


def _count(value: Any) -> str:
    return number(value) if isinstance(value, int) and not isinstance(value, bool) else ""


def _share(step: Step) -> str:
    window = step.window
    full = full_of(window)
    sign = {"reported": "", "expected": EXPECTED, "recorded": "≥"}[method_of(window)]
    return sign + share(window.used, full) if full else ""


def _bill(step: Step, *, whole: bool) -> str:
    """What the provider billed, and how much of it came from its cache."""
    usage = step.usage
    if usage is None or usage.reported_input is None:
        return ""
    how = "" if usage.provenance == "native" else f"({usage.provenance}) " if whole else "≈"
    text = how + (number if whole else short)(usage.reported_input)
    if whole and usage.reported_cached is not None:
        text += f", {number(usage.reported_cached)} cached"
    if whole and step.cache.miss is not None:
        text += f", {miss_text(step.cache.miss)}"
    if whole and usage.doubts:
        text += "".join(f"; {doubt_text(doubt)}" for doubt in usage.doubts)
    return text
