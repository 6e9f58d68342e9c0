"""A scroll bar that is painted once for each of its positions.

Textual's own goes through a console and through borders, tints and links for each of its cells, and is asked
for all of them whenever anything beside it is painted.
"""

from __future__ import annotations

from typing import Final

from rich.segment import Segment
from rich.style import Style
from textual.cache import LRUCache
from textual.geometry import Region
from textual.scrollbar import ScrollBar, ScrollBarRender
from textual.strip import Strip

_KEPT: Final = 8


class Bar(ScrollBar):
    """A vertical scroll bar."""

    def __init__(self, thickness: int) -> None:
        super().__init__(vertical=True, name="vertical", thickness=thickness)
        self._width = 0
        self._cells: dict[Segment, Strip] = {}
        self._made: LRUCache[object, list[Strip]] = LRUCache(_KEPT)

    def notify_style_update(self) -> None:
        """Other colours."""
        super().notify_style_update()
        self._cells.clear()
        self._made.clear()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Its cells in a region of it."""
        width, height = self.size
        if crop.column_span != (0, width):
            return super().render_lines(crop)
        if width != self._width:
            self._width = width
            self._cells.clear()
        key = (
            width, height, self.window_virtual_size, self.window_size, self.position,
            self.mouse_over, self.grabbed is None,
        )  # fmt: skip
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = self._paint(width, height)
        return made[crop.y : crop.bottom]

    def _paint(self, width: int, height: int) -> list[Strip]:
        bar = self.render()
        assert isinstance(bar, ScrollBarRender)
        base = self.rich_style
        style = self.app.console.get_style(bar.style)
        assert style.color is not None
        assert style.bgcolor is not None
        cells = bar.render_bar(
            size=height,
            virtual_size=bar.virtual_size,
            window_size=bar.window_size,
            position=bar.position,
            thickness=width,
            bar_color=style.color,
            back_color=style.bgcolor,
        )
        return [self._cell(cell, width, base) for cell in cells.segments]

    def _cell(self, cell: Segment, width: int, base: Style) -> Strip:
        """One line: there are but a few kinds, and each is the same object for all positions."""
        found = self._cells.get(cell)
        if found is None:
            found = Strip([cell], width).apply_style(base)
            for filter_ in self.app.get_line_filters():
                found = found.apply_filter(filter_, self.background_colors[1])
            self._cells[cell] = found
        return found
