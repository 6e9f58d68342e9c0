"""What a key does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Scope = Literal[
    "app",
    "turns",
    "list",
    "text",
    "reader",
    "pointer",
    "diff",
    "assembled",
    "search",
    "overview",
    "whatif",
    "line",
    "palette",
]
"""Where a key works: everywhere, on the main screen, in any list, in any text, in a full-screen text, on one
of the other screens, in a line of input.
"""


@dataclass(frozen=True, slots=True)
class Action:
    """Something a key does."""

    id: str
    """What a keymap in the settings names; never changes."""
    keys: tuple[str, ...]
    """Textual's names of its keys."""
    action: str
    """Textual action of the scope's widget, screen or app."""
    help: str
    scope: Scope
    hint: str = ""
    """The word in the line of hints; empty: not shown there."""
    panes: tuple[str, ...] = ()
    """Panes of the main screen in which the hint is shown; none: in all."""
    priority: bool = False
