"""`ctxctl diff`: recorded content adds up, and with what is not recorded so does what was sent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ctxctl.cli.main import run
from ctxctl.model.results import Window
from ctxctl.session.results import frame_diff
from tests.oracle import build
from tests.unit.engine.billed_help import expecting, three_steps

Out = pytest.CaptureFixture[str]


def diffed(where: Path, capsys: Out, a: str, b: str) -> tuple[str, dict[str, object]]:
    path = where / "run.jsonl"
    path.write_bytes(build.lines(three_steps()))
    run(["diff", f"{path}@{a}", f"@{b}", "--stat"])
    text = " ".join(capsys.readouterr().out.split())
    run(["diff", f"{path}@{a}", f"@{b}", "--json"])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return text, next(line for line in lines if line["type"] == "diff")


def test_both_sums_are_told(tmp_path: Path, capsys: Out) -> None:
    text, line = diffed(tmp_path, capsys, "1", "2")
    assert "sent 105 -> 115 (+10): +8 recorded, +2 not recorded" in text
    assert "window 5 before + 8 new \u2212 0 freed = 13 recorded (+8)" in text
    names = (
        "before", "new", "freed", "after", "reweighed", "sent_before", "sent_after", "unrecorded_before",
        "unrecorded_after", "unrecorded",
    )  # fmt: skip
    assert [line[name] for name in names] == [5, 8, 0, 13, 0, 105, 115, 100, 102, 2]


def test_an_expected_size_is_called_that(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    expecting(monkeypatch)
    text, _ = diffed(tmp_path, capsys, "2", "3")
    assert "sent 115 -> about 119 ±7 (+4): +4 recorded, 0 not recorded" in text


def test_what_nobody_knows_is_null(tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTXCTL_CALIBRATION", "none")
    text, line = diffed(tmp_path, capsys, "2", "3")
    assert (
        "sent 115 -> 17 recorded; what was sent besides the content of the second frame is not known" in text
    )
    assert (line["unrecorded"], line["unrecorded_before"], line["unrecorded_after"]) == (None, 102, None)


def window(recorded: int, unrecorded: int | None) -> Window:
    used = recorded + (unrecorded or 0)
    return Window(None, None, None, used, None, None, 0, {}, recorded=recorded, unrecorded=unrecorded)


def test_texts_that_weigh_more_now_are_told_apart() -> None:
    found = frame_diff(window(100, 40), window(130, 30), (), 25, 5)
    assert found.reweighed == 10
    assert found.after == found.before + found.new - found.freed + found.reweighed
    assert found.unrecorded == -10
    assert found.sent_after == found.sent_before + found.after - found.before + found.unrecorded
