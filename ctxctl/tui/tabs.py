"""What the item pane shows beside an item's text, gathered when it is opened.  Plain Python."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

from ctxctl.tui.document import Document

Tab = Literal["content", "diff", "life", "record"]
TABS: Final[tuple[tuple[Tab, str], ...]] = (
    ("content", ""),
    ("diff", "item.diff"),
    ("life", "item.life"),
    ("record", "item.record"),
)
"""In the order in which they are shown, with the action that leads there."""


@dataclass(frozen=True, slots=True)
class Compared:
    """An item's text against an older version of it."""

    back: int
    """How many versions before the usual one, from 1."""
    label: str
    """Which version, and where it was last in the window."""
    document: Document | None
    note: str = ""
    """Why there is no diff."""
    oldest: bool = False
    """Whether there is no older version."""


@dataclass(frozen=True, slots=True)
class Tabs:
    """What is known for one item in one comparison; `key` says which, and nothing of another is kept."""

    key: object = None
    back: int = 0
    """How many versions before the usual one the diff is against; 0: the frame before."""
    compared: Compared | None = None
    life: Document | None = None
    record: Document | None = None

    def of(self, key: object) -> Tabs:
        """What is known of this item: nothing, if it is another one."""
        return self if key == self.key else Tabs(key)

    def stepped(self, by: int) -> Tabs:
        """Compare with an older (+1) or a newer version."""
        back = max(self.back + by, 0)
        if by > 0 and self.compared is not None and self.compared.oldest:
            back = min(back, self.compared.back)
        return replace(self, back=back)

    def with_answer(self, key: object, **found: object) -> Tabs:
        """The tabs with what has arrived in them; an answer about another item is dropped."""
        if key != self.key:
            return self
        tabs = replace(self, **found)  # type: ignore[arg-type]
        compared = tabs.compared
        return replace(tabs, back=min(tabs.back, compared.back)) if compared and compared.oldest else tabs

    def lacks(self, tab: Tab) -> bool:
        """Whether a tab has to be asked for."""
        if tab == "life":
            return self.life is None
        if tab == "record":
            return self.record is None
        return tab == "diff" and self.back > 0 and (self.compared is None or self.compared.back != self.back)

    @property
    def against(self) -> Compared | None:
        """The comparison with an older version, if it is the one wanted."""
        found = self.compared
        return found if self.back and found is not None and found.back == self.back else None
