"""``cost``, ``lint``, ``find`` and ``calibrate`` of a directory that holds several captures."""

from __future__ import annotations

import json
import re
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ctxctl.cli.fleet_answers import Shelf
from ctxctl.cli.main import run

ROOT = Path(__file__).resolve().parents[3]
FIXTURES = ROOT / "fixtures"
CLAUDE = FIXTURES / "claude_code"
SAMPLE = ROOT / "traces/coding-agent.jsonl"
SCHEMA = json.loads((ROOT / "docs/json.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
Out = pytest.CaptureFixture[str]


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of a Claude Code session, a Codex rollout and a trace, named as `top`."""
    monkeypatch.setattr("ctxctl.trace.inputs.YOUNG", -60.0)
    monkeypatch.chdir(tmp_path)
    made = tmp_path / "top"
    (made / "one").mkdir(parents=True)
    shutil.copy(CLAUDE / "session.jsonl", made / "one/session.jsonl")
    shutil.copy(FIXTURES / "codex/rollout.jsonl", made / "rollout.jsonl")
    shutil.copy(SAMPLE, made / "trace.jsonl")
    return made


def said(capsys: Out, *arguments: str) -> tuple[int, list[dict[str, Any]], str]:
    code = run([*arguments, "--json"])
    printed = capsys.readouterr()
    return code, [json.loads(line) for line in printed.out.splitlines()], printed.err


def held(lines: list[dict[str, Any]]) -> None:
    """Each line is what docs/json.schema.json says, with its keys in order."""
    for line in lines:
        VALIDATOR.validate(line)
        required = SCHEMA["$defs"][line["type"]]["required"]
        assert [key for key in line if key in required] == required


def of(lines: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [line for line in lines if line["type"] == kind]


def test_a_directory_costs_what_its_captures_cost(top: Path, capsys: Out) -> None:
    alone = {}
    for name in ("one/session.jsonl", "rollout.jsonl", "trace.jsonl"):
        _, lines, _ = said(capsys, "cost", str(top / name))
        alone[name] = of(lines, "cost")[0]
    code, lines, err = said(capsys, "cost", "top")
    assert (code, err) == (0, "")
    head = lines[0]
    assert (head["type"], head["captures"], head["failed"]) == ("fleet", 3, 0)
    assert head["formats"] == {"claude-code": 1, "codex": 1, "native": 1}
    groups = {line["name"]: line for line in of(lines, "group_cost")}
    assert groups.keys() == alone.keys()
    for name, cost in alone.items():
        same = (
            "steps",
            "billed",
            "sent",
            "counted",
            "unreported_steps",
            "partial_outputs",
            "cache_misses",
            "stated",
        )
        assert {key: groups[name][key] for key in same} == {key: cost[key] for key in same}
    whole = of(lines, "cost")[0]
    assert whole["steps"] == sum(cost["steps"] for cost in alone.values()) > 0
    totals = [Decimal(cost["billed"]["total"]) for cost in alone.values()]
    assert Decimal(whole["billed"]["total"]) == sum(totals) > 0


@pytest.mark.parametrize("by", ["session", "day", "project", "branch", "model"])
def test_every_grouping_adds_up(top: Path, capsys: Out, by: str) -> None:
    _, lines, _ = said(capsys, "cost", "top", "--by", by)
    held(lines)
    groups, (whole,) = of(lines, "group_cost"), of(lines, "cost")
    assert {line["by"] for line in groups} == {by}
    assert sum(line["steps"] for line in groups) == whole["steps"]
    assert sum(Decimal(line["sent"]["total"]) for line in groups) == Decimal(whole["sent"]["total"])
    assert run(["cost", "top", "--by", by, "--top", "1"]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 100
    assert ("others)" in text or "other)" in text or "earlier)" in text) == (len(groups) > 1)


def test_a_copied_session_counts_once_whichever_process_ends_first(
    top: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, lines, _ = said(capsys, "cost", "top")
    (before,) = of(lines, "cost")
    shutil.copy(top / "one/session.jsonl", top / "one/copy.jsonl")
    shutil.copy(top / "rollout.jsonl", top / "a-copy.jsonl")
    monkeypatch.setattr("ctxctl.fleet.asking.processes_for", lambda _size, pieces: min(2, pieces))
    found = []
    for cache in ("on", "on", "off"):
        monkeypatch.setenv("CTXCTL_CACHE", cache)
        found.append(said(capsys, "cost", "top"))
    code, lines, _ = found[0]
    assert found[1] == found[2] == found[0]
    (after,) = of(lines, "cost")
    assert code == 0
    assert after["billed"] == before["billed"]
    assert lines[0]["shared_requests"] > 0
    steps = {line["name"]: line["steps"] for line in of(lines, "group_cost")}
    assert steps["a-copy.jsonl"] > 0 == steps["rollout.jsonl"]
    told = {line["source"]: line for line in of(lines, "problem") if line["slug"] == "carried-history"}
    assert "a-copy.jsonl" in told["rollout.jsonl"]["message"]


def test_a_capture_that_cannot_be_read_is_told_and_the_others_count(top: Path, capsys: Out) -> None:
    _, lines, _ = said(capsys, "cost", "top")
    (before,) = of(lines, "cost")
    (top / "broken.jsonl").write_bytes((top / "trace.jsonl").read_bytes()[:400] + b"\n")
    code, lines, _ = said(capsys, "cost", "top")
    assert (code, lines[0]["captures"], lines[0]["failed"]) == (0, 3, 1)
    assert of(lines, "cost")[0]["billed"] == before["billed"]
    (problem,) = (line for line in of(lines, "problem") if line["slug"] == "no-events")
    assert problem["source"] == "broken.jsonl"
    assert str(top) not in problem["message"]
    assert run(["cost", "top", "--strict"]) == 1
    assert "top/broken.jsonl: no-events: " in capsys.readouterr().err
    code, lines, _ = said(capsys, "lint", "top")
    assert (code, len(of(lines, "trace"))) == (3, 3)


def test_nothing_is_read_twice(top: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    first = said(capsys, "cost", "top")

    def read(*_: object) -> None:
        raise AssertionError("a capture was read again")

    monkeypatch.setattr("ctxctl.analysis.session_costs.work", read)
    assert said(capsys, "cost", "top") == first
    assert len(of(said(capsys, "cost", "top", "--by", "model")[1], "group_cost")) > 1


def test_lint_of_a_directory_is_lint_of_its_captures(top: Path, capsys: Out) -> None:
    names = ["top/one/session.jsonl", "top/rollout.jsonl", "top/trace.jsonl"]
    one = said(capsys, "lint", *names)
    for _ in range(2):
        many = said(capsys, "lint", "top")
        assert many[0] == one[0]
        for kind in ("finding", "lint"):
            assert of(many[1], kind) == of(one[1], kind)
        assert [line["trace"] for line in of(many[1], "trace")] == names
    _, lines, _ = said(capsys, "lint", "top", "--select", "CTX001")
    assert {line["code"] for line in of(lines, "finding")} <= {"CTX001"}


def test_find_in_a_directory_finds_what_is_in_its_captures(top: Path, capsys: Out) -> None:
    names = ["top/one/session.jsonl", "top/rollout.jsonl", "top/trace.jsonl"]
    _, one, _ = said(capsys, "find", *names, "window > 0")
    for _ in range(2):
        code, many, _ = said(capsys, "find", "top", "window > 0")
        assert code == 0
        assert [line["trace"] for line in of(many, "found")] == names
        unnamed = [{**line, "trace": None} for line in of(many, "hit")]
        assert unnamed == [{**line, "trace": None} for line in of(one, "hit")]
    assert run(["find", "top", "window > 0", "--count"]) == 0
    assert [line.partition(":")[0] for line in capsys.readouterr().out.splitlines()] == names
    assert run(["find", "top", "window > 99999999"]) == 1
    assert "in 0 of 3 captures" in capsys.readouterr().err


def test_calibrate_gathers_the_same_from_a_directory(top: Path, capsys: Out) -> None:
    names = ["top/one/session.jsonl", "top/rollout.jsonl", "top/trace.jsonl"]
    one = said(capsys, "calibrate", *names)[1]
    assert of(said(capsys, "calibrate", "top")[1], "calibration") == of(one, "calibration")
    assert of(said(capsys, "calibrate", "top")[1], "refused") == of(one, "refused")


def test_a_directory_that_is_one_capture_stays_one(tmp_path: Path, capsys: Out) -> None:
    shutil.copy(FIXTURES / "codex/rollout.jsonl", tmp_path / "rollout.jsonl")
    _, lines, _ = said(capsys, "cost", str(tmp_path))
    assert lines[0]["type"] == "trace"
    assert of(lines, "spent")


def test_the_groups_of_one_file(top: Path, capsys: Out) -> None:
    _, lines, _ = said(capsys, "cost", "top/rollout.jsonl")
    (whole,) = of(lines, "cost")
    _, lines, _ = said(capsys, "cost", "top/rollout.jsonl", "--by", "model")
    held(lines)
    assert lines[0]["captures"] == 1
    assert of(lines, "cost")[0]["billed"] == whole["billed"]
    assert run(["cost", "top/rollout.jsonl", "--by", "model", "--steps"]) == 2
    assert "bad-grouping" not in capsys.readouterr().out


def test_a_price_that_nobody_knows_is_told_as_not_known(top: Path, capsys: Out) -> None:
    rollout = top / "rollout.jsonl"
    rollout.write_text(re.sub(r'"model":"[^"]*"', '"model":"nobodys-model"', rollout.read_text()))
    _, lines, _ = said(capsys, "cost", "top", "--by", "model")
    held(lines)
    groups = {line["name"]: line for line in of(lines, "group_cost")}
    unknown = groups.pop("nobodys-model")
    money = ("billed", "counted", "sent", "unbilled")
    assert {key: unknown[key] for key in money} == dict.fromkeys(money)
    assert unknown["lower_bound"]
    assert all(line[key] is not None for line in groups.values() for key in money)
    assert of(lines, "cost")[0]["sent"] is not None
    for by in ("model", "session"):
        assert run(["cost", "top", "--by", by]) == 0
        table = capsys.readouterr().out.split("\n\n")[1].splitlines()
        (row,) = (line for line in table if line.startswith(("nobodys-model", "rollout.jsonl")))
        assert row.split()[-2:] == ["-", "-"]
        assert all(line.endswith("%") for line in table[1:] if line != row)
    assert run(["cost", "top/rollout.jsonl", "--by", "day"]) == 0
    assert "%" not in capsys.readouterr().out.split("\n\n")[1]


def test_a_directory_with_one_trace_is_a_fleet_of_one(top: Path, capsys: Out) -> None:
    (top / "only").mkdir()
    shutil.copy(SAMPLE, top / "only")
    for path in ("top/only", f"top/only/{SAMPLE.name}"):
        code, lines, _ = said(capsys, "cost", path, "--by", "session")
        assert code == 0
        assert [line["name"] for line in of(lines, "group_cost")] == [SAMPLE.name]
        assert run(["cost", path, "--by", "session"]) == 0
        assert capsys.readouterr().out.startswith("directory" if path == "top/only" else "file")


@pytest.fixture
def resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A session, and another that was resumed from it: its history, then requests of its own."""
    monkeypatch.setattr("ctxctl.trace.inputs.YOUNG", -60.0)
    monkeypatch.chdir(tmp_path)
    made = tmp_path / "top"
    made.mkdir()
    lines = (CLAUDE / "session.jsonl").read_text().splitlines(keepends=True)
    (made / "b-first.jsonl").write_text("".join(lines[: len(lines) * 2 // 3]))
    (made / "a-resumed.jsonl").write_text("".join(lines))
    return made


def ids(lines: list[dict[str, Any]]) -> list[tuple[str, int, int]]:
    return [(line["trace"], line["turn"], line["step"]) for line in of(lines, "hit")]


def test_find_looks_once_at_a_request_that_two_captures_hold(resumed: Path, capsys: Out) -> None:
    _, whole, _ = said(capsys, "find", "top/a-resumed.jsonl", "window > 0")
    _, first, _ = said(capsys, "find", "top/b-first.jsonl", "window > 0")
    copies = len(of(first, "hit"))
    assert 0 < copies < len(of(whole, "hit"))
    for _ in range(2):
        code, lines, _ = said(capsys, "find", "top", "window > 0")
        assert code == 0
        held(lines)
        assert [hit for hit in ids(lines) if hit[0] == "top/b-first.jsonl"] == [
            ("top/b-first.jsonl", *hit[1:]) for hit in ids(first)
        ]
        own = [hit[1:] for hit in ids(lines) if hit[0] == "top/a-resumed.jsonl"]
        assert own == [hit[1:] for hit in ids(whole)][copies:]
        (told,) = (line for line in of(lines, "problem") if line["slug"] == "carried-history")
        assert told["source"] == "a-resumed.jsonl"
        assert told["message"].startswith(f"{copies} requests are in b-first.jsonl too")
    assert run(["find", "top", "window > 0", "--count", "--first"]) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines() == ["top/a-resumed.jsonl: 1", "top/b-first.jsonl: 1"]
    assert f"several captures share {copies} requests; each was looked at once" in printed.err
    carried = f"top/a-resumed.jsonl: carried-history: {copies} requests are in b-first.jsonl too"
    assert carried in printed.err
    assert run(["find", "top", "window > 0", "--strict"]) == 1


def test_lint_tells_once_of_a_request_that_two_captures_hold(resumed: Path, capsys: Out) -> None:
    shutil.copy(FIXTURES / "codex/compacted.jsonl", resumed / "c.jsonl")
    _, before, _ = said(capsys, "lint", "top")
    (sums,) = of(before, "lint")
    _, whole, _ = said(capsys, "lint", "top/a-resumed.jsonl", "top/c.jsonl")
    assert sums["steps"] == of(whole, "lint")[0]["steps"]
    (told,) = (line for line in of(before, "problem") if line["slug"] == "carried-history")
    assert told["source"] == "a-resumed.jsonl"
    shutil.copy(resumed / "a-resumed.jsonl", resumed / "copy.jsonl")
    shutil.copy(resumed / "c.jsonl", resumed / "d.jsonl")
    _, after, _ = said(capsys, "lint", "top")
    assert of(after, "finding") == of(before, "finding")
    assert of(after, "finding")
    assert of(after, "lint")[0]["steps"] == sums["steps"]
    run(["lint", "top"])
    assert "each was looked at once" in capsys.readouterr().err


def test_answers_beyond_what_memory_may_take_are_the_same() -> None:
    shelf = Shelf(4)
    for name, data in (("a", b"aaaa"), ("b", b"bbbbbb"), ("c", b"c"), ("b", b"BB"), ("a", b"")):
        shelf[name] = data
    assert dict(shelf) == {"a": b"", "b": b"BB", "c": b"c"}
    del shelf["b"]
    assert sorted(shelf) == ["a", "c"]
    shelf["d"] = b"dddd"
    assert shelf["d"] == b"dddd"
