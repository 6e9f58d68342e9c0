"""``ctxctl replay --drop``, ``--set`` and ``--compare`` as they are typed."""

from __future__ import annotations

import hashlib
import io
import json
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ctxctl.cli import whatif_options
from ctxctl.cli.main import run
from ctxctl.errors import UsageError
from tests.oracle import build

ROOT = Path(__file__).parents[3]
TRACE = str(ROOT / "traces" / "coding-agent.jsonl")
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ctxctl(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("COLUMNS", "100")

    def call(*arguments: str) -> tuple[int, str, str]:
        code = run(list(arguments))
        out, err = capfdbinary.readouterr()
        return int(code), out.decode(), err.decode()

    return call


def lines(out: str, kind: str) -> list[dict[str, Any]]:
    return [line for line in map(json.loads, out.splitlines()) if line["type"] == kind]


def test_the_parameters_name_what_is_dropped_and_set(ctxctl: Run, tmp_path: Path) -> None:
    (tmp_path / "new.txt").write_bytes(b"You are brief.\n")
    code, out, _ = ctxctl(
        "replay", TRACE, "--json", "--drop", "kind:tool_result", "--set", f"system={tmp_path}/new.txt"
    )
    assert code == 0
    (head,) = lines(out, "trace")
    assert head["supposed"] == {
        "window": None,
        "reserve": None,
        "max_input": None,
        "provenance": "simulated",
        "drop": [{"selector": "kind:tool_result", "items": 42}],
        "dropped_calls": 42,
        "dropped_summaries": 0,
        "set": [
            {
                "item": "system",
                "version": None,
                "versions": 1,
                "name": "new.txt",
                "bytes": 15,
                "sha256": hashlib.sha256(b"You are brief.\n").hexdigest(),
            }
        ],
    }
    assert all("simulated" in step["flags"] for step in lines(out, "step"))


@pytest.mark.parametrize(
    ("arguments", "slug_says"),
    [
        (["--set", "system"], "does not name an item and a file"),
        (["--set", "=x"], "does not name an item and a file"),
        (["--set", "system="], "does not name an item and a file"),
        (["--set", "system=/no/such/file"], "no such file"),
        (["--set", "system=."], "is a directory"),
        (["--drop", "kind:nope"], "has the kind 'nope'"),
        (["--drop", ""], "--drop is empty"),
    ],
)
@pytest.mark.parametrize("how", [["--plain"], ["--json"], ["--compare"], ["--compare", "--json"]])
def test_what_is_wrong_is_said_before_anything_is_printed(
    ctxctl: Run, arguments: list[str], slug_says: str, how: list[str]
) -> None:
    code, out, err = ctxctl("replay", TRACE, *how, *arguments)
    assert (code, out) == (2, "")
    assert slug_says in err


def test_a_text_is_utf_8_and_of_a_sane_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "text"
    file.write_bytes(b"ab\xff")
    with pytest.raises(UsageError, match="not UTF-8: byte 2"):
        whatif_options.replacements([f"a={file}"], "trace")
    monkeypatch.setattr(whatif_options, "MOST_BYTES", 2)
    with pytest.raises(UsageError, match="larger than"):
        whatif_options.replacements([f"a={file}"], "trace")
    file.write_bytes(b"ab")
    (one,) = whatif_options.replacements([f"x=y@1={file}"], "trace")
    assert (one.item, one.text, one.name) == ("x=y@1", "ab", "text")


def test_standard_input_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO("né".encode())))
    (one,) = whatif_options.replacements(["a=-"], "trace")
    assert (one.text, one.name) == ("né", "-")
    with pytest.raises(UsageError, match="another --set"):
        whatif_options.replacements(["a=-", "b=-"], "trace")
    with pytest.raises(UsageError, match="the trace already reads"):
        whatif_options.replacements(["a=-"], "-")


SUPPOSED = [
    ["--window", "3k"],
    ["--drop", "kind:tool_result", "--window", "3k", "--policy", "fifo"],
    ["--policy", "summarize_oldest:summary_tokens=100", "--window", "2500"],
    ["--encoding", "cl100k_base"],
]


