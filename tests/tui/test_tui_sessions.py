"""The list of sessions: what it shows, how one finds and sorts, and what is opened."""

from __future__ import annotations

import asyncio
import shutil
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from helpers import LARGE, SMALL, check_golden, strips
from terminal import Terminal, harm, terminal
from test_tui_hostile import ATTACKS
from textual.pilot import Pilot

from ctxctl.analysis.cost_groups import CostWords
from ctxctl.fleet.asking import Asker, Question
from ctxctl.fleet.session_files import ListPlace
from ctxctl.fleet.session_list import WORK, SessionList
from ctxctl.model.session_list import ListedSession, Live, SessionFacts
from ctxctl.tui.picker import Pick, PickerApp
from ctxctl.tui.requests import Answered
from ctxctl.tui.screens.sessions import lines
from ctxctl.tui.screens.sessions.state import ORDERS, Wish, in_order
from ctxctl.tui.session_feed import SessionFeed, Told, arranged, fitting_sessions

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
NOW = 1_795_000_000.0
PLACES = ("/home/ada/.claude/projects", "/home/ada/.codex/sessions")


@pytest.fixture(autouse=True)
def _dark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLORFGBG", raising=False)
    monkeypatch.setenv("HOME", "/home/ada")


def facts(prompt: str | None, turns: int, sent: int, cost: str | None, **others: Any) -> SessionFacts:
    made = {
        "directory": None, "prompt": prompt, "sessions": 1, "turns": turns, "steps": turns * 3, "sent": sent,
        "unbilled": 0, "unsized": 0, "cost": None if cost is None else Decimal(cost),
        "counted": False, "at_least": False,
        "first": None, "last": None, **others,
    }  # fmt: skip
    return SessionFacts(**made)


def session(
    name: str,
    age: float,
    directory: str | None,
    known: SessionFacts | None,
    *,
    live: Live = "",
    **others: Any,
) -> ListedSession:
    client = "codex" if "rollout" in name else "claude-code"
    path = f"/home/ada/.claude/projects/-home-ada-work/{name}.jsonl"
    return ListedSession(path, client, directory, NOW - age, 4096, live, known, **others)


TREES = facts("Prune the apple trees of row four", 3, 91_000, "0.4211")
WATER = facts("Why does the irrigation test fail?", 12, 812_000, "3.0912", unbilled=2)
GLASS = facts("Grind the second mirror", 41, 5_120_000, "18.25", at_least=True)
SESSIONS = (
    session("a1", 40, "/home/ada/work/orchard", TREES, live="written"),
    session("rollout-b2", 700, "/home/ada/work/orchard", WATER, live="open", outdated=True),
    session("c3", 90_000, "/home/ada/work/observatory/mirrors", GLASS),
    session("d4", 200_000, "/srv/long/way/down/to/some/project/that/has/a/name", None),
    session("e5", 400_000, None, facts(None, 1, 900, None)),
    session("f6", 900_000, "/home/ada", None, failed="the file is no transcript"),
)


class InstantFeed:
    """Arranges these sessions at once."""

    def __init__(self, sessions: Sequence[ListedSession], post: Callable[[Any], object], **told: Any) -> None:
        unread = sum(one.facts is None and one.failed is None for one in sessions)
        self.told = Told(sessions, PLACES, looked=True, unread=unread, **told)
        self.wished, self.at, self._post = Wish(), None, post
        self.started = self.stopped = False

    def start(self) -> None:
        self.started = True
        self._send()

    def stop(self) -> None:
        self.stopped = True

    def wish(self, wish: Wish) -> None:
        self.wished = wish
        if self.started:
            self._send()

    def front(self, path: Any) -> None:
        self.at = path

    def _send(self) -> None:
        made = arranged(self.told, self.wished, self.at, NOW)
        assert made is not None
        self._post(Answered(made))


class Shown:
    """A running list and its pilot."""

    def __init__(self, app: PickerApp, pilot: Pilot[None]) -> None:
        self.app, self.pilot = app, pilot

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.pilot.press(key)
            await self.pilot.pause()

    @property
    def text(self) -> str:
        lines = ("".join(part.text for part in strip).rstrip() for strip in strips(self.app))  # type: ignore[arg-type]
        return "\n".join(lines) + "\n"

    @property
    def names(self) -> list[str]:
        return [Path(one.path).stem for one in self.app.sessions.view.rows]

    @property
    def front(self) -> str | None:
        front = self.app.sessions.front
        return None if front is None else Path(front.path).stem


@asynccontextmanager
async def shown(
    sessions: Sequence[ListedSession] = SESSIONS, size: tuple[int, int] = SMALL, pick: Pick | None = None,
    **told: Any,
) -> AsyncIterator[Shown]:  # fmt: skip
    def feed(_open: object, post: Any) -> Any:
        return InstantFeed(sessions, post, **told)

    app = PickerApp(lambda: None, pick or Pick(), make_feed=feed)  # type: ignore[arg-type, return-value]
    async with app.run_test(size=size, notifications=True) as pilot:
        await pilot.pause()
        await pilot.pause()
        yield Shown(app, pilot)


