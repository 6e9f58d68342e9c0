"""A trace in which every string is an attack, on every screen: nothing of it reaches the terminal as such."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from fake import FakeInspector, Request, Thing
from helpers import Session, made, running, settle, strips
from rich.console import Console
from textual.app import App, ComposeResult
from textual.strip import Strip
from textual.widgets import Static

from ctxctl.errors import UnreadableError
from ctxctl.model.problem import Problem
from ctxctl.tui import literal

ATTACKS = (
    "\x1b]0;title\x07",
    "\x1b]52;c;Y3VybCBldmlsfHNo\x1b\\",
    "\x1b[2J\x1b[H\x1b[31mred\x1b[6n",
    "\x9b2J\x9d0;x\x9c\x85\x90q\x9c",
    "\u202eevil\u202c \u2066iso\u2069 \u200f \u061c",
    "zero\u200bwidth\u2060\ufeff \u00ad\U000e0041\U000e007f",
    "\r\nover\rwrite\b\b\v\f\x00\x7f",
    "[@click=app.quit]quit[/]",
    "[ @click=app.screenshot('x.svg','.')]details",
    "[/] [/foo] [/ [INST] [bold] [50%] [$primary] [link=http://x]l[/link]",
    "\ud83d\udc00 lone \ud800",
    "👩\u200d👩\u200d👧 e\u0301 世界 \u2028\u2029",
    "\\[ \\\\[red] {braces} %s $name :smile:",
)
ALL = " ".join(ATTACKS)
BAD = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
SGR = re.compile(r"\x1b\[[0-9;:]*m")


def hostile() -> FakeInspector:
    """An inspector whose every string is hostile."""
    things = [
        Thing(f"{attack}{n}", f"{attack}\n{ALL}\n\t{attack}", f"kind{attack}", attack if n % 2 else None)
        for n, attack in enumerate(ATTACKS)
    ]
    later = [thing._replace(text=f"{thing.text}\nand {ALL}") for thing in things[1:]]
    requests = [
        Request(1, tuple(things), thread=ALL, session=ALL, title=ALL, model=ALL, reported=5),
        Request(1, tuple(later), thread=ALL, session=ALL, model=ALL, flags=(ALL, "unrecorded_cut")),
        Request(
            2,
            tuple(later[2:]),
            thread=ALL,
            session=ALL,
            title=ALL,
            model=ALL,
            causes={later[0].item: (ALL, ALL)},
            omitted=((Thing(f"omitted {ALL}", ALL, ALL, ALL), ALL),),
        ),
        Request(1, (things[0],), thread=f"other{ALL}", session=f"two{ALL}", title=ALL),
    ]
    problems = [Problem(n, n, attack, ALL) for n, attack in enumerate(ATTACKS)]
    inspector = FakeInspector(requests, name=f"trace {ALL}", problems=problems)
    inspector.format = ALL
    inspector.params.encoding = ALL
    return inspector


def faults(lines: list[Strip]) -> Iterator[str]:
    """What the lines would do to a terminal or to a mouse besides showing text in colour."""
    console = Console(force_terminal=True, color_system="truecolor", legacy_windows=False)
    for y, strip in enumerate(lines):
        sent = SGR.sub("", strip.render(console))
        if found := BAD.search(sent):
            yield f"line {y}: {found.group()!r}"
        for segment in strip:
            if segment.style is not None and (segment.style.link or "@click" in (segment.style.meta or {})):
                yield f"line {y}: an action"


SCREENS = (
    (),
    ("l", "j", "j"),
    ("enter", "j"),
    ("enter", "j", "enter"),
    ("enter", "j", "j", "enter", "d", "G"),
    ("right_square_bracket", "enter", "G", "k", "k", "enter"),
    ("G", "a", "enter"),
    ("t",),
    ("p", "G"),
)


@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (200, 50), (30, 12)], ids=str)
async def test_no_screen_lets_an_attack_through(size: tuple[int, int]) -> None:
    async with running(made(hostile()), size) as session:
        start = session.app.turns.state
        for keys in SCREENS:
            await session.press(*keys)
            assert list(faults(strips(session.app))) == [], keys
            await leave(session, start)
        assert not session.app.fault


async def leave(session: Session, start: Any) -> None:
    """Back to the main screen as it was at first."""
    if len(session.app.screen_stack) > 2:
        await session.press("escape")
    session.app.turns.apply(start)
    await settle(session.app, session.pilot)


@pytest.mark.slow
async def test_clicking_on_data_runs_no_action(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[Any] = []

    async def run_action(self: App[Any], action: Any, *_: Any, **__: Any) -> bool:
        ran.append(action)
        return True

    async with running(made(hostile()), (100, 24)) as session:
        monkeypatch.setattr(App, "run_action", run_action)
        for y in range(0, 24, 3):
            for x in range(2, 100, 24):
                await session.pilot.click(offset=(x, y))
    assert ran == []


async def test_what_is_shown_is_the_text_made_visible() -> None:
    async with running(made(hostile()), (200, 50)) as session:
        await session.press("t")
        for shown in ("␛]52;c;Y3VybCBldmlsfHNo␛\\", "⟨U+202E⟩evil", "[@click=app.quit]quit[/]", "⟨U+009B⟩2J"):
            assert shown in session.text


async def test_the_check_catches_what_textual_lets_through() -> None:
    class Naive(App[None]):
        def compose(self) -> ComposeResult:
            yield Static(ATTACKS[1], markup=False)
            yield Static(ATTACKS[4], markup=False)
            yield Static(ATTACKS[7])

    app = Naive()
    async with app.run_test(size=(80, 24)):
        lines = app.screen._compositor.render_strips()
        found = list(faults(lines))
    assert any("\\x1b" in fault for fault in found)
    assert any("\\u202e" in fault for fault in found)
    assert any("an action" in fault for fault in found)


async def test_the_message_of_a_failed_opening_is_kept_for_after() -> None:
    def fail() -> Any:
        raise UnreadableError("no-events", ALL)

    from ctxctl.tui.app import CtxApp

    app = CtxApp(fail, ALL)
    async with running(app):
        pass
    assert app.return_code == 3


@pytest.mark.parametrize("attack", ATTACKS)
def test_literals_hold_no_markup_and_no_control(attack: str) -> None:
    made_content = literal.content(attack)
    assert not BAD.search(made_content.plain)
    assert "\n" not in made_content.plain
    assert made_content.spans == []
