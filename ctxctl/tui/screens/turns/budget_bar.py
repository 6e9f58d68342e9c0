"""The window of a step as a bar of segments, and the line of numbers below it.  Plain Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ctxctl.model.results import Step
from ctxctl.model.vocab import SEGMENTS, UNRECORDED, UsedMethod
from ctxctl.report.sent import NOT_RECORDED, unrecorded_text
from ctxctl.text import cells, pad
from ctxctl.tui import sizes
from ctxctl.tui.layout import Parts, one_line
from ctxctl.wording import AT_MOST, number, short

FREE: Final = "·"
STALE: Final = "░"
RESERVE: Final = "\u2571"
_SIGNS: Final[dict[UsedMethod, str]] = {"reported": "", "expected": sizes.EXPECTED, "recorded": AT_MOST}
"""In front of what is free: where nothing was billed, more was sent than is recorded."""
UNKNOWN: Final = "▒"
"""What was sent and is not in the capture."""


def bar(step: Step | None, width: int, stale: Mapping[str, int] | None = None) -> Parts:
    """The window as one line: a stretch for each segment with its name, then what is free and reserved.

    Each segment in use has at least one cell; one too narrow for its name shows the name's first letter.
    The end of a stretch that older copies take up is `░`; `▒` is what was sent and is not recorded, and
    `┆` where the runtime compacts by itself.
    """
    room = max(width - 2, 0)
    if step is None or room == 0:
        return [(" " * width, "")]
    window = step.window
    segments = ordered(step.segments)
    free = window.free or 0
    if window.cap is None and window.threshold is not None:
        free = max(window.threshold - window.used, 0)
    reserve = 0 if window.limit is None or window.cap is None else max(window.limit - window.cap, 0)
    cut = _cut([tokens for _, tokens in segments], window.used)
    shares = _shares([*cut, free, reserve], room)
    whole, mark, at = window.used + free + reserve, None, 0
    if window.threshold is not None and 0 < window.threshold <= whole:
        mark = min(window.threshold * room // whole, room - 1)
    parts: Parts = [(" ", "")]
    for (name, tokens), size in zip(segments, shares, strict=False):
        here = _within(mark, at, size)
        at += size
        if name == UNRECORDED:
            parts.append((_hatched(size, here), f"segment-{UNRECORDED}"))
            continue
        old = min(round((stale or {}).get(name, 0) / tokens * size), max(size - 1, 0))
        style = name if name in SEGMENTS else "other"
        parts.append((_labelled(name, size - old, here), f"segment-{style}"))
        parts.append((STALE * old, f"legend-{style}"))
    label = f"free {_SIGNS[sizes.method_of(window)]}{short(free)}"
    known = window.free is not None
    here = _within(mark, at, shares[-2])
    parts += _filled(label, shares[-2], FREE, "free", here) if known else [(" " * shares[-2], "")]
    parts += _filled("reserve", shares[-1], RESERVE, "reserve", _within(mark, at + shares[-2], shares[-1]))
    parts.append((" " * (width - 1 - sum(shares)), ""))
    return parts if mark is None else _marked(parts, 1 + mark)


def _within(mark: int | None, start: int, size: int) -> int | None:
    """The cell of a stretch in which the mark stands; None where it stands elsewhere."""
    return mark - start if mark is not None and start <= mark < start + size else None


def _lead(lead: int, taken: int, size: int, mark: int | None) -> int | None:
    """Where a name of `taken` cells, the last a blank, begins: at `lead`, or behind a mark that stands in it.

    None: there is no room for it.
    """
    if mark is not None and lead <= mark < lead + taken - 1:
        lead = mark + 1
    return lead if lead + taken <= size else None


def _cut(amounts: list[int], used: int) -> list[int]:
    """The segments as they are, or, where what is recorded weighs more than what was sent, in proportion."""
    whole = sum(amounts)
    return amounts if whole <= used else [max(n * used // whole, 1) for n in amounts]


def _marked(parts: Parts, at: int) -> Parts:
    """The line with the mark of the runtime's own limit in one of its cells, on whatever is there."""
    marked: Parts = []
    for text, style in parts:
        if 0 <= at < len(text):
            over = "threshold" if style in ("free", "reserve", "") else style
            marked += [(text[:at], style), (sizes.COMPACTS, over), (text[at + 1 :], style)]
        else:
            marked.append((text, style))
        at -= len(text)
    return marked


def legend(step: Step | None, width: int) -> Parts:
    """The segments' names and tokens, in the colours of the bar; what does not fit is left out."""
    if step is None:
        return [(" " * width, "")]
    show = number if width >= 110 else short
    entries = []
    for name, tokens in ordered(step.segments):
        style = f"legend-{name if name in SEGMENTS else 'other'}"
        mark = "■ "
        if name == UNRECORDED:
            name, mark = NOT_RECORDED, f"{UNKNOWN} "
        entries.append((f"{name} {show(tokens)}", style, mark))
    return _entries(entries + _besides(step, show, brief=width < 110), width)


def _besides(step: Step, show: Callable[[int], str], *, brief: bool) -> list[tuple[str, str, str]]:
    """What the bar shows beside the segments: text, style and sign."""
    window, ledger = step.window, step.ledger
    found = []
    if window.unrecorded is not None and window.unrecorded < 0:
        brief_words = f"recorded {show(-window.unrecorded)} over what was sent"
        found.append((brief_words if brief else unrecorded_text(window) or "", "warning", "! "))
    if ledger.stale:
        found.append((f"stale {show(ledger.stale)}", "muted", f"{STALE} "))
    if ledger.saved is not None:
        found.append((f"saved {show(ledger.saved)}", "muted", ""))
    if window.free is not None:
        sign = _SIGNS[sizes.method_of(window)]
        found.append((f"free {sign}{show(window.free)}", "muted", f"{FREE} "))
    if window.threshold is not None:
        said = f"compacts at {show(window.threshold)}"
        said = said if brief else sizes.compaction_phrase(window.threshold, window.threshold_source)
        found.append((said, "threshold", f"{sizes.COMPACTS} "))
    if window.reserved:
        found.append((f"reserve {show(window.reserved)}", "muted", f"{RESERVE} "))
    return found


def _entries(entries: list[tuple[str, str, str]], width: int) -> Parts:
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


def _labelled(name: str, size: int, mark: int | None) -> str:
    lead = _lead(0, cells(name) + 2, size, mark)
    if lead is not None:
        return pad(f"{' ' * lead}▏{name}", size)
    return pad(" " * (mark == 0 and size > 1) + name[:1].upper(), size)


def _hatched(size: int, mark: int | None) -> str:
    """What is not recorded, by its name where there is room; without colour it is told by its hatching."""
    lead = _lead(2, cells(NOT_RECORDED) + 2, size - 2, mark)
    return UNKNOWN * size if lead is None else f"{UNKNOWN * lead} {NOT_RECORDED} ".ljust(size, UNKNOWN)


def _filled(label: str, size: int, fill: str, style: str, mark: int | None) -> Parts:
    """A filling, with its name in it where there is room: the name is to be read, the filling is not."""
    lead = _lead(2, len(label) + 2, size - 2, mark)
    if lead is None:
        return [(fill * size, style)]
    return [(fill * lead, style), (f" {label} ", "muted"), (fill * (size - len(label) - 2 - lead), style)]
