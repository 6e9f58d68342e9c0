"""The readers of raw captures leave out what a Codex fork repeats of its parent, and only that."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.corpus.test_independent import ask
from tools.independent import bills
from tools.independent.held import held

sys.path.insert(0, str(Path(__file__).parents[2] / "tools" / "independent"))

import dollars

COPIED = (1000, 2100)
"""What the parent was billed before the fork, in tokens sent."""


def meta(ident: str, parent: str | None = None, **more: Any) -> dict[str, Any]:
    return {"type": "session_meta", "payload": {"id": ident, "forked_from_id": parent, **more}}


def rollout(path: Path, heads: list[dict[str, Any]], sent: tuple[int, ...], own: int = 0) -> Path:
    """A rollout of requests that sent so many tokens; the last `own` of them hours after the others."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines, total = [{"timestamp": "2026-03-01T10:00:00.000Z", **head} for head in heads], 0
    for number, count in enumerate(sent):
        total += count
        usage = {"input_tokens": count, "cached_input_tokens": 0, "output_tokens": 5}
        now = {"input_tokens": total, "cached_input_tokens": 0, "output_tokens": 5 * (number + 1)}
        info = {"last_token_usage": usage, "total_token_usage": now}
        hour = 10 if number < len(sent) - own else 15 + number
        lines.append(
            {"timestamp": f"2026-03-01T{hour}:00:00.{number:03}Z", "type": "event_msg",
             "payload": {"type": "token_count", "info": info}}
        )  # fmt: skip
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def both(path: Path) -> list[int]:
    """The tokens sent of each request, which both readers find."""
    found = [bill.sent for bill in bills.codex(path)]
    assert [bill.size for bill in dollars.codex(path)] == found
    return found


def agreed(path: Path) -> list[int]:
    """The same where ctxctl finds these, too."""
    assert held(path, ask).wrong == []
    return both(path)


@pytest.mark.parametrize("place", ["sessions/2026/03/01/p.jsonl", "archived_sessions/p.jsonl"])
def test_a_fork_beside_its_parent_has_its_own_requests_only(tmp_path: Path, place: str) -> None:
    parent = rollout(tmp_path / place, [meta("parent")], (*COPIED, 2200))
    fork = rollout(tmp_path / "archived_sessions/f.jsonl", [meta("fork", "parent")], (*COPIED, 2150, 900), 2)
    assert agreed(fork) == [2150, 900]
    assert agreed(parent) == [*COPIED, 2200]


def test_the_parents_record_in_a_sub_agents_rollout_names_the_parent(tmp_path: Path) -> None:
    rollout(tmp_path / "sessions/p.jsonl", [meta("parent")], COPIED)
    source = {"subagent": {"thread_spawn": {"parent_thread_id": "parent", "depth": 1}}}
    heads = [meta("agent", source=source), meta("parent")]
    assert agreed(rollout(tmp_path / "sessions/a.jsonl", heads, (*COPIED, 900), 1)) == [900]


def test_without_the_parent_two_forks_tell_what_neither_made(tmp_path: Path) -> None:
    one = rollout(tmp_path / "one.jsonl", [meta("one", "gone")], (*COPIED, 900), 1)
    other = rollout(tmp_path / "other.jsonl", [meta("other", "gone")], (*COPIED, 950, 960), 2)
    assert (agreed(one), agreed(other)) == ([900], [950, 960])


def test_nothing_is_taken_for_a_copy_where_no_file_tells(tmp_path: Path) -> None:
    rollout(tmp_path / "else.jsonl", [meta("else")], COPIED)
    fork = rollout(tmp_path / "fork.jsonl", [meta("fork", "gone")], (*COPIED, 900), 1)
    assert both(fork) == [*COPIED, 900]


def test_a_request_lost_at_the_fork_is_the_forks(tmp_path: Path) -> None:
    """Its total goes on from the parent's: what the log leaves out is counted from there."""
    rollout(tmp_path / "p.jsonl", [meta("parent")], COPIED)
    fork = rollout(tmp_path / "f.jsonl", [meta("fork", "parent")], (*COPIED, 700, 900), 2)
    lines = fork.read_text().splitlines()
    fork.write_text("\n".join([*lines[:3], *lines[4:]]) + "\n")
    assert both(fork) == [700, 900]
