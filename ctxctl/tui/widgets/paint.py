"""Painting lines of parts: what the Line API widgets here have in common, and their scroll bar."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Final

from rich.segment import Segment
from rich.style import Style
from textual.cache import LRUCache
from textual.color import Color
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBar, ScrollBarRender
from textual.strip import Strip
from textual.widget import Widget

from ctxctl.tui import textual_private
from ctxctl.tui.literal import Part, strip

_KEPT: Final = 8


class Bar(ScrollBar):
    """A vertical scroll bar that is painted once for each of its positions.

    Textual's own goes through a console and through borders, tints and links for each of its cells, and is
    asked for all of them whenever anything beside it is painted.
    """

    def __init__(self, thickness: int) -> None:
        super().__init__(vertical=True, name="vertical", thickness=thickness)
        self._width = 0
        self._cells: dict[Segment, Strip] = {}
        self._made: LRUCache[object, list[Strip]] = LRUCache(_KEPT)

    def notify_style_update(self) -> None:
        """Forget what was painted in the old colours."""
        super().notify_style_update()
        self._cells.clear()
        self._made.clear()

    def render_lines(self, crop: Region) -> list[Strip]:
        """The cells of the bar that lie in a region of it."""
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


STYLES = [
    "gauge-full-here",
    "gauge-front",
    "gauge-here",
    "gauge-unbilled-here",
    "good",
    "muted-here",
    "warning-here",
    "title-front",
    "frame-front",
    "frame",
    "cursor-focused",
    "cursor",
    "add",
    "add-word",
    "block",
    "cached",
    "wrapper",
    "caret",
    "del",
    "del-word",
    "match",
    "current",
    "syntax-comment",
    "syntax-heading",
    "syntax-key",
    "syntax-keyword",
    "syntax-name",
    "syntax-number",
    "syntax-string",
    "syntax-strong",
    "free",
    "freed",
    "gauge",
    "gauge-full",
    "gauge-high",
    "gauge-unbilled",
    "gutter",
    "line-number",
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
    "legend-unrecorded",
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
    "segment-unrecorded",
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
    "threshold",
    "warning",
]
"""Style names of parts and lines; each is the component class ``line--NAME`` in ``app.tcss``."""


class Swatches(Widget):
    """Where the style names get their styles: one widget for the whole application, never seen.

    Textual resolves all component classes of a widget anew whenever a class of the screen changes; with forty
    of them on every widget that took most of the time of opening a pane.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"line--{name}" for name in STYLES}

    def __init__(self) -> None:
        self._known: dict[str, Style] = {}
        super().__init__(id="swatches")

    def style_of(self, name: str) -> Style:
        """What the class ``line--NAME`` sets, and nothing else."""
        style = self._known.get(name)
        if style is None:
            rules = self.get_component_styles(f"line--{name}")
            full = self.get_component_rich_style(f"line--{name}")
            style = self._known[name] = Style(
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
        """Forget the styles of the old theme."""
        super().notify_style_update()
        self._known.clear()


class Painted(Widget, inherit_bindings=True):
    """A widget whose lines are parts; their styles are those of the application's `Swatches`."""

    ALLOW_SELECT = False

    def __init__(self, *, ident: str | None = None, classes: str | None = None) -> None:
        self._base: Style | None = None
        self._look: object = None
        """What the strips were painted in."""
        self.strips: LRUCache[object, Strip] = LRUCache(512)
        self._seen_lines: dict[int, Strip] = {}
        """The widget's lines as they were painted last, by their place in it."""
        self._seen_width = 0
        self._behind: Color | None = None
        """The background as filters want it; finding it asks all that lies below."""
        super().__init__(id=ident, classes=classes)

    def _get_dispatch_methods(self, method_name: str, message: Message) -> Iterable[Any]:
        return textual_private.while_present(
            self, message, super()._get_dispatch_methods(method_name, message)
        )

    def style_of(self, name: str) -> Style:
        """The style of a part: only what its class sets, so that the line's own background shows through."""
        swatches = getattr(self.app, "swatches", None)
        return swatches.style_of(name) if swatches is not None else Style.null()

    def notify_style_update(self) -> None:
        """Forget what was painted in the old styles.

        Textual tells it whenever a class of the screen has changed, which mostly leaves the looks alone.
        """
        super().notify_style_update()
        self._seen_lines.clear()
        self._base = self._behind = None
        look = (self.app.theme, self.rich_style)
        if look != self._look:
            self._look = look
            self.strips.clear()

    def render_lines(self, crop: Region) -> list[Strip]:
        """The widget's lines in a region of it; only those are made that are not as they were.

        Textual asks every widget for all its lines whenever one line of any is painted, and prepares each for
        borders, tints and links: that costs more than all else of a paint.  Lines here have none of these.
        """
        if any(self.styles.gutter) or not textual_private.REPORTS_CHANGES:
            return super().render_lines(crop)
        width = self.outer_size.width
        if width != self._seen_width:
            self._seen_lines.clear()
            self._seen_width = width
        found = self._seen_lines
        missing = [y for y in crop.line_range if y not in found]
        if missing:
            filters = self.app.get_line_filters()
            background = self.behind
            if self._base is None:
                self._base = self.rich_style
            for y in missing:
                # Where room is kept for a scroll bar that is not there, the ground goes on.
                line = self.render_line(y).adjust_cell_length(width, self._base)
                for filter_ in filters:
                    line = line.apply_filter(filter_, background)
                found[y] = line
        if crop.column_span == (0, width):
            return [found[y] for y in crop.line_range]
        return [found[y].crop(*crop.column_span) for y in crop.line_range]

    @property
    def behind(self) -> Color:
        """The background."""
        if self._behind is None:
            self._behind = self.background_colors[1]
        return self._behind

    def _set_dirty(self, *regions: Region) -> None:
        """Forget the lines in these regions, or all: the one way by which Textual learns of a change."""
        super()._set_dirty(*regions)
        if not regions:
            self._seen_lines.clear()
        for region in regions:
            for y in region.line_range:
                self._seen_lines.pop(y, None)

    def painted(self, parts: Sequence[Part], width: int, over: str = "") -> Strip:
        """A line of parts, over the widget's own style and that of component `over`."""
        if self._base is None:
            self._base = self.rich_style
        base = self._base
        return strip(parts, width, self.style_of, base + self.style_of(over) if over else base)


class Scroller(ScrollView):
    """Scrolls through any number of lines; for a `Painted` widget, which stands before it among the bases."""

    strips: LRUCache[object, Strip]

    _room: tuple[object, int] = (None, 0)

    @property
    def room(self) -> int:
        """Cells of a line: without the scroll bar.  Textual looks the widget up on the screen for it."""
        place = self.outer_size, self.show_vertical_scrollbar
        if place != self._room[0]:
            self._room = place, self.scrollable_content_region.width
        return self._room[1]

    @property
    def vertical_scrollbar(self) -> ScrollBar:
        """The scroll bar, made when it is first asked for."""
        bar = textual_private.vertical_scrollbar(self, lambda: Bar(self.scrollbar_size_vertical))
        return super().vertical_scrollbar if bar is None else bar

    def notify_style_update(self) -> None:
        """Another border leaves another room."""
        super().notify_style_update()
        self._room = (None, 0)

    def set_height(self, lines: int) -> None:
        """Say how many lines there are.

        The property `virtual_size` would lay out the whole screen anew each time; that is needed only where
        a scroll bar comes or goes.
        """
        size = Size(0, lines)
        if size != self.virtual_size:
            textual_private.set_virtual_size(self, size)

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
        width = self.outer_size.width
        if width != self._width:
            self._width = -1  # hidden meanwhile, it may be as wide again when it is painted
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
        width = self.outer_size.width
        found = self.strips.get((y, width))
        if found is None:
            if width != self._width:
                self._painted, self._width = list(self._lines(width)), width
            found = self.painted(self._painted[y] if y < len(self._painted) else [], width)
            self.strips[y, width] = found
        return found
