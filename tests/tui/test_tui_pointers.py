"""Why, blame and findings in the UI: their lines lead to steps and items, and to each other."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from helpers import LARGE, SMALL, Session, check_golden, running, settle
from test_tui_hostile import ALL, ATTACKS, faults, strips

from ctxctl.analysis.blame import blame_frame
from ctxctl.model.findings import Finding, Place, Tally
from ctxctl.model.why import Link, Moment, Rest, WhatIf, Why
from ctxctl.session import Inspector
from ctxctl.tui.answers import pointers
from ctxctl.tui.app import CtxApp
from ctxctl.tui.screens.pointers.requests import Goal, Line, page_of
from ctxctl.tui.screens.pointers.screen import PointerScreen
from tests.unit.testing.sessions_help import events, item, written_trace

ROOT = Path(__file__).parents[2]
CODING = ROOT / "traces" / "coding-agent.jsonl"
NOTES = ROOT / "traces" / "notes-assistant.jsonl"


@pytest.fixture(autouse=True)
def _dark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLORFGBG", raising=False)


def app(path: Path = CODING) -> CtxApp:
    return CtxApp(lambda: Inspector.open(path), path.name)


def screen(session: Session) -> PointerScreen:
    found = session.app.screen
    assert isinstance(found, PointerScreen)
    return found


async def whole(session: Session) -> None:
    """Wait for the second part of an answer, too."""
    for _ in range(200):
        if "being found out" not in screen(session).view.document.text:
            break
        await settle(session.app, session.pilot)
    # Whether the first part was painted before the second came decides if it is wrapped beside a scroll bar.
    for _ in range(2):
        screen(session).view.toggle_wrap()
        await settle(session.app, session.pilot)


# Lines


def test_lines_lead_where_they_say() -> None:
    made = page_of(
        "t",
        [Line("a"), Line("b", goal=Goal(3, "x")), Line("c\nd", "!", Goal(3, "x")), Line("e", goal=Goal(4))],
    )
    assert made.document.text == "a\nb\nc␊d\ne"
    assert made.document.links == [-1, 0, 0, 1]
    assert made.goals == (Goal(3, "x"), Goal(4))


def why(**more: object) -> Why:
    base: dict[str, object] = {
        "item": "doc-1", "version": None, "kind": "file", "title": "the moon", "source": None, "ordinal": 6,
        "session": None, "thread": "main", "turn": 3, "step": 1, "target": "model", "state": "out",
        "tokens": 12, "in_window": 0,
    }  # fmt: skip
    return Why(**{**base, **more})  # type: ignore[arg-type]


def test_a_chain_names_its_events_and_what_is_not_native() -> None:
    links = (
        Link("surface", "available", "became\n available", Moment(0, 1, 1), Rest(4, "e-4", "x")),
        Link("cost", "cost", "has cost 24 tokens", Moment(5, 2, 2), None, {}, "derived"),
    )
    supposed = WhatIf((Link("whatif", "limit", "would be there", None, None, {}, "simulated"),), 3)
    plain = [line.text for line in pointers.why_lines(why(links=links), supposed)]
    assert "       (line 4)" in plain
    assert not any("doc-1" in text or "e-4" in text for text in plain), "ids are there when asked for"
    found = list(pointers.why_lines(why(links=links), supposed, ids=True))
    texts = [line.text for line in found]
    assert texts[0] == "the moon (file, 12 tokens)"
    assert "id doc-1" in texts
    assert Line("1.1    became available", " ", Goal(0, "doc-1"), 7) in found
    assert Line("       (line 4, id e-4)", " ", Goal(0, "doc-1"), 7) in found
    assert Line("       (derived)", " ", Goal(5, "doc-1"), 7) in found
    assert Line("       would be there", "!", None, 7) in found
    assert any("being found out" in line.text for line in pointers.why_lines(why(links=links), None))


def test_blame_sums_are_those_of_the_window() -> None:
    with Inspector.open(CODING) as inspector:
        found = blame_frame(inspector, 20)
        listed = list(pointers.blame_lines(found))
        blocks = [line for line in listed if line.goal is not None]
        assert [line.goal.item for line in blocks if line.goal] == [
            p.item for p in inspector.frame(20).placements
        ]
        counted = [int(line.text.split()[1].replace(",", "")) for line in blocks]
        assert sum(counted) == found.step.window.recorded
        stale = list(pointers.blame_lines(found, "stale"))
        assert len([line for line in stale if line.goal]) == sum(b.placement.stale for b in found.blocks)


def test_findings_lead_to_each_place() -> None:
    first = Place(2, None, "main", 1, 3, 40)
    finding = Finding(
        "CTX001", "a-rule", "warning", "it is wrong", "mend it", first, item="doc-1", count=4,
        more=(Place(5, None, "sub", 2, 1, 60), Place(None, None, "main", None, None, 70)),
        tokens=12, money=Decimal("0.5"),
    )  # fmt: skip
    found = list(
        pointers.finding_lines([finding], Tally(("CTX001",), 9, {"CTX001": 2}, {}, {"CTX002": "no usage"}))
    )
    assert found[0] == Line("CTX001 a-rule · warning · 3 findings", "@")
    assert found[1] == Line("     1.3  it is wrong (12 tokens, $0.5000)", "!", Goal(2, "doc-1"), 10)
    assert found[2] == Line(" sub 2.1  again", " ", Goal(5, "doc-1"))
    assert found[3] == Line(" line 70  again", " ", None)
    assert "and at 1 more place" in found[4].text
    assert "CTX002 had nothing to look at: no usage" in [line.text for line in found]
    assert "no findings: 1 rule, 9 steps" in next(pointers.finding_lines([], Tally(("CTX001",), 9))).text


# The screen


@pytest.mark.slow
@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "200x50"])
async def test_screens_look_as_they_did(size: tuple[int, int]) -> None:
    name = f"{size[0]}x{size[1]}"
    async with running(app(), size) as session:
        await session.press("right_square_bracket", "b")
        check_golden(f"pointer-blame-{name}", session.text)
        await session.press("escape", "tab", "j", "w")
        await whole(session)
        check_golden(f"pointer-why-{name}", session.text)


async def test_enter_goes_to_the_step_and_its_item() -> None:
    async with running(app()) as session:
        await session.press("G", "b", "j", "j", "j")
        goal = screen(session).goal()
        assert goal is not None
        await session.press("enter")
        assert session.app.screen is session.app.turns
        state = session.app.turns.state
        assert state.target is not None
        assert state.target.ordinal == goal.ordinal
        assert state.selected is not None
        assert state.selected.item == goal.item
        await session.press("backspace")
        assert session.app.turns.state.target != state.target


@pytest.mark.slow
async def test_from_blame_to_why_to_findings_and_back() -> None:
    async with running(app()) as session:
        await session.press("G", "b", "j", "j")
        row = screen(session).view.cursor
        await session.press("w")
        assert "became available" in session.text
        await session.press("exclamation_mark")
        assert "findings" in session.text
        await session.press("escape")
        assert "became available" in session.text
        await session.press("escape")
        assert "since" in session.text
        assert screen(session).view.cursor == row
        await session.press("escape")
        assert session.app.screen is session.app.turns


async def test_blame_lists_stale_blocks_and_duplicates_alone() -> None:
    async with running(app(NOTES)) as session:
        await session.press("G", "b")
        whole = session.text
        await session.press("o")
        assert "stale only" in session.text
        await session.press("o")
        assert "duplicate only" in session.text
        await session.press("o")
        assert session.text == whole


async def test_w_without_an_item_says_so() -> None:
    async with running(app(NOTES)) as session:
        await session.press("tab", "g")
        assert session.app.turns.state.selected is None  # the head of a group
        await session.press("w")
        assert session.app.screen is session.app.turns
        assert "the cursor is on no item" in session.text


async def test_findings_are_those_that_the_settings_ask_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "ctxctl.toml"
    monkeypatch.setenv("CTXCTL_CONFIG", str(settings))
    for ignored, there in (((), True), (("CTX004",), False)):
        settings.write_text(f"[lint]\nignore = {list(ignored)}\n")
        async with running(app(NOTES)) as session:
            await session.press("exclamation_mark")
            assert ("CTX004" in session.text) == there


async def test_hostile_texts_are_only_text(tmp_path: Path) -> None:
    things = [
        item(f"{attack}{n}", f"{attack} {ALL}", title=ALL if n % 2 else attack)
        for n, attack in enumerate(ATTACKS)
    ]
    path = written_trace(tmp_path, [*events(things), *events([*things[2:], things[2]], "t2")])
    async with running(app(path), (120, 40)) as session:
        for keys_ in (("b",), ("escape", "exclamation_mark"), ("escape", "tab", "j", "w")):
            await session.press(*keys_)
            assert list(faults(strips(session.app))) == []
