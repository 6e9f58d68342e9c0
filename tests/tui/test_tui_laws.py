"""Laws that hold on every screen, at every size, in every theme, as somebody goes through committed traces.

Whatever is wrong is collected with the screen on which it is, so that one run tells all of it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import LARGE, SMALL, Session, running, strips
from rich.segment import Segment
from rich.style import Style
from test_tui_fleet import Shown, shown
from test_tui_themes import LEAST, contrast

from ctxctl.config import Settings
from ctxctl.session import Inspector
from ctxctl.text import cells
from ctxctl.tui.app import CtxApp
from ctxctl.tui.thread_names import is_id
from ctxctl.tui.widgets.rows import Rows
from scripts.fleet_sample import sample

ROOT = Path(__file__).parents[2]
MIDDLE = (120, 40)
TRACES = (
    "traces/coding-agent.jsonl",
    "fixtures/claude_code/requests.jsonl",
)

WALK: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("turns", ()),
    ("steps", ("l", "j", "j")),
    ("next turn", ("right_square_bracket",)),
    ("notable", ("right_curly_bracket",)),
    ("changes", ("tab", "j", "j")),
    ("all changes", ("a",)),
    ("item", ("enter",)),
    ("diff of an item", ("d",)),
    ("record", ("x",)),
    ("life", ("L",)),
    ("why", ("escape", "w")),
    ("blame", ("b",)),
    ("findings", ("exclamation_mark",)),
    ("compactions", ("escape", "escape", "escape", "C")),
    ("stages", ("escape", "s")),
    ("assembled", ("escape", "t")),
    ("two frames", ("escape", "D")),
    ("texts of two frames", ("enter",)),
    ("overview", ("q", "v")),
    ("overview of a thread", ("j",)),
    ("search", ("escape", "slash")),
    ("hits", (*"kind:tool", "enter")),
    ("about", ("escape", "i")),
    ("problems", ("escape", "p")),
    ("help", ("escape", "question_mark")),
    ("commands", ("escape", "colon")),
    ("what if", ("escape", "W")),
    ("turns of what if", (*"900", "enter")),
)
"""Screens in the order in which they are gone through, with the keys that lead from the one before."""
FLEET: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("projects", ("j",)),
    ("by cost", ("S",) * 7),
    ("sessions of a project", ("enter", "j")),
    ("sessions by cost", ("S",) * 7),
    ("clients", ("escape", "B")),
    ("sessions of a client", ("enter", "j")),
    ("weeks", ("escape", "B", "G")),
    ("all sessions", ("B", "j")),
    ("found", ("slash", *"cost>2")),
    ("a mistake", (*" clinet:x",)),
    ("nothing found", ("escape", "slash", *"zebra")),
    ("keys of the overview", ("escape", "question_mark")),
    ("commands of the overview", ("escape", "colon")),
)
"""The same of the overview of a dataset."""
IN_FULL = {
    "record", "stages", "about", "problems", "assembled", "two frames", "texts of two frames",
    *(name for name, _ in FLEET if name not in ("projects", "by cost", "clients", "weeks")),
}  # fmt: skip
"""Screens on which ids stand as they are recorded, in addresses, or in the names of files."""
TEXTS = {"item", "diff of an item", "record"}
"""Screens with a text of the trace in a pane."""
ORNAMENTS = frozenset("─│┃━╭╮╰╯┏┓┗┛├└┌┐┘┤┬┴┼╵╷┄┆╌╱·▏▎▍▌▋▊▉█▁▂▃▄▅▆▇░▒▓┊…↳")  # noqa: RUF001
"""Characters that draw and say nothing that words do not say; a dot that stands for nothing is one too."""
TIGHT = 24
"""Cells of a list below which it shows little more than numbers."""


def segments(session: Session | Shown) -> Iterator[tuple[int, Segment]]:
    """What is on the screen, with its line."""
    for y, strip in enumerate(strips(session.app)):
        for segment in strip:
            yield y, segment


def overflowing(session: Session | Shown, width: int) -> Iterator[str]:
    """Lines that are not as wide as the screen."""
    for y, strip in enumerate(strips(session.app)):
        size = cells("".join(segment.text for segment in strip))
        if size != width:
            yield f"line {y} has {size} cells"


def alike(session: Session | Shown) -> Iterator[str]:
    """Rows of a list that look like another row of it."""
    for rows in session.app.screen.query(Rows):
        if not rows.display or rows.size.width < TIGHT:
            continue
        texts = [
            "".join(text for text, _ in rows.parts_of(n, rows.size.width)).strip() for n in range(rows.count)
        ]
        for text, count in Counter(texts).items():
            if count > 1 and text:
                yield f"{count} rows of {rows.id}: {text}"


def ids(session: Session | Shown) -> Iterator[str]:
    """Words that nobody reads, but for the name of the trace in the first line and what is in a text."""
    for y, line in enumerate(session.lines):
        for word in re.split(r"[-_./:#@\s()\[\]{},;“”\"'…=→│┃*]+", line):
            if y and is_id(word):
                yield f"line {y}: {word}"


def pale(session: Session | Shown, least: float) -> Iterator[str]:
    """Words with too little contrast, as they are painted."""
    base: Style = session.app.screen.rich_style
    for y, segment in segments(session):
        word = "".join(letter for letter in segment.text if letter not in ORNAMENTS and not letter.isspace())
        if not word:
            continue
        style = base + (segment.style or Style.null())
        assert style.color is not None
        assert style.bgcolor is not None
        ratio = contrast(style.color.get_truecolor(), style.bgcolor.get_truecolor(foreground=False))
        if ratio < least:
            yield f"line {y}: {word[:40]!r} {ratio:.2f}"


def bare(session: Session | Shown) -> Iterator[str]:
    """Cells that show the terminal's own ground, whatever theme is chosen."""
    for y, segment in segments(session):
        if segment.text and (segment.style is None or segment.style.bgcolor is None):
            yield f"line {y}: {len(segment.text)} cells without a ground"


