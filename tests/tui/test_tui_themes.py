"""Colours can be read, follow each other, and are never the only sign."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from fake import FakeInspector, notes_agent
from helpers import made, running, strips
from rich.color import ColorType
from rich.color_triplet import ColorTriplet
from rich.style import Style

from ctxctl import config
from ctxctl.tui import themes
from ctxctl.tui.app import CtxApp
from ctxctl.tui.widgets.paint import STYLES

ORNAMENTS = {"frame", "gutter", "free", "reserve", "frame-front"}
"""Lines and fillings; what they say stands elsewhere in words or numbers."""
LEAST = {"dark": 4.5, "light": 4.5, "contrast-dark": 7.0, "contrast-light": 7.0}


def luminance(color: ColorTriplet) -> float:
    """Relative luminance by WCAG 2."""
    parts = [c / 255 / 12.92 if c <= 10.3 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in color]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(one: ColorTriplet, other: ColorTriplet) -> float:
    """Contrast ratio by WCAG 2, 1 to 21."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_contrast_is_computed_as_it_should() -> None:
    assert contrast(ColorTriplet(0, 0, 0), ColorTriplet(255, 255, 255)) == pytest.approx(21)
    assert contrast(ColorTriplet(119, 119, 119), ColorTriplet(255, 255, 255)) == pytest.approx(4.48, abs=0.01)


def weak(app: CtxApp, least: float) -> Iterator[str]:
    """Styles of text that have too little contrast on a background on which they stand."""
    base = app.screen.rich_style
    lines = ("cursor", "cursor-focused")
    backgrounds = {"": base, **{name: base + app.swatches.style_of(name) for name in lines}}
    for name in STYLES:
        if name in ORNAMENTS or name.startswith("cursor"):
            continue
        for over, background in backgrounds.items():
            style: Style = background + app.swatches.style_of(name)
            assert style.color is not None
            assert style.bgcolor is not None
            ratio = contrast(style.color.get_truecolor(), style.bgcolor.get_truecolor())
            if ratio < least:
                yield f"{name} over {over or 'the background'}: {ratio:.2f}"


@pytest.mark.parametrize("theme", LEAST)
async def test_text_can_be_read(theme: str) -> None:
    async with running(made(FakeInspector(notes_agent()))) as session:
        session.app.choose_theme(theme)
        await session.pilot.pause()
        assert list(weak(session.app, LEAST[theme])) == []


def test_settings_and_themes_agree() -> None:
    assert ("auto", *themes.NAMES) == config.THEMES
    assert set(LEAST) | {"terminal-dark", "terminal-light"} == set(themes.NAMES)


def test_the_first_theme() -> None:
    light, dark = {"COLORFGBG": "0;15"}, {"COLORFGBG": "15;0"}
    assert themes.first_theme("auto", None, light) == "light"
    assert themes.first_theme("auto", "", dark) == themes.first_theme("auto", "gone", {}) == "dark"
    assert themes.first_theme("auto", "contrast-light", dark) == "contrast-light"
    assert themes.first_theme("terminal-dark", "light", light) == "terminal-dark"


def test_the_cycle_comes_round() -> None:
    seen = ["dark"]
    while len(seen) <= len(themes.NAMES):
        seen.append(themes.next_theme(seen[-1]))
    assert sorted(seen[:-1]) == sorted(themes.NAMES)
    assert seen[-1] == "dark"
    assert themes.next_theme("gone") == "dark"


@pytest.mark.slow
@pytest.mark.parametrize("colourless", [False, True])
async def test_every_theme_shows_the_same_text(colourless: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if colourless:
        monkeypatch.setenv("NO_COLOR", "1")
    async with running(made(FakeInspector(notes_agent()))) as session:
        await session.press("j", "enter")
        shown = session.text
        for _ in themes.NAMES:
            await session.press("T")
            assert f"colours: {session.app.theme}" in session.text
            session.app.clear_notifications()
            await session.pilot.pause()
            assert session.text == shown


@pytest.mark.parametrize("theme", ["terminal-dark", "terminal-light"])
async def test_the_terminals_own_colours_are_left_to_it(theme: str) -> None:
    async with running(made(FakeInspector(notes_agent()))) as session:
        session.app.choose_theme(theme)
        await session.pilot.pause()
        session.app.clear_notifications()
        await session.press("j", "enter")
        for strip in strips(session.app):
            for segment in strip:
                style = segment.style or Style.null()
                for color in (style.color, style.bgcolor):
                    assert color is None or color.type in (ColorType.DEFAULT, ColorType.STANDARD), segment
        cursor = next(strip for strip in strips(session.app) if any("▌" in s.text for s in strip))
        plain = next(iter(strips(session.app)))
        assert {str(s.style) for s in cursor} != {str(s.style) for s in plain}


async def test_the_setting_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLORFGBG", "0;15")
    inspector = FakeInspector(notes_agent())
    app = CtxApp(lambda: inspector, "x", settings=config.Settings(theme="terminal-light"))  # type: ignore[arg-type,return-value]
    async with running(app) as session:
        assert app.theme == "terminal-light"
        await session.press("T")
        assert re.search("colours: dark", session.text)


async def test_a_chart_is_never_reversed_where_one_is() -> None:
    """Reversed, the lowest bar is the highest."""
    async with running(made(FakeInspector(notes_agent()))) as session:
        for theme in themes.NAMES:
            session.app.choose_theme(theme)
            await session.pilot.pause()
            for style in STYLES:
                if style.startswith("gauge") or style.endswith("-here"):
                    assert not session.app.swatches.style_of(style).reverse, (theme, style)