@pytest.mark.parametrize("given", SUPPOSED, ids=" ".join)
def test_each_column_is_that_of_its_own_replay(ctxctl: Run, given: list[str]) -> None:
    turns = lines(ctxctl("replay", TRACE, "--compare", "--json", *given)[1], "comparison")
    for which, flags in (("recorded", []), ("simulated", given)):
        steps = lines(ctxctl("replay", TRACE, "--json", *flags)[1], "step")
        for turn in turns:
            mine = [s for s in steps if (s["thread"], s["turn"]) == (turn["thread"], turn["turn"])]
            side = turn[which]
            assert turn["steps"] == len(mine)
            assert side["used"] == mine[-1]["window"]["used"]
            assert side["cap"] == mine[-1]["window"]["cap"]
            assert side["sent"] == sum(s["window"]["used"] for s in mine)
            assert side["over"] == max((s["window"]["over"] or 0) for s in mine)
            broken = [s for s in mine if s["cache"]["broken_by"]]
            assert side["cache_breaks"] == len(broken)
            assert side["broken_tokens"] == sum(
                s["ledger"]["window_before"] - s["cache"]["possible_prefix"] for s in broken
            )


def test_turns_add_up_to_the_sums_and_the_recorded_cost_is_that_of_the_cost_command(ctxctl: Run) -> None:
    out = ctxctl("replay", TRACE, "--compare", "--json", "--drop", "kind:tool_result", "--window", "3k")[1]
    turns, (whole,) = lines(out, "comparison"), lines(out, "comparison_summary")
    for which in ("recorded", "simulated"):
        for name in ("sent", "omitted", "truncated", "compactions", "cache_breaks", "broken_tokens"):
            assert sum(turn[which][name] for turn in turns) == whole[which][name], name
        assert sum(Decimal(t[which]["context_cost"]) for t in turns) == Decimal(whole[which]["context_cost"])
    (cost,) = lines(ctxctl("cost", TRACE, "--json")[1], "cost")
    sent = cost["sent"]
    context = Decimal(sent["total"]) - Decimal(sent["output"])
    assert Decimal(whole["recorded"]["context_cost"]) == context
    assert Decimal(whole["simulated"]["context_cost"]) < context
    assert whole["turns"] == len(turns) == 17
    assert whole["first_differing"] == {
        "session": turns[0]["session"], "thread": "main", "turn": 1, "step": 2,
    }  # fmt: skip


def test_nothing_supposed_is_the_same_on_both_sides(ctxctl: Run) -> None:
    out = ctxctl("replay", TRACE, "--compare", "--json")[1]
    assert all(turn["recorded"] == turn["simulated"] for turn in lines(out, "comparison"))
    (whole,) = lines(out, "comparison_summary")
    assert whole["recorded"] == whole["simulated"]
    assert whole["first_differing"] is None
    text = ctxctl("replay", TRACE, "--compare")[1]
    assert "nowhere: the same is sent at every step" in text
    assert "->" not in text


def test_only_some_turns_and_one_thread(ctxctl: Run) -> None:
    given = ["--compare", "--json", "--window", "3k"]
    out = ctxctl("replay", TRACE, *given, "--thread", "main", "--turn", "-2..-1")[1]
    assert [(t["thread"], t["turn"]) for t in lines(out, "comparison")] == [("main", 14), ("main", 15)]
    (whole,) = lines(out, "comparison_summary")
    assert whole["turns"] == 2
    assert whole["recorded"]["steps"] == sum(t["steps"] for t in lines(out, "comparison"))
    code, _, err = ctxctl("replay", TRACE, "--compare", "--thread", "nobody")
    assert code == 2
    assert "no thread is called 'nobody'" in err


