"""Small histories of aider that tell of endless windows end where these have cost enough."""

from __future__ import annotations

import pytest

from ctxctl.ingest import run
from tests.unit.importers.agent_help import imported

HEAD = "# aider chat started at 2025-01-01 00:00:00\n\n"
END = "#### Thanks\n\nYou are welcome.\n\n> Tokens: 900 sent, 8 received.\n"


def read(text: str) -> tuple[int, set[str]]:
    """How many events a history comes to, and what is wrong with it."""
    events, problems = imported("aider", (HEAD + text + END).encode())
    return len(events), {problem.slug for problem in problems}


def test_a_history_that_is_restored_again_and_again_is_not_told_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said, restored = "#### y\nx\n" * 20, "> Restored previous conversation history\n"
    assert read(said + restored * 3)[1] == set()
    monkeypatch.setattr(run, "WORK", 2000)
    for times in (100, 400):
        told, slugs = read(said + restored * times)
        assert slugs == {"windows-too-large"}
        assert told < 300 + times
