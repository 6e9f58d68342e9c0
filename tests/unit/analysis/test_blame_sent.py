"""Blame's shares are parts of what was sent: what no block holds is a part of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxctl.analysis.blame import blame_frame
from ctxctl.analysis.frame_pair import fidelity_of
from ctxctl.report.blame import head_lines, sum_lines, to_json
from ctxctl.report.paint import plain
from ctxctl.session import Inspector
from tests.oracle import build
from tests.oracle.build import assembly, at, event, inject, item, usage
from tests.oracle.real import opened
from tests.unit.engine.billed_help import catalogue, expecting, three_steps

LACKS = event(
    "ctxctl.fidelity.measured",
    {
        "path": "capture.jsonl",
        "format": "claude-code",
        "facts": {
            "system_prompt": {"not recorded": 3},
            **{name: {"native": 3} for name in ("tool_definitions", "reminders", "wrapper")},
        },
    },
)


def told(inspector: Inspector, ordinal: int) -> str:
    """The head and the sums, each label's text in one line."""
    found = blame_frame(inspector, ordinal)
    lines = [*head_lines(found, "t.jsonl", "under", 400), *sum_lines(found, found.blocks, 400, plain)]
    return "\n".join(" ".join(line.split()) for line in lines)


def test_shares_add_up_to_the_bill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalogue(monkeypatch, 200)
    with opened(tmp_path / "t.jsonl", three_steps()) as inspector:
        text = told(inspector, 1)
        found = to_json(blame_frame(inspector, 1), ())
    assert "sent 115 of 200 (58%), 85 free; billed; window 200, from the model table" in text
    assert "\nbesides 102 tokens (88.7%) not recorded\n" in text
    assert "\nwindow 13 tokens (11.3% of what was sent) in 2 blocks\n" in text
    assert "\nevidence billed 115 tokens: 102 more than the blocks hold\n" in text
    assert "\nkind blocks tokens share\n(not recorded) 102 88.7%\ndurable_memory 2 13 11.3%\n" in text
    assert text.count("(not recorded)") == 2  # by kind and by age
    sizes = {name: found[name] for name in ("used", "sent", "recorded", "unrecorded", "share", "evidence")}
    assert sizes == {
        "used": 115,
        "sent": 115,
        "recorded": 13,
        "unrecorded": 102,
        "share": 11.3,
        "evidence": 102,
    }
    assert found["totals"]["kind"] == [
        {"name": "durable_memory", "blocks": 2, "tokens": 13, "uncounted": 0, "share": 11.3}
    ]


def test_what_is_expected_is_called_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expecting(monkeypatch)
    with opened(tmp_path / "t.jsonl", three_steps()) as inspector:
        text = told(inspector, 2)
    assert "sent about 119 ±7; limit unknown; expected, not billed" in text
    assert "\nbesides about 102 tokens (85.7%) not recorded\n" in text
    assert (
        "no bill was read for this step: what was sent besides the blocks is taken from the last bill" in text
    )


def test_without_a_bill_nothing_is_said_of_the_rest(tmp_path: Path) -> None:
    steps = at("t1", "s1", item("A", build.ABC), assembly("asm1", ["A"]), inject("asm1"))
    with opened(tmp_path / "t.jsonl", steps) as inspector:
        text = told(inspector, 0)
        found = to_json(blame_frame(inspector, 0), ())
    assert "sent not known: no bill was read; 5 recorded; limit unknown" in text
    assert "besides 1" not in text
    assert "(not recorded)" not in text
    assert "evidence no bill was read: what was sent besides the blocks is not known" in text
    assert (found["unrecorded"], found["share"]) == (None, 100.0)


def test_more_recorded_than_billed_is_shown_as_that(tmp_path: Path) -> None:
    steps = at("t1", "s1", item("A", build.ABC), assembly("asm1", ["A"]), inject("asm1"), usage(4))
    with opened(tmp_path / "t.jsonl", steps) as inspector:
        text = told(inspector, 0)
    assert "\nbesides recorded content is counted at 1 more than was sent\n" in text
    assert "(not recorded) \u22121 \u221225.0%" in text


def test_what_is_not_recorded_is_named_by_what_the_capture_lacks(tmp_path: Path) -> None:
    with opened(tmp_path / "t.jsonl", [*three_steps(), LACKS]) as inspector:
        assert "besides 102 tokens (88.7%) not recorded: system prompt\n" in told(inspector, 1)
        assert inspector.summary is None  # nothing was replayed to its end for it
        inspector.outline()
        assert [one.format for one in fidelity_of(inspector)] == ["claude-code"]
