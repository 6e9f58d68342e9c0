"""``ctxctl import``: what is written, where, and what is said about it."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import jsonschema
import pytest

from ctxctl.cli.main import run
from ctxctl.trace.validate import validate_event

ROOT = Path(__file__).parent.parent.parent.parent
SESSION = str(ROOT / "fixtures" / "claude_code" / "session.jsonl")
CALLS = str(ROOT / "fixtures" / "sanqian" / "provider-calls.jsonl")
Out = pytest.CaptureFixture[str]


def steps(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith('{"type":"step"')]


def test_an_imported_trace_replays_as_the_capture_does(tmp_path: Path, capsys: Out) -> None:
    target = tmp_path / "out.jsonl"
    assert run(["import", SESSION, "-o", str(target)]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"{SESSION}: claude-code, ")
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    for line in target.read_text().splitlines():
        assert validate_event(json.loads(line)) == []
    run(["replay", SESSION, "--json"])
    direct = capsys.readouterr().out
    run(["replay", str(target), "--json"])
    assert steps(capsys.readouterr().out) == steps(direct) != []


def test_two_imports_give_the_same_bytes(tmp_path: Path) -> None:
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    for target in (one, two):
        assert run(["import", SESSION, CALLS, "-o", str(target)]) == 0
    assert one.read_bytes() == two.read_bytes()
    ids = [(e.get("session_id"), e["event_id"]) for e in map(json.loads, one.read_text().splitlines())]
    assert len(set(ids)) == len(ids)


def test_to_standard_output(capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path) -> None:
    assert run(["import", CALLS]) == 0
    out = capsysbinary.readouterr().out
    target = tmp_path / "out.jsonl"
    run(["import", CALLS, "-o", str(target)])
    assert out == target.read_bytes()


def test_json_says_what_became_of_each_source(tmp_path: Path, capsys: Out) -> None:
    target = tmp_path / "out.jsonl"
    assert run(["import", SESSION, CALLS, "-o", str(target), "--json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    schema = json.loads((ROOT / "docs" / "json.schema.json").read_text())
    for line in found:
        jsonschema.Draft202012Validator(schema).validate(line)
    told = [line for line in found if line["type"] == "import"]
    assert [(t["source"], t["format"], t["output"]) for t in told] == [
        ("session.jsonl", "claude-code", "out.jsonl"),
        ("provider-calls.jsonl", "sanqian", "out.jsonl"),
    ]
    assert sum(t["events"] for t in told) == len(target.read_text().splitlines())
    assert list(told[0]) == schema["$defs"]["import"]["required"]


def test_nothing_is_overwritten_unless_forced(tmp_path: Path, capsys: Out) -> None:
    target = tmp_path / "out.jsonl"
    target.write_text("mine\n")
    assert run(["import", SESSION, "-o", str(target)]) == 2
    assert "already exists" in capsys.readouterr().err
    assert target.read_text() == "mine\n"
    assert run(["import", SESSION, "-o", str(target), "--force"]) == 0
    assert target.read_text() != "mine\n"


@pytest.mark.parametrize(
    ("sources", "code", "says"),
    [
        (["gone.jsonl"], 3, "no such file: gone.jsonl"),
        ([str(ROOT / "tests/golden/traces/window.jsonl")], 3, "is in no known format"),
        ([SESSION, "gone.jsonl"], 3, "no such file"),
        ([SESSION, "--read-as", "nope"], 2, "no format named 'nope'"),
    ],
)
def test_what_cannot_be_imported_leaves_nothing_behind(
    sources: list[str], code: int, says: str, tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["import", *sources, "-o", "out.jsonl"]) == code
    err = capsys.readouterr().err
    assert says in err
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def test_json_and_the_trace_cannot_share_standard_output(capsys: Out) -> None:
    assert run(["import", SESSION, "--json"]) == 2
    assert "give -o FILE" in capsys.readouterr().err


def test_a_device_is_written_to(capsys: Out) -> None:
    assert run(["import", CALLS, "-o", "/dev/null"]) == 0
    assert run(["import", CALLS, "-o", "/dev/full"]) in (1, 3)
    assert "No space left on device" in capsys.readouterr().err


def test_a_folder_that_is_not_there(tmp_path: Path, capsys: Out) -> None:
    assert run(["import", CALLS, "-o", str(tmp_path / "no" / "out.jsonl")]) != 0
    err = capsys.readouterr().err
    assert err.startswith("ctxctl: error: cannot write")
    assert "No such file or directory" in err


def test_a_body_dump_beside_its_transcript_takes_its_prompts_and_stays_a_session_of_its_own(
    tmp_path: Path, capsys: Out
) -> None:
    dump, transcript = ROOT / "fixtures/claude_bodies/dump", ROOT / "fixtures/claude_bodies/transcript.jsonl"
    target = tmp_path / "both.jsonl"
    assert run(["import", str(transcript), str(dump), "-o", str(target)]) == 0
    capsys.readouterr()
    prompts: dict[str, set[str]] = {}
    for line in map(json.loads, target.read_text().splitlines()):
        if line["event_type"] == "context.injection.applied" and line.get("thread_id", "main") == "main":
            prompts.setdefault(line["session_id"], set()).add(line["turn_id"])
    name = "0f0f0f0f-2222-4333-8444-555555555555"
    assert set(prompts) == {name, f"{name}~2"}
    assert "cc63b766-856f-46e6-9ca4-ff15e68ce9a8" in prompts[f"{name}~2"]
