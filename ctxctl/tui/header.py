"""The lines at the top: which trace and frame this is, what it holds, and how full it is.  Plain Python."""

from __future__ import annotations

from typing import Final

from ctxctl.model.results import Step, UsageView
from ctxctl.model.vocab import SEGMENTS
from ctxctl.text import cells, pad
from ctxctl.tui.figures import methods, number, percent, short, signed
from ctxctl.tui.lines import Parts, Piece, one_line, spread
from ctxctl.tui.outline import TurnEntry
from ctxctl.tui.state import State

FREE: Final = "·"
RESERVE: Final = "\u2571"


def head(state: State, width: int) -> tuple[Parts, Parts]:
    """Two lines: what is open and where in it, then the window's use beside what the provider billed."""
    return _where(state, width), _use(state, width)


def _where(state: State, width: int) -> Parts:
    left = [Piece(state.trace.name.rpartition("/")[2] or state.trace.name, "name", 9)]
    if state.trace.format not in ("native", ""):
        left.append(Piece(state.trace.format, "muted", 2))
    entry, step = state.entry, None if state.detail is None else state.detail.step
    right: list[Piece] = []
    if state.trace.policy != "recorded":
        left.append(Piece(f"policy {state.trace.policy}", "warning", 8))
    if entry is not None:
        left.append(Piece(entry.session or "", "muted", 1))
        left.append(Piece(entry.thread, "thread", 7))
        total = state.list.turns.total(entry)
        right.append(Piece(f"turn {number(entry.turn)}/{number(total)}", "strong", 10))
        right.append(Piece(f"step {number(_step(state, entry))}/{number(entry.steps)}", "", 8))
    if step is not None:
        left.append(Piece(step.model or "", "", 6))
        mode = step.mode if step.mode_declared else f"{step.mode} (inferred)"
        right.append(Piece(mode, "muted", 5))
    return spread(left, right, width)


def _step(state: State, entry: TurnEntry) -> int:
    """Which of the turn's steps the frame shown is, from 1."""
    target = state.target
    if target is None or target.whole_turn:
        return entry.steps
    return state.list.turns.rows[target.ordinal].step


def _use(state: State, width: int) -> Parts:
    step = None if state.detail is None else state.detail.step
    reading = _reading(state)
    if step is None:
        return spread(reading, [Piece(state.trace.encoding, "muted")], width)
    left = _used(step) + reading
    right = _billed(step.usage)
    right.append(Piece(methods(step.window.by_method) or state.trace.encoding, "muted", 8))
    return spread(left, right, width)


def _reading(state: State) -> list[Piece]:
    """How much of the trace is read, until all of it is."""
    if state.phase == "opening":
        return [Piece("opening the trace…", "muted", 9)]
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
    if window.uncounted:
        pieces.append(Piece(f"{number(window.uncounted)} uncounted", "warning", 7))
    return pieces


def _billed(usage: UsageView | None) -> list[Piece]:
    if usage is None or usage.reported_input is None:
        return [Piece("usage not reported", "muted", 2)]
    how = "billed" if usage.provenance == "native" else f"billed ({usage.provenance})"
    pieces = [Piece(f"{how} {number(usage.reported_input)}", "", 7)]
    if usage.difference is not None:
        off = signed(usage.difference)
        pieces.append(Piece(f"counted {number(usage.counted_input)} ({off})", "", 6))
    if usage.reported_cached is not None:
        pieces.append(Piece(f"cached {number(usage.reported_cached)}", "muted", 3))
    return pieces


# The budget bar ---------------------------------------------------------------------------------------------


def bar(step: Step | None, width: int) -> Parts:
    """The window as one line: a stretch for each segment with its name, then what is free and reserved.

    Each segment in use has at least one cell; one too narrow for its name shows the name's first letter.
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
    for (name, _), size in zip(segments, sizes, strict=False):
        parts.append((_labelled(name, size), f"segment-{name if name in SEGMENTS else 'other'}"))
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
        entries.append((f"stale {show(step.ledger.stale)}", "muted", "░ "))
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
