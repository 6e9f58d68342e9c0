"""``TRACE@3`` in commands that look at more than one frame, and the frame that is meant without one."""

from __future__ import annotations

import json
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from ctxctl.cli.main import run

ROOT = Path(__file__).parents[3]
Said = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "traces" / "coding-agent.jsonl", "run.jsonl")
    shutil.copy(ROOT / "tests" / "golden" / "traces" / "threads.jsonl", "threads.jsonl")


def lines(capsys: Said, *arguments: str) -> list[dict[str, Any]]:
    assert run([*arguments, "--json"]) in (0, 1)
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def places(found: list[dict[str, Any]], kind: str) -> list[tuple[str, int, int]]:
    return [(one["thread"], one["turn"], one["step"]) for one in found if one["type"] == kind]


def test_replay_of_a_turn_and_of_a_step(capsys: Said) -> None:
    whole = lines(capsys, "replay", "run.jsonl", "--turn", "3", "--thread", "main")
    named = lines(capsys, "replay", "run.jsonl@3")
    assert named == whole
    assert places(named, "step") == [("main", 3, 1), ("main", 3, 2)]
    one = lines(capsys, "replay", "run.jsonl@3.2")
    assert places(one, "step") == [("main", 3, 2)]
    assert [line["type"] for line in one].count("turn") == 0
    assert one[0]["turn"] == "3.2"
    assert places(lines(capsys, "replay", "threads.jsonl@explorer:1"), "step")[0][0] == "explorer"


def test_a_turn_is_one_of_the_main_thread(capsys: Said) -> None:
    assert {place[0] for place in places(lines(capsys, "replay", "threads.jsonl@1"), "step")} == {"main"}
    assert {place[0] for place in places(lines(capsys, "find", "threads.jsonl@1", "turn > 0"), "hit")} == {
        "main"
    }


def test_find_asks_one_turn(capsys: Said) -> None:
    assert places(lines(capsys, "find", "run.jsonl@3", "turn > 0"), "hit") == [("main", 3, 1), ("main", 3, 2)]
    found = lines(capsys, "find", "run.jsonl@3.1", "run.jsonl@4", "turn > 0")
    assert [one["of"] for one in found if one["type"] == "found"] == [
        1,
        len(places(lines(capsys, "find", "run.jsonl", "turn == 4", "--thread", "main"), "hit")),
    ]
    assert run(["find", "run.jsonl@3"]) == 2
    assert "query is missing" in capsys.readouterr().err


def test_the_costs_of_all_turns_are_the_cost_of_the_trace(capsys: Said) -> None:
    def sums(*arguments: str) -> tuple[int, Decimal, dict[str, int]]:
        found = lines(capsys, "cost", *arguments)
        (whole,) = (one for one in found if one["type"] == "cost")
        money = sum(
            (Decimal(str(one["billed"]["total"])) for one in found if one["type"] == "step_cost"), Decimal()
        )
        spent = {one["name"]: one["tokens"] for one in found if one["type"] == "spent"}
        return whole["steps"], money, spent

    steps, money, spent = sums("run.jsonl", "--thread", "main")
    assert sums("run.jsonl")[0] > steps
    turns = [sums(f"run.jsonl@{turn}") for turn in range(1, 16)]
    assert sum(turn[0] for turn in turns) == steps
    assert sum(turn[1] for turn in turns) == money
    for name, tokens in spent.items():
        assert abs(sum(turn[2].get(name, 0) for turn in turns) - tokens) <= steps, name
    assert sums("run.jsonl@3") == sums("run.jsonl", "--turn", "3")
    assert run(["cost", "threads.jsonl", "--thread", "nobody"]) == 2
    assert "there are: main, explorer" in capsys.readouterr().err


def test_an_export_of_a_turn(capsys: Said) -> None:
    assert run(["export", "run.jsonl@3", "--format", "markdown"]) == 0
    named = capsys.readouterr().out
    assert run(["export", "run.jsonl", "--turn", "3", "--thread", "main", "-o", "x.md"]) == 0
    assert Path("x.md").read_text() == named
    assert run(["export", "run.jsonl@3", "--format", "html"]) == 2
    assert "--format markdown" in capsys.readouterr().err


