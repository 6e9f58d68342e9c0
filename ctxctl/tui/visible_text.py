"""What a screen shows, as text that can be copied, written to a file or opened in another program."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable


class VisibleText(NamedTuple):
    """The text in front of the user, whole: also what is scrolled out of view."""

    name: str
    """A phrase that says what it is, such as ``assembled text of step 3.1``; no file name."""
    text: str
    """Raw text; whoever shows it on a terminal makes it visible."""


@runtime_checkable
class ShowsText(Protocol):
    """A screen whose content can be taken elsewhere."""

    def seen(self) -> VisibleText | None:
        """The text in front; None while there is none."""
        ...
