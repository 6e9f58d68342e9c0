"""Painting lines of parts: what the Line API widgets here have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.style import Style
from textual.cache import LRUCache
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from ctxctl.tui.literal import Part, strip

STYLES = [
    "add",
    "del",
    "free",
    "freed",
    "gauge",
    "gauge-full",
    "gauge-high",
    "gutter",
    "heading-added",
    "heading-omitted",
    "heading-removed",
    "heading-skipped",
    "heading-updated",
    "hint",
    "hunk",
    "key",
    "legend-context",
    "legend-history",
    "legend-other",
    "legend-system",
    "legend-tools",
    "legend-user",
    "mark",
    "muted",
    "name",
    "new",
    "number",
    "remark",
    "segment-context",
    "segment-history",
    "segment-other",
    "segment-system",
    "segment-tools",
    "segment-user",
    "reserve",
    "sign-added",
    "sign-omitted",
    "sign-removed",
    "sign-skipped",
    "sign-updated",
    "skipped",
    "step",
    "strong",
    "tab",
    "thread",
    "warning",
]
"""Style names of parts; each is the component class ``line--NAME`` in ``app.tcss``."""


class Painted(Widget, inherit_bindings=True):
    """A widget whose lines are parts; each style is resolved once for a theme and state of the widget."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"line--{name}" for name in (*STYLES, "cursor", "cursor-focused")
    }

    ALLOW_SELECT = False

    def __init__(self, *, ident: str | None = None, classes: str | None = None) -> None:
        self._styles_by_name: dict[str, Style] = {}
        self._base: Style | None = None
        self.strips: LRUCache[object, Strip] = LRUCache(512)
        super().__init__(id=ident, classes=classes)

    def style_of(self, name: str) -> Style:
        """The style of a part: only what its class sets, so that the line's own background shows through."""
        style = self._styles_by_name.get(name)
        if style is None:
            rules = self.get_component_styles(f"line--{name}")
            full = self.get_component_rich_style(f"line--{name}")
            style = self._styles_by_name[name] = Style(
                color=full.color if rules.has_rule("color") else None,
                bgcolor=full.bgcolor if rules.has_rule("background") else None,
                bold=full.bold or None,
                dim=full.dim or None,
                italic=full.italic or None,
                reverse=full.reverse or None,
                underline=full.underline or None,
            )
        return style

    def notify_style_update(self) -> None:
        """Forget what was painted in the old styles."""
        super().notify_style_update()
        self._styles_by_name.clear()
        self._base = None
        self.strips.clear()

    def painted(self, parts: Sequence[Part], width: int, over: str = "") -> Strip:
        """A line of parts, over the widget's own style and that of component `over`."""
        if self._base is None:
            self._base = self.rich_style
        base = self._base
        return strip(parts, width, self.style_of, base + self.style_of(over) if over else base)


class Scroller(Painted, ScrollView):
    """A painted widget that scrolls through any number of lines."""

    def set_height(self, lines: int) -> None:
        """Say how many lines there are.

        The property `virtual_size` would lay out the whole screen anew each time; that is needed only where
        a scroll bar comes or goes, and `_scroll_update` sees to that.
        """
        size = Size(0, lines)
        if size != self.virtual_size:
            self.set_reactive(Widget.virtual_size, size)
            self._scroll_update(size)

    def repaint(self, lines: int) -> None:
        """Paint anew the lines before line `lines`; what is blank below them was so before."""
        self.strips.clear()
        size = self.size
        seen = min(lines - round(self.scroll_y), size.height)
        if seen > 0:
            self.refresh(Region(0, 0, size.width, seen))


class Banner(Painted):
    """A fixed number of lines computed from the width; `update` after what they show has changed."""

    def __init__(
        self,
        lines: Callable[[int], Sequence[Sequence[Part]]],
        *,
        ident: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(ident=ident, classes=classes)
        self._lines = lines
        self._painted: list[Sequence[Part]] = []
        self._width = 0

    def update(self) -> None:
        """Paint the lines that are not as they were."""
        width = self.size.width
        if width != self._width:
            self.strips.clear()
            self.refresh()
            return
        before, self._painted = self._painted, list(self._lines(width))
        for y in range(max(len(before), len(self._painted))):
            if before[y : y + 1] != self._painted[y : y + 1]:
                self.strips.discard((y, width))
                self.refresh(Region(0, y, width, 1))

    def render_line(self, y: int) -> Strip:
        """One line; blank below the last."""
        width = self.size.width
        found = self.strips.get((y, width))
        if found is None:
            if width != self._width:
                self._painted, self._width = list(self._lines(width)), width
            found = self.painted(self._painted[y] if y < len(self._painted) else [], width)
            self.strips[y, width] = found
        return found
