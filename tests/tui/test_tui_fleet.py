"""The overview of a dataset: what it shows, how one groups, sorts and finds, and what is opened."""

from __future__ import annotations

import asyncio
import shutil
import sys
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from helpers import LARGE, SMALL, check_golden, strips
from terminal import harm, terminal
from test_tui_hostile import ATTACKS
from textual.pilot import Pilot

from ctxctl.config import Settings
from ctxctl.dataset.session_values import Figures, Places, SessionRow, SessionRows
from ctxctl.errors import UnreadableError
from ctxctl.tui.fleet_app import FleetApp, FleetPick
from ctxctl.tui.screens.fleet.state import GROUP_ORDERS, SESSION_ORDERS, Inside, Wish, matter_of

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
BEGAN = datetime(2026, 8, 5, 9, 30)
NOTHING = Figures()


@pytest.fixture(autouse=True)
def _dark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLORFGBG", raising=False)


def figures(requests: int, sent: int, usd: float | None, **others: Any) -> Figures:
    made: dict[str, Any] = {
        "filled": sent / requests / 200_000, "read": sent // 2, "read_of": sent, "usd": usd,
        "unpriced": 0 if usd is not None else requests, **others,
    }  # fmt: skip
    return Figures(requests, sent, **made)


def session(number: int, project: str | None, client: str | None, own: Figures, **facts: Any) -> SessionRow:
    made: dict[str, Any] = {
        "name": f"s{number}", "title": None, "branch": "main", "client_version": "2.1.0", "model": "opus-4",
        "format": "claude-code", "started": BEGAN - timedelta(days=number), "turns": 3, "labels": (),
        "path": f"/logs/{project}/{number}.jsonl", "sessions": 1, "copied": NOTHING, **facts,
    }  # fmt: skip
    made.setdefault("places", Places("3.2", "2.1", "4.1" if own.misses else None, None))
    return SessionRow(
        f"{number:016x}", f"{number + 256:016x}", project=project, client=client, own=own, **made
    )


ROWS = (
    session(1, "orchard", "Claude Code", figures(40, 3_200_000, 12.5, misses=3, compactions=1)),
    session(2, "orchard", "Codex", figures(10, 400_000, 1.25, unpriced=4), labels=(("team", "fruit"),)),
    session(
        3, "observatory", "Claude Code", figures(30, 2_000_000, 6.0),
        copied=figures(10, 500_000, 1.5), title="Grind the second mirror",
    ),
    session(
        4, "mirrors", "Codex", figures(5, 90_000, None, filled=None, unlimited=5, read=None, read_of=None),
    ),
    session(
        5, None, None, figures(2, 900, None, unbilled=2, misses=None, unread=1), started=None, path=None,
        model=None, client_version=None, branch=None,
    ),
)  # fmt: skip


def held(rows: Sequence[SessionRow] = ROWS, **others: Any) -> SessionRows:
    return SessionRows("logs/fleet", 4, tuple(rows), len({row.key for row in rows}), **others)


class Shown:
    """A running overview and its pilot."""

    def __init__(self, app: FleetApp, pilot: Pilot[None]) -> None:
        self.app, self.pilot = app, pilot

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.pilot.press(key)
            await self.settle()

    async def resize(self, width: int) -> None:
        await self.pilot.resize_terminal(width, 24)
        await self.settle()

    async def settle(self) -> None:
        for _ in range(500):
            await self.pilot.pause()
            if self.app.return_code is not None or not self.app.is_running:
                return
            if self.app.feed.idle:
                await self.pilot.pause()
                return
            await asyncio.sleep(0.01)
        raise AssertionError("the feed did not come to rest")

    @property
    def lines(self) -> list[str]:
        return ["".join(part.text for part in strip) for strip in strips(self.app)]

    @property
    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self.lines) + "\n"

    @property
    def names(self) -> list[str | None]:
        view = self.app.fleet.view
        return [row.name for row in view.sessions] if view.wish.flat else [one.key for one in view.groups]

    @property
    def front(self) -> str | None:
        front = self.app.fleet.front
        return front.name if isinstance(front, SessionRow) else None if front is None else front.key

    @property
    def said(self) -> str:
        return " ".join(note.message for note in self.app._notifications)