async def faults(session: Session | Shown, screen: str, width: int) -> list[str]:
    """What is wrong with the screen in front, in each theme."""
    found = [*overflowing(session, width), *alike(session)]
    if screen not in IN_FULL | TEXTS:
        found += ids(session)
    for theme in ("light", "dark"):
        session.app.theme = theme
        await session.pilot.pause()
        found += [f"{theme}: {fault}" for fault in (*pale(session, LEAST[theme]), *bare(session))]
    return [f"{screen}: {fault}" for fault in found]


@pytest.mark.slow
@pytest.mark.parametrize("size", [SMALL, MIDDLE, LARGE], ids="{0[0]}x{0[1]}".format)
@pytest.mark.parametrize("trace", TRACES)
async def test_every_screen_can_be_read(
    trace: str, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    settings = Settings(theme="dark", remember=False)
    app = CtxApp(
        lambda: Inspector.open(ROOT / trace, calibration="shipped"), Path(trace).name, settings=settings
    )
    wrong: list[str] = []
    async with running(app, size) as session:
        for screen, keys in WALK:
            await session.press(*(_NAMES.get(key, key) for key in keys))
            app.clear_notifications()
            await session.pilot.pause()
            wrong += await faults(session, screen, size[0])
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("size", [SMALL, MIDDLE, LARGE], ids="{0[0]}x{0[1]}".format)
async def test_every_screen_of_a_dataset_can_be_read(
    size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    wrong: list[str] = []
    async with shown(read=sample, size=size, settings=Settings(theme="dark", remember=False)) as going:
        for screen, keys in FLEET:
            await going.press(*(_NAMES.get(key, key) for key in keys))
            wrong += await faults(going, screen, size[0])
    assert not wrong, "\n".join(wrong)


_NAMES = {":": "colon", "_": "underscore", ">": "greater_than_sign", " ": "space"}
