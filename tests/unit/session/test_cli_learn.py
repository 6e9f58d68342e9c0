"""``ctxctl learn``, and what other commands say of learned items."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import orjson
import pytest
from jsonschema import Draft202012Validator

from ctxctl.cli.main import run
from tests.unit.session.learned_help import DUMP, FIXTURES, LOG

Out = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTXCTL_DATA_DIR", str(tmp_path / "data"))


SCHEMA = Draft202012Validator(json.loads((FIXTURES.parent / "docs" / "json.schema.json").read_text()))


def lines(capsys: Out) -> list[dict[str, Any]]:
    """The lines of JSON, each of which is what the schema says."""
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    for line in found:
        assert not [fault.message for fault in SCHEMA.iter_errors(line)], line["type"]
    return found


def test_learning_says_what_and_the_list_shows_it(capsys: Out) -> None:
    assert run(["learn"]) == 0
    assert capsys.readouterr().out.startswith("nothing has been learned")
    assert run(["learn", str(DUMP)]) == 0
    assert "claude-code 2.1.330  " in capsys.readouterr().err
    assert run(["learn", "--json"]) == 0
    (known,) = lines(capsys)
    assert (known["client"], known["version"], known["requests"]) == ("claude-code", "2.1.330", 7)
    assert sorted(known["threads"]) == ["agent:general-purpose", "main"]
    assert run(["learn", "--forget", "claude-code@2.1.330"]) == 0
    assert "removed claude-code 2.1.330" in capsys.readouterr().err
    assert run(["learn", "--json"]) == 0
    assert lines(capsys) == []


def test_the_header_names_it_and_how_well_it_fits(capsys: Out) -> None:
    run(["learn", str(DUMP)])
    capsys.readouterr()
    assert run(["replay", str(LOG), "--json"]) == 0
    trace, *rest = lines(capsys)
    told = trace["learned"]
    assert (told["client"], told["version"], told["match"]) == ("claude-code", "2.1.330", "exact")
    step = next(one for one in rest if one["type"] == "step")
    fit = told["fit"]
    assert fit["sent"] == step["usage"]["reported_input"] == 2720
    derived = [c for c in step["changes"] if c["item"].startswith("learned:")]
    assert len(derived) == told["items"] == 6
    assert fit["explained"] == sum(c["tokens"] for c in derived) > 300
    assert fit["unexplained"] == fit["unrecorded_without"] - fit["explained"]
    assert {c["provenance"] for c in derived} == {"derived"}
    assert {c["source"] for c in derived} == {"learned from claude-code 2.1.330"}
    assert run(["replay", str(LOG), "--plain"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert f"learned claude-code 2.1.330, 6 items, digest {told['digest']}" in out
    # The fixture's texts are cut, so most of what was billed cannot be explained by them.
    assert "WARNING: more than 2%" in out


@pytest.mark.parametrize("form", ["html", "markdown"])
def test_exports_that_are_read_name_it(form: str, tmp_path: Path) -> None:
    run(["learn", str(DUMP)])
    assert run(["export", str(LOG), "--format", form, "-o", str(tmp_path / "out")]) == 0
    said = (tmp_path / "out").read_text()
    assert '"learned":{"client":"claude-code"' in said or "| learned | `claude-code 2.1.330, 6 items" in said


@pytest.mark.parametrize(
    "arguments",
    [["find", str(LOG), "tokens>1"], ["lint", str(LOG)], ["budget", "--from", str(LOG)],
     *(["export", str(LOG), "-o", "/dev/null", "--format", form] for form in ("csv", "otlp", "envelopes"))],
    ids=lambda arguments: f"{arguments[0]} {arguments[-1]}",
)  # fmt: skip
def test_output_without_a_header_names_it_on_standard_error(arguments: list[str], capsys: Out) -> None:
    run(["learn", str(DUMP)])
    capsys.readouterr()
    assert run(arguments) in (0, 1)
    err = capsys.readouterr().err
    assert err.count("transcript.jsonl: learned claude-code 2.1.330, 6 items, digest ") == 1


@pytest.mark.parametrize("off", ["flag", "environment", "setting"])
def test_it_can_be_switched_off(
    off: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    run(["learn", str(DUMP)])
    capsys.readouterr()
    arguments = ["replay", str(LOG), "--json"]
    if off == "flag":
        arguments.append("--no-learned")
    elif off == "environment":
        monkeypatch.setenv("CTXCTL_LEARNED", "0")
    else:
        (tmp_path / "ctxctl.toml").write_text("learned = false\n")
        monkeypatch.setenv("CTXCTL_CONFIG", str(tmp_path / "ctxctl.toml"))
    assert run(arguments) == 0
    out = capsys.readouterr().out
    assert "learned" not in out


def test_another_minor_version_gets_nothing_and_another_patch_says_so(tmp_path: Path, capsys: Out) -> None:
    run(["learn", str(DUMP)])
    capsys.readouterr()
    for version, expected in (("2.1.400", "minor"), ("2.2.0", None)):
        log = tmp_path / f"{version}.jsonl"
        log.write_bytes(LOG.read_bytes().replace(b"2.1.330", version.encode()))
        assert run(["replay", str(log), "--json"]) == 0
        told = lines(capsys)[0].get("learned")
        assert (told or {}).get("match") == expected
    run(["replay", str(tmp_path / "2.1.400.jsonl"), "--plain"])
    assert "(the log is of 2.1.400; the same minor version)" in " ".join(capsys.readouterr().out.split())


def test_a_set_can_be_named_and_is_for_logs_of_its_own_client_only(
    monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    run(["learn", str(DUMP), "--client", "claude-code", "--version", "9.0"])
    monkeypatch.setenv("CTXCTL_LEARNED", "claude-code@9.0")
    capsys.readouterr()
    assert run(["replay", str(LOG), "--json"]) == 0
    assert lines(capsys)[0]["learned"]["match"] == "named"
    assert run(["replay", str(FIXTURES / "codex/rollout.jsonl"), "--json"]) == 0
    assert "learned" not in lines(capsys)[0]
    monkeypatch.setenv("CTXCTL_LEARNED", "claude-code@1.0")
    assert run(["replay", str(LOG), "--json"]) == 2
    assert "nothing is known of claude-code@1.0" in capsys.readouterr().err


def test_recordings_that_cannot_be_learned_from_say_why(tmp_path: Path, capsys: Out) -> None:
    assert run(["learn", str(FIXTURES / "api/anthropic.jsonl")]) == 2
    assert "--client opencode --version" in capsys.readouterr().err
    assert run(["learn", str(FIXTURES / "tau_bench" / next((FIXTURES / "tau_bench").iterdir()).name),
                "--client", "x", "--version", "1"]) in (0, 3)  # fmt: skip
    empty = tmp_path / "empty.json"
    empty.write_text('{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"hi"}]}')
    capsys.readouterr()
    assert run(["learn", str(empty), "--client", "x", "--version", "1"]) == 3
    assert "no system prompt, tool or reminder" in capsys.readouterr().err
    assert run(["learn", "--forget", "nobody"]) == 2
    assert run(["learn", str(DUMP), "--forget", "x"]) == 2


def test_a_clients_own_log_teaches_nothing(tmp_path: Path, capsys: Out) -> None:
    target = tmp_path / "trace.jsonl"
    assert run(["import", str(LOG), "-o", str(target)]) == 0
    for recording in (LOG, target):
        assert run(["learn", str(recording), "--client", "claude-code", "--version", "2.1.330"]) == 3
        assert "holds no complete request" in capsys.readouterr().err


def test_secrets_in_a_recording_are_not_kept(tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    made = tmp_path / "dump"
    shutil.copytree(DUMP, made)
    for path in made.glob("*.request.json"):
        body = orjson.loads(path.read_bytes())
        body["system"][-1]["text"] += f" The token is {secret}."
        path.write_bytes(orjson.dumps(body))
    assert run(["learn", str(made)]) == 0
    kept = [path.read_bytes() for path in (tmp_path / "data").rglob("*.json")]
    assert kept
    assert not any(secret.encode() in data for data in kept)
    assert any(b"[redacted " in data for data in kept)


def test_a_trace_that_is_recorded_here_is_a_recording_too(tmp_path: Path, capsys: Out) -> None:
    target = tmp_path / "trace.jsonl"
    assert run(["import", str(DUMP), "-o", str(target)]) == 0
    assert run(["learn", str(target), "--json"]) == 0
    (known,) = lines(capsys)
    assert (known["client"], known["requests"]) == ("claude-code", 7)


def test_a_trace_made_of_a_log_holds_what_the_log_holds(tmp_path: Path, capsys: Out) -> None:
    run(["learn", str(DUMP)])
    for name, arguments in (("a", ["import", str(LOG)]), ("b", ["export", str(LOG)])):
        assert run([*arguments, "-o", str(tmp_path / name)]) == 0
        assert b"learned" not in (tmp_path / name).read_bytes()


def test_only_an_export_to_events_is_without_learned_items(capsys: Out) -> None:
    run(["learn", str(DUMP)])
    counted = {}
    for options in ((), ("--no-learned",)):
        capsys.readouterr()
        for form in ("events", "csv", "otlp"):
            assert run(["export", str(LOG), "--format", form, *options]) == 0
            counted.setdefault(form, []).append(capsys.readouterr().out)
    assert [form for form, (with_it, without) in counted.items() if with_it == without] == ["events"]


def test_a_log_that_is_watched_and_the_ui_show_it_too(capsys: Out) -> None:
    from ctxctl.session import Inspector
    from ctxctl.tui.answers import trace_facts

    run(["learn", str(DUMP)])
    capsys.readouterr()
    assert run(["watch", str(LOG), "--json", "--idle", "0.2"]) == 0
    told = [
        line["learned"] for line in map(json.loads, capsys.readouterr().out.splitlines()) if "learned" in line
    ]
    assert told
    assert (told[0]["items"], told[0]["fit"]) == (6, None)
    with Inspector.open(LOG, learned="auto") as inspector:
        assert "(learned: claude-code 2.1.330, 6 items)" in trace_facts.trace(inspector).policy
