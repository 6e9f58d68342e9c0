"""What is remembered from one time to the next, and that it is no more than numbers and words of ours."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from fake import FakeInspector, SlowInspector, long_session, notes_agent
from helpers import running

from ctxctl.config import Settings
from ctxctl.tui import memory
from ctxctl.tui.app import CtxApp, _remember
from ctxctl.tui.memory import Left, Memory
from ctxctl.tui.screens.turns import navigation


@pytest.fixture
def where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CTXCTL_STATE_DIR", str(tmp_path / "state"))
    found = memory.file(os.environ)
    assert found is not None
    return found


def made(left: Left | None = None, requests: object = None, **kind: object) -> CtxApp:
    inspector = FakeInspector(notes_agent() if requests is None else requests)  # type: ignore[arg-type]
    return CtxApp(lambda: inspector, "made-up.jsonl", left=left)  # type: ignore[arg-type,return-value]


def test_what_is_kept_comes_back(where: Path) -> None:
    kept = Memory("light", {"k": Left(7, True, "changes", {"tab": "diff"})})
    assert memory.save(where, kept)
    assert memory.load(where) == kept
    assert stat.S_IMODE(where.stat().st_mode) == 0o600
    assert stat.S_IMODE(where.parent.stat().st_mode) == 0o700
    assert [path.name for path in where.parent.iterdir()] == ["ui.json"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b'{"traces": 3}',
        b'{"traces": {"k": {"ordinal": "x"}}}',
        b"\xff" * 9,
        b"[" * 10_000,
        b"x" * (1 << 21),
    ],
    ids=lambda data: repr(data[:20]),
)
def test_a_damaged_file_is_as_none(where: Path, data: bytes) -> None:
    where.parent.mkdir(parents=True)
    where.write_bytes(data)
    assert memory.load(where) == Memory()
    assert memory.save(where, Memory("dark"))
    assert memory.load(where).theme == "dark"


def test_what_a_later_version_adds_is_passed_over(where: Path) -> None:
    where.parent.mkdir(parents=True)
    where.write_text('{"theme": "dark", "more": [1], "traces": {"k": {"ordinal": 2, "new": true}}}')
    assert memory.load(where) == Memory("dark", {"k": Left(2)})


def test_no_place_to_keep_it_is_no_trouble(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert not memory.save(blocked / "ui.json", Memory("dark"))
    assert memory.load(blocked / "ui.json") == Memory()
    assert not memory.save(None, Memory())
    assert memory.load(None) == Memory()


def test_it_can_be_switched_off_and_moved(tmp_path: Path) -> None:
    for word in ("off", "OFF", "0", "no"):
        assert memory.file({"CTXCTL_STATE": word, "CTXCTL_STATE_DIR": str(tmp_path)}) is None
    assert memory.file({"CTXCTL_STATE_DIR": str(tmp_path)}) == tmp_path / "ui.json"


def test_the_traces_left_last_stay() -> None:
    kept = Memory()
    for n in range(memory.MOST + 20):
        kept = kept.leaving(f"k{n}", Left(n))
    kept = kept.leaving("k30", Left(5))
    assert len(kept.traces) == memory.MOST
    assert "k19" not in kept.traces
    assert list(kept.traces)[-1] == "k30"
    assert kept.leaving(None, Left(1)) is kept


def test_a_trace_is_known_by_its_place_and_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("first line\n" * 1000)
    key = memory.key_of(str(path))
    assert key is not None
    with path.open("a") as more:
        more.write("grown\n")
    (tmp_path / "link").symlink_to(path)
    assert memory.key_of(str(tmp_path / "link")) == key
    path.write_text("another\n")
    assert memory.key_of(str(path)) not in (key, None)
    assert memory.key_of(str(tmp_path)) is not None
    for name in ("-", str(tmp_path / "none"), "/dev/null", "a\0b"):
        assert memory.key_of(name) is None


def test_nothing_of_a_trace_is_in_it(where: Path, tmp_path: Path) -> None:
    state = navigation.position_left(_state())
    assert state is not None
    memory.save(where, Memory().leaving(memory.key_of(str(tmp_path)), state))
    text = where.read_text()
    assert json.loads(text)["traces"]
    for word in ("editor", "Shorter", "note", str(tmp_path), "s1"):
        assert word not in text


def _state():  # type: ignore[no-untyped-def]
    from dataclasses import replace

    from ctxctl.tui.folding import Folding
    from ctxctl.tui.outline import Turns
    from ctxctl.tui.screens.turns import state as moves

    inspector = FakeInspector(notes_agent())
    rows = inspector.outline().rows
    state = replace(
        moves.State(moves.Trace("made-up.jsonl")), list=Folding(Turns.of(rows)), tab="diff", skipped=True
    )
    return moves.toggle_steps(state, True)


def test_a_state_can_be_left_and_come_back_to() -> None:
    from dataclasses import replace

    state = replace(_state(), cursor=2, pane="changes", folded=frozenset({"added"}))
    left = navigation.position_left(state)
    assert left is not None
    assert (left.ordinal, left.step, left.pane) == (1, True, "changes")
    fresh = replace(_state(), list=state.list.with_turns(()), cursor=0, tab=None, skipped=False)
    found = navigation.back_at(navigation.with_choices(fresh, left), left)
    assert found is not None
    assert (found.cursor, found.pane, found.folded) == (2, "changes", {"added"})
    assert (found.tab, found.skipped) == ("diff", True)


@pytest.mark.parametrize(
    "left",
    [Left(99), Left(-1), Left(1, True, "nowhere", {"tab": "x", "folded": "y z", "evil": "1", "text": "x"})],
    ids=["beyond", "before", "nonsense"],
)
def test_what_is_not_there_is_passed_over(left: Left) -> None:
    found = navigation.with_choices(_state(), left)
    assert found.tab == "diff"
    back = navigation.back_at(found, left)
    assert back is None or back.pane == "turns"


async def test_the_view_comes_back_once_its_turn_is_known() -> None:
    inspector = SlowInspector(long_session(50, 3))
    app = CtxApp(lambda: inspector, "x", left=Left(20, False, "changes"))  # type: ignore[arg-type,return-value]
    async with app.run_test() as pilot:
        inspector.deliver(10)
        for _ in range(200):
            await pilot.pause(0.02)
            if app.turns.state.list.count >= 10:
                break
        assert app.turns.state.cursor == 0
        inspector.deliver(40)
        for _ in range(200):
            await pilot.pause(0.02)
            if app.turns.state.cursor:
                break
        assert (app.turns.state.cursor, app.turns.state.pane) == (20, "changes")
    app.loader.stop()


async def test_who_has_gone_elsewhere_is_not_called_back() -> None:
    inspector = SlowInspector(long_session(50, 3))
    app = CtxApp(lambda: inspector, "x", left=Left(40))  # type: ignore[arg-type,return-value]
    async with app.run_test() as pilot:
        inspector.deliver(10)
        for _ in range(200):
            await pilot.pause(0.02)
            if app.turns.state.list.count >= 5:
                break
        await pilot.press("j", "j")
        inspector.deliver(40)
        for _ in range(200):
            await pilot.pause(0.02)
            if app.turns.state.phase == "ready":
                break
        assert app.turns.state.cursor == 2
    app.loader.stop()


async def test_the_theme_and_the_turn_are_kept_on_leaving(where: Path) -> None:
    memory.save(where, Memory("", {"other": Left(3)}))
    async with running(made()) as session:
        await session.press("j", "T")
        theme = session.app.theme
    _remember(session.app, where, "key")
    kept = memory.load(where)
    assert kept.theme == theme
    assert kept.traces == {"other": Left(3), "key": Left(2, False, "turns")}
    inspector = FakeInspector(notes_agent())
    again = CtxApp(lambda: inspector, "x", kept=kept, left=kept.left("key"))  # type: ignore[arg-type,return-value]
    async with running(again) as session:
        assert again.theme == theme
        assert again.turns.state.cursor == 1
        assert "back at turn 2" in session.text
    chosen = CtxApp(lambda: inspector, "x", kept=kept, settings=Settings(theme="contrast-dark"))  # type: ignore[arg-type,return-value]
    assert chosen.theme == "contrast-dark"
