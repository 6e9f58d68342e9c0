"""Painting a screen from the lines that have changed, and from the widgets that are seen there.

Textual's compositor asks every widget inside the smallest rectangle around all changes for all its lines,
those too that other widgets cover.  A list's last line and the head above it make that rectangle the whole
screen.  What is painted here is the same (a test compares both), with the work of the changed lines alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar, cast

from textual import events
from textual.await_complete import AwaitComplete
from textual.geometry import Region
from textual.message import Message
from textual.screen import Screen
from textual.strip import Strip

from ctxctl.tui import textual_private
from ctxctl.tui.requests import Answered, Handlers
from ctxctl.tui.textual_private import ChopsUpdate, Compositor

Result = TypeVar("Result")

Line = dict[int, Strip | None]
"""What stands in a line, by the column where it begins."""


class Canvas(Compositor):
    """Knows where the widgets are, as Textual's own does; renders no more of them than is needed."""

    def render_partial_update(self) -> ChopsUpdate | None:
        """What has changed since the last update, None if nothing has."""
        screen = self.size.region
        regions = {region for dirty in self._dirty_regions if (region := dirty.intersection(screen))}
        self._dirty_regions.clear()
        if not regions:
            return None
        spans = list(self._regions_to_spans(regions))
        wanted: dict[int, tuple[int, int]] = {}
        for y, left, right in spans:  # of one line several, in order
            wanted[y] = (wanted[y][0] if y in wanted else left, right)
        chops = cast("Sequence[Mapping[int, Strip]]", self._chops(wanted))
        return ChopsUpdate(chops, spans, [cuts[1:] for cuts in self.cuts])

    def _render_chops(
        self, crop: Region, is_rendered_line: Callable[[int], bool]
    ) -> Sequence[Mapping[int, Strip]]:
        """The lines of a region, whole; the others are empty."""
        wanted = {y: (0, self.size.width) for y in crop.line_range if is_rendered_line(y)}
        return cast("Sequence[Mapping[int, Strip]]", self._chops(wanted))

    def _chops(self, wanted: Mapping[int, tuple[int, int]]) -> list[Line]:
        """Every line of the screen, filled where it is wanted: from column to column, by line."""
        lines: list[Line] = [{}] * self.size.height
        missing: dict[int, set[int]] = {}
        for y, (left, right) in wanted.items():
            cuts = self.cuts[y]
            lines[y] = dict.fromkeys(cuts[:-1])
            missing[y] = {cut for cut, end in pairwise(cuts) if cut < right and end > left}
        for widget, (region, clip) in self.visible_widgets.items():  # those in front come first
            if not missing:
                break
            seen = region.intersection(clip)
            for first, last in _runs(seen, missing):
                crop = Region(seen.x - region.x, first - region.y, seen.width, last - first)
                for y, strip in enumerate(widget.render_lines(crop), first):
                    self._fill(lines[y], missing, y, seen, strip)
        return lines

    def _fill(self, line: Line, missing: dict[int, set[int]], y: int, seen: Region, strip: Strip) -> None:
        """Put a widget's line where nothing stands in front of it."""
        left, right = seen.column_span
        cuts = [cut for cut in self.cuts[y] if left <= cut <= right]
        strips = [strip] if len(cuts) == 2 else strip.divide([cut - left for cut in cuts[1:]])
        gaps = missing[y]
        for cut, part in zip(cuts, strips, strict=False):
            if cut in gaps:
                line[cut] = part
                gaps.discard(cut)
        if not gaps:
            del missing[y]


def _runs(seen: Region, missing: Mapping[int, set[int]]) -> Iterator[tuple[int, int]]:
    """The lines of a region where something is missing, as (first, behind the last)."""
    left, right = seen.column_span
    found = [y for y in seen.line_range if y in missing and any(left <= cut < right for cut in missing[y])]
    start = 0
    for n in range(1, len(found) + 1):
        if n == len(found) or found[n] != found[n - 1] + 1:
            yield found[start], found[n - 1] + 1
            start = n


class Board(Screen[Result]):
    """A screen that is painted by a `Canvas` and takes answers by a table; every screen here is one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._styled: object = None
        """What the styles were found for."""
        super().__init__(*args, **kwargs)
        textual_private.replace_compositor(self, Canvas)

    def _get_dispatch_methods(self, method_name: str, message: Message) -> Iterable[Any]:
        return textual_private.while_present(
            self, message, super()._get_dispatch_methods(method_name, message)
        )

    def handlers(self) -> Handlers:
        """By kind of value, what the screen does with an answer to what it asked for."""
        return {}

    def on_answered(self, message: Answered) -> None:
        """Take an answer, or a part of one."""
        message.handle(self.handlers())

    def call_after_refresh(self, callback: Callable[..., Any], *args: Any, **kwargs: Any) -> bool:
        """Call something once the screen is painted, unless the screen is gone by then."""

        def late() -> Any:
            return callback(*args, **kwargs) if textual_private.is_present(self) else None

        call = late if textual_private.is_ours(callback) else partial(callback, *args, **kwargs)
        return super().call_after_refresh(call)

    def dismiss(self, result: Result | None = None) -> AwaitComplete:
        """Close the screen if it is in front: Textual would close whichever is."""
        return super().dismiss(result) if self.app.screen is self else AwaitComplete()

    def _look(self) -> object:
        """All that the styles on the screen depend on and that may change while another one lies over it."""
        app = self.app
        return (
            app.theme,
            app.classes,
            textual_private.style_key(app),
            self.classes,
            textual_private.style_key(self),
        )

    async def _compose(self) -> None:
        await super()._compose()
        self._styled = self._look()

    def update_node_styles(self, animate: bool = True) -> None:
        """Find the styles of all that is on the screen."""
        super().update_node_styles(animate)
        self._styled = self._look()

    def _on_screen_resume(self, event: events.ScreenResume) -> None:
        """Textual finds all styles anew whenever a screen comes to the front, even if they have just been."""
        if self._styled == self._look():
            event.refresh_styles = False
