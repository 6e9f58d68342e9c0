"""What lint finds is marked beside turns, steps and items, and said where one stands on it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from helpers import LARGE, running

from ctxctl.model.findings import Finding, Place, Severity, Tally
from ctxctl.session import Inspector
from ctxctl.tui.answers.pointers import finding_lines
from ctxctl.tui.app import CtxApp
from ctxctl.tui.finding_marks import FindingMarks, local_message, phrase, style
from ctxctl.tui.screens.pointers.requests import Goal, Line, page_of
from ctxctl.tui.screens.pointers.screen import PointerScreen
from ctxctl.tui.screens.turns import actions
from ctxctl.tui.screens.turns.screen import TurnsScreen
from ctxctl.tui.screens.turns.state import State, Trace
from ctxctl.wording import FINDING

TRACE = Path(__file__).resolve().parents[2] / "traces" / "notes-assistant.jsonl"


def finding(message: str, ordinal: int, item: str | None = None, severity: Severity = "warning") -> Finding:
    place = Place(ordinal, None, "main", ordinal + 1, 1, 1)
    more = (Place(ordinal + 4, None, "main", ordinal + 5, 1, 9), Place(None, None, "main", None, None, 7))
    return Finding("CTX001", "a-rule", severity, message, "mend it", place, item=item, more=more, count=9)


def test_marks_stand_at_each_place_that_a_finding_keeps_and_at_its_item() -> None:
    marks = FindingMarks.of(
        [finding("first of all", 2, "doc"), finding("then this", 2, severity="info")], None
    )
    assert set(marks.steps) == {2, 6}
    assert set(marks.turns) == {(None, "main", 3), (None, "main", 7)}
    assert set(marks.items) == {"doc"}
    assert phrase(marks.steps[2]) == "first of all (+1)"
    assert phrase(marks.items["doc"]) == "first of all"
    assert style(marks.steps[2]) == "warning"
    assert style(marks.steps[6][1:]) == "muted"
    assert phrase(()) == ""


@pytest.mark.parametrize(
    ("directory", "said"),
    [("/home/ada/w", "Read: src/a.py is there twice"), (None, "Read: /home/ada/w/src/a.py is there twice")],
)
def test_paths_are_told_from_the_directory_of_the_session(directory: str | None, said: str) -> None:
    assert local_message("Read: /home/ada/w/src/a.py is there twice", directory) == said
    assert local_message("a/b", "/") == "a/b"


class Host:
    """As much of the main screen as asking takes; what was asked."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.asked: list[object] = []
        self.screen = self


@pytest.mark.parametrize(
    ("trace", "phase", "asked"),
    [
        (Trace("a", size=100), "ready", True),
        (Trace("a", size=100), "reading", False),
        (Trace("a", size=100, live=True), "ready", False),
        (Trace("a", size=1 << 40), "ready", False),
        (Trace("a"), "ready", False),
    ],
)
def test_findings_are_looked_for_once_the_whole_of_a_trace_of_bounded_size_is_known(
    trace: Trace, phase: str, asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = Host(replace(State(trace), phase=phase))  # type: ignore[arg-type]
    monkeypatch.setattr(actions, "ask", lambda _, request: host.asked.append(request))
    epoch = actions.ask_marks(host, -1)  # type: ignore[arg-type]
    assert bool(host.asked) is asked
    assert actions.ask_marks(host, epoch) == epoch  # type: ignore[arg-type]
    assert len(host.asked) == asked


def test_a_page_opens_at_what_it_tells_of_the_item_else_of_the_steps_in_front() -> None:
    lines = [Line("rule", "@"), Line("one", goal=Goal(3, "a")), Line("two", goal=Goal(5, "b"))]
    page = page_of("findings", lines)
    assert page.line_of("b", range(3, 4)) == 2
    assert page.line_of("c", range(3, 4)) == 1
    assert page.line_of(None, range(9, 10)) == 1  # the first that leads anywhere
    assert page_of("findings", lines[:1]).line_of(None, range(9, 10)) == 0


def test_findings_of_a_rule_stand_below_one_heading() -> None:
    found = [finding("one", 1), finding("two", 2), finding("three", 3)]
    found[1] = msgspec.structs.replace(found[1], code="CTX002")
    told = [line.text for line in finding_lines(found, Tally(("CTX001", "CTX002"), 9)) if line.kind == "@"]
    assert told == ["CTX001 a-rule · warning · 2 findings", "CTX002 a-rule · warning · 1 finding"]


def test_items_of_which_the_same_is_said_are_told_apart() -> None:
    found = [finding("it is there twice", 1, "call-aaaa-1"), finding("it is there twice", 1, "call-bbbb-2")]
    told = [line.text for line in finding_lines(found, Tally(("CTX001",), 9)) if "twice" in line.text]
    assert len(set(told)) == 2
    assert all(" #" in text for text in told)
    (alone,) = (line.text for line in finding_lines(found[:1], Tally(("CTX001",), 9)) if "twice" in line.text)
    assert "#" not in alone


async def test_a_finding_is_marked_told_and_opened() -> None:
    app = CtxApp(lambda: Inspector.open(TRACE, calibration="shipped"), TRACE.name)
    async with running(app, LARGE) as session:
        turns = session.app.turns
        assert isinstance(turns, TurnsScreen)
        found = turns.state.findings
        assert found.turns
        assert sum(FINDING in line for line in session.lines) >= 1
        for _ in range(40):
            if turns.state.found_here:
                break
            await session.press("j")
        message = turns.state.found_here[0].message
        assert f"{FINDING} {message[:30]}" in session.text
        assert "! finding" in session.lines[-1]
        await session.press("exclamation_mark")
        screen = session.app.screen
        assert isinstance(screen, PointerScreen)
        goal = screen.goal()
        target = turns.state.target
        assert goal is not None
        assert target is not None
        assert target.first <= goal.ordinal <= target.ordinal
