"""The lines above an item's text.  Plain Python."""

from __future__ import annotations

from collections.abc import Mapping

from ctxctl.labels import SIGNS, number, signed
from ctxctl.model.results import Change, Window
from ctxctl.tui.keeping import cost
from ctxctl.tui.lines import Parts, Piece, spread, why
from ctxctl.tui.tabs import TABS


def item_head(
    change: Change,
    tab: str,
    width: int,
    *,
    keys: Mapping[str, str] | None = None,
    against: str = "",
    remark: str = "",
    window: Window | None = None,
) -> tuple[Parts, Parts, Parts]:
    """Three lines above an item's text: status and tabs, tokens, versions and origin.

    `keys`: by tab, the key that leads there; `against`: what the diff is to, where that is not the version of
    the frame before; `remark`: how the text is shown; `window`: that of the frame, for what is not in it.
    """
    names = [_tab(name, name == tab, (keys or {}).get(name, "")) for name, _ in TABS]
    status = Piece(f"{SIGNS[change.status]} {change.status}", f"heading-{change.status}", 10)
    first = spread([status, Piece(why(change), "warning", 8)], names, width)
    kept_out = cost(change, window)
    tokens = [
        *kept_out,
        Piece(f"{number(change.in_window)} in window" if change.in_window or not kept_out else "", "", 8),
        Piece(signed(change.new) + " new" if change.new else "", "new", 7),
        Piece(number(-change.freed) + " freed" if change.freed else "", "freed", 5 if kept_out else 7),
        Piece("" if kept_out else f"size {number(change.tokens)}", "muted", 5),
    ]
    second = spread(tokens, [Piece(change.kind, "muted", 4 if kept_out else 6)], width)
    origin = [
        Piece(against or versions(change), "strong" if against else "", 7),
        Piece(change.provenance, "muted", 5),
        Piece(change.source or "", "muted", 4),
    ]
    line = Piece(f"line {number(change.line)}" if change.line else "", "muted", 3)
    return first, second, spread(origin, [Piece(remark, "remark", 6), line], width)


def _tab(name: str, shown: bool, key: str) -> Piece:
    """The name of a tab; the one not shown is left out where there is no room."""
    return Piece(f"[{name}]", "tab", 9) if shown else Piece(name, "muted", 2, key)


def versions(change: Change) -> str:
    """The item's version, and what it was before where it changed; long ones by their beginning."""
    now = _brief(change.version or change.previous_version)
    if change.version is None or change.previous_version is None or change.previous_version == change.version:
        return f"version {now}"
    return f"version {_brief(change.previous_version)} → {now}"


def _brief(version: str | None) -> str:
    if version is None:
        return "unknown"
    return version if len(version) <= 12 else f"{version[:8]}…"
