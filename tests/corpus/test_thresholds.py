"""The runtimes' own compaction rules against compactions that really happened (docs/limits.md has the table).

The captures are not in the repository: CTXCTL_CORPUS names the directory that holds `data` and `samples`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ctxctl.tokens.catalogue.thresholds import threshold

_INPUT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_CLAUDE_WINDOW = 200_000


class Seen(NamedTuple):
    """One automatic compaction: the last bill before it, the size that the runtime names, and its rule's."""

    billed: int
    named: int
    expected: int


def data() -> Path:
    return Path(os.environ["CTXCTL_CORPUS"]) / "data"


def records(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_bytes().splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value


def claude_code(path: Path) -> Iterator[Seen]:
    billed, model = None, None
    for record in records(path):
        meta = record.get("compactMetadata")
        if isinstance(meta, dict) and meta.get("trigger") == "auto" and billed:
            rule = threshold("claude-code", _CLAUDE_WINDOW, None, record.get("version"), model=model)
            if rule is not None:
                yield Seen(billed, meta["preTokens"], rule.tokens)
        message = record.get("message")
        if not isinstance(message, dict) or record.get("isSidechain"):
            continue
        usage = message.get("usage")
        if isinstance(usage, dict) and message["model"] != "<synthetic>":
            billed, model = sum(usage.get(name) or 0 for name in _INPUT), message["model"]


def codex(path: Path) -> Iterator[Seen]:
    total, window, version = 0, None, None
    for record in records(path):
        payload = record.get("payload")
        if not isinstance(payload, dict):
            continue
        version = payload.get("cli_version") or version
        info = payload.get("info") if payload.get("type") == "token_count" else None
        if isinstance(info, dict) and isinstance(info.get("last_token_usage"), dict):
            total = info["last_token_usage"].get("total_tokens") or 0
            window = info.get("model_context_window")
        if record.get("type") == "compacted":
            rule = threshold("codex", window, None, version)
            if rule is not None and total:
                yield Seen(total, total, rule.tokens)


def test_claude_code_compacts_where_its_rule_says() -> None:
    found = [one for path in sorted((data() / "claude-code").rglob("*.jsonl")) for one in claude_code(path)]
    assert len(found) >= 13
    assert {one.expected for one in found} == {155_000, 167_000}
    for one in found:
        assert one.named >= one.expected
        assert abs(one.billed - one.expected) <= 0.015 * one.expected


def test_codex_compacts_below_its_line_by_what_it_estimates_beside_the_bill() -> None:
    # Another collection's fixture, shortened by its makers, compacts at 16,422: not by itself.
    paths = sorted((data() / "codex" / "EntityProcess__agentv").rglob("*.jsonl"))
    found = [one for path in paths for one in codex(path)]
    assert len(found) >= 5
    for one in found:
        assert 0.88 * one.expected <= one.billed <= one.expected


def test_pi_compacts_above_its_line() -> None:
    rule = threshold("pi", _CLAUDE_WINDOW, None, None)
    assert rule is not None
    before = []
    for path in sorted((data() / "pi" / "badlogic__pi-mono").rglob("*.jsonl")):
        before += [one["tokensBefore"] for one in records(path) if one.get("type") == "compaction"]
    # One of the four came earlier; the logs do not say which were asked for.
    assert sum(one > rule.tokens for one in before) >= 3
    assert all(one < 1.015 * rule.tokens for one in before)
