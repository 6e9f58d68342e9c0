"""No two items of a list look the same, and what begins alike is told apart by its own words."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxctl.engine.query import parse_query
from ctxctl.model.hits import Hit
from ctxctl.session import Inspector
from ctxctl.text import cells
from ctxctl.tui.screens.search.lines import hit_parts
from ctxctl.tui.screens.search.state import Finds, Search
from tests.apart import alike

ROOT = Path(__file__).resolve().parents[2]
TRACES = (
    "traces/coding-agent.jsonl", "fixtures/openhands/sdk.jsonl", "fixtures/claude_code/session.jsonl",
    "fixtures/codex/rollout.jsonl", "fixtures/gemini_cli/session.json", "fixtures/pi/session-v3.jsonl",
)  # fmt: skip


@pytest.mark.parametrize("name", TRACES)
def test_no_two_items_of_a_list_look_the_same(name: str) -> None:
    with Inspector.open(ROOT / name, calibration="shipped") as inspector:
        assert alike(inspector) == []


def test_a_hit_in_a_name_that_is_cut_shows_where() -> None:
    title = "exec_command: bun apps/cli/src/cli.ts grade one --of many --until the error shows"
    hit = Hit(3, None, "main", 1, 4, "added", "call_1", "tool_result", title, tokens=0)
    query = parse_query("error")
    state = Search(query=query, finds=Finds(query, 1, [hit], 1, 1))
    for width in (80, 120, 200):
        parts = hit_parts(state, 0, width)
        assert cells("".join(text for text, _ in parts)) == width
        assert ("error", "match") in parts


def test_hits_of_one_step_do_not_look_the_same() -> None:
    titles = [f"exec_command: bun apps/cli/src/cli.ts grade {name}" for name in ("one", "two")]
    hits = [
        Hit(3, None, "main", 1, 4, "added", f"call_{n}", "tool_result", title, tokens=98)
        for n, title in enumerate(titles)
    ]
    query = parse_query("grade")
    state = Search(query=query, finds=Finds(query, 1, hits, len(hits), len(hits)))
    shown = ["".join(part for part, _ in hit_parts(state, n, 78)) for n in range(2)]
    assert shown[0] != shown[1]
    assert "one" in shown[0]
    assert "two" in shown[1]
