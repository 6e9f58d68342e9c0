"""What is slow to import is imported by the command that uses it (the import contracts cannot see when)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctxctl.importers.registry import built_in
from ctxctl.importers.table import TABLE

Run = Callable[..., Any]

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
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


def readers() -> dict[str, str]:
    """By format, the module that reads its files."""
    return {one.name: one.reader.partition(":")[0] for one in built_in()}


def test_a_native_trace_loads_no_format(ran: Run, small_trace: Path) -> None:
    done = ran("replay", "--json", str(small_trace))
    assert done.code == 0, done.err
    assert not done.modules & {"ctxctl.importers.registry", "ctxctl.importers.table", *readers().values()}
    assert "importlib.metadata" not in done.modules


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("claude-code", "claude_code/session.jsonl"),
        ("codex", "codex/rollout.jsonl"),
        ("har", "har/chrome.har"),
        ("amplifier", "amplifier/bodies-anthropic.jsonl"),
    ],
)
def test_a_capture_loads_the_reader_of_its_format_and_no_other(ran: Run, name: str, file: str) -> None:
    done = ran("validate", str(FIXTURES / file))
    assert done.code in (0, 1), done.err
    known = readers()
    others = {module for other, module in known.items() if module != known[name]}
    assert known[name] in done.modules
    assert done.modules & others == set()
    loaded = [entry.name for entry in TABLE if entry.value.partition(":")[0] in done.modules]
    assert len(loaded) < len(TABLE) / 2


def test_an_import_loads_no_replay(ran: Run) -> None:
    done = ran("import", str(FIXTURES / "claude_code/session.jsonl"))
    assert done.code == 0, done.err
    assert not done.modules & {"ctxctl.session.facade", "ctxctl.engine.replay.run"}
