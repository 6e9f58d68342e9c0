"""Four long Claude Code sessions: what is asked of the window, held against the bills in the raw logs.

docs/true-window.md has the answers.  The captures are not in the repository: CTXCTL_CORPUS names the
directory that holds `data`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ctxctl.analysis.where import steps_where
from ctxctl.analysis.why.answer import explain_item
from ctxctl.engine.query import parse_query
from ctxctl.session import Inspector

_INPUT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_WINDOW = 200_000
_SPOTTER = "marot__spotter/test/fixtures/transcripts"
SESSIONS = {
    "A": ("entireio__cli/be/9f77982406/0/full.jsonl", 154_813, 0, 155_000),
    "B": ("entireio__cli/43/2b48f6b6e6/0/full.jsonl", 166_919, 7, 167_000),
    "C": (f"{_SPOTTER}/fa812bfe-b295-4cca-9c2f-fdf01028cb46.jsonl", 166_874, 12, 167_000),
    "D": (f"{_SPOTTER}/4d5611e5-241a-462a-8d15-5122611a9569.jsonl", 164_831, 3, 167_000),
}


def bills(path: Path) -> list[int]:
    """The billed input of every request of the main thread, by the raw log alone."""
    found: dict[str, int] = {}
    for line in path.read_bytes().splitlines():
        record = json.loads(line)
        message = record.get("message")
        if not isinstance(message, dict) or record.get("isSidechain"):
            continue
        usage = message.get("usage")
        if isinstance(usage, dict) and message["model"] != "<synthetic>":
            size = sum(usage.get(name) or 0 for name in _INPUT)
            found[message["id"]] = max(found.get(message["id"], 0), size)
    return list(found.values())


@pytest.mark.parametrize("name", SESSIONS)
def test_the_windows_that_are_over_80_percent_are_those_of_the_bills(name: str) -> None:
    path, peak, count, threshold = SESSIONS[name]
    where_ = Path(os.environ["CTXCTL_CORPUS"]) / "data" / "claude-code" / path
    billed = bills(where_)
    assert max(billed) == peak
    with Inspector.open(where_, calibration="saved") as inspector:
        stops = list(steps_where(inspector, parse_query("window>80%")))
        main = [stop for stop in stops if stop.at.step.thread == "main"]
        assert None not in {stop.held.truth for stop in stops}
        held = [stop.at.step.window.used for stop in main if stop.held.truth]
        assert held == [size for size in billed if size * 100 > 80 * _WINDOW]
        assert len(held) == count
        top = next(stop for stop in main if stop.at.step.window.used == peak)
        window = top.at.step.window
        source = "client" if threshold == 167_000 else "catalogue"  # a line of its own comes from a setting
        assert (window.limit, window.limit_source, window.threshold) == (_WINDOW, source, threshold)
        largest = max(top.at.placements, key=lambda p: p.tokens)
        links = {link.verdict: link for link in explain_item(inspector, top.ordinal, largest.item).links}
        assert f"{largest.tokens:,} of {peak:,} billed" in links["current"].text
        assert links["current"].numbers["used"] == peak
        after = main[main.index(top) + 1].ordinal
        gone = {link.verdict: link for link in explain_item(inspector, after, largest.item).links}
        assert gone["compacts"].numbers == {"threshold": threshold, "sent_before": peak}
