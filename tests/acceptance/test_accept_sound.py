"""The sound trace that the other tests damage: what an undamaged one shows."""

from __future__ import annotations

from pathlib import Path

from tests.acceptance.runs import ctxctl
from tests.acceptance.tracing import ITEMS, SOUND, TOKENS


def test_the_sound_trace(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(SOUND)
    done = ctxctl("replay", "--json", "--strict", path)
    assert done.code == 0
    assert done.err == ""
    assert [line["type"] for line in done.lines] == ["trace", *["step", "turn"] * 3, "summary"]
    steps = done.of_type("step")
    assert [[c["item"] for c in step["changes"]] for step in steps] == [[name] for name in ITEMS]
    assert [step["ledger"]["new"] for step in steps] == list(TOKENS.values())
    assert [step["window"]["used"] for step in steps] == [6, 12, 18]
    assert {step["layer"] for step in steps} == {"injected"}
    checked = ctxctl("validate", path)
    assert checked.code == 0, checked.out
