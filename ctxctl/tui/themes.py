"""Palettes whose colours can be told apart on their backgrounds, and the terminal's own.

`tests/tui/test_tui_themes.py` computes the contrast of every style of text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from textual.theme import BUILTIN_THEMES, Theme


def _lines(*, cursor: str, blurred: str, muted: str, faint: str) -> dict[str, str]:
    """Backgrounds of the cursor's line, in front and not, and text that is less important, or least."""
    return {
        "line-cursor": cursor,
        "line-cursor-blurred": blurred,
        "text-muted": muted,
        "faint": faint,
    }


DARK: Final = Theme(
    name="dark",
    dark=True,
    primary="#7aa2f7",
    secondary="#bb9af7",
    accent="#4fc1d8",
    warning="#e0af68",
    error="#f7768e",
    success="#9ece6a",
    foreground="#c8d0ea",
    background="#15161e",
    surface="#1d1f2b",
    panel="#252836",
    variables=_lines(cursor="#252d45", blurred="#22242f", muted="#9aa3bd", faint="#8f98b3"),
)

LIGHT: Final = Theme(
    name="light",
    dark=False,
    primary="#2b62c9",
    secondary="#7b3fc0",
    accent="#0b7285",
    warning="#8f5b00",
    error="#b8263f",
    success="#2f6f1d",
    foreground="#24292f",
    background="#fafafc",
    surface="#eceef4",
    panel="#e2e5ee",
    variables=_lines(cursor="#e2e8f8", blurred="#ececf1", muted="#57606a", faint="#5f6770"),
)

CONTRAST_DARK: Final = Theme(
    name="contrast-dark",
    dark=True,
    primary="#8ab8ff",
    secondary="#e0b0ff",
    accent="#5cf0ff",
    warning="#ffd75f",
    error="#ff9aa8",
    success="#8dff7a",
    foreground="#ffffff",
    background="#000000",
    surface="#000000",
    panel="#1a1a1a",
    variables=_lines(cursor="#1a2747", blurred="#262626", muted="#c8c8c8", faint="#b8b8b8"),
)

CONTRAST_LIGHT: Final = Theme(
    name="contrast-light",
    dark=False,
    primary="#0033a0",
    secondary="#5a0a8c",
    accent="#00434f",
    warning="#5c3a00",
    error="#8a0014",
    success="#0e4a00",
    foreground="#000000",
    background="#ffffff",
    surface="#ffffff",
    panel="#e8e8e8",
    variables=_lines(cursor="#d5e2ff", blurred="#e6e6e6", muted="#333333", faint="#3f3f3f"),
)


def _terminal(name: str, *, dark: bool) -> Theme:
    """The sixteen colours as the terminal has them, on its own background.

    They cannot be mixed, so what is a shade elsewhere is a text style here: see the end of ``app.tcss``.
    """
    plain = "ansi_default"
    return Theme(
        name=name,
        dark=dark,
        ansi=True,
        primary="ansi_blue" if not dark else "ansi_bright_blue",
        secondary="ansi_magenta",
        accent="ansi_cyan",
        warning="ansi_yellow",
        error="ansi_red",
        success="ansi_green",
        foreground="ansi_default",
        background="ansi_default",
        surface="ansi_default",
        panel="ansi_default",
        boost="ansi_default",
        variables=BUILTIN_THEMES["ansi-dark" if dark else "ansi-light"].variables
        | _lines(cursor=plain, blurred=plain, muted=plain, faint=plain),
    )


THEMES: Final = (
    DARK,
    LIGHT,
    CONTRAST_DARK,
    CONTRAST_LIGHT,
    _terminal("terminal-dark", dark=True),
    _terminal("terminal-light", dark=False),
)
NAMES: Final = tuple(theme.name for theme in THEMES)


def chosen(setting: str, remembered: str | None, environment: Mapping[str, str]) -> str:
    """The theme to begin with.

    What the settings say, else what was chosen last time, else light where the terminal says that its
    background is (COLORFGBG), else dark.
    """
    for name in (setting, remembered or ""):
        if name in NAMES:
            return name
    background = environment.get("COLORFGBG", "").rpartition(";")[2]
    return (LIGHT if background in ("7", "15") else DARK).name


def after(name: str) -> str:
    """The theme that follows in the cycle."""
    return NAMES[(NAMES.index(name) + 1) % len(NAMES)] if name in NAMES else NAMES[0]