@asynccontextmanager
async def shown(
    rows: Sequence[SessionRow] = ROWS, size: tuple[int, int] = SMALL, pick: FleetPick | None = None,
    read: Callable[[], SessionRows] | None = None, settings: Settings | None = None,
) -> AsyncIterator[Shown]:  # fmt: skip
    app = FleetApp(read or (lambda: held(rows)), pick or FleetPick(), settings)
    try:
        async with app.run_test(size=size, notifications=True) as pilot:
            going = Shown(app, pilot)
            await going.settle()
            yield going
    finally:
        app.feed.stop()


SIZES = pytest.mark.parametrize("size", [SMALL, (120, 40), LARGE], ids=["80x24", "120x40", "200x50"])
SCREENS = {
    "groups": (), "weeks": ("B", "B"), "sessions": ("enter",), "found": ("slash", *"cost>2"),
    "wrong": ("slash", *"clinet:x"), "nothing-found": ("slash", *"zebra"), "none": (),
}  # fmt: skip


@SIZES
@pytest.mark.parametrize("name", SCREENS)
async def test_it_looks_as_it_did(name: str, size: tuple[int, int]) -> None:
    names = {">": "greater_than_sign", ":": "colon"}
    async with shown(() if name == "none" else ROWS, size) as going:
        await going.press(*(names.get(key, key) for key in SCREENS[name]))
        check_golden(f"fleet-{name}-{size[0]}x{size[1]}", going.text)


async def test_sessions_are_told_apart_by_titles_or_by_as_much_of_a_path_as_fits() -> None:
    rows = [
        session(
            n,
            "orchard",
            "Codex",
            figures(1, 100, None),
            path=f"/logs/{n}b48f6b6e{n}/0/full.jsonl",
            title=title,
        )
        for n, title in enumerate((None, None, "Grind the second mirror"))
    ]
    async with shown(rows, (120, 40), FleetPick(Wish(by="session"))) as going:
        assert "b48f6b6e0/0/full.jsonl" in going.text
        assert "b48f6b6e1/0/full.jsonl" in going.text
        assert going.text.count("Grind the second") == 1
        await going.press("G")
        assert going.text.count("Grind the second") == 2
        await going.resize(80)
        assert "Grind the second mirror  opens at 3.2" in going.text


async def test_a_size_that_nobody_billed_or_counted_is_no_zero() -> None:
    rows = [
        session(n, "p", "Codex", figures(2, sent, None, unbilled=2, filled=0.0))
        for n, sent in enumerate((0, 9))
    ]
    async with shown(rows, (120, 40), FleetPick(Wish(by="session", session_order="sent"))) as going:
        assert "≈0" not in going.text
        assert going.names == ["s1", "s0"], "what is not known comes last"
        await going.press("R")
        assert going.names == ["s1", "s0"]


async def test_groups_go_from_project_to_client_to_week_to_sessions() -> None:
    async with shown() as going:
        assert going.names == ["orchard", "observatory", "mirrors", None]
        await going.press("B")
        assert going.names == ["Claude Code", "Codex", None]
        await going.press("B")
        assert going.names == ["2026-08-03", "2026-07-27", None]  # Mondays, the newest first
        await going.press("B")
        assert going.names == ["s1", "s2", "s3", "s4", "s5"]
        await going.press("B")
        assert going.names == ["orchard", "observatory", "mirrors", None]
        assert going.app.fleet.wish == Wish()
        await going.press("R", "B", "B")  # a chosen order stays
        assert (going.app.fleet.wish.order, going.app.fleet.wish.reverse) == ("sessions", True)


async def test_a_group_counts_a_request_of_two_captures_once_and_the_list_says_so() -> None:
    async with shown(size=LARGE) as going:
        await going.press("j")
        group = going.app.fleet.front
        assert group is not None
        assert not isinstance(group, SessionRow)
        assert (group.key, group.figures.requests, group.copies) == ("observatory", 20, 10)
        assert "10 requests more count in another capture" in going.text
        await going.press("enter")
        assert "10 of its 30 requests count in another capture" in going.text


async def test_enter_lists_a_groups_sessions_and_escape_comes_back_to_the_group() -> None:
    async with shown() as going:
        await going.press("j", "enter")
        assert going.names == ["s3"]
        await going.press("escape")
        assert going.front == "observatory"
        await going.press("G", "enter")  # of no known project
        assert going.names == ["s5"]
        await going.press("escape", "escape")
        assert going.app.is_running
        assert going.front is None


