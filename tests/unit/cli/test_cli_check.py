"""``ctxctl check`` as a person and a CI system meet it."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest

from ctxctl.cli.main import run
from tests.oracle.build import CAT, assembly, at, budget, inject, item, lines, usage

ROOT = Path(__file__).resolve().parents[3]
AGENT = ROOT / "traces" / "coding-agent.jsonl"
ROLLOUT = ROOT / "fixtures" / "codex" / "rollout.jsonl"
SCHEMA = json.loads((ROOT / "docs/json.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
CLAUDE = ROOT / "fixtures" / "claude_code" / "session.jsonl"
Out = pytest.CaptureFixture[str]
Said = tuple[int, str, str]


def said(capsys: Out, *arguments: object) -> Said:
    code = run(["check", *map(str, arguments)])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def objects(capsys: Out, *arguments: object) -> tuple[int, list[dict[str, Any]]]:
    """The code and the lines, each held to docs/json.schema.json."""
    code, out, _ = said(capsys, *arguments, "--json")
    found = [json.loads(line) for line in out.splitlines()]
    for line in found:
        VALIDATOR.validate(line)
        required = SCHEMA["$defs"][line["type"]]["required"]
        assert [key for key in line if key in required] == required
    return code, found


def small(path: Path, *bills: int, limit: int | None = 100) -> Path:
    events = []
    for turn, tokens in enumerate(bills, 1):
        made = [item("a", CAT)] if turn == 1 else []
        made += [] if limit is None else [budget(limit)]
        events += at(str(turn), "1", *made, assembly(f"w{turn}", ["a"]), inject(f"w{turn}"), usage(tokens))
    path.write_bytes(lines(events))
    return path


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project, in which settings are looked for."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CTXCTL_CONFIG")
    (tmp_path / ".git").mkdir()
    return tmp_path


def test_each_condition_has_a_line_and_what_fails_the_command_that_shows_it(here: Path, capsys: Out) -> None:
    small(here / "run.jsonl", 70, 90, 85)
    code, out, err = said(capsys, "run.jsonl", "--max", "80%", "--max-growth", "20")
    assert (code, err) == (1, "")
    assert out.splitlines() == [
        "fails    max 80%        2 of 3 requests sent more; the worst: 90 billed, 90.0% of 100",
        "                        ctxctl show run.jsonl@2.1",
        "holds    max-growth 20  +20, from 70 billed to 90 billed, at 2.1",
        "1 condition holds, 1 fails (3 requests)",
    ]
    assert run(["show", "run.jsonl@2.1"]) == 0


def test_all_that_holds_is_exit_0(here: Path, capsys: Out) -> None:
    small(here / "run.jsonl", 70, 75)
    code, out, err = said(capsys, "run.jsonl", "--max", "80%", "--no-compaction")
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == "2 conditions hold (2 requests)"
    assert said(capsys, "run.jsonl", "--max", "80%", "-q") == (0, "", "")


def test_what_is_unknown_fails_unless_that_is_allowed(here: Path, capsys: Out) -> None:
    small(here / "run.jsonl", 70, limit=None)
    code, out, _ = said(capsys, "run.jsonl", "--max", "80%")
    assert (code, out.splitlines()[-1]) == (1, "0 conditions hold, 1 is not known (1 request)")
    assert "ctxctl show run.jsonl@1.1" in out
    code, out, _ = said(capsys, "run.jsonl", "--max", "80%", "--allow-unknown")
    assert code == 0
    assert out.splitlines()[-1] == "0 conditions hold, 1 is not known, which is allowed (1 request)"
    assert out.startswith("unknown  max 80%  ")
    assert said(capsys, "run.jsonl", "--max", "80%", "--allow-unknown", "--quiet") == (0, "", "")
    assert said(capsys, "run.jsonl", "--max", "60", "--allow-unknown")[0] == 1


def test_settings_decide_and_the_command_line_goes_before(here: Path, capsys: Out) -> None:
    small(here / "run.jsonl", 70, 90)
    (here / "ctxctl.toml").write_text('[check]\nmax = "80%"\nno-compaction = true\nnever = "sent>85"\n')
    code, out, _ = said(capsys, "run.jsonl")
    assert code == 1
    assert [line.split("  ")[0] for line in out.splitlines()[:-1] if line[0] != " "] == [
        "fails", "holds", "fails",
    ]  # fmt: skip
    code, found = objects(capsys, "run.jsonl", "--max", "95%", "--never", "sent>95")
    assert code == 1
    asked = [one for one in found if one["type"] == "condition"]
    assert [(one["condition"], one["bound"], one["outcome"]) for one in asked] == [
        ("max", "95%", "holds"),
        ("no-compaction", None, "holds"),
        ("never", "sent>95", "holds"),
        ("never", "sent>85", "fails"),
    ]


def test_settings_may_allow_what_is_unknown(here: Path, capsys: Out) -> None:
    small(here / "run.jsonl", 70, limit=None)
    (here / "ctxctl.toml").write_text('[check]\nmax = "80%"\nallow_unknown = true\nmax_cost = 2.5\n')
    assert said(capsys, "run.jsonl")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "says", "hint"),
    [
        ((), "there is no condition to check", "--max 80%"),
        (("--max", "lots"), "--max must be a number of tokens", None),
        (("--max", "80.5%"), "--max must be", None),
        (("--max-growth", "5%"), "--max-growth must be a number of tokens", None),
        (("--max-tool-result", "x"), "--max-tool-result must be a number of tokens", None),
        (("--max-cost", "cheap"), "--max-cost must be an amount of US dollars", None),
        (("--never", "windw>5"), "'windw' is no number", None),
        (("--no-misses", "--json", "--github"), "cannot be combined", "one of them"),
    ],
)
def test_wrong_usage(
    here: Path, arguments: tuple[str, ...], says: str, hint: str | None, capsys: Out
) -> None:
    small(here / "run.jsonl", 70)
    code, out, err = said(capsys, "run.jsonl", *arguments)
    assert (code, out) == (2, "")
    assert says in err
    assert hint is None or re.search(rf"^hint: .*{re.escape(hint)}", err, re.MULTILINE)


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ('max = "lots"', "[check] max must be a number of tokens"),
        ("max = 0.8", "'max' does not fit"),
        ('nevr = "x"', "'nevr' does not fit"),
        ("stable-prefix = 1", "'stable_prefix' does not fit"),
        ('max-cost = "cheap"', "[check] max_cost must be an amount"),
        ('always = "windw>5"', "'windw' is no number"),
    ],
)
def test_wrong_settings(here: Path, table: str, says: str, capsys: Out) -> None:
    small(here / "run.jsonl", 70)
    (here / "ctxctl.toml").write_text(f"[check]\n{table}\n")
    code, out, err = said(capsys, "run.jsonl")
    assert (code, out) == (2, "")
    assert says in err


def test_queries_may_begin_with_a_minus(here: Path, capsys: Out) -> None:
    small(here / "run.jsonl", 70)
    assert said(capsys, "run.jsonl", "--always", "-compacted")[0] == 0
    assert said(capsys, "run.jsonl", "--never", "-compacted")[0] == 1


def test_json_has_a_line_for_each_condition_and_a_verdict(here: Path, capsys: Out) -> None:
    shutil.copy(AGENT, here / "run.jsonl")
    code, found = objects(
        capsys, "run.jsonl", "--max", "80%", "--max-cost", "9", "--stable-prefix", "--no-misses"
    )
    assert code == 1
    assert [line["type"] for line in found] == ["trace", *["condition"] * 4, "verdict"]
    by_name = {line["condition"]: line for line in found if line["type"] == "condition"}
    assert by_name["max"]["address"] == "8.2"
    assert by_name["max"]["tokens"] == 5446
    assert re.fullmatch(r"0\.2\d+", by_name["max-cost"]["usd"])
    verdict = found[-1]
    assert verdict["passed"] is False
    assert (verdict["holds"], verdict["fails"], verdict["unknown"], verdict["requests"]) == (1, 3, 0, 59)


def test_junit_has_a_case_for_each_condition(here: Path, capsys: Out) -> None:
    small(here / "run.jsonl", 70, 90)
    small(here / "free.jsonl", 70, limit=None)
    (here / "check.xml").write_text("of the run before")
    arguments = ("run.jsonl", "free.jsonl", "--max", "80%", "--no-compaction", "--junit", "check.xml")
    assert said(capsys, *arguments)[0] == 1
    suites = list(ElementTree.parse(here / "check.xml").getroot())
    assert [(s.get("tests"), s.get("failures")) for s in suites] == [("2", "1"), ("2", "1")]
    cases = [case for suite in suites for case in suite]
    assert [case.get("name") for case in cases] == ["max 80%", "no-compaction"] * 2
    failure = cases[0].find("failure")
    assert failure is not None
    assert failure.get("message") == "1 of 2 requests sent more: 90 billed, 90.0% of 100"
    assert failure.text is not None
    assert failure.text.endswith("See: ctxctl show run.jsonl@2.1")
    assert said(capsys, *arguments, "--allow-unknown")[0] == 1
    suites = list(ElementTree.parse(here / "check.xml").getroot())
    assert [s.get("failures") for s in suites] == ["1", "0"]
    assert "is not known to hold" in (suites[1][0].findtext("system-out") or "")


def test_annotations_stand_at_the_line_of_the_request(here: Path, capsys: Out) -> None:
    small(here / "run.jsonl", 70, 90)
    shutil.copy(ROLLOUT, here / "rollout.jsonl")
    code, out, _ = said(capsys, "run.jsonl", "rollout.jsonl", "--max", "80%", "--no-compaction", "--github")
    assert code == 1
    marked = [line for line in out.splitlines() if line.startswith("::")]
    made = (here / "run.jsonl").read_text().splitlines()
    number = next(n for n, line in enumerate(made, 1) if '"turn_id": "2"' in line)
    assert marked == [
        f"::error file=run.jsonl,line={number},title=max 80%25::"
        "max 80%25 does not hold: 1 of 2 requests sent more: "
        "90 billed, 90.0%25 of 100. See: ctxctl show run.jsonl@2.1",
        "::error file=rollout.jsonl,line=1,title=no-compaction::no-compaction does not hold: 1 of 6 requests "
        "compacted: 18 items, 222 tokens went. See: ctxctl show rollout.jsonl@4.1",
    ]


def test_of_several_traces_those_that_hold_are_not_listed(here: Path, capsys: Out) -> None:
    small(here / "good.jsonl", 70)
    small(here / "bad.jsonl", 90)
    code, out, _ = said(capsys, "good.jsonl", "bad.jsonl", "--max", "80%")
    assert code == 1
    assert out.splitlines()[0] == "bad.jsonl"
    assert "good.jsonl" not in out
    assert out.splitlines()[-1] == "1 condition holds, 1 fails (2 traces, 2 requests)"
    _, out, _ = said(capsys, "good.jsonl", "bad.jsonl", "--max", "80%", "--all")
    assert "good.jsonl\nholds    max 80%" in out


def test_a_trace_that_cannot_be_read_does_not_stop_the_others(here: Path, capsys: Out) -> None:
    small(here / "bad.jsonl", 90)
    code, out, err = said(capsys, "gone.jsonl", "bad.jsonl", "--max", "80%")
    assert code == 3
    assert "no such file: gone.jsonl" in err
    assert "fails    max 80%" in out
    assert said(capsys, "gone.jsonl", "--max", "80%")[:2] == (3, "")


def test_problems_are_told_and_fail_under_strict(here: Path, capsys: Out) -> None:
    path = small(here / "run.jsonl", 70)
    path.write_text(path.read_text() + "junk\n")
    code, _, err = said(capsys, "run.jsonl", "--max", "80%", "-q")
    assert code == 0
    assert err.startswith("run.jsonl:")
    assert said(capsys, "run.jsonl", "--max", "80%", "-q", "--strict")[0] == 1


def test_a_directory_is_checked_capture_by_capture(
    here: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ctxctl.trace.inputs.YOUNG", -60.0)
    top = here / "top"
    top.mkdir()
    shutil.copy(ROLLOUT, top / "rollout.jsonl")
    shutil.copy(AGENT, top / "agent.jsonl")
    shutil.copy(CLAUDE, top / "claude.jsonl")
    wanted = ("--max", "80%", "--never", "compacted", "--max-tool-result", "500")
    code, found = objects(capsys, "top", *wanted)
    assert code == 1
    of_all = [line for line in found if line["type"] == "condition"]
    for name in ("rollout", "agent", "claude"):
        _, alone = objects(capsys, f"top/{name}.jsonl", *wanted)
        mine = [line for line in of_all if line["trace"] == f"top/{name}.jsonl"]
        assert mine == [line for line in alone if line["type"] == "condition"]
    assert found[-1]["traces"] == 3
    assert objects(capsys, "top", *wanted) == (code, found)


def test_a_request_that_several_captures_hold_is_looked_at_once(
    here: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ctxctl.trace.inputs.YOUNG", -60.0)
    top = here / "top"
    top.mkdir()
    shutil.copy(ROLLOUT, top / "one.jsonl")
    shutil.copy(ROLLOUT, top / "two.jsonl")
    code, out, err = said(capsys, "top", "--no-compaction")
    assert code == 1
    assert out.splitlines()[-1] == "0 conditions hold, 1 fails (6 requests)"
    assert "several captures share 6 requests; each was looked at once" in err


def test_what_a_stranger_wrote_steers_nothing(here: Path, capsys: Out) -> None:
    events = at("1", "1", item("\x1b[31mevil\n::error::x", CAT, kind="tool_result"), budget(100))
    events += at("1", "1", assembly("w", ["\x1b[31mevil\n::error::x"]), inject("w"), usage(9))
    (here / "run.jsonl").write_bytes(lines(events))
    arguments = ("run.jsonl", "--max-tool-result", "1", "--github", "--junit", "check.xml")
    code, out, _ = said(capsys, *arguments)
    assert code == 1
    assert "\x1b" not in out + (here / "check.xml").read_text()
    assert len([line for line in out.splitlines() if line.startswith("::")]) == 1


def test_the_newest_session_is_taken_where_none_is_named(here: Path, capsys: Out) -> None:
    code, _, err = said(capsys, "--max", "80%")
    assert code == 3
    assert "no session was recorded in" in err
    small(here / "run.jsonl", 70)
    code, out, err = said(capsys, "--max", "80%")
    assert code == 0
    assert "run.jsonl" in err
    assert out.startswith("holds    max 80%")
