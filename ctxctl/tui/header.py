"""The lines at the top: which trace and frame this is, what it holds, and how full it is.  Plain Python."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from typing import Final

from ctxctl.model.results import Step
from ctxctl.model.vocab import SEGMENTS
from ctxctl.text import cells, pad
from ctxctl.tui.figures import counted, methods, number, percent, short
from ctxctl.tui.lines.layout import Parts, Piece, one_line, spread
from ctxctl.tui.outline import TurnEntry
from ctxctl.tui.spark import sparkline
from ctxctl.tui.state import State
from ctxctl.tui.strip import strip
from ctxctl.tui.watching import LOST, phrase

_SPARK: Final = 120
_LEAST: Final = 6
"""Cells that the window by turn takes at most and at least."""

FREE: Final = "·"
STALE: Final = "░"
RESERVE: Final = "\u2571"


def head(state: State, width: int, *, tall: bool = False) -> list[Parts]:
    """What is open and where in it; the window by turn and its use; the stages of the step.

    Three lines, four where it is `tall`.
    """
    step = None if state.detail is None else state.detail.step
    return [_where(state, width), *_use(state, width, 2 if tall else 1), strip(step, width)]


def _where(state: State, width: int) -> Parts:
    left = [Piece(state.trace.name.rpartition("/")[2] or state.trace.name, "name", 9)]
    if state.trace.format not in ("native", ""):
        left.append(Piece(state.trace.format, "muted", 2))
    entry, step = state.entry, None if state.detail is None else state.detail.step
    right: list[Piece] = []
    if state.trace.policy != "recorded":
        left.append(Piece(f"policy {state.trace.policy}", "warning", 8))
    if state.trace.live:
        left.append(_following(state))
        watching = state.trace.watching
        if watching is not None:
            lost = watching.state in LOST
            left.append(Piece(phrase(watching), "warning" if lost else "muted", 10 if lost else 8))
    if entry is not None:
        left.append(Piece(entry.session or "", "muted", 1))
        left.append(Piece(entry.thread, "thread", 7))
        total = state.list.turns.total(entry)
        right.append(Piece(f"turn {number(entry.turn)}/{number(total)}", "strong", 10))
        right.append(Piece(f"step {number(_step(state, entry))}/{number(entry.steps)}", "", 8))
    if step is not None:
        left.append(Piece(step.model or "", "", 6))
        mode = step.mode if step.mode_declared else f"{step.mode} (inferred)"
        right.append(Piece(mode, "muted", 4))
    methods_said = "" if step is None else methods(step.window.by_method)
    right.append(Piece(methods_said or state.trace.encoding, "muted", 3))
    return spread(left, right, width)


def _following(state: State) -> Piece:
    """Whether the cursor goes with the newest turn, and what it has missed otherwise."""
    if state.following:
        return Piece("following", "good", 9)
    if state.newer:
        return Piece(f"+{counted(state.newer, 'newer turn')} · F", "warning", 9)
    return Piece("F follows", "muted", 5)


def _step(state: State, entry: TurnEntry) -> int:
    """Which of the turn's steps the frame shown is, from 1."""
    target = state.target
    if target is None or target.whole_turn or target.ordinal >= len(state.list.turns.rows):
        return entry.steps
    return state.list.turns.rows[target.ordinal].step


def _use(state: State, width: int, rows: int) -> list[Parts]:
    """The window by turn, and beside it how full it is now."""
    step = None if state.detail is None else state.detail.step
    said = _reading(state) + ([] if step is None else _used(step))
    needed = sum(cells(piece.text) + 2 for piece in said) + 2
    right = spread([], said, max(min(width, needed), width - _SPARK))
    size = sum(cells(text) for text, _ in right)
    lines = _spark(state, width - size - 1, rows)
    last = [(" ", ""), *lines[-1], *right] if width > size else right
    return [*([(" ", ""), *line, (" " * size, "")] for line in lines[:-1]), last]


def _spark(state: State, width: int, rows: int) -> list[Parts]:
    place = state.place
    if place is None or width < _LEAST:
        return [[(" " * max(width, 0), "")]] * rows
    thread = state.list.turns.nest.thread_of(place.turn)
    return sparkline(thread.series, bisect_left(thread.turns, place.turn), width, rows)


def _reading(state: State) -> list[Piece]:
    """How much of the trace is read, until all of it is."""
    if state.phase == "opening":
        watched = state.trace.watching is not None
        return [] if watched else [Piece("opening the trace…", "muted", 9)]
    if state.progress is None:
        return []
    return [Piece(f"reading the trace… {int(state.progress * 100)} %", "muted", 9)]