@pytest.mark.parametrize("size", [SMALL, (120, 40), LARGE], ids=["80x24", "120x40", "200x50"])
@pytest.mark.parametrize("name", ["all", "found", "nothing-found", "none"])
async def test_it_looks_as_it_did(name: str, size: tuple[int, int]) -> None:
    async with shown(() if name == "none" else SESSIONS, size) as going:
        if name in ("found", "nothing-found"):
            await going.press("slash", *("mirror" if name == "found" else "zebra"))
        check_golden(f"sessions-{name}-{size[0]}x{size[1]}", going.text)


@pytest.mark.parametrize("sessions", [SESSIONS, ()], ids=["some", "none"])
async def test_what_may_not_be_read_is_said(sessions: tuple[ListedSession, ...]) -> None:
    closed = ("/home/ada/.codex/sessions: Permission denied",)
    async with shown(sessions, closed=closed) as going:
        assert "1 not readable" in going.text
        assert ("~/.codex/sessions: Permission denied" in going.text) == (not sessions)


async def test_a_typed_word_stands_in_project_prompt_or_client() -> None:
    async with shown() as going:
        for typed, found in (("mirror", ["c3"]), ("codex", ["rollout-b2"]), ("orchard tr", ["a1"])):
            await going.press("slash", *(" ".join(typed).replace("   ", " space ").split()))
            assert going.names == found, typed
            await going.press("escape")
        assert len(going.names) == len(SESSIONS)


async def test_a_mistyped_word_finds_what_is_like_it_and_comes_last() -> None:
    like = session("x", 5, "/home/ada/work/orhcard", facts("other", 1, 1, "1"))
    found = fitting_sessions((like, *SESSIONS), "orchard")
    assert found is not None
    assert [Path(one.path).stem for one in found] == ["a1", "rollout-b2", "x"]
    assert fitting_sessions(SESSIONS, "xyzzyx") == []


async def test_enter_opens_the_session_in_front_also_from_the_line() -> None:
    async with shown(pick=(pick := Pick())) as going:
        await going.press("j", "enter")
    assert pick.chosen is not None
    assert Path(pick.chosen).stem == "rollout-b2"
    async with shown(pick=pick) as going:
        assert going.front == "rollout-b2"  # where the list was left
        await going.press("slash", *"mirror", "enter")
    assert Path(pick.chosen).stem == "c3"


async def test_up_and_down_move_in_the_list_while_one_types() -> None:
    async with shown() as going:
        await going.press("slash", "down", "down")
        assert going.front == "c3"
        await going.press("up")
        assert going.front == "rollout-b2"


async def test_leaving_opens_nothing() -> None:
    async with shown(pick=(pick := Pick())) as going:
        await going.press("q")
    assert pick.chosen is None
    assert going.app.return_code == 0


async def test_escape_never_leaves_the_list() -> None:
    async with shown() as going:
        await going.press("escape", "escape")
        assert going.app.is_running
        assert going.app.return_code is None


async def test_every_column_sorts_and_what_is_not_known_comes_last() -> None:
    async with shown() as going:
        expected = {
            "age": ["a1", "rollout-b2", "c3", "d4", "e5", "f6"],
            "project": ["f6", "c3", "a1", "rollout-b2", "d4", "e5"],
            "client": ["a1", "c3", "d4", "e5", "f6", "rollout-b2"],
            "turns": ["c3", "rollout-b2", "a1", "e5", "d4", "f6"],
            "sent": ["c3", "rollout-b2", "a1", "e5", "d4", "f6"],
            "cost": ["c3", "rollout-b2", "a1", "d4", "e5", "f6"],
        }
        for order in ORDERS:
            assert going.app.sessions.wish.order == order
            assert going.names == expected[order]
            await going.press("S")
        assert going.names == expected["age"]
        await going.press("R")
        assert going.names == expected["age"][::-1]


def test_of_equals_the_one_written_last_comes_first_either_way() -> None:
    twins = [session(str(n), n, "/same", None) for n in (3, 1, 2)]
    for reverse in (False, True):
        found = in_order(twins, Wish(order="project", reverse=reverse))
        assert [one.path[-7:] for one in found] == ["1.jsonl"[-7:], "2.jsonl", "3.jsonl"]


async def test_the_cursor_stays_on_its_session_when_others_come() -> None:
    async with shown() as going:
        await going.press("j", "j")
        newer = session("g7", 1, None, None)
        feed: Any = going.app.feed
        feed.told = feed.told._replace(sessions=(newer, *SESSIONS))
        feed._send()
        await going.pilot.pause()
        assert going.names[0] == "g7"
        assert going.front == "c3"


async def test_an_answer_to_an_older_wish_is_not_shown() -> None:
    async with shown() as going:
        old = going.app.sessions.view
        await going.press("slash", *"mirror")
        going.app.sessions.apply(old)
        assert going.names == ["c3"]


