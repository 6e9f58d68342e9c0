"""Palettes whose colours can be told apart on their backgrounds, and the terminal's own.

`tests/tui/test_tui_themes.py` computes the contrast of every style of text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from textual.theme import BUILTIN_THEMES, Theme

_COLOURS: Final[dict[str, tuple[str, str, str, str]]] = {
    # dark, light, contrast-dark, contrast-light
    "primary": ("#7aa2f7", "#2b62c9", "#8ab8ff", "#0033a0"),
    "secondary": ("#bb9af7", "#7b3fc0", "#e0b0ff", "#5a0a8c"),
    "accent": ("#4fc1d8", "#0a6a7c", "#5cf0ff", "#00434f"),
    "warning": ("#e0af68", "#8f5b00", "#ffd75f", "#5c3a00"),
    "error": ("#f7768e", "#b8263f", "#ff9aa8", "#8a0014"),
    "success": ("#9ece6a", "#2f6f1d", "#8dff7a", "#0e4a00"),
    "foreground": ("#c8d0ea", "#24292f", "#ffffff", "#000000"),
    "background": ("#15161e", "#fafafc", "#000000", "#ffffff"),
    "surface": ("#1d1f2b", "#eceef4", "#000000", "#ffffff"),
    "panel": ("#252836", "#e2e5ee", "#1a1a1a", "#e8e8e8"),
}
"""By the name that Textual has for it, a colour in each of our themes."""
_VARIABLES: Final[dict[str, tuple[str, str, str, str]]] = {
    "line-cursor": ("#252d45", "#e2e8f8", "#1a2747", "#d5e2ff"),
    "line-cursor-blurred": ("#22242f", "#ececf1", "#262626", "#e6e6e6"),
    "text-muted": ("#9aa3bd", "#57606a", "#c8c8c8", "#333333"),
    "faint": ("#8f98b3", "#5f6770", "#b8b8b8", "#3f3f3f"),
}
"""Backgrounds of the cursor's line, in front and not, and text that is less important, or least."""


def _theme(column: int, name: str, *, dark: bool) -> Theme:
    """The theme of a column of the two tables."""
    own: dict[str, Any] = {role: colours[column] for role, colours in _COLOURS.items()}
    return Theme(
        name=name,
        dark=dark,
        **own,
        variables={role: colours[column] for role, colours in _VARIABLES.items()},
    )


DARK: Final = _theme(0, "dark", dark=True)
LIGHT: Final = _theme(1, "light", dark=False)
CONTRAST_DARK: Final = _theme(2, "contrast-dark", dark=True)
CONTRAST_LIGHT: Final = _theme(3, "contrast-light", dark=False)


def _terminal(name: str, *, dark: bool) -> Theme:
    """The sixteen colours as the terminal has them, on its own background.

    They cannot be mixed, so what is a shade elsewhere is a text style here: see the end of ``app.tcss``.
    """
    colours: dict[str, Any] = dict.fromkeys(_COLOURS, "ansi_default") | {
        "primary": "ansi_bright_blue" if dark else "ansi_blue",
        "secondary": "ansi_magenta",
        "accent": "ansi_cyan",
        "warning": "ansi_yellow",
        "error": "ansi_red",
        "success": "ansi_green",
    }
    return Theme(
        name=name,
        dark=dark,
        ansi=True,
        **colours,
        boost="ansi_default",
        variables=BUILTIN_THEMES["ansi-dark" if dark else "ansi-light"].variables
        | dict.fromkeys(_VARIABLES, "ansi_default"),
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


def first_theme(setting: str, remembered: str | None, environment: Mapping[str, str]) -> str:
    """The theme to begin with.

    What the settings say, else what was chosen last time, else light where the terminal says that its
    background is (COLORFGBG), else dark.
    """
    for name in (setting, remembered or ""):
        if name in NAMES:
            return name
    background = environment.get("COLORFGBG", "").rpartition(";")[2]
    return (LIGHT if background in ("7", "15") else DARK).name


def next_theme(name: str) -> str:
    """The theme that follows in the cycle."""
    return NAMES[(NAMES.index(name) + 1) % len(NAMES)] if name in NAMES else NAMES[0]