async def test_every_column_sorts_and_what_is_not_known_comes_last() -> None:
    first = {
        **dict.fromkeys(GROUP_ORDERS, "orchard"), "name": "mirrors",
    }  # fmt: skip
    async with shown() as going:
        for order in GROUP_ORDERS:
            assert going.app.fleet.wish.order == order
            assert going.names[0] == first[order], order
            if order in ("cost", "name"):
                assert going.names[-1] is None
                await going.press("R")
                assert going.names[-1] is None
                assert going.names[0] == {"cost": "observatory", "name": "orchard"}[order]
            await going.press("S")
        assert going.app.fleet.wish.order == "sessions"
        await going.press("enter", *["S"] * (len(SESSION_ORDERS) - 1))
        assert going.app.fleet.wish.session_order == "name"
        assert going.names == ["s1", "s2"]  # by client, within one project
        await going.press("R")
        assert going.names == ["s2", "s1"]


async def test_the_sorted_column_is_always_shown() -> None:
    async with shown(size=(50, 12)) as going:
        for order in GROUP_ORDERS:
            title = going.text.splitlines()[2]
            assert "▼" in title or "▲" in title, order
            await going.press("S")


async def test_what_is_typed_filters_as_one_types_and_a_mistake_keeps_the_list() -> None:
    async with shown() as going:
        await going.press("slash", *"codex")
        assert going.names == ["orchard", "mirrors"]
        await going.press("space", *"cost", "greater_than_sign")
        assert "needs a number" in going.text
        assert going.names == ["orchard", "mirrors"]
        await going.press("1")
        assert going.names == ["orchard"]
        await going.press("escape")
        assert len(going.names) == 4
        assert going.app.fleet.wish.typed == ""


async def test_a_share_that_is_nearly_none_is_not_cut() -> None:
    async with shown([session(1, "orchard", "Codex", figures(1, 10, 0.00001))]) as going:
        assert "<0.1%" in going.text
        assert "under" not in going.text.splitlines()[3]  # the head has room for the words


async def test_enter_in_the_line_opens_what_is_in_front() -> None:
    async with shown() as going:
        await going.press("slash", *"observ", "enter")
        assert going.names == ["s3"]


