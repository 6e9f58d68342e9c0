"""A frame with a title around other widgets, painted by lines.

Textual's own border paints the whole pane anew, with all that is in it, whenever its title changes; here the
title costs one line, and lines that have not changed cost nothing.
"""

from __future__ import annotations

from typing import Final

from textual.containers import Horizontal, Vertical
from textual.geometry import Region
from textual.strip import Strip

from ctxctl.text import cells, clip
from ctxctl.tui.layout import one_line
from ctxctl.tui.literal import Part
from ctxctl.tui.widgets.paint import Painted

_PLAIN: Final = "╭─╮│╰╯"
_FRONT: Final = "┏━┓┃┗┛"


class Backdrop(Painted, Horizontal):
    """A container that its children cover: nothing of it is ever seen, so nothing is painted with care."""

    def render_lines(self, crop: Region) -> list[Strip]:
        """Blank lines."""
        line = self.strips.get(crop.width)
        if line is None:
            line = self.strips[crop.width] = self.painted([], crop.width)
        for filter_ in self.app.get_line_filters():
            line = line.apply_filter(filter_, self.behind)
        return [line] * crop.height


class Pane(Painted, Vertical):
    """Children inside a frame; without padding (see ``app.tcss``) there is no frame."""

    def __init__(self, *, ident: str) -> None:
        Painted.__init__(self, ident=ident, classes="pane")
        self.title = ""
        self.foot = ""
        """A phrase in the lower edge."""

    def put_front(self, front: bool) -> None:
        """Look like the pane in front, or not; rules about ``.-front`` are the caller's to apply."""
        if front != self.has_class("-front"):
            self.set_class(front, "-front", update=False)
            width, height = self.outer_size
            for edge in (
                Region(-1, -1, width, 1), Region(-1, height - 2, width, 1),
                Region(-1, 0, 1, height - 2), Region(width - 2, 0, 1, height - 2),
            ):  # fmt: skip
                self.refresh(edge)

    def entitle(self, title: str, foot: str = "") -> None:
        """Put other texts into the upper and the lower edge."""
        # The frame stands around what Textual calls the content, whose first line is line 0.
        if title != self.title:
            self.title = title
            self.refresh(Region(-1, -1, self.outer_size.width, 1))
        if foot != self.foot:
            self.foot = foot
            self.refresh(Region(-1, self.size.height, self.outer_size.width, 1))

    def render_lines(self, crop: Region) -> list[Strip]:
        """The edges, and blanks that the children cover."""
        width, height = self.outer_size
        front = self.has_class("-front")
        made = {}
        strips = []
        for y in crop.line_range:
            at = 0 if y == 0 else 2 if y == height - 1 else 1
            if at not in made:
                made[at] = self._edge(at, width, front)
            strips.append(made[at])
        for filter_ in self.app.get_line_filters():
            background = self.behind
            strips = [line.apply_filter(filter_, background) for line in strips]
        if crop.column_span != (0, width):
            strips = [line.crop(*crop.column_span) for line in strips]
        return strips

    def _edge(self, at: int, width: int, front: bool) -> Strip:
        """The upper edge, a line between, the lower edge; the same object as long as it looks the same."""
        key = (at, width, front, self.title if at == 0 else self.foot if at == 2 else "")
        found = self.strips.get(key)
        if found is None:
            framed = any(self.styles.padding)
            found = self.strips[key] = self.painted(self._parts(at, width, front) if framed else [], width)
        return found

    def _parts(self, at: int, width: int, front: bool) -> list[Part]:
        chars = _FRONT if front else _PLAIN
        style = "frame-front" if front else "frame"
        if at == 1:
            return [(chars[3], style), (" " * max(width - 2, 0), ""), (chars[3], style)]
        fill = chars[1]
        left, right = (chars[0], chars[2]) if at == 0 else (chars[4], chars[5])
        said = one_line(self.title if at == 0 else self.foot)
        room = width - 6
        if not said or room < 1:
            return [(left + fill * max(width - 2, 0) + right, style)]
        said = clip(said, room)
        rest = max(width - 5 - cells(said), 0)
        name = "title-front" if front else "muted"
        if at == 0:
            return [(left + fill, style), (f" {said} ", name), (fill * rest + right, style)]
        return [(left + fill * rest, style), (f" {said} ", name), (fill + right, style)]
