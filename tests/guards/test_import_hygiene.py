"""What is slow to import is imported by the command that uses it (the import contracts cannot see when)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

SLOW = {"asyncio", "pydantic", "rich", "sqlite3", "textual", "tiktoken", "watchfiles"}


@pytest.mark.parametrize("arguments", [("--version",), ("--help",), ("replay", "--help")], ids=" ".join)
def test_a_command_that_reads_nothing_loads_nothing_slow(ran: Run, arguments: tuple[str, ...]) -> None:
    done = ran(*arguments)
    assert done.code == 0, done.err
    assert done.out
    assert not done.modules & SLOW


def test_replay_json_loads_no_user_interface(ran: Run, small_trace: Path) -> None:
    done = ran("replay", "--json", str(small_trace))
    assert done.code == 0, done.err
    assert not done.modules & {"asyncio", "pydantic", "rich", "textual", "watchfiles"}


def test_replay_json_with_cached_counts_loads_no_encoding(ran: Run, small_trace: Path) -> None:
    first = ran("replay", "--json", str(small_trace))
    again = ran("replay", "--json", str(small_trace))
    assert "tiktoken" in first.modules
    assert "tiktoken" not in again.modules
    assert again.out == first.out
