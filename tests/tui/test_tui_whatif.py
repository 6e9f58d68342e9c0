"""The what-if screen: the form by itself, both replays by turn, and the screen over real traces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from ctxctl.model.whatif import Pair, Side, Supposition, Totals
from ctxctl.session import Inspector
from ctxctl.text import cells
from ctxctl.tui.app import CtxApp
from ctxctl.tui.screens.turns.screen import TurnsScreen
from ctxctl.tui.screens.whatif import form as fields
from ctxctl.tui.screens.whatif import lines, state
from ctxctl.tui.screens.whatif.form import LABELS, Form
from ctxctl.tui.screens.whatif.screen import WhatIf
from ctxctl.tui.screens.whatif.state import Gathering, Table
from ctxctl.tui.thread_names import ThreadNames
from tests.tui.helpers import LARGE, SMALL, Session, check_golden, running, strips
from tests.unit.engine.making import Json, add, assembly, event, inject, inspect, usage

ROOT = Path(__file__).parents[2]
HOSTILE = "\x1b]0;owned\x07 [/] [@click=app.quit]x[/] \u202egpt \x9b2J"

# The form, without an event loop ----------------------------------------------------------------------------


def at(name: str, form: Form | None = None) -> Form:
    return fields.to_field(form or Form(), list(LABELS).index(name))


def test_what_is_typed_is_read() -> None:
    form = fields.typed(at("window"), "128k")
    form = fields.typed(at("reserve", form), "0")
    form = fields.typed(at("model", form), "  gpt-4o ")
    _, supposition = fields.read(form)
    assert supposition == Supposition(model="gpt-4o", window=128_000, reserve=0)


def test_nothing_typed_is_as_recorded() -> None:
    assert fields.read(Form())[1] == Supposition()


@pytest.mark.parametrize("name", ["window", "max_input", "reserve"])
@pytest.mark.parametrize("text", ["many", "-1", HOSTILE, "9" * 500])
def test_a_wrong_number_keeps_its_error_until_it_is_changed(name: str, text: str) -> None:
    form, supposition = fields.read(at("model", fields.typed(at(name), text)))
    assert supposition is None
    assert form.field.name == name, "the keys go to the field that is wrong"
    assert form.field.error.startswith("must be a number of tokens")
    assert fields.sideways(form, -1).field.error, "moving in it changes nothing"
    assert not fields.typed(form, "1").field.error


def test_a_choice_goes_round_by_way_of_as_recorded() -> None:
    form = fields.recorded(at("policy"), {"policy": "recorded"}, {"policy": ("a", "b", "abc")})
    seen = []
    for _ in range(5):
        form = fields.sideways(form, 1)
        seen.append(form.field.value)
    assert seen == ["a", "b", "abc", "", "a"]
    assert fields.sideways(fields.sideways(form, -1), -1).field.value == "abc"


def test_a_choice_takes_letters_and_is_cleared_and_nothing_else() -> None:
    form = fields.recorded(at("encoding"), {}, {"encoding": ("o200k_base", "cl100k_base")})
    form = fields.typed(form, "c")
    assert form.field.value == "cl100k_base"
    assert fields.typed(form, HOSTILE).field.value == "cl100k_base"
    assert fields.edited(form, lambda line: line.delete(line.move(-1))).field.value == ""
    assert fields.edited(form, lambda line: line.word(-1)).field.value == "cl100k_base"


def test_a_refusal_goes_to_its_field() -> None:
    form = fields.refused(at("window"), "model", "no such model")
    assert (form.field.name, form.field.error) == ("model", "no such model")


@pytest.mark.parametrize("width", [1, 5, 38, 40, 59, 60, 80, 200])
def test_lines_are_as_wide_as_they_may_be(width: int) -> None:
    form = fields.recorded(Form(), dict.fromkeys(LABELS, HOSTILE * 3), {"policy": (HOSTILE,)})
    form = fields.refused(fields.typed(form, HOSTILE), "model", HOSTILE)
    view = replace(
        state.View(form=form), notes=(HOSTILE,), phase="done", supposition=Supposition(model=HOSTILE)
    )
    table = table_of([pair(0, thread=HOSTILE), pair(1)])
    painted = [
        *(lines.form_line(form, y, width, focused=True) for y in range(lines.form_rows(width))),
        lines.advice(view, width, editing=True),
        lines.advice(view, width, editing=False),
        lines.head(view, HOSTILE, width),
        lines.turn_line(table, 0, width),
        *lines.heading(table, width),
    ]
    if width > 14:
        for parts in painted:
            assert sum(cells(text) for text, _ in parts) <= width + 1
    text = lines.text(view, table)
    assert "\x1b" not in text
    assert "\u202e" not in text


@pytest.mark.parametrize("width", [40, 120])
def test_a_line_below_the_form_is_empty(width: int) -> None:
    form = Form()
    below = lines.form_line(form, len(LABELS) + 3, width, focused=True)
    assert "".join(text for text, _ in below) == " " * width


@pytest.mark.parametrize("width", [20, 40, 80, 200])
@pytest.mark.parametrize("room", [1, 2, 3, 7, 12])
def test_notes_that_do_not_fit_leave_a_sign(width: int, room: int) -> None:
    notes = ("one " * 30, "two", HOSTILE, "three " * 50)
    view = replace(state.View(), phase="done", notes=notes)
    found = lines.summary(view, width, room)
    assert len(found) <= room
    assert all(sum(cells(text) for text, _ in parts) <= width for parts in found[: max(room - 4, 0)])
    if room == 7:
        assert "…" in "".join(text for text, _ in found[2])


@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_click_finds_the_field_that_is_painted_there(width: int) -> None:
    found = {lines.field_at(x, y, width) for y in range(lines.form_rows(width)) for x in (0, width - 1)}
    assert found == set(range(len(LABELS)))


# Both replays by turn ---------------------------------------------------------------------------------------


def pair(
    ordinal: int,
    turn: int = 1,
    step: int = 1,
    *,
    used: int = 10,
    cap: int | None = 100,
    thread: str = "main",
    session: str = "s",
) -> Pair:
    over = None if cap is None else max(used - cap, 0)
    free = None if cap is None else max(cap - used, 0)
    simulated = Side(used, cap, free, over, 0, 1, 0, 0, None)
    return Pair(ordinal, session, thread, turn, step, Side(used, None, None, None, 0, 0, 2, 1, 5), simulated)


def table_of(pairs: list[Pair]) -> Table:
    gathering, table = Gathering(lambda ordinal: f"prompt {ordinal}"), Table()
    for one in pairs:
        gathering.add(one)
    table.grow(gathering.take(Totals(), Totals(), 1.0))
    return table


def test_a_turn_sums_up_its_steps() -> None:
    table = table_of([pair(0, 1, 1, used=150), pair(1, 1, 2, used=120), pair(2, 2, 1, used=50)])
    first, second = table.turns
    assert (first.steps, first.ordinal, first.title) == (2, 0, "prompt 0")
    assert (first.simulated.used, first.simulated.over, first.simulated.omitted) == (120, 50, 2)
    assert (first.recorded.over, first.recorded.truncated, first.recorded.compactions) == (None, 4, 2)
    assert (second.ordinal, second.simulated.over) == (2, 0)
    assert table.first == 0


def test_threads_do_not_mix() -> None:
    table = table_of([pair(0), pair(1, thread="explorer"), pair(2, 1, 2)])
    assert [(turn.thread, turn.steps) for turn in table.turns] == [("main", 2), ("explorer", 1)]
    assert table.several


@pytest.mark.parametrize("width", [80, 110, 200])
def test_turns_of_several_threads_or_sessions_do_not_look_the_same(width: int) -> None:
    some = [pair(n, thread=f"agent-{name}") for n, name in enumerate(["a93ccab", "aa84377"])]
    others = [pair(n, session=f"task-{n}.trial-0") for n in (2, 3)]
    for pairs in (some, others) if width > 100 else (some,):  # sessions need more room than that
        table = table_of(pairs)
        first, second = ("".join(text for text, _ in lines.turn_line(table, n, width)) for n in (0, 1))
        assert first[:20].split() != second[:20].split()


@pytest.mark.parametrize("width", [62, 80, 120, 200])
@pytest.mark.parametrize(
    "session", ["{n}.epoch-1", "run-2026-{n:03}-of-the-evening", "3e6a5f{n:02}-8e10-4614-8714-152f3cc1b719"]
)
def test_eighty_sessions_and_their_scorers_are_told_apart(session: str, width: int) -> None:
    threads = ThreadNames()
    pairs = []
    for n in range(80):
        for thread in ("main", "scorer-model_graded_fact"):
            threads.take(session.format(n=n), thread, None)
            pairs.append(pair(len(pairs), thread=thread, session=session.format(n=n)))
    table = table_of(pairs)
    table.threads = threads
    shown = ["".join(text for text, _ in lines.turn_line(table, n, width)) for n in range(160)]
    assert len(set(shown)) == 160


def test_going_from_one_that_does_not_fit_to_the_next() -> None:
    pairs = [pair(n, n + 1, used=used) for n, used in enumerate([10, 200, 10, 300])]
    table = table_of([*pairs, pair(4, 5, used=100)])
    assert table.next_over(0, 1) == 1
    assert table.next_over(1, 1) == 3
    assert table.next_over(3, 1) is None
    assert table.next_over(3, -1) == 1


def test_parts_of_a_table_make_the_whole() -> None:
    pairs = [pair(n, n // 3 + 1, n % 3 + 1, used=n) for n in range(1000)]
    gathering, table = Gathering(lambda ordinal: None), Table()
    sent = 0
    for n, one in enumerate(pairs):
        gathering.add(one)
        if n % 7 == 0:
            news = gathering.take(Totals(), Totals(), 0.5)
            sent += len(news.turns)
            table.grow(news)
            assert len(news.chart.simulated) <= 240
    table.grow(gathering.take(Totals(), Totals(), 1.0))
    assert table.turns == [replace(turn, title=None) for turn in table_of(pairs).turns]
    assert sent < 2 * len(table.turns), "only what is new is sent"


def test_an_unknown_limit_is_not_a_fit() -> None:
    table = table_of([pair(0, cap=None)])
    text = "".join(text for text, _ in lines.turn_line(table, 0, 80))
    assert text.split().count("-") == 4, "free and over of both sides"
    totals = Totals(steps=3, unknown=3)
    view = replace(state.View(), phase="done", recorded=totals, simulated=totals)
    assert "ctxctl cannot tell what fits" in str(lines.summary(view, 80, 7))


# The screen -------------------------------------------------------------------------------------------------


def opened(name: str = "notes-assistant") -> CtxApp:
    return CtxApp(lambda: Inspector.open(ROOT / "traces" / f"{name}.jsonl"), f"{name}.jsonl")


def made(events: list[Json]) -> CtxApp:
    inspector = inspect(events)
    return CtxApp(lambda: inspector, inspector.name)


async def suppose(session: Session, *keys: str, **typed: str) -> None:
    """Open the screen, fill its form and simulate."""
    await session.press("W", *keys)
    for name, text in typed.items():
        form = session.app.screen.query_one("#form")
        while LABELS_BY_PLACE[form.form.at] != name:  # type: ignore[attr-defined]
            await session.press("tab")
        for character in text:
            await session.pilot.press("space" if character == " " else character)
    await session.press("enter")


LABELS_BY_PLACE = list(LABELS)


def memory(session: Session) -> state.Memory:
    screen = session.app.screen
    assert isinstance(screen, WhatIf)
    return screen._memory


@pytest.mark.slow
@pytest.mark.parametrize("size", [SMALL, LARGE, (40, 10)], ids=lambda size: f"{size[0]}x{size[1]}")
async def test_the_form_and_the_table_look_as_they_did(size: tuple[int, int]) -> None:
    name = f"{size[0]}x{size[1]}"
    async with running(opened(), size) as session:
        await session.press("W")
        check_golden(f"whatif-form-{name}", session.text)
        await session.press("escape")
        await suppose(session, window="2k")
        await session.press("n")
        check_golden(f"whatif-{name}", session.text)


@pytest.mark.slow
@pytest.mark.parametrize("size", [SMALL, LARGE], ids=lambda size: f"{size[0]}x{size[1]}")
async def test_threads_and_compactions_look_as_they_did(size: tuple[int, int]) -> None:
    async with running(opened("coding-agent"), size) as session:
        await suppose(session, model="gpt-4", window="4.5k", reserve="500")
        check_golden(f"whatif-threads-{size[0]}x{size[1]}", session.text)


@pytest.mark.slow
async def test_enter_on_a_turn_goes_there_and_the_what_if_stays() -> None:
    async with running(opened()) as session:
        await suppose(session, window="2k")
        first = memory(session).table.first
        assert first is not None
        turn = memory(session).table.turns[first]
        assert turn.turn == 5, "1,584 of 1,488: what was billed decides, not what is recorded"
        await session.press("n", "enter")
        screen = session.app.screen
        assert isinstance(screen, TurnsScreen)
        entry = screen.state.entry
        assert entry is not None
        assert (entry.turn, entry.thread) == (turn.turn, turn.thread)
        await session.press("W")
        assert memory(session).view.supposition == Supposition(window=2000)
        assert "◀!" in session.text
        assert "2k" in session.text


async def test_a_wrong_value_says_so_beside_its_field() -> None:
    async with running(opened()) as session:
        await suppose(session, window="lots")
        assert "!window" in session.text
        assert "must be a number of tokens from 1 up" in session.text
        assert memory(session).view.phase == "empty"
        await session.press("ctrl+u", *"3k", "enter")
        assert "must be" not in session.text
        assert memory(session).view.phase == "done"


async def test_an_unknown_model_says_what_is_near() -> None:
    async with running(opened()) as session:
        await suppose(session, model="gpt-40")
        assert "no model called 'gpt-40' is known; near: " in session.text
        assert "gpt-4o" in session.text
        assert not memory(session).table.turns


async def test_another_policy_is_chosen_with_the_arrows() -> None:
    async with running(opened()) as session:
        await session.press("W", "down", "down", "down", "down", "right", "enter")
        assert memory(session).view.supposition == Supposition(policy="fifo")
        assert "Policy fifo decides what fits" in session.text, "what most ask for is the first"


async def test_what_is_not_among_the_choices_is_said() -> None:
    async with running(opened()) as session:
        await session.press("W", "down", "down", "down", "down", "3")
        assert "policy: none begins with '3': ←/→ steps through the choices" in session.text
        await session.press("right")
        assert "none begins with" not in session.text


async def test_letters_are_typed_and_do_nothing_else() -> None:
    async with running(opened()) as session:
        await session.press("W", *"qT?:wn")
        assert isinstance(session.app.screen, WhatIf)
        form = session.app.screen.query_one("#form")
        assert form.form.field.value == "qT?:wn"  # type: ignore[attr-defined]


async def test_what_is_pasted_cannot_steer_the_terminal() -> None:
    from textual import events

    async with running(opened()) as session:
        await session.press("W", "down", "down", "down")
        session.app.screen.query_one("#form").post_message(events.Paste(HOSTILE))
        await session.press("enter")
        for strip in strips(session.app):
            for segment in strip:
                assert not any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or c == "\u202e" for c in segment.text)
                assert segment.style is None or not segment.style.meta.get("@click")
        assert "no model called" in session.text


@pytest.mark.slow
async def test_hostile_traces_are_shown_inertly() -> None:
    events_ = [
        add("a", HOSTILE, turn="1", thread=HOSTILE, kind="user_message"),
        inject(None, turn="1", thread=HOSTILE),
        {**usage(9, turn="1", thread=HOSTILE), "data": {"input_tokens": 9, "model": HOSTILE}},
        add("b", "two", turn="2", session="other"),
    ]
    for size in (SMALL, LARGE):
        async with running(made(events_), size) as session:
            await suppose(session, window="3")
            assert memory(session).view.phase == "done"
            for strip in strips(session.app):
                for segment in strip:
                    assert not any(
                        ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or c == "\u202e" for c in segment.text
                    )
                    assert segment.style is None or not segment.style.meta.get("@click")


@pytest.mark.slow
async def test_a_trace_without_a_limit_or_a_step() -> None:
    note = add("a", "one two three", turn="1")
    async with running(made([note])) as session:
        await suppose(session, reserve="1")
        assert "no limit is known, so ctxctl cannot tell what fits" in session.text
        await session.press("escape")
        assert isinstance(session.app.screen, TurnsScreen)
    empty = {**event("x"), "event_type": "ctxctl.source.opened"}
    async with running(made([empty])) as session:
        await suppose(session, window="5")
        assert "no step" in session.text
        await session.press("enter", "n", "escape")
        assert isinstance(session.app.screen, TurnsScreen)


def many(turns: int) -> list[Json]:
    found: list[Json] = []
    for n in range(turns):
        turn = str(n)
        found += [add(f"i{n % 50}", f"text {n}", turn=turn), assembly(f"a{n}", f"i{n % 50}", turn=turn)]
        found.append(inject(f"a{n}", turn=turn))
    return found


@pytest.mark.slow
async def test_leaving_stops_it_and_a_new_one_replaces_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from ctxctl.analysis import whatif

    passed = 0
    plain = whatif.Comparison.pairs

    def slowly(self: Any, check: Any = None, progress: Any = None) -> Any:
        nonlocal passed
        for one in plain(self, check, progress):
            while passed < 20 and one.ordinal == 10:
                passed += 1
                check()
            yield one

    monkeypatch.setattr(whatif.Comparison, "pairs", slowly)
    async with running(made(many(400))) as session:
        await session.press("W")
        await session.pilot.press("3")
        await session.pilot.press("enter")
        await session.pilot.press("escape")
        await session.press("W")
        assert memory(session).view.phase in ("stopped", "done")
        await session.press("c", "enter")
        assert memory(session).view.phase == "done"
        assert len(memory(session).table.turns) == 400
        assert memory(session).view.simulated.steps == 400


async def test_what_is_seen_is_the_whole_table() -> None:
    async with running(opened()) as session:
        await suppose(session, window="2k")
        screen = session.app.screen
        assert isinstance(screen, WhatIf)
        seen = screen.seen()
        assert seen is not None
        assert "simulated" in seen.text.splitlines()[0]
        rows = seen.text.splitlines()[-12:]
        assert [int(row.split()[0]) for row in rows] == list(range(1, 13))
        assert [row.split()[1] for row in rows][3:5] == ["1270", "1797"]
        assert not rows[3].endswith("over")
        assert rows[4].endswith("first over")


async def test_it_works_while_the_trace_is_still_being_read(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Event()
    plain = Inspector.outline

    def outline(self: Inspector, progress: Any = None) -> Any:
        while not gate.wait(0.01):
            progress(0.1)
        return plain(self, progress)

    monkeypatch.setattr(Inspector, "outline", outline)
    app = opened()
    async with app.run_test(size=SMALL, notifications=True) as pilot:
        session = Session(app, pilot)

        async def until(true: Callable[[], bool]) -> None:
            for _ in range(500):
                await pilot.pause(0.01)
                if true():
                    return
            raise AssertionError(session.text)

        await until(lambda: app.turns.state.phase == "reading")
        await pilot.press("W", "2", "k", "enter")
        await until(lambda: isinstance(app.screen, WhatIf) and memory(session).view.phase == "done")
        await until(lambda: "trace still being read" in session.text)
        assert len(memory(session).table.turns) == 12
        await pilot.press("n", "enter")
        await until(lambda: isinstance(app.screen, TurnsScreen))
        gate.set()
        await until(lambda: app.turns.state.phase == "ready")
    app.loader.stop()
