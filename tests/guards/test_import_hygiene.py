"""What is slow to import is imported by the command that uses it (the import contracts cannot see when)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctxctl.cli.commands import COMMANDS
from ctxctl.importers.registry import built_in
from ctxctl.importers.table import TABLE
from tests.acceptance import runs

Run = Callable[..., Any]

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "fixtures"
TRACE = str(ROOT / "traces" / "coding-agent.jsonl")
SESSION = str(FIXTURES / "claude_code" / "session.jsonl")
EXCHANGES = str(FIXTURES / "har" / "chrome.har")
SLOW = {"asyncio", "pydantic", "rich", "sqlite3", "textual", "tiktoken", "watchfiles"}
HEAVY = {
    "aiohttp", "asyncio", "concurrent.futures", "email", "fastjsonschema", "genai_prices", "http.client",
    "httpx2", "importlib.metadata", "importlib.resources", "logging", "multiprocessing", "platformdirs",
    "pydantic", "pygments", "rapidfuzz", "re2", "rich", "sqlite3", "ssl", "subprocess", "tempfile", "textual",
    "tiktoken", "tomllib", "typer", "watchfiles",
}  # fmt: skip
"""What takes a millisecond or more to import."""
COUNTS = {"sqlite3"}
IMPORT = {"fastjsonschema", "importlib.resources", "sqlite3", "tempfile"}
MAY = [
    (("--version",), set()),
    (("--help",), {"typer", "subprocess"}),
    (("replay", "--help"), {"typer", "subprocess"}),
    (("models", "gpt-5"), set()),
    (("replay", "--json", TRACE), COUNTS),
    (("replay", "--plain", TRACE), COUNTS),
    (("show", "--json", f"{TRACE}@-1"), COUNTS),
    (("diff", "--json", f"{TRACE}@3", f"{TRACE}@-1"), COUNTS),
    (("log", "--json", TRACE, "tool:search"), COUNTS),
    (("why", "--json", f"{TRACE}@-1", "tool:search"), COUNTS),
    (("find", TRACE, "window > 10%"), COUNTS),
    (("cost", "--json", TRACE), COUNTS),
    (("check", TRACE, "--max", "100%"), COUNTS),
    (("import", SESSION), IMPORT),
    (("replay", "--json", SESSION), IMPORT),
    (("show", "--json", SESSION), IMPORT),
    (("cost", "--json", SESSION), IMPORT),
    (("cost", "--json", EXCHANGES), IMPORT),
]
"""By command line, what of that it may import where counts are cached."""


@pytest.mark.parametrize(("arguments", "may"), MAY, ids=[" ".join(map(str, a[:2]))[:24] for a, _ in MAY])
def test_a_command_imports_of_what_is_slow_only_what_it_uses(
    ran: Run, tmp_path: Path, arguments: tuple[str, ...], may: set[str]
) -> None:
    # A fork fills the cache: only what is measured has to import anew.
    runs.ctxctl(*arguments, cwd=tmp_path, env={"CTXCTL_CACHE_DIR": os.environ["CTXCTL_CACHE_DIR"]})
    done = ran(*arguments)
    assert done.code == 0, done.err
    assert done.out
    assert done.modules & HEAVY <= may


@pytest.mark.parametrize(("arguments", "own"), [(("--help",), set()), (("show", "--help"), {"show"})])
def test_help_imports_the_command_that_it_is_of(ran: Run, arguments: tuple[str, ...], own: set[str]) -> None:
    done = ran(*arguments)
    assert done.code == 0, done.err
    places = {command.place.partition(":")[0] for command in COMMANDS.values()}
    assert {module for module in places if f"ctxctl.cli.{module}" in done.modules} == own


def test_a_plain_replay_loads_what_it_does_not_ask_for_nowhere(ran: Run) -> None:
    done = ran("replay", "--json", TRACE)
    assert done.code == 0, done.err
    rooms = ("analysis", "engine.query", "engine.simulate", "ingest", "policies.fitting", "providers")
    assert not [name for name in done.modules if name.startswith(tuple(f"ctxctl.{room}" for room in rooms))]
    assert "ctxctl.tokens.catalogue.table" not in done.modules


def test_replay_json_with_cached_counts_loads_no_encoding(ran: Run, small_trace: Path) -> None:
    first = ran("replay", "--json", str(small_trace))
    again = ran("replay", "--json", str(small_trace))
    assert "tiktoken" in first.modules
    assert "tiktoken" not in again.modules
    assert again.out == first.out


def test_the_collector_leaves_the_start_of_a_command_alone_but_of_a_recorder(ran: Run) -> None:
    assert ran("models", "gpt-5").patience == 100_000
    assert ran("record", "--help").patience < 10_000


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
