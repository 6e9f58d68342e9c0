"""Every command works where there is no network, and a replay with exact tokens asks for none."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctxctl.cli.commands import COMMANDS, named_words

ROOT = Path(__file__).resolve().parents[2]
Run = Callable[..., Any]


@pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base", "o200k_harmony"])
def test_every_encoding_counts_offline(ran: Run, small_trace: Path, encoding: str) -> None:
    done = ran("replay", "--json", "--encoding", encoding, str(small_trace))
    assert done.code == 0, done.err
    assert done.network == []
    steps = [row for row in map(json.loads, done.out.splitlines()) if row["type"] == "step"]
    assert [step["window"]["used"] for step in steps] == [2]


NATIVE = str(ROOT / "traces" / "coding-agent.jsonl")
CLAUDE = str(ROOT / "fixtures" / "claude_code" / "session.jsonl")
BODIES = str(ROOT / "fixtures" / "claude_bodies")
PLAN = 'version = 1\n[model]\nname = "gpt-5"\n[[part]]\nname = "prompt"\nfiles = ["prompt.md"]\n'
RULES = '[[rule]]\nname = "dear"\nmeasure = "cost-per-turn"\nat-most = 1000\ndays = 0\n'
DATASET = ("--dataset", "data")

OFFLINE: dict[str, list[tuple[str, ...]]] = {
    "ls": [("ls", "home"), ("ls", "--json")],
    "replay": [("replay", NATIVE), ("replay", CLAUDE), ("replay", NATIVE, "--model", "nobody-knows-this")],
    "watch": [("watch", NATIVE, "--plain", "--idle", "0")],
    "record": [("record", "--stdin", "-o", "recorded.jsonl")],
    "diff": [("diff", f"{NATIVE}@2", "@-1"), ("diff", "--sessions", NATIVE, CLAUDE)],
    "show": [("show", f"{NATIVE}@1"), ("show", CLAUDE)],
    "blame": [("blame", NATIVE)],
    "find": [("find", NATIVE, "window > 0")],
    "bisect": [("bisect", NATIVE, "window > 0")],
    "log": [("log", NATIVE, "tool:search")],
    "why": [("why", f"{NATIVE}@-1", "tool:search")],
    "compactions": [("compactions", NATIVE)],
    "cost": [("cost", NATIVE), ("cost", CLAUDE), ("cost", "home")],
    "budget": [("budget", "plan.toml")],
    "lint": [("lint", "small.jsonl"), ("lint", "home")],
    "check": [("check", NATIVE, "--max", "100%")],
    "validate": [("validate", NATIVE)],
    "import": [("import", CLAUDE, "-o", "imported.jsonl")],
    "export": [
        *(
            ("export", NATIVE, "--format", form, "-o", f"out.{form}")
            for form in ("events", "html", "markdown", "otlp", "envelopes")
        ),
        *(
            ("export", NATIVE, "--format", form, "--table", "steps", "-o", f"steps.{form}")
            for form in ("csv", "parquet")
        ),
        ("export", NATIVE, "-o", "run.sqlite"),
    ],
    "sql": [("sql",), ("sql", NATIVE, "SELECT * FROM bills")],
    "formats": [("formats",)],
    "policies": [("policies",)],
    "calibrate": [("calibrate",), ("calibrate", CLAUDE)],
    "learn": [("learn", BODIES), ("learn",)],
    "fleet add": [("fleet", "add", "home", *DATASET, "--jobs", "1"), ("fleet", "add", NATIVE, *DATASET)],
    "fleet": [("fleet", *DATASET)],
    "fleet status": [("fleet", "status", *DATASET)],
    "fleet files": [("fleet", "files", "sessions", *DATASET)],
    "fleet compact": [("fleet", "compact", *DATASET)],
    "fleet vacuum": [("fleet", "vacuum", "--grace", "0s", *DATASET)],
    "fleet ask": [
        ("fleet", "ask"),
        ("fleet", "ask", "tools-fill", *DATASET),
        ("fleet", "ask", "cost", *DATASET),
    ],
    "fleet diff": [("fleet", "diff", "client=Claude Code", "client=Codex", *DATASET)],
    "fleet check": [("fleet", "check", "rules.toml", "--allow-unknown", *DATASET)],
    "fleet report": [("fleet", "report", "-o", "fleet.html", *DATASET)],
    "fleet forget": [("fleet", "forget", "--source", NATIVE, *DATASET)],
    "models": [("models",), ("models", "gpt-5")],
    "cache": [("cache",), ("cache", "prune", "--max", "1M"), ("cache", "clear")],
}
"""By name of a command, in an order in which they can run: command lines that end with 0."""

INSIDE = """
import json, os, socket, sys
from ctxctl.cli.main import run
try: socket.create_connection(("127.0.0.1", 9), 1)
except OSError as error: assert error.errno == 101, error  # not even the loopback interface
failed = []
for line in json.loads(sys.argv[1]):
    print("==", *line, file=sys.stderr, flush=True)
    if code := run(line): failed.append((code, line))
print("failed:", *failed, sep="\\n", file=sys.stderr)
sys.exit(bool(failed))
"""


def test_no_command_is_left_out_where_there_is_no_network() -> None:
    assert OFFLINE.keys() == COMMANDS.keys()
    for name, lines in OFFLINE.items():
        assert lines, name
        assert {" ".join(line[: named_words(line)]) for line in lines} == {name}


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_commands_work_where_there_is_no_interface(
    small_trace: Path, tmp_path: Path, machine: dict[str, str]
) -> None:
    """By the system and not by Python: not even the loopback interface is up."""
    inside = ["unshare", "--net", "--map-root-user"]
    if not is_possible(inside):
        assert not machine.get("CTXCTL_NEEDS_NAMESPACES"), "no network namespace can be made here"
        pytest.skip("may not make a network namespace here")
    for name in ("fixtures/codex/rollout.jsonl", "fixtures/claude_code/session.jsonl"):
        (tmp_path / "home").mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / "home")
    for name, text in {"plan.toml": PLAN, "prompt.md": "Be brief.", "rules.toml": RULES}.items():
        (tmp_path / name).write_text(text)
    lines = json.dumps([line for lines in OFFLINE.values() for line in lines])
    done = subprocess.run(
        [*inside, sys.executable, "-c", INSIDE, lines], cwd=tmp_path, input=small_trace.read_text(),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "error" not in done.stderr, done.stderr


def is_possible(inside: list[str]) -> bool:
    """Whether a command can be run in a network of its own: on Linux, where nothing forbids it."""
    try:
        return subprocess.run([*inside, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    "arguments",
    [("replay",), ("replay", "--json", "--model", "nobody-knows-this-one"), ("show",), ("validate",)],
    ids=" ".join,
)
def test_no_command_asks_for_a_network(ran: Run, small_trace: Path, arguments: tuple[str, ...]) -> None:
    done = ran(*arguments, f"{small_trace}@1" if arguments == ("show",) else str(small_trace))
    assert done.code == 0, done.err
    assert done.network == []
