"""Lines of the table of changes that look the same although they are of different items."""

from __future__ import annotations

from ctxctl.session import Inspector
from ctxctl.tui.answers import turns
from ctxctl.tui.screens.turns import lines
from ctxctl.tui.screens.turns.state import Target

WIDTHS = (42, 57, 72, 118)
"""Cells of the changes on a screen of 80, 120 and 200 columns."""


def alike(inspector: Inspector, most: int = 6) -> list[str]:
    """The lines that two items have; `most` frames of the trace are looked at, evenly spread."""
    rows = inspector.outline().rows
    chosen = sorted({n * (len(rows) - 1) // max(most - 1, 1) for n in range(most)}) if rows else []
    found = []
    for ordinal in chosen:
        target = Target(ordinal, whole_turn=False, first=ordinal)
        table = turns.detail(inspector, target, with_skipped=True).table
        for width in WIDTHS:
            seen: dict[str, str] = {}
            for n in range(table.count):
                change = table.change_at(n)
                if change is None:
                    continue
                text = "".join(part for part, _ in lines.change_line(table, n, width))
                if seen.setdefault(text, change.item) != change.item:
                    found.append(f"{inspector.name}@{ordinal} {width}: {text}")
    return found
