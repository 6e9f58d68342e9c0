"""``--oneline``: one line each, in columns that cut can take."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from ctxctl.cli.main import run
from ctxctl.report.oneline import in_width

ROOT = Path(__file__).parents[3]
Said = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "traces" / "coding-agent.jsonl", "a run.jsonl")
    monkeypatch.setenv("COLUMNS", "40")


def rows(capsys: Said, *arguments: str) -> list[list[str]]:
    assert run([*arguments, "--oneline"]) == 0
    found = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert len({len(row) for row in found}) == 1
    assert all(field for row in found for field in row)
    return found


def objects(capsys: Said, kind: str, *arguments: str) -> list[dict[str, Any]]:
    assert run([*arguments, "--json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [one for one in found if one["type"] == kind]


def test_replay_has_a_line_for_each_turn(capsys: Said) -> None:
    found = rows(capsys, "replay", "a run.jsonl")
    turns = objects(capsys, "turn", "replay", "a run.jsonl")
    assert [(row[1], row[5], row[6]) for row in found] == [
        (str(turn["steps"]), f"+{turn['ledger']['new']}", f"-{turn['ledger']['freed']}") for turn in turns
    ]
    assert found[0][0] == "'a run.jsonl@1'"
    (ninth,) = (row for row in found if row[0] == "'a run.jsonl@9'")
    assert "compactions=1" in ninth[8]
    for row in found:
        (word,) = shlex.split(row[0])
        assert run(["show", word]) == 0
    capsys.readouterr()


@pytest.mark.parametrize(
    "command", [["replay", "a run.jsonl", "--steps"], ["find", "a run.jsonl", "turn > 0"]]
)
def test_replay_by_steps_and_find_have_a_line_for_each_step(command: list[str], capsys: Said) -> None:
    steps = objects(capsys, "step", "replay", "a run.jsonl")
    found = rows(capsys, *command)
    assert [row[1:6] for row in found] == [
        [
            str(step["window"]["used"]), row[2], step["window"]["used_method"], f"+{step['ledger']['new']}",
            f"-{step['ledger']['freed']}",
        ]
        for step, row in zip(steps, found, strict=True)
    ]  # fmt: skip
    assert len(rows(capsys, "replay", "a run.jsonl@3.2")) == 1
    where = rows(capsys, "replay", "a run.jsonl", "--where", "window > 80%")
    assert where == rows(capsys, "find", "a run.jsonl", "window > 80%")
    assert all(float(row[2].rstrip("%")) >= 80 for row in where)


def test_diff_has_a_line_for_each_change(capsys: Said) -> None:
    (diff,) = objects(capsys, "diff", "diff", "a run.jsonl@8", "@9")
    found = rows(capsys, "diff", "a run.jsonl@8", "@9")
    shown = [one for one in diff["changes"] if one["status"] != "skipped"]
    assert [row[:5] + row[6:7] for row in found] == [
        [
            one["status"], one["kind"], str(one["tokens"]), f"+{one['new']}", f"-{one['freed']}",
            shlex.quote(one["item"]),
        ]
        for one in shown
    ]  # fmt: skip
    assert run(["diff", "a run.jsonl", "a run.jsonl", "--sessions", "--oneline"]) == 2


def test_log_has_a_line_for_each_stretch_of_a_life(capsys: Said) -> None:
    lives = objects(capsys, "life", "log", "a run.jsonl", "Working tree")
    found = rows(capsys, "log", "a run.jsonl", "Working tree")
    assert [(row[2], row[3]) for row in found] == [(one["status"], str(one["tokens"])) for one in lives]
    assert found[0][0].startswith("'a run.jsonl@")


def test_text_of_a_trace_parts_no_fields(capsys: Said) -> None:
    hostile = str(ROOT / "tests" / "golden" / "traces" / "hostile.jsonl")
    rows(capsys, "replay", hostile)
    rows(capsys, "find", hostile, "turn > 0")
    for row in rows(capsys, "diff", f"{hostile}@1", "@2"):
        assert not any(ord(char) < 32 for field in row for char in field)


def test_on_a_terminal_a_line_is_one_line_and_in_a_pipe_it_is_whole(
    capsys: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = Path("/".join(["a-rather-long-name-of-a-directory"] * 3)).absolute()
    deep.mkdir(parents=True)
    path = str(shutil.copy("a run.jsonl", deep / "run.jsonl"))
    whole = rows(capsys, "replay", path)
    assert whole[0][0] == f"{path}@1"
    monkeypatch.setattr("ctxctl.cli.output.is_terminal", lambda _: True)
    monkeypatch.setenv("COLUMNS", "120")
    assert run(["replay", path, "--oneline", "--no-pager", "--color", "never"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith("…/")
    assert shown[0].split("\t")[0].endswith("/run.jsonl@1")
    assert [line.split("\t")[1:8] for line in shown] == [row[1:8] for row in whole]
    assert max(len(line.expandtabs()) for line in shown) <= 120


@pytest.mark.parametrize(
    ("line", "width", "shown"),
    [
        ("/a/b/run.jsonl@1\t2\tx", 40, "/a/b/run.jsonl@1\t2\tx"),
        ("/home/ada/work/run.jsonl@1\t2\tx", 36, "…/run.jsonl@1\t2\tx"),
        ("/home/ada/work/run.jsonl@1\t2\tten words or more", 36, "…/run.jsonl@1\t2\tten words o…"),
        ("'/home/ada/a b/run.jsonl@1'\t2\tx", 34, "…/run.jsonl@1'\t2\tx"),
    ],
)
def test_a_long_path_is_cut_on_its_left_and_the_last_field_on_its_right(
    line: str, width: int, shown: str
) -> None:
    assert in_width(line, width) == shown
