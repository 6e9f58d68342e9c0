"""Captures of Roo Code, Cursor, aider and smaller agents: each is known, and its bills are those it holds."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import orjson
import pytest

from ctxctl.importers import registry
from ctxctl.importers.roo.reader import requests
from ctxctl.model.problem import Problem
from ctxctl.trace.source import open_source

Json = dict[str, Any]
KINDS = {
    "cline-roo": (20, {"roo"}),
    "cursor": (4, {"cursor"}),
    "aider": (2, {"aider"}),
    "other-agents": (7, {"kimi", "hail"}),
}
UNKNOWN = ("metadata.json", "chat-history-search-replace-gold.txt")
"""Notes on captures, and a test's expectation: nothing that was ever sent."""
USAGE = "ctxctl.usage.reported"


def captures(kind: str) -> list[Path]:
    top = Path(os.environ.get("CTXCTL_CORPUS") or ".") / "data"
    return sorted(path for path in (top / kind).rglob("*") if path.is_file())


def imported(path: Path) -> tuple[str | None, list[Json], list[Problem]]:
    problems: list[Problem] = []
    with open_source(path) as source:
        found = registry.detect(source)
        if found is None:
            return None, [], problems
        return found.name, list(registry.capture_events(found, source, problems.append)), problems


def billed(events: list[Json]) -> int:
    return sum(e["data"]["input_tokens"] for e in events if e["event_type"] == USAGE)


@pytest.mark.parametrize("kind", KINDS)
def test_every_capture_is_known(corpus: Path, kind: str) -> None:
    count, names = KINDS[kind]
    found = captures(kind)
    assert len(found) >= count
    for path in found:
        name, events, problems = imported(path)
        if path.name in UNKNOWN:
            assert name is None, path
            continue
        assert name in names, path
        assert events[-1]["event_type"] == "ctxctl.fidelity.measured"
        assert {p.slug for p in problems} <= {"missing-blob"}, path


def test_chats_bill_each_request_once(corpus: Path) -> None:
    for path in captures("cline-roo"):
        if path.name == "ui_messages.json":
            asked = requests(orjson.loads(path.read_bytes()))
            whole = sum(one.bill["input_tokens"] for one in asked if one.bill is not None)
            assert billed(imported(path)[1]) == whole > 0, path


def test_hail_bills_its_own_totals(corpus: Path) -> None:
    for path in captures("other-agents"):
        if path.name.endswith(".hail.jsonl"):
            totals = orjson.loads(path.read_bytes().splitlines()[-1])
            whole = totals.get("total_input_tokens", 0) if totals["type"] == "stats" else 0
            assert billed(imported(path)[1]) == whole, path


def test_kimi_bills_each_record_of_usage_once(corpus: Path) -> None:
    for path in captures("other-agents"):
        if "kimi" in path.parts:
            records = [orjson.loads(line) for line in path.read_bytes().splitlines()]
            usages = [r["usage"] for r in records if r["type"] == "usage.record"]
            whole = sum(u["inputOther"] + u["inputCacheRead"] + u["inputCacheCreation"] for u in usages)
            assert billed(imported(path)[1]) == whole > 0, path


def test_cursor_bills_each_generation_once(corpus: Path) -> None:
    for path in captures("cursor"):
        if path.name == "cursor-hooks.jsonl":
            records = [orjson.loads(line) for line in path.read_bytes().splitlines()]
            whole = sum(r["payload"]["input_tokens"] for r in records if r["evt"] == "stop")
            assert billed(imported(path)[1]) == whole > 0


def test_aider_bills_the_counts_that_it_prints_in_full(corpus: Path) -> None:
    exact = re.compile(rb"^> Tokens: ([\d,]+) sent, [\d,]+ received\b", re.MULTILINE)
    for path in captures("aider"):
        if path.suffix == ".md":
            whole = sum(int(n.replace(b",", b"")) for n in exact.findall(path.read_bytes()))
            assert billed(imported(path)[1]) == whole > 0