async def test_a_session_is_opened_at_what_the_list_is_sorted_by(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("{}")
    row = session(1, "orchard", "Codex", figures(4, 4000, 1.0, misses=2), path=str(tmp_path / "a.jsonl"))
    pick = FleetPick()
    async with shown([row], pick=pick) as going:
        await going.press("enter", "S", "S", "S", "S", "S")
        assert going.app.fleet.wish.session_order == "misses"
        assert "opens at 4.1: its largest cache miss" in going.text
        await going.press("enter")
    assert pick.chosen == row
    assert pick.matter == ("4.1", "its largest cache miss")
    assert going.app.return_code == 0
    async with shown([row], pick=pick) as going:  # where it was left, without reading again
        assert going.app.fleet.wish.inside == Inside("project", "orchard")
        assert going.front == "s1"
        await going.press("escape")
        assert going.front == "orchard"
    assert matter_of(row, "cost") == ("2.1", "its most expensive request")
    assert matter_of(row, "compactions") == ("3.2", "its largest request")


async def test_a_capture_that_is_gone_or_was_never_named_says_so() -> None:
    async with shown(pick=(pick := FleetPick())) as going:
        await going.press("enter", "enter")
        assert "the capture is not here: /logs/orchard/1.jsonl" in going.said
        await going.press("escape", "G", "enter", "enter")
        assert "keeps no paths" in going.said
        assert going.app.is_running
    assert pick.chosen is None


async def test_reading_again_shows_the_newest_version_and_keeps_the_place() -> None:
    versions = [held(ROWS[:3]), held()]
    async with shown(read=lambda: versions.pop(0)) as going:
        await going.press("j")
        assert going.front == "observatory"
        await going.press("r")
        assert "mirrors" in going.names
        assert going.front == "observatory"


async def test_a_dataset_that_cannot_be_read_ends_it_and_one_that_goes_away_does_not() -> None:
    def gone() -> SessionRows:
        raise UnreadableError("no-dataset", "logs: no dataset is there", hint="make one")

    async with shown(read=gone) as going:
        pass
    assert going.app.return_code == 3
    assert going.app.farewell == ["logs: no dataset is there", "make one"]
    answers: list[Callable[[], SessionRows]] = [held, gone]
    async with shown(read=lambda: answers.pop(0)()) as going:
        await going.press("r")
        assert "no dataset is there" in going.said
        assert len(going.names) == 4


async def test_the_screen_answers_while_a_query_runs() -> None:
    go_on = threading.Event()

    def slow() -> SessionRows:
        assert go_on.wait(30)
        return held()

    app = FleetApp(slow, FleetPick())
    async with app.run_test(size=SMALL) as pilot:
        await pilot.pause()
        going = Shown(app, pilot)
        assert "reading the dataset" in going.text
        await pilot.press("B")
        await pilot.pause()
        assert app.fleet.wish.by == "client"
        go_on.set()
        await going.settle()
        assert going.names == ["Claude Code", "Codex", None]
    app.feed.stop()


async def test_twenty_thousand_sessions_scroll() -> None:
    many = [
        session(n, f"p{n % 300}", "Codex", figures(n % 50 + 1, 1000 * (n % 9 + 1), 0.5))
        for n in range(20_000)
    ]
    async with shown(many, pick=FleetPick(Wish(by="session"))) as going:
        assert len(going.names) == 20_000
        await going.press("G")
        assert going.front == "s19999"
        await going.press("g", "pagedown", "S")
        assert going.app.is_running


async def test_what_a_stranger_wrote_is_only_text() -> None:
    hostile = [
        session(
            n, text, text, figures(1, 1, 1.0), title=text, branch=text, model=text, path=f"/logs/{text}",
            labels=((text, text),),
        )
        for n, text in enumerate(ATTACKS)
    ]  # fmt: skip
    async with shown(hostile, LARGE) as going:
        for keys in (("j",) * len(ATTACKS), ("enter", "enter"), ("escape", "B", "enter"), ("B", "B", "B")):
            await going.press(*keys)
            assert not harm(going.text.replace("\n", ""))
        assert going.app.is_running


async def test_commands_lead_to_no_turn_where_no_trace_is_open() -> None:
    async with shown() as going:
        await going.press("colon")
        assert " commands" in going.text
        assert "also a turn" not in going.text
        await going.press("7", "enter")
        assert "no command has that name" in going.text
        assert "go to turn" not in going.text


async def test_the_help_names_its_keys_first() -> None:
    async with shown() as going:
        await going.press("question_mark")
        assert "A dataset of many captures" in going.text
        assert "group by: project, client, week, nothing" in going.text


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs a pty")
def test_on_a_terminal_it_opens_a_session_at_its_largest_request_and_comes_back(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    from tests.unit.dataset.dataset_rows import dataset

    shutil.copy(FIXTURES / "claude_code/session.jsonl", tmp_path / "session.jsonl")
    where = {"session": 1, "source": 2, "month": "2026-08", "format": "claude-code"}
    step = {
        **where,
        "thread": "main",
        "turn": 2,
        "step": 1,
        "target": "model",
        "sent": 5,
        "sent_method": "reported",
    }
    rows = {
        "sources": [{**where, "path": str(tmp_path / "session.jsonl"), "host": "h", "sessions": 1}],
        "sessions": [{**where, "project": "orchard", "host": "h"}],
        "steps": [step],
    }
    del rows["sources"][0]["session"]
    folder = dataset(tmp_path / "fleet", rows)
    environment = {
        "HOME": str(tmp_path),
        "CTXCTL_CACHE_DIR": str(tmp_path / "cache"),
        "TERM": "xterm-256color",
    }
    arguments = [sys.executable, "-m", "ctxctl", "fleet", "--dataset", str(folder)]
    with terminal(arguments, environment=environment, size=(120, 40)) as tty:
        tty.wait_for("1 session")
        tty.type("\r")
        tty.wait_for("opens at 2.1")
        before = len(tty.bytes)
        tty.type("\r")
        tty.wait_for("at 2.1: its largest", before)
        before = len(tty.bytes)
        tty.type("\x1b")
        tty.wait_for("opens at 2.1", before)
        tty.type("q")
        assert tty.wait() == 0
        tty.assert_restored()
        assert not harm(tty.seen)
