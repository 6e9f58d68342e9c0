"""The help in the width there is."""

from __future__ import annotations

from fake import FakeInspector, notes_agent
from helpers import SMALL, made, running

from ctxctl.tui import keys
from ctxctl.tui.screens.reader import in_columns


def test_columns_hold_every_line_once_and_tear_no_paragraph() -> None:
    lines = keys.help_lines()
    said = [text for _, text in lines if text]
    for columns in (1, 2, 3, 4):
        document = in_columns(lines, columns)
        rows = document.text.split("\n")
        sides = [row[n * 76 : (n + 1) * 76].rstrip() for n in range(columns) for row in rows]
        assert [side for side in sides if side] == [text.rstrip() for text in said]
    assert max(map(len, in_columns(lines, 2).text.split("\n"))) < 2 * 76
    assert in_columns(lines, 2).text.count("\n") < len(lines) * 2 // 3


def test_headings_look_like_headings_in_every_column() -> None:
    lines = keys.help_lines()
    document = in_columns(lines, 2)
    assert document.spans is not None
    found = [document.text[a:b] for a, b, _ in document.spans.within(0, len(document.text))]
    assert sorted(found) == sorted(text for kind, text in lines if kind == "@")


async def test_the_key_that_opens_the_help_closes_it() -> None:
    async with running(made(FakeInspector(notes_agent())), SMALL) as session:
        await session.press("question_mark")
        assert "help" not in session.lines[-1]
        await session.press("question_mark")
        assert session.app.screen is session.app.turns


async def test_the_help_follows_the_size() -> None:
    async with running(made(FakeInspector(notes_agent())), SMALL) as session:
        await session.press("question_mark")
        assert "Overview" not in session.text
        await session.resize(160, 24)
        first = session.text.splitlines()[1]
        assert "Turns, changes, items" in first
        assert len(first.split("  ")) > 2
        assert len([word for word in first.strip("│ ").split("   ") if word.strip()]) == 2
        await session.resize(80, 24)
        assert "│  Turns, changes, items" in session.text