def test_compactions_of_a_turn(capsys: Said) -> None:
    (one,) = [row for row in lines(capsys, "compactions", "threads.jsonl") if row["type"] == "compaction"]
    address = f"threads.jsonl@{one['thread']}:{one['turn']}"
    assert one in lines(capsys, "compactions", address)
    assert run(["compactions", "run.jsonl@1"]) == 0
    assert "in these turns" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["log", "run.jsonl@3", "system"], "ctxctl why run.jsonl@3 system"),
        (["bisect", "run.jsonl@3", "turn > 1"], "ctxctl find run.jsonl@3"),
        (["bisect", "run.jsonl@3", "run.jsonl"], "ctxctl diff"),
        (["lint", "run.jsonl@3"], "ctxctl export run.jsonl@3 --format markdown"),
        (["validate", "run.jsonl@3"], "ctxctl show run.jsonl@3"),
        (["import", "run.jsonl@3"], "ctxctl show run.jsonl@3"),
        (["calibrate", "run.jsonl@3"], "ctxctl show run.jsonl@3"),
        (["learn", "run.jsonl@3"], "leave the turn out"),
        (["watch", "run.jsonl@3"], "ctxctl show run.jsonl@3"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_command_of_whole_traces_names_the_one_that_takes_a_turn(
    arguments: list[str], hint: str, capsys: Said
) -> None:
    assert run(arguments) == 2
    said = capsys.readouterr().err
    assert "names a turn" in said
    assert hint in said


def test_the_argument_in_a_hint_can_be_copied(capsys: Said) -> None:
    shutil.copy("run.jsonl", "my run.jsonl")
    assert run(["validate", "my run.jsonl@3"]) == 2
    assert "`ctxctl show 'my run.jsonl@3'`" in capsys.readouterr().err


def test_a_trace_that_is_not_there_is_named_as_it_was_typed(capsys: Said) -> None:
    for command in ("replay", "cost", "compactions", "validate"):
        assert run([command, "gone.jsonl@3"]) == 3
        assert "gone.jsonl@3" in capsys.readouterr().err


def test_the_last_frame_is_the_main_threads(capsys: Said) -> None:
    """Last in the file is a step of the sub-agent; nobody who asks for a trace's last frame means that."""
    told = Path("threads.jsonl").read_text().splitlines(keepends=True)
    other = [line for line in told if json.loads(line).get("thread_id") == "explorer"]
    Path("threads.jsonl").write_text("".join([line for line in told if line not in other] + other))
    spans = places(lines(capsys, "replay", "threads.jsonl"), "step")
    assert spans[-1][0] == "explorer"
    (shown,) = [one for one in lines(capsys, "show", "threads.jsonl") if one["type"] == "frame"]
    last = [place for place in spans if place[0] == "main"][-1]
    assert (shown["step"]["thread"], shown["step"]["turn"], shown["step"]["step"]) == last
    (asked,) = [one for one in lines(capsys, "show", "threads.jsonl@-1") if one["type"] == "frame"]
    assert asked == shown


def test_findings_of_a_thread(capsys: Said) -> None:
    events = [json.loads(line) for line in Path("threads.jsonl").read_text().splitlines()]
    mine = [one for one in events if one.get("thread_id") != "explorer"]
    again = [{**one, "event_id": f"again-{one['event_id']}", "thread_id": "again"} for one in mine]
    Path("threads.jsonl").write_text("".join(json.dumps(one) + "\n" for one in mine + again))
    every = [
        one for one in lines(capsys, "lint", "threads.jsonl", "--select", "all") if one["type"] == "finding"
    ]
    threads = {one["thread"] for one in every}
    assert len(threads) > 1
    for thread in threads:
        of_one = lines(capsys, "lint", "threads.jsonl", "--select", "all", "--thread", thread)
        assert {one["thread"] for one in of_one if one["type"] == "finding"} == {thread}
    assert run(["lint", str(ROOT / "fixtures" / "codex"), "--thread", "main"]) == 2
    assert "holds several" in capsys.readouterr().err
    assert run(["lint", "threads.jsonl", "--thread", "nobody"]) == 2


@pytest.mark.parametrize("command", [["find", "run.jsonl", "turn > 0"], ["compactions", "run.jsonl"]])
def test_a_thread_that_the_trace_does_not_have_is_an_error(capsys: Said, command: list[str]) -> None:
    for form in ([], ["--json"]):
        assert run([*command, "--thread", "explore", *form]) == 2
        said = capsys.readouterr()
        assert said.out == ""
        assert "no thread is called 'explore'" in said.err
        assert "there are: main, explorer, reviewer" in said.err


def test_find_in_several_traces_wants_the_thread_in_one_of_them(capsys: Said) -> None:
    assert run(["find", "run.jsonl", "threads.jsonl", "turn > 0", "--thread", "reviewer"]) == 0
    capsys.readouterr()
    assert run(["find", "run.jsonl", "threads.jsonl", "turn > 0", "--thread", "nobody"]) == 2
    assert "no trace has a thread called 'nobody'" in capsys.readouterr().err


def test_cost_calls_what_broke_a_cache_as_lists_do(capsys: Said) -> None:
    for form in ([], ["--steps"]):
        assert run(["cost", "run.jsonl", "--plain", *form]) == 0
        table = capsys.readouterr().out.partition("costliest cache breaks")[2]
        assert "Working tree" in table
        assert "list_files ." in table
        assert "working-tree" not in table
        assert "result-1" not in table
