"""``ctxctl lint`` as a person and a CI system meet it."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest
from lint_help import FIXTURES, PROSE, Made, duplicates

from ctxctl.cli.main import run
from ctxctl.lint.registry import rules

ROOT = Path(__file__).resolve().parents[3]
Said = tuple[int, str, str]
Out = pytest.CaptureFixture[str]


def said(capsys: Out, *arguments: object) -> Said:
    code = run(["lint", *map(str, arguments)])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_text_is_grouped_by_rule_with_the_worst_first(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    made = (
        Made(tmp_path / "run.jsonl")
        .turn(1)
        .item("a", PROSE, title="rules.md")
        .item("b", PROSE, title="copy.md")
    )
    made.item("c", "x", metadata={"approved": True}).sent(["a", "b", "c"]).turn(2).sent(
        ["a", "b", "c"]
    ).save()
    code, out, err = said(capsys, "run.jsonl")
    lines = out.splitlines()
    assert (code, err) == (1, "")
    assert lines[0] == "CTX022 declares-status  error, 1 finding"
    assert [line for line in lines if line.startswith("CTX")][1] == "CTX010 duplicate  warning, 1 finding"
    assert "      ctxctl show run.jsonl@1.1" in lines
    assert any(
        line.startswith("      and at 1 more step; ") and line.endswith(" tokens in all") for line in lines
    )
    assert lines[-1] == "2 findings in 1 trace, 2 steps: 1 error, 1 warning"
    assert max(map(len, lines)) <= 80
    assert run(["show", "run.jsonl@1.1"]) == 0


def test_a_clean_trace_is_said_to_be_clean(capsys: Out) -> None:
    assert said(capsys, FIXTURES / "CTX010-negative.jsonl") == (0, "no findings in 1 trace, 2 steps\n", "")


def test_info_never_fails(capsys: Out) -> None:
    code, out, _ = said(capsys, FIXTURES / "CTX011-positive.jsonl")
    assert code == 0
    assert "1 finding in 1 trace, 2 steps: 1 info" in out


def test_several_traces_and_sessions_are_addressed(tmp_path: Path, capsys: Out) -> None:
    one, two = duplicates(tmp_path / "one.jsonl"), duplicates(tmp_path / "two.jsonl", session="other")
    two.write_text(one.read_text() + two.read_text())
    code, out, _ = said(capsys, one, two)
    assert code == 1
    for place in (f"{one}@2.1", f"{two}@made/2.1", f"{two}@other/2.1"):
        assert f"      ctxctl show {place}\n" in out
        assert run(["show", place]) == 0
        capsys.readouterr()


def test_select_ignore_and_severity(tmp_path: Path, capsys: Out) -> None:
    made = Made(tmp_path / "t.jsonl").turn(1).item("a", PROSE).item("b", PROSE)
    trace = made.item("c", "x", metadata={"approved": True}).sent(["a", "b", "c"]).save()

    def codes(*flags: str) -> list[str]:
        _, out, _ = said(capsys, trace, "--json", *flags)
        return [line["code"] for line in map(json.loads, out.splitlines()) if line["type"] == "finding"]

    assert codes() == ["CTX022", "CTX010"]
    assert codes("--select", "CTX01") == ["CTX010"]
    assert codes("--select", "duplicate,declares-status") == ["CTX022", "CTX010"]
    assert codes("--select", "CTX01", "--select", "ctx022", "--ignore", "duplicate") == ["CTX022"]
    assert codes("--severity", "error") == ["CTX022"]
    assert codes("--set", "CTX010.tokens=100000") == ["CTX022"]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--select", "CTX9"], "no rule is called 'CTX9'"),
        (["--ignore", "large-itm"], "did you mean large-item"),
        (["--severity", "fatal"], "no severity is called 'fatal'"),
        (["--set", "CTX009.share=2"], "share is a share from 0 to 1, not 2"),
        (["--set", "CTX009.size=2"], "has no parameter 'size'"),
        (["--set", "share=x"], "sets nothing"),
        (["--format", "xml"], "--format xml is unknown"),
        (["--update-baseline"], "needs --baseline FILE"),
        (["--explain", "CTX999"], "no rule is called 'CTX999'"),
    ],
)
def test_wrong_usage_says_what_to_do(capsys: Out, flags: list[str], message: str) -> None:
    code, out, err = said(capsys, FIXTURES / "CTX010-positive.jsonl", *flags)
    assert (code, out) == (2, "")
    assert message in err


def test_no_trace_and_no_session_here(capsys: Out, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = said(capsys)
    assert code == 3
    assert "no session was recorded in" in err


def test_one_unreadable_trace_does_not_stop_the_others(tmp_path: Path, capsys: Out) -> None:
    trace = duplicates(tmp_path / "one.jsonl")
    code, out, err = said(capsys, tmp_path / "nothing.jsonl", trace)
    assert code == 3
    assert "nothing.jsonl" in err
    assert "CTX010" in out


def test_settings_and_flags(tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = duplicates(tmp_path / "one.jsonl")
    file = tmp_path / "ctxctl.toml"
    monkeypatch.setenv("CTXCTL_CONFIG", str(file))
    file.write_text('[lint]\nignore = ["duplicate"]\n')
    assert said(capsys, trace)[0] == 0
    file.write_text("[lint.rules.duplicate]\ntokens = 100000\n")
    assert said(capsys, trace)[0] == 0
    assert said(capsys, trace, "--set", "duplicate.tokens=200")[0] == 1
    file.write_text('[lint]\nselect = ["CTX020"]\n')
    assert said(capsys, trace)[0] == 0
    assert said(capsys, trace, "--select", "CTX010")[0] == 1
    file.write_text("[lint]\nignroe = []\n")
    code, _, err = said(capsys, trace)
    assert code == 2
    assert "'ignroe' does not fit" in err


def test_explain_and_list_name_every_rule(capsys: Out) -> None:
    _, out, _ = said(capsys, "--rules")
    assert all(f"{rule.code} {rule.name} ({rule.severity}" in out for rule in rules())
    for rule in rules():
        code, out, _ = said(capsys, "--explain", rule.name)
        assert code == 0
        assert all(name in out for name in rule.parameters)
        page = (ROOT / "docs" / "lint.md").read_text()
        assert f"docs/lint.md#{rule.code.lower()}" in out
        assert f"### {rule.code}\n" in page


def test_statistics_are_a_row_a_rule(tmp_path: Path, capsys: Out) -> None:
    code, out, _ = said(
        capsys, duplicates(tmp_path / "t.jsonl", steps=4), "--statistics", "--select", "CTX01"
    )
    assert code == 1
    rows = {line.split()[0]: line.split() for line in out.splitlines() if line.startswith("CTX")}
    assert len(rows) == 10
    assert rows["CTX010"][3:5] == ["1", "3"]


def test_json_is_what_the_schema_says(tmp_path: Path, capsys: Out) -> None:
    schema = json.loads((ROOT / "docs" / "json.schema.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    _, out, _ = said(capsys, *sorted(FIXTURES.glob("*positive.jsonl")), "--json", "--select", "all")
    lines = [json.loads(line) for line in out.splitlines()]
    assert {line["type"] for line in lines} == {"trace", "finding", "lint"}
    for line in lines:
        validator.validate(line)
        if line["type"] != "trace":
            assert list(line) == schema["$defs"][line["type"]]["required"]
    last = lines[-1]
    assert last["errors"] + last["warnings"] + last["infos"] == len(rules())


def test_sarif_points_at_lines_and_names_every_rule(tmp_path: Path, capsys: Out) -> None:
    trace = duplicates(tmp_path / "t.jsonl")
    code, out, _ = said(capsys, trace, "--format", "sarif")
    log = json.loads(out)
    (told,) = log["runs"]
    driver = told["tool"]["driver"]
    (result,) = told["results"]
    assert (code, log["version"]) == (1, "2.1.0")
    assert [rule["id"] for rule in driver["rules"]] == [rule.code for rule in rules() if rule.default]
    assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "CTX010"
    assert driver["rules"][result["ruleIndex"]]["defaultConfiguration"] == {"level": "warning"}
    assert result["level"] == "warning"
    line = result["locations"][0]["physicalLocation"]["region"]["startLine"]
    assert json.loads(trace.read_text().splitlines()[line - 1])["data"]["item_id"] == "second"
    again = json.loads(said(capsys, duplicates(tmp_path / "t.jsonl", steps=7), "--format", "sarif")[1])
    assert again["runs"][0]["results"][0]["partialFingerprints"] == result["partialFingerprints"]


def test_junit_has_a_case_for_each_rule_and_trace(tmp_path: Path, capsys: Out) -> None:
    traces = [duplicates(tmp_path / "t.jsonl"), FIXTURES / "CTX011-positive.jsonl"]
    code, out, _ = said(capsys, *traces, "--format", "junit", "--select", "CTX01")
    suites = ElementTree.fromstring(out)
    assert code == 1
    assert [(s.get("tests"), s.get("failures")) for s in suites] == [("10", "1"), ("10", "0")]
    failure = suites.find("testsuite/testcase[@name='CTX010']/failure")
    assert failure is not None
    assert "copy of rules.md" in str(failure.get("message"))
    assert suites.find("testsuite/testcase[@name='CTX011']/system-out") is not None


def test_github_gets_annotations(tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    duplicates(tmp_path / "t.jsonl")
    code, out, _ = said(capsys, "t.jsonl", "--format", "github")
    assert code == 1
    assert out.startswith(
        "::warning file=t.jsonl,line=4,title=CTX010::copy of rules.md has the same text as rules.md"
    )


def test_a_foreign_capture_has_no_lines_of_its_own(capsys: Out) -> None:
    capture = next((ROOT / "fixtures" / "claude_code").glob("*.jsonl"))
    _, out, _ = said(capsys, capture, "--format", "sarif", "--select", "all", "--set", "duplicate.tokens=1")
    for result in json.loads(out)["runs"][0]["results"]:
        assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 1


def test_a_baseline_leaves_out_what_is_known_and_tells_what_is_stale(tmp_path: Path, capsys: Out) -> None:
    trace, base = duplicates(tmp_path / "t.jsonl"), tmp_path / "base.json"
    code, _, err = said(capsys, trace, "--baseline", base)
    assert code == 3
    assert "--update-baseline" in err
    code, out, err = said(capsys, trace, "--baseline", base, "--update-baseline")
    assert code == 0
    assert "t.jsonl: CTX010" in err
    assert "new" in err
    code, out, err = said(capsys, trace, "--baseline", base)
    assert (code, err) == (0, "")
    assert "1 finding left out because the baseline has them" in out
    # More steps of the same are no new finding; another item is.
    assert said(capsys, duplicates(tmp_path / "t.jsonl", steps=9), "--baseline", base)[0] == 0
    made = (
        Made(tmp_path / "t.jsonl").turn(1).item("first", PROSE).item("third", PROSE).sent(["first", "third"])
    )
    code, out, err = said(capsys, made.save(), "--baseline", base)
    assert code == 1
    assert "no longer found" in err
    Made(tmp_path / "t.jsonl").turn(1).item("first", PROSE).sent(["first"]).save()
    assert said(capsys, trace, "--baseline", base)[0] == 0
    assert said(capsys, trace, "--baseline", base, "--strict")[0] == 1
    # Of rules that did not run nothing is stale, and another trace's entries stay.
    assert "no longer found" not in said(capsys, trace, "--baseline", base, "--select", "CTX020")[2]
    other = duplicates(tmp_path / "other.jsonl")
    said(capsys, other, "--baseline", base, "--update-baseline")
    assert sorted(json.loads(base.read_text())["findings"]) == ["other.jsonl", "t.jsonl"]


@pytest.mark.parametrize("text", ["", "[]", '{"version": 9, "findings": {}}', '{"version": 1}'])
def test_a_baseline_that_is_none_is_refused(tmp_path: Path, capsys: Out, text: str) -> None:
    base = tmp_path / "base.json"
    base.write_text(text)
    code, _, err = said(capsys, duplicates(tmp_path / "t.jsonl"), "--baseline", base)
    assert code == 3
    assert "is no baseline of findings" in err


def test_nothing_hidden_reaches_the_terminal_or_a_log(tmp_path: Path, capsys: Out) -> None:
    evil = "\x1b]0;owned\x07\u202eevil\n::error::x##[command]"
    made = Made(tmp_path / "t.jsonl", session=evil).turn(1).item("a" + evil, PROSE, title=evil)
    made.item("b" + evil, PROSE, title="b" + evil, metadata={"approved": evil})
    made.sent(["a" + evil, "b" + evil]).save()
    for form in ("text", "json", "sarif", "junit", "github"):
        code, out, err = said(capsys, made.path, "--format", form)
        assert code == 1, form
        assert "\x1b" not in out + err
        assert "\u202e" not in out + err
        assert "\x07" not in out + err
        assert "##[command]" not in out + err
        assert not any(line.startswith("::error::x") for line in out.splitlines())
    code, out, _ = said(capsys, made.path, "--statistics")
    assert "\x1b" not in out