async def test_what_a_stranger_wrote_is_only_text() -> None:
    hostile = [session(f"h{n}", n, f"/srv/{text}", facts(text, 1, 1, "1")) for n, text in enumerate(ATTACKS)]
    async with shown(hostile, LARGE) as going:
        assert "\x1b" not in going.text
        assert "\u202e" not in going.text
        await going.press(*("j" * len(ATTACKS)))
        assert going.app.is_running


async def test_the_help_names_its_keys_first() -> None:
    async with shown() as going:
        await going.press("question_mark")
        assert "Sessions" in going.text
        assert "find by project, prompt or client" in going.text


@contextmanager
def real_sessions(top: Path) -> Iterator[tuple[SessionList, Asker]]:
    words = CostWords("model", None, None, None, "none", "none", {})
    question = Question(WORK, msgspec.msgpack.encode(words), "this test")
    yield SessionList([ListPlace(str(top), ("claude-code",))], None, question), Asker("/", None)


@pytest.mark.slow
async def test_sessions_are_found_and_read_behind_the_screen(tmp_path: Path) -> None:
    for name in ("one", "two"):
        shutil.copy(FIXTURES / "claude_code/session.jsonl", tmp_path / f"{name}.jsonl")
    app = PickerApp(lambda: real_sessions(tmp_path), Pick())
    async with app.run_test(size=LARGE) as pilot:
        for _ in range(600):
            await pilot.pause()
            if app.feed.idle and not app.sessions.view.unread and app.sessions.view.looked:
                break
            await asyncio.sleep(0.05)
        assert len(app.sessions.view.rows) == 2
        assert all(one.facts is not None and one.facts.turns for one in app.sessions.view.rows)
    app.feed.stop()


@pytest.mark.slow
def test_leaving_ends_the_process_that_reads(tmp_path: Path) -> None:
    import multiprocessing

    for n in range(200):
        shutil.copy(FIXTURES / "claude_code/session.jsonl", tmp_path / f"{n}.jsonl")
    feed = SessionFeed(lambda: real_sessions(tmp_path), lambda _: None)
    feed.start()
    end = time.monotonic() + 60
    while not multiprocessing.active_children() and time.monotonic() < end:
        time.sleep(0.02)
    assert multiprocessing.active_children()
    feed.stop(30.0)
    assert not [child for child in multiprocessing.active_children() if child.name == "ctxctl worker"]


@contextmanager
def alone(home: Path) -> Iterator[Terminal]:
    """``ctxctl`` without a word on a terminal, of a user with one session."""
    place = home / ".claude/projects/-work"
    place.mkdir(parents=True)
    shutil.copy(FIXTURES / "claude_code/session.jsonl", place / "session.jsonl")
    environment = {"HOME": str(home), "CTXCTL_CACHE_DIR": str(home / "cache"), "TERM": "xterm-256color"}
    with terminal([sys.executable, "-m", "ctxctl"], environment=environment, size=(120, 40)) as tty:
        tty.wait_for("1 session")
        yield tty


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs a pty")
def test_alone_on_a_terminal_it_lists_opens_and_comes_back(tmp_path: Path) -> None:
    with alone(tmp_path) as tty:
        tty.wait_for("$")  # it was read
        tty.type("\r")
        tty.wait_for("what changed in turn")
        opened = len(tty.bytes)
        tty.type("\x1b")
        tty.wait_for("first prompt", opened)
        tty.type("q")
        assert tty.wait() == 0
        tty.assert_restored()
        assert not harm(tty.seen)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs a pty")
def test_a_session_that_went_away_is_told_in_the_list(tmp_path: Path) -> None:
    with alone(tmp_path) as tty:
        (tmp_path / ".claude/projects/-work/session.jsonl").unlink()
        shown = len(tty.bytes)
        tty.type("\r")
        tty.wait_for("no such file", shown)
        tty.type("\x03")
        assert tty.wait() == 130
        tty.assert_restored()


def test_sessions_that_say_the_same_are_told_apart_by_their_files() -> None:
    sessions = (*SESSIONS, session("copy-of-a1", 50, "/home/ada/work/orchard", TREES))
    sessions += (session("g7", 60, "/srv/x", None), session("h8", 70, "/srv/x", None))
    made = arranged(Told(sessions, PLACES, looked=True), Wish(), None, NOW)
    assert made is not None
    assert {path.rpartition("/")[2] for path in made.twins} == {
        "a1.jsonl", "copy-of-a1.jsonl", "g7.jsonl", "h8.jsonl",
    }  # fmt: skip
    for width in (80, 120, 200):
        shown = [
            "".join(text for text, _ in lines.line(one, NOW, "", width, twin=one.path in made.twins))[9:]
            for one in made.rows
        ]
        assert len(set(shown)) == len(shown)


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("order", ORDERS)
def test_the_column_of_the_order_has_its_whole_name_and_its_sign(order: Any, width: int) -> None:
    made = arranged(Told(SESSIONS, PLACES, looked=True), Wish(order=order), None, NOW)
    assert made is not None
    heading = "".join(text for text, _ in lines.heading(made, width)).replace(" ▼", "▼")
    if order in heading:
        assert f"{order}▼" in heading
    else:
        assert order in ("client", "project")
        assert width < 120