def _used(step: Step) -> list[Piece]:
    window = step.window
    full = window.limit if window.cap is None else window.cap
    style = "warning" if window.over else "strong"
    if full is None:
        pieces = [Piece(f"{number(window.used)} used", style, 10), Piece("limit unknown", "muted", 4)]
    else:
        share = percent(window.used, full)
        pieces = [Piece(f"{number(window.used)} of {number(full)} used", style, 10), Piece(share, style, 6)]
    if window.over:
        pieces.append(Piece(f"over by {number(window.over)}", "warning", 9))
    elif window.free is not None:
        pieces.append(Piece(f"{number(window.free)} free", "", 5))
    if window.uncounted:
        pieces.append(Piece(f"{number(window.uncounted)} uncounted", "warning", 7))
    return pieces


# The budget bar ---------------------------------------------------------------------------------------------


def bar(step: Step | None, width: int, stale: Mapping[str, int] | None = None) -> Parts:
    """The window as one line: a stretch for each segment with its name, then what is free and reserved.

    Each segment in use has at least one cell; one too narrow for its name shows the name's first letter.
    The end of a stretch that older copies take up is `░`.
    """
    room = max(width - 2, 0)
    if step is None or room == 0:
        return [(" " * width, "")]
    window = step.window
    segments = ordered(step.segments)
    free = window.free or 0
    reserve = 0 if window.limit is None or window.cap is None else max(window.limit - window.cap, 0)
    sizes = _shares([tokens for _, tokens in segments] + [free, reserve], room)
    parts: Parts = [(" ", "")]
    for (name, tokens), size in zip(segments, sizes, strict=False):
        old = min(round((stale or {}).get(name, 0) / tokens * size), max(size - 1, 0))
        style = name if name in SEGMENTS else "other"
        parts.append((_labelled(name, size - old), f"segment-{style}"))
        parts.append((STALE * old, f"legend-{style}"))
    parts.append((_filled("free " + short(free), sizes[-2], FREE), "free"))
    parts.append((_filled("reserve", sizes[-1], RESERVE), "reserve"))
    parts.append((" " * (width - 1 - sum(sizes)), ""))
    return parts


def legend(step: Step | None, width: int) -> Parts:
    """The segments' names and tokens, in the colours of the bar; what does not fit is left out."""
    if step is None:
        return [(" " * width, "")]
    show = number if width >= 110 else short
    entries = [
        (f"{name} {show(tokens)}", f"legend-{name if name in SEGMENTS else 'other'}", "■ ")
        for name, tokens in ordered(step.segments)
    ]
    if step.ledger.stale:
        entries.append((f"stale {show(step.ledger.stale)}", "muted", f"{STALE} "))
    if step.ledger.saved is not None:
        entries.append((f"saved {show(step.ledger.saved)}", "muted", ""))
    if step.window.free is not None:
        entries.append((f"free {show(step.window.free)}", "muted", f"{FREE} "))
    if step.window.reserved:
        entries.append((f"reserve {show(step.window.reserved)}", "muted", f"{RESERVE} "))
    parts: Parts = [(" " * min(width, 1), "")]
    room = width - 1
    for text, style, mark in entries:
        size = cells(text) + len(mark) + 2
        if size > room:
            break
        parts += [(mark, style), (text + "  ", "")]
        room -= size
    parts.append((" " * max(room, 0), ""))
    return parts


def ordered(segments: dict[str, int]) -> list[tuple[str, int]]:
    """Segments that hold tokens, in the providers' order, names of our own after those."""
    rank = {name: n for n, name in enumerate(SEGMENTS)}
    found = [(one_line(name), tokens) for name, tokens in segments.items() if tokens > 0]
    return sorted(found, key=lambda entry: (rank.get(entry[0], len(rank)), entry[0]))


def _shares(amounts: list[int], room: int) -> list[int]:
    """Cells for each amount, in proportion; what is there has a cell as long as there is room for all."""
    whole = sum(amounts)
    if whole <= 0:
        return [0] * len(amounts)
    shares = [amount * room / whole for amount in amounts]
    sizes = [max(int(share), 1 if amount else 0) for share, amount in zip(shares, amounts, strict=True)]
    while sum(sizes) > room:
        sizes[sizes.index(max(sizes))] -= 1
    by_rest = sorted(range(len(sizes)), key=lambda n: sizes[n] - shares[n])
    for n in by_rest[: room - sum(sizes)]:
        sizes[n] += 1
    return sizes


def _labelled(name: str, size: int) -> str:
    if size >= cells(name) + 2:
        return pad(f"▏{name}", size)
    return pad(name[:1].upper(), size)


def _filled(label: str, size: int, fill: str) -> str:
    if size >= len(label) + 6:
        return f"{fill * 2} {label} ".ljust(size, fill)
    return fill * size