def test_a_supposed_model_brings_its_limits_and_its_prices(ctxctl: Run) -> None:
    out = ctxctl("replay", TRACE, "--compare", "--json", "--model", "gpt-4-turbo")[1]
    (whole,), turns = lines(out, "comparison_summary"), lines(out, "comparison")
    assert {turn["simulated"]["cap"] for turn in turns if turn["thread"] == "main"} != {
        turn["recorded"]["cap"] for turn in turns if turn["thread"] == "main"
    }
    assert Decimal(whole["simulated"]["context_cost"]) > Decimal(whole["recorded"]["context_cost"])
    code, _, err = ctxctl("replay", TRACE, "--compare", "--model", "gpt-40")
    assert code == 2
    assert "no model called 'gpt-40' is known" in err


@pytest.mark.parametrize("width", ["30", "60", "80", "200"])
def test_it_is_as_wide_as_the_terminal(ctxctl: Run, monkeypatch: pytest.MonkeyPatch, width: str) -> None:
    monkeypatch.setenv("COLUMNS", width)
    out = ctxctl("replay", TRACE, "--compare", "--drop", "kind:tool_result", "--window", "1k")[1]
    assert max(map(len, out.splitlines())) <= max(int(width), 40)


def test_hostile_names_are_shown_and_do_nothing(ctxctl: Run, tmp_path: Path) -> None:
    event = {
        "schema_version": "0.1.1", "event_type": "context.item.added", "event_id": "1", "source": "x",
        "time": "2026-01-01T00:00:00Z", "thread_id": "\x1b]0;owned\x07", "turn_id": "t",
        "data": {"item_id": "\x1b[31mred", "context_kind": "\u202eevil", "content": "x",
                 "content_mode": "inline", "visibility": ["model"]},
    }  # fmt: skip
    trace = tmp_path / "t.jsonl"
    trace.write_text(json.dumps(event) + "\n")
    for arguments in (["--compare", "--drop", "\x1b[31mred"], ["--plain", "--drop", "kind:nope"]):
        _, out, err = ctxctl("replay", str(trace), *arguments)
        assert not set(out + err) & set("\x1b\x07\u202e")


def test_of_sizes_that_nobody_counted_nothing_is_told_to_fit(ctxctl: Run, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    events = build.at("t1", "s1", build.item("a"), build.item("b"), build.assembly("x", ["a", "b"]))
    path.write_bytes(build.lines(events))
    code, out, _ = ctxctl("replay", str(path), "--compare", "--window", "20k", "--calibration", "none")
    told = " ".join(out.split())
    assert code == 0
    assert "recorded 1 request of unknown size" in told
    assert "difference not known" in told
    assert told.count("what was sent is not known, so ctxctl cannot tell") == 2
    assert "no step is over" not in told
    assert "$0.0000" not in told
    _, out, _ = ctxctl("replay", str(path), "--compare", "--json", "--window", "20k", "--calibration", "none")
    lines = {line["type"]: line for line in map(json.loads, out.splitlines())}
    for side in ("recorded", "simulated"):
        turn, whole = lines["comparison"][side], lines["comparison_summary"][side]
        asked = ("used", "free", "over", "sent", "context_cost")
        assert [turn[name] for name in asked] == [None] * len(asked)
        assert (turn["uncounted"], whole["sent"], whole["context_cost"]) == (2, None, None)


def test_what_nobody_billed_has_no_price_here_either(ctxctl: Run) -> None:
    """The report of this capture has a stated total and no bill; a comparison prices no part of it."""
    path = str(ROOT / "fixtures" / "copilot_cli" / "events.jsonl")
    assert "that the runtime states" in " ".join(ctxctl("replay", path, "--plain")[1].split())
    asked = ("replay", path, "--compare", "--window", "1k", "--policy", "fifo")
    told = " ".join(ctxctl(*asked)[1].split())
    assert "$" not in told
    assert "prices not asked for: no bill tells how much was sent" in told
    _, out, _ = ctxctl(*asked, "--json")
    (whole,) = lines(out, "comparison_summary")
    for side in ("recorded", "simulated"):
        assert whole[side]["sent"] > 0, "sizes of what is recorded are compared"
        assert (whole[side]["context_cost"], whole[side]["unpriced_steps"]) == (None, 5)
        assert {turn[side]["context_cost"] for turn in lines(out, "comparison")} == {None}
