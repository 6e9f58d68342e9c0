"""``ctxctl budget`` as a person and a CI system meet it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from xml.etree import ElementTree

import pytest
from budget_help import HAND

from ctxctl.cli.main import run
from ctxctl.wording import MINUS

PLAN = HAND.replace("POLICY", "fifo")
LIMITS = """
[limits]
total = "5%"
parts = { "rules" = 40 }
overflow_turn = 5
headroom = [ { turn = 3, free = "20%" } ]
"""
Said = tuple[int, str, str]


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> Said:
    code = run(["budget", *arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    (tmp_path / "plan.toml").write_text(PLAN)
    (tmp_path / "strict.toml").write_text(PLAN + LIMITS)
    return tmp_path


def test_the_report(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    code, out, err = said(capsys, "plan.toml")
    assert (code, err) == (0, "")
    assert f"cap           1,000 tokens: window 1,000 {MINUS} reserve 0. The plan says so." in out
    assert "first turn    fits, 700 tokens free at p95" in out
    assert "overflow      p50 turn 4, p95 turn 4, p99 turn 4" in out
    assert "leaves first  user messages (200 tokens)" in out
    assert "cost          not known. The plan names no model." in out
    assert out == said(capsys, "plan.toml")[1]


def test_json(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    rows = [json.loads(line) for line in said(capsys, "plan.toml", "--json")[1].splitlines()]
    assert [row["type"] for row in rows] == ["budget", "part", *["budget_turn"] * 4, *["shrunk"] * 3]
    assert rows[0]["first_overflow"] == {"p50": 4, "p95": 4, "p99": 4}
    assert [row["free"]["p95"] for row in rows if row["type"] == "budget_turn"] == [700, 400, 100, -200]


def test_a_gate_without_limits_holds_the_first_request(
    capsys: pytest.CaptureFixture[str], here: Path
) -> None:
    code, out, _ = said(capsys, "plan.toml", "--check")
    assert (code, out.splitlines()[-1]) == (0, "check: passed")
    (here / "big.toml").write_text(PLAN.replace("window = 1000", "window = 250"))
    code, out, _ = said(capsys, "big.toml", "--check")
    assert code == 1
    assert "FAIL  does-not-fit: turn 1 has 300 tokens at p95, 50 over the cap" in out


def test_each_limit_says_what_is_wrong_and_what_to_do(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    code, out, _ = said(capsys, "strict.toml", "--check")
    assert code == 1
    assert "total-limit: all parts have 100 tokens at p95, 50 over the limit of 50 (5% of the cap)" in out
    assert "part-limit: part 'rules' has 100 tokens at p95, 60 over the limit of 40" in out
    assert "headroom-limit: at turn 3 100 tokens are free at p95, not 200" in out
    assert "overflow-limit: turn 4 overflows at p95, turn 5 may be the first" in out
    assert "with half of 'user messages' nothing overflows" in out
    assert out.splitlines()[-1] == "check: 4 findings"
    assert said(capsys, "strict.toml")[0] == 0  # nobody asked for a check


def test_cost_and_server_limits(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    (here / "t.json").write_text('[{"name": "search", "inputSchema": {"type": "object"}}]')
    text = PLAN.replace("[model]", '[model]\nname = "gpt-5"\nprovider = "openai"\ndate = "2026-01-15"')
    text += '[[part]]\nname = "t"\ntools = "t.json"\nserver = "gh"\n'
    (here / "c.toml").write_text(text + '[limits]\ncost_per_session = 0.0001\nservers = { "gh" = 3 }\n')
    code, out, _ = said(capsys, "c.toml", "--check")
    assert code == 1
    assert "cost-limit: a session costs $0.0" in out
    assert "server-limit: tools of server 'gh' have" in out
    assert "largest tools: search" in out


def test_a_limit_that_cannot_be_held_is_no_pass(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    (here / "c.toml").write_text(PLAN + "[limits]\ncost_per_session = 1\n")
    code, _, err = said(capsys, "c.toml", "--check")
    assert code == 2
    assert "which is not known" in err


def test_what_cannot_be_read_is_three(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    assert said(capsys, "none.toml")[0] == 3
    (here / "p.toml").write_text(PLAN + '[[part]]\nname = "f"\nfiles = "none/*.md"\n')
    code, _, err = said(capsys, "p.toml")
    assert code == 3
    assert "no file is 'none/*.md'" in err
    assert said(capsys, "plan.toml", "--baseline", "none.json")[0] == 3
    assert said(capsys, ".")[0] == 3


@pytest.mark.parametrize(
    "arguments",
    [
        (), ("plan.toml", "--format", "xml"), ("plan.toml", "--format", "junit"),
        ("plan.toml", "--update-baseline"), ("plan.toml", "--baseline", "b", "--update-baseline", "--json"),
        ("--init", "plan.toml"),
    ],
)  # fmt: skip
def test_wrong_usage_is_two(
    capsys: pytest.CaptureFixture[str], here: Path, arguments: tuple[str, ...]
) -> None:
    code, out, err = said(capsys, *arguments)
    assert (code, out) == (2, "")
    assert "ctxctl: error:" in err
    assert (here / "plan.toml").read_text() == PLAN


def test_the_plan_to_start_from_works_as_it_is(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    assert said(capsys, "--init", "new.toml")[0] == 0
    code, out, _ = said(capsys, "--init")
    assert (code, out) == (0, (here / "new.toml").read_text())
    # Few runs: the command is under test, not the simulation.
    (here / "few.toml").write_text(out.replace("runs = 200", "runs = 5").replace("turns = 40", "turns = 12"))
    code, out, err = said(capsys, "few.toml", "--check")
    assert (code, err) == (0, "")
    assert "gpt-5" in out


def test_every_commented_key_of_it_is_one(here: Path) -> None:
    from ctxctl.budget.plan import TEMPLATE, parse

    lines = []
    for line in TEMPLATE.splitlines():
        bare = line.removeprefix("# ")
        lines.append(bare if " = " in bare and not bare.startswith("{") and ":" not in bare[:9] else line)
    text = "\n".join(line for line in lines if not line.startswith("Sizes"))
    text = text.replace('text = "You', '# text = "You').replace("# [[part]]", "[[part]]")
    plan = parse(text, "template")
    assert plan.limits.ratchet is False
    assert plan.limits.servers.keys() == {"github"}
    assert [part.kind for part in plan.part] == ["files", "tools", "mcp", "tokens", "tokens"]


def test_junit_has_a_case_for_each_rule(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    code, out, _ = said(capsys, "strict.toml", "--check", "--format", "junit")
    assert code == 1
    suite = ElementTree.fromstring(out)[0]
    assert (suite.get("tests"), suite.get("failures")) == ("5", "4")
    failed = [case.get("name") for case in suite if case.find("failure") is not None]
    assert failed == ["total-limit", "part-limit", "headroom-limit", "overflow-limit"]


def test_sarif_points_at_lines_of_the_plan(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    code, out, _ = said(capsys, "strict.toml", "--check", "--format", "sarif")
    assert code == 1
    log = json.loads(out)
    assert log["version"] == "2.1.0"
    results = log["runs"][0]["results"]
    known = {rule["id"] for rule in log["runs"][0]["tool"]["driver"]["rules"]}
    assert {result["ruleId"] for result in results} <= known
    lines = (here / "strict.toml").read_text().splitlines()
    places = [result["locations"][0]["physicalLocation"]["region"]["startLine"] for result in results]
    assert [lines[place - 1].split(" ")[0] for place in places] == [
        "total",
        "name",
        "headroom",
        "overflow_turn",
    ]
    assert len({result["partialFingerprints"]["ctxctlBudget/v1"] for result in results}) == 4


def test_annotations_and_the_step_summary(
    capsys: pytest.CaptureFixture[str], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(here / "summary.md"))
    code, out, _ = said(capsys, "strict.toml", "--check", "--format", "github")
    assert code == 1
    assert out.startswith("::error file=strict.toml,line=")
    assert out.count("::error ") == 4
    summary = (here / "summary.md").read_text()
    assert "### Context budget of strict.toml: 4 failed" in summary
    assert "| rules | system | 100 | 100 | 10.0% |" in summary
    said(capsys, "plan.toml", "--check")
    assert (here / "summary.md").read_text().count("### Context budget") == 2


def test_the_baseline(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    code, out, _ = said(capsys, "plan.toml", "--baseline", "base.json", "--update-baseline")
    assert code == 0
    assert "baseline: tokens:part:rules: 100, new" in out
    first = (here / "base.json").read_bytes()
    assert said(capsys, "plan.toml", "--baseline", "base.json", "--update-baseline")[1:2] == (
        "baseline: nothing changed\n",
    )
    assert (here / "base.json").read_bytes() == first
    assert said(capsys, "plan.toml", "--baseline", "base.json")[0] == 0

    (here / "plan.toml").write_text(PLAN.replace("tokens = 100", "tokens = 110"))
    code, out, _ = said(capsys, "plan.toml", "--baseline", "base.json")
    assert code == 1
    assert "baseline-worse: tokens:part:rules was 100 and is 110 (+10.0%)" in out
    band = '[limits]\ntolerance = "10%"\n'
    (here / "plan.toml").write_text(PLAN.replace("tokens = 100", "tokens = 110") + band)
    assert said(capsys, "plan.toml", "--baseline", "base.json")[0] == 0

    (here / "plan.toml").write_text(PLAN.replace("tokens = 100", "tokens = 50"))
    code, out, _ = said(capsys, "plan.toml", "--baseline", "base.json")
    assert code == 0
    assert "note  baseline-loose: tokens:part:rules was 100 and is 50" in out
    (here / "plan.toml").write_text(
        PLAN.replace("tokens = 100", "tokens = 50") + "[limits]\nratchet = true\n"
    )
    assert said(capsys, "plan.toml", "--baseline", "base.json")[0] == 1

    (here / "plan.toml").write_text(PLAN.replace('"rules"', '"rules 2"'))
    code, out, _ = said(capsys, "plan.toml", "--baseline", "base.json")
    assert code == 1
    assert "baseline-stale: the baseline has tokens:part:rules, which is no longer there" in out
    assert "baseline-new: tokens:part:rules 2 is not in the baseline" in out


def test_an_earlier_overflow_is_worse(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    said(capsys, "plan.toml", "--baseline", "base.json", "--update-baseline")
    (here / "plan.toml").write_text(PLAN.replace("window = 1000", "window = 800"))
    out = said(capsys, "plan.toml", "--baseline", "base.json")[1]
    assert "baseline-worse: turn:first-overflow was 4 and is 3" in out


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"version": 2, "numbers": {}}', '{"version": 1, "numbers": {"a": "x"}}', "[" * 9999,
     '{"version": 1, "numbers": {"a": "NaN"}}', '{"version": 1, "numbers": []}', "\ud800"],
)  # fmt: skip
def test_a_damaged_baseline_is_three(capsys: pytest.CaptureFixture[str], here: Path, text: str) -> None:
    (here / "base.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    code, _, err = said(capsys, "plan.toml", "--baseline", "base.json")
    assert code == 3
    assert "no baseline of this version" in err


HOSTILE = {
    "not TOML": "[model",
    "deep": "a = " + "[" * 5000,
    "no model": "policy = 'fifo'",
    "unknown key": PLAN + "[wish]\na = 1",
    "unknown model key": PLAN.replace("window", "windows"),
    "negative size": PLAN.replace("tokens = 100", "tokens = -100"),
    "huge": PLAN.replace("tokens = 100", "tokens = 99999999999999999999"),
    "no runs": PLAN.replace("runs = 4", "runs = 0"),
    "endless": PLAN.replace("turns = 4", "turns = 1000000"),
    "many runs": PLAN.replace("runs = 4", "runs = 10000").replace("turns = 4", "turns = 2000"),
    "many calls": PLAN + "calls = 1000000",
    "two of a name": PLAN + '[[part]]\nname = "rules"\ntokens = 1',
    "two kinds": PLAN + '[[part]]\nname = "x"\ntokens = 1\ntext = "a"',
    "no kind": PLAN + '[[part]]\nname = "x"',
    "no name": PLAN + '[[part]]\nname = ""\ntokens = 1',
    "rate": PLAN + '[[part]]\nname = "x"\ntokens = 1\nchanges = 1.5',
    "nan": PLAN + '[[part]]\nname = "x"\ntokens = 1\nchanges = nan',
    "items": PLAN + '[[part]]\nname = "x"\ntext = "a"\nitems = 3',
    "many items": PLAN + '[[part]]\nname = "x"\ntokens = 1\nitems = 100000',
    "policy": PLAN.replace('"fifo"', '"nobody"'),
    "parameter": PLAN.replace('"fifo"', '"fifo:speed=3"'),
    "policy that fits nothing": PLAN.replace('"fifo"', '"recorded"'),
    "reserve": PLAN.replace("window = 1000", "window = 1000\nreserve = 1000"),
    "encoding": PLAN.replace("window = 1000", 'window = 1000\nencoding = "mine"'),
    "date": PLAN.replace("window = 1000", 'window = 1000\ndate = "today"'),
    "unknown part": PLAN + "[limits]\nparts = { nobody = 1 }",
    "unknown server": PLAN + "[limits]\nservers = { nobody = 1 }",
    "turn": PLAN + "[limits]\nheadroom = [ { turn = 9, free = 1 } ]",
    "level": PLAN + '[limits]\nat = "p90"',
    "tolerance": PLAN + "[limits]\ntolerance = 5",
    "up": PLAN + '[[part]]\nname = "x"\nfiles = "../*"',
    "root": PLAN + '[[part]]\nname = "x"\nfiles = "/etc/passwd"',
    "nothing": PLAN + '[[part]]\nname = "x"\nfiles = ""',
    "null": PLAN + '[[part]]\nname = "x"\nfiles = "a\\u0000b"',
    "stars": PLAN + '[[part]]\nname = "x"\nfiles = "a**b/../../c"',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_plans_are_refused_in_one_line(
    capsys: pytest.CaptureFixture[str], here: Path, name: str
) -> None:
    (here / "h.toml").write_text(HOSTILE[name])
    code, out, err = said(capsys, "h.toml")
    assert (code, out) == (2, "")
    assert err.startswith("ctxctl: error:")
    assert len(err.splitlines()) <= 2


def test_links_do_not_lead_out_of_the_folder(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    inner = here / "inner"
    inner.mkdir()
    (here / "outside.md").write_text("hello")
    (inner / "link.md").symlink_to(here / "outside.md")
    (inner / "p.toml").write_text(PLAN + '[[part]]\nname = "x"\nfiles = "*.md"')
    code, _, err = said(capsys, "inner/p.toml")
    assert code == 2
    assert "leads out of the plan's folder" in err


def test_large_binary_and_odd_files(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    (here / "p.toml").write_text(PLAN + '[[part]]\nname = "x"\nfiles = "x*"')
    os.mkfifo(here / "x-pipe")
    assert said(capsys, "p.toml")[0] == 3  # a pipe is no file, and it is not waited for
    (here / "x.bin").write_bytes(b"\xff\xfe\x00")
    code, _, err = said(capsys, "p.toml")
    assert code == 3
    assert "not UTF-8" in err
    with (here / "x.bin").open("wb") as file:
        file.truncate(17 << 20)
    code, _, err = said(capsys, "p.toml")
    assert code == 2
    assert "at most 16 MiB" in err
    (here / "h.toml").write_bytes(b"#" * (2 << 20))
    assert said(capsys, "h.toml")[0] == 2
    (here / "h.toml").write_bytes(b"\xff")
    assert said(capsys, "h.toml")[0] == 2


@pytest.mark.parametrize("form", ["text", "json", "junit", "sarif", "github"])
def test_names_are_shown_and_not_obeyed(
    capsys: pytest.CaptureFixture[str], here: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(here / "summary.md"))
    evil = "\\u001b]0;owned\\u0007\\n::set-output name=a::b <img src=x> | `x` \\u202e"
    text = PLAN.replace('"rules"', f'"{evil}"') + f'[limits]\nparts = {{ "{evil}" = 1 }}\n'
    (here / "e.toml").write_text(text)
    code, out, err = said(capsys, "e.toml", "--check", "--format", form)
    assert (code, err) == (1, "")
    summary = (here / "summary.md").read_text()
    for shown in (out, summary):
        assert "\x1b" not in shown
        assert "\u202e" not in shown
        assert not any(line.startswith("::set-output") for line in shown.splitlines())
    assert "<img" not in summary


TRACE = Path(__file__).parents[3] / "traces" / "coding-agent.jsonl"


def test_a_plan_from_a_recorded_session(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    assert said(capsys, "--from", str(TRACE), "d.toml")[0] == 0
    code, out, _ = said(capsys, "--from", str(TRACE))
    assert (code, out) == (0, (here / "d.toml").read_text())
    (here / "d.toml").write_text("runs = 5\n" + out)
    rows = [json.loads(line) for line in said(capsys, "d.toml", "--json")[1].splitlines()]
    assert (rows[0]["model"], rows[0]["window"], rows[0]["reserve"]) == ("claude-sonnet-4-5", 7000, 1024)
    assert sum(row["type"] == "budget_turn" for row in rows) == 15
    # What the recording has: the sizes that never change are in the plan to the token.
    run(["replay", "--json", str(TRACE)])
    steps = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    first = next(step for step in steps if step["type"] == "step")
    tools = next(row for row in rows if row.get("segment") == "tools")
    assert tools["tokens"]["p50"] == first["segments"]["tools"]


def test_a_plan_from_nothing_is_three(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    assert said(capsys, "--from", "none.jsonl")[0] == 3
    (here / "empty.jsonl").write_text("")
    assert said(capsys, "--from", "empty.jsonl")[0] == 3


def test_the_plan_of_the_how_to_fails_as_it_says(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    page = (TRACE.parents[1] / "docs" / "budget.md").read_text()
    block = page.split("```toml\n", 1)[1].split("```", 1)[0]
    text = "\n".join(line.removeprefix("   ") for line in block.splitlines())
    (here / "budget.toml").write_text("runs = 20\n" + text)
    (here / "prompts").mkdir()
    (here / "prompts" / "system.md").write_text("You are a careful assistant. " * 200)
    (here / "tools").mkdir()
    tools = [{"name": f"tool_{n}", "description": "word " * 300, "inputSchema": {}} for n in range(30)]
    (here / "tools" / "github.json").write_text(json.dumps(tools))
    code, out, _ = said(capsys, "budget.toml", "--check")
    assert code == 1
    assert "FAIL  server-limit: tools of server 'github' have" in out
    assert "largest tools: tool_" in out
    # The fix that the page names: leave the largest tools out, and cap what a tool returns.
    (here / "tools" / "github.json").write_text(json.dumps(tools[:20]))
    capped = text.replace("p95 = 6000, p99 = 20000", "p95 = 1500").replace("p95 = 10 }", "p95 = 5 }")
    (here / "budget.toml").write_text("runs = 20\n" + capped)
    code, out, _ = said(capsys, "budget.toml", "--check")
    assert (code, out.splitlines()[-1]) == (0, "check: passed")
