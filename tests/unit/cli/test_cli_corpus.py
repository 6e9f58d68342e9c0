"""The command line on real captures; that the numbers are right is for the oracle and the engine's tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxctl.cli.main import run

pytestmark = pytest.mark.corpus
Out = pytest.CaptureFixture[str]
MAPPED = ("sanqian", "sibyl", "luminarys", "amplifier")


def steps(out: str) -> list[dict[str, Any]]:
    return [line for line in map(json.loads, out.splitlines()) if line["type"] == "step"]


@pytest.mark.parametrize("name", MAPPED)
def test_mapped_events_validate_and_replay(name: str, corpus: Path, capsys: Out) -> None:
    trace = str(corpus / "samples" / "mapped-context-events" / f"{name}.jsonl")
    assert run(["validate", trace]) == 0
    assert capsys.readouterr().out.startswith("valid: ")
    outputs = []
    for _ in range(2):
        assert run(["replay", trace, "--json", "--strict"]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]
    for step in steps(outputs[0]):
        ledger = step["ledger"]
        assert ledger["window_before"] + ledger["new"] - ledger["freed"] == ledger["window_after"]
    for arguments in (["replay", trace], ["show", trace], ["show", trace, "--text"]):
        assert run(arguments) == 0
        out, err = capsys.readouterr()
        assert out
        assert err == ""


def test_the_facts_of_the_mapped_events(corpus: Path, capsys: Out) -> None:
    def replayed(name: str) -> list[dict[str, Any]]:
        run(["replay", str(corpus / "samples" / "mapped-context-events" / f"{name}.jsonl"), "--json"])
        return steps(capsys.readouterr().out)

    sanqian = replayed("sanqian")
    assert [s["counts"]["skipped"] for s in sanqian if s["turn"] in (2, 5)] == [2, 2]
    assert {s["mode"] for s in sanqian} == {"append"}
    assert {s["mode"] for s in replayed("amplifier")} == {"window"}
    luminarys = replayed("luminarys")
    assert {s["mode"] for s in luminarys} == {"append"}
    assert all(s["ledger"]["freed"] == 0 for s in luminarys)


def test_transcripts_replay(corpus: Path, capsys: Out) -> None:
    found = sorted((corpus / "data" / "claude-code").rglob("*.jsonl"), key=lambda path: path.stat().st_size)
    for path in [*found[:6], *found[len(found) // 2 : len(found) // 2 + 4]]:
        code = run(["replay", str(path), "--json"])
        out, err = capsys.readouterr()
        assert code == 0, (path, err)
        for step in steps(out):
            ledger = step["ledger"]
            assert ledger["window_before"] + ledger["new"] - ledger["freed"] == ledger["window_after"]
        assert run(["replay", str(path)]) == 0
        assert "\x1b" not in capsys.readouterr().out


def test_hostile_strings_on_every_command(corpus: Path, capsys: Out, tmp_path: Path) -> None:
    strings = json.loads((corpus / "suites" / "big-list-of-naughty-strings" / "blns.json").read_text())
    trace = tmp_path / "naughty.jsonl"
    with trace.open("w") as file:
        for n, text in enumerate(strings):
            envelope = {
                "schema_version": "0.1.1",
                "event_id": f"{n}{text}",
                "session_id": "s",
                "turn_id": "t" + text,
            }
            item = {"item_id": f"{n}{text}", "context_kind": text or "custom", "title": text, "content": text}
            file.write(json.dumps({**envelope, "event_type": "context.item.added", "data": item}) + "\n")
    for arguments in (
        ["replay", str(trace)],
        ["show", str(trace)],
        ["show", str(trace), "--text"],
        ["validate", str(trace)],
    ):
        assert run(arguments) in (0, 1)
        out, err = capsys.readouterr()
        for text in (out, err):
            assert not {
                c
                for c in text
                if (c < " " and c != "\n") or "\x7f" <= c <= "\x9f" or c in "\u202e\u200b\ufeff"
            }
            assert not [line for line in text.split("\n") if line.lstrip().startswith("::")]
