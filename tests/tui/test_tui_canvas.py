"""Our painting is Textual's, cell by cell; screens are styled no more often than that is needed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pytest
from rich.style import Style
from textual._compositor import Compositor
from textual.css.stylesheet import Stylesheet
from textual.geometry import Region
from textual.strip import Strip

from ctxctl.tui.literal import strip
from ctxctl.tui.screens.turns import header
from ctxctl.tui.series import Figures
from ctxctl.tui.themes import LIGHT
from ctxctl.tui.widgets.canvas import Canvas
from tests.tui.fake import FakeInspector, notes_agent
from tests.tui.helpers import made, running

WALK = (
    ("]", "]"),
    ("enter",),
    ("enter",),
    ("escape", "t"),
    ("escape", "D"),
    ("escape", "v"),
    ("escape", ":"),
)
VAIN = re.compile(r"\x1b\[\d+;\d+H(?=\x1b\[\d+;\d+H|\n|$)")
"""The cursor goes somewhere, and nothing is written there."""
PATCHES = (
    {Region(0, 0, 30, 1)},
    {Region(2, 5, 9, 3), Region(20, 7, 11, 2)},
    {Region(0, 0, 40, 1), Region(3, 9, 5, 1), Region(30, 9, 4, 1)},
    {Region(0, 0, 40, 10)},
)


def notes() -> FakeInspector:
    return FakeInspector(notes_agent())


def textuals(canvas: Canvas) -> Compositor:
    """Textual's own, with the same widgets in the same places."""
    plain = Compositor()
    vars(plain).update(vars(canvas))
    return plain


def cells(lines: Iterable[Strip]) -> list[list[tuple[str, Style | None]]]:
    return [[(char, part.style) for part in line for char in part.text] for line in lines]


@pytest.mark.parametrize("size", [(80, 24), (200, 50), (40, 10)], ids=lambda size: f"{size[0]}x{size[1]}")
async def test_paints_what_textual_paints(size: tuple[int, int]) -> None:
    app = made(notes())
    async with running(app, size) as session:
        for keys in WALK:
            await session.press(*keys)
            canvas = app.screen._compositor
            assert isinstance(canvas, Canvas)
            assert cells(canvas.render_strips()) == cells(textuals(canvas).render_strips()), keys
            for regions in PATCHES:
                said = []
                for painter in (canvas, textuals(canvas)):
                    painter._dirty_regions = set(regions)
                    update = painter.render_partial_update()
                    assert update is not None
                    said.append(VAIN.sub("", update.render_segments(app.console)))
                assert said[0] == said[1], (keys, regions)


async def test_a_change_asks_only_the_widgets_it_touches(monkeypatch: pytest.MonkeyPatch) -> None:
    app = made(notes())
    async with running(app, (120, 40)):
        asked: list[tuple[str | None, int]] = []
        for widget in app.screen._compositor.visible_widgets:
            plain = widget.render_lines

            def noted(crop: Region, plain: Any = plain, ident: str | None = widget.id) -> list[Strip]:
                asked.append((ident, crop.height))
                return list(plain(crop))

            monkeypatch.setattr(widget, "render_lines", noted)
        head = app.screen.query_one("#head").region
        keys = app.screen.query_one("#keys").region
        app.screen._compositor._dirty_regions = {head, keys}
        app.screen._compositor.render_partial_update()
        assert asked == [("keys", 1), ("head", head.height)] or asked == [("head", head.height), ("keys", 1)]


async def test_nothing_changed_is_no_update() -> None:
    app = made(notes())
    async with running(app):
        app.screen._compositor._dirty_regions = {Region(0, 500, 10, 1)}
        assert app.screen._compositor.render_partial_update() is None


async def test_coming_back_styles_only_after_another_theme(monkeypatch: pytest.MonkeyPatch) -> None:
    app = made(notes())
    async with running(app) as session:
        styled: list[str | None] = []
        plain = Stylesheet.apply

        def noted(self: Stylesheet, node: Any, **how: Any) -> None:
            styled.append(node.id)
            plain(self, node, **how)

        await session.press("t")
        monkeypatch.setattr(Stylesheet, "apply", noted)
        await session.press("escape")
        assert "head" not in styled
        await session.press("t")
        before = app.turns.query_one("#head").rich_style
        app.choose_theme(LIGHT.name)
        await session.press("escape")
        assert "head" in styled
        assert app.turns.query_one("#head").rich_style != before


def test_neighbours_of_one_style_are_one_segment() -> None:
    made_strip = strip(
        [("ab", "x"), ("c", "x"), ("", "y"), ("d", "")], 6, lambda name: Style(bold=True), Style()
    )
    assert [(part.text, part.style) for part in made_strip] == [
        ("abc", Style(bold=True)),
        ("d", Style()),
        ("  ", Style()),
    ]


def test_rows_of_the_window_by_turn_are_kept_by_what_they_show() -> None:
    one, same, other = ((Figures(10, 100), Figures(used, 100)) for used in (90, 90, 40))
    assert header._cells(one, 100, 1, 0, True) is header._cells(same, 100, 1, 0, True)
    assert header._cells(one, 100, 1, 0, True) != header._cells(other, 100, 1, 0, True)
