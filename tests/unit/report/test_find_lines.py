"""Found steps on a narrow terminal."""

from __future__ import annotations

from ctxctl.item_names import NAMELESS
from ctxctl.report.find import step_lines
from ctxctl.report.paint import plain
from ctxctl.text import cells
from tests.unit.engine.making import add, assembly, inject, inspect


def test_an_address_and_its_numbers_are_never_cut() -> None:
    inspector = inspect(
        [add("a", "one two", turn="1"), assembly("A1", "a", turn="1", ours=None), inject("A1", turn="1")]
    )
    with inspector:
        step = inspector.at(0).step
    whole = list(step_lines("run.jsonl@1", step, (), 80, plain, NAMELESS))
    assert len(whole) == 1
    address = "a-very-long-name-of-a-session-that-somebody-recorded.jsonl@1"
    first, *rest = step_lines(address, step, (), 60, plain, NAMELESS)
    assert first == address
    assert " ".join("".join(rest).split()) == " ".join(whole[0].split()[1:])
    assert all(cells(line) <= 60 for line in rest)
