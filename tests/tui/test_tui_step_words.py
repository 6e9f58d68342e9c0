"""What was done in the steps that are listed."""

from __future__ import annotations

import pytest
from fake import FakeInspector, Request, Thing
from helpers import LARGE, SMALL, made, running

from ctxctl.item_names import fitted_call
from ctxctl.tui.screens.turns import state as moves
from ctxctl.tui.step_words import KnownWords, StepWords


def working() -> FakeInspector:
    """One turn: a prompt, two calls and their results, an answer, and a step with nothing to be named by."""
    ask = Thing("u", "Please fix the build, it is broken since today")
    calls = [Thing(f"c{n}", "{}", "tool_call", f"Bash: make part{n}") for n in range(3)]
    results = [Thing(f"c{n}/result", "done", "tool_result", f"Bash: make part{n}") for n in range(3)]
    answer = Thing("a", "It builds again: \x1b[31mthe path was wrong", "assistant_message")
    blank = Thing("b", "\n", "assistant_message")
    one = (ask,)
    two = (*one, blank, calls[0], results[0])
    three = (*two, *calls[1:], *results[1:])
    four = (*three, answer)
    return FakeInspector([Request(1, things) for things in (one, two, three, four, four)])


def steps_of(text: str) -> list[str]:
    """The lines of steps, without their numbers and amounts."""
    found = [line[1:].split("┃")[0] for line in text.splitlines() if "├1." in line or "└1." in line]
    return [line.split("▁", 1)[-1].strip("│ ") for line in found]


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "200x50"])
async def test_unfolded_steps_say_what_was_done(size: tuple[int, int]) -> None:
    async with running(made(working()), size) as session:
        await session.press("l")
        said = steps_of(session.text)
        assert len(said) == 5
        assert said[0].startswith("“Please")
        assert said[1].startswith("Bash: make" if size == LARGE else "make part0")
        assert said[2].startswith("Bash:" if size == LARGE else "make")
        assert " +1" in said[2], "two calls came with it"
        assert said[3].startswith("“It bui")
        assert "\x1b" not in session.text
        assert "“" not in said[4]
        assert "Bash" not in said[4]


async def test_steps_that_are_not_listed_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moves, "_FEW", 0)
    inspector = working()
    async with running(made(inspector)) as session:
        assert session.app.turns.state.said.missing(range(5)) == (0, 1, 2, 3, 4)
        await session.press("l")
        assert session.app.turns.state.said.missing(range(5)) == ()
        await session.press("h", "l")
        frames = inspector.calls.count("frame")
        await session.press("h", "l")
        assert inspector.calls.count("frame") == frames, "they are asked for once"


def test_a_tool_gives_its_room_to_what_it_was_called_with() -> None:
    assert fitted_call("exec_command: git status --short", 40) == "exec_command: git status --short"
    assert fitted_call("exec_command: git status --short", 20) == "git status --short"
    assert fitted_call("Read: src/very/long/path/to/file.py", 20) == "Read: …/to/file.py"
    assert StepWords("exec_command: git status --short", 3).at(21) == "git status --short +3"


def test_words_of_steps_that_are_told_anew_are_forgotten() -> None:
    known = KnownWords()
    known.take({n: StepWords(f"step {n}") for n in range(4)} | {4: None})
    assert known.missing(range(6)) == (5,)
    known.cut(2)
    assert known.missing(range(6)) == (2, 3, 4, 5)
    assert known.of(1) == StepWords("step 1")
