"""Two palettes whose colours can be told apart on their backgrounds."""

from __future__ import annotations

from typing import Final

from textual.theme import Theme

DARK: Final = Theme(
    name="ctxctl-dark",
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
)

LIGHT: Final = Theme(
    name="ctxctl-light",
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
)
