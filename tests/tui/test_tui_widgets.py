"""The two widgets that everything is shown with, by the text of their lines."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from textual.app import App, ComposeResult

from ctxctl.tui.document import Document
from ctxctl.tui.themes import DARK
from ctxctl.tui.widgets.rows import CURSOR, Rows
from ctxctl.tui.widgets.textview import TextView


class Themed(App[None]):
    CSS_PATH = "../../ctxctl/tui/app.tcss"

    def __init__(self) -> None:
        super().__init__()
        self.register_theme(DARK)
        self.theme = DARK.name


class RowsApp(Themed):
    def __init__(self) -> None:
        super().__init__()
        self.asked: list[int] = []
        self.moved: list[int] = []

    def compose(self) -> ComposeResult:
        yield Rows(self.line, "rows")

    def line(self, line: int, width: int) -> Sequence[tuple[str, str]]:
        self.asked.append(line)
        return [(f"row {line}".ljust(width), "")]

    def on_rows_moved(self, event: Rows.Moved) -> None:
        self.moved.append(event.line)


class TextApp(Themed):
    def compose(self) -> ComposeResult:
        yield TextView(ident="text")


def seen(widget: Rows | TextView) -> list[str]:
    return [widget.render_line(y).text.rstrip() for y in range(widget.size.height)]


async def test_ten_million_rows_ask_only_for_those_in_view() -> None:
    app = RowsApp()
    async with app.run_test(size=(30, 10)) as pilot:
        rows = app.query_one(Rows)
        rows.show(10_000_000, 0)
        rows.focus()
        await pilot.pause()
        assert seen(rows)[0] == f"{CURSOR}row 0"
        await pilot.press("G")
        assert seen(rows)[-1] == f"{CURSOR}row 9999999"
        assert len(app.asked) < 100
        await pilot.press("g")
        assert seen(rows)[0] == f"{CURSOR}row 0"


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ("j", 1),
        ("jjk", 1),
        ("k", 0),
        (["down", "down"], 2),
        (["ctrl+d"], 5),
        (["pagedown", "pageup"], 0),
        (["end", "k"], 98),
    ],
)
async def test_keys_move_the_cursor(keys: Sequence[str], line: int) -> None:
    app = RowsApp()
    async with app.run_test(size=(30, 10)) as pilot:
        rows = app.query_one(Rows)
        rows.show(100, 0)
        rows.focus()
        await pilot.press(*keys)
        await pilot.pause()
        assert rows.cursor == line
        assert app.moved == [] or app.moved[-1] == line
        assert sum(text.startswith(CURSOR) for text in seen(rows)) == 1


async def test_an_empty_list_takes_keys() -> None:
    app = RowsApp()
    async with app.run_test(size=(30, 10)) as pilot:
        rows = app.query_one(Rows)
        rows.focus()
        await pilot.press("j", "G", "k", "g", "ctrl+d")
        assert rows.cursor == 0
        assert seen(rows) == [""] * 10


async def test_a_shorter_list_keeps_the_cursor_inside() -> None:
    app = RowsApp()
    async with app.run_test(size=(30, 10)) as pilot:
        rows = app.query_one(Rows)
        rows.show(100, 99)
        await pilot.pause()
        rows.show(3, 99)
        await pilot.pause()
        assert rows.cursor == 2
        assert seen(rows)[:3] == [" row 0", " row 1", f"{CURSOR}row 2"]


async def test_a_click_moves_and_a_second_one_chooses() -> None:
    chosen: list[int] = []

    class Clicked(RowsApp):
        def on_rows_chosen(self, event: Rows.Chosen) -> None:
            chosen.append(event.line)

    app = Clicked()
    async with app.run_test(size=(30, 10)) as pilot:
        rows = app.query_one(Rows)
        rows.show(100, 0)
        await pilot.click(Rows, offset=(3, 4))
        assert rows.cursor == 4
        await pilot.click(Rows, offset=(3, 5), times=2)
        await pilot.pause()
        assert chosen == [5]


async def test_a_text_is_wrapped_and_numbered() -> None:
    app = TextApp()
    async with app.run_test(size=(20, 6)) as pilot:
        view = app.query_one(TextView)
        view.show(Document("first line\nthe second line", numbered=True))
        await pilot.pause()
        assert seen(view)[:4] == ["    1  first line", "    2  the second", "       line", ""]


async def test_a_diff_has_its_signs_once_a_line() -> None:
    app = TextApp()
    async with app.run_test(size=(14, 6)) as pilot:
        view = app.query_one(TextView)
        view.show(Document.of_lines([("@", "@@ -1 +1 @@"), ("-", "old words here"), ("+", "new")]))
        await pilot.pause()
        assert seen(view)[:4] == ["  @@ -1 +1 @@", "\u2212 old words", "  here", "+ new"]


async def test_a_text_keeps_its_place_when_the_terminal_changes() -> None:
    app = TextApp()
    text = "\n".join(f"line {n} with a few more words" for n in range(500))
    async with app.run_test(size=(60, 10)) as pilot:
        view = app.query_one(TextView)
        view.show(Document(text, numbered=True))
        view.focus()
        for _ in range(20):
            await pilot.press("pagedown")
        top = seen(view)[0]
        await pilot.resize_terminal(24, 10)
        await pilot.pause()
        number = top.split()[0]
        assert seen(view)[0].split()[0] == number


async def test_the_end_of_a_text_that_is_still_being_wrapped() -> None:
    app = TextApp()
    async with app.run_test(size=(40, 10)) as pilot:
        view = app.query_one(TextView)
        view.show(Document("\n".join(str(n) for n in range(20_000))))
        view.focus()
        assert not view.done
        await pilot.press("G")
        while not view.done:
            await pilot.pause(0.02)
        await pilot.pause(0.05)
        assert seen(view)[-1].strip() == "19999"
