"""Every file of every kind in the corpus is read as what it is; the table says what came of each kind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
CORPUS = Path(os.environ.get("CTXCTL_CORPUS") or ".")

FORMATS: dict[str, set[str]] = {
    "agentcontext": {"agent-context"},
    "aider": {"aider"},
    # Of the samples, the bodies on the wire and two views of them are plain lists of messages.
    "amplifier": {"amplifier", "api", "chat-messages"},
    "api-captures": {
        "chat-messages", "claude-sdk-log", "claude-trace", "copilot-snapshots", "http-requests",
        "openhands-completions", "pi-recordings", "swe-agent-calls", "vcr",
    },
    "atif": {"atif"},
    "claude-code": {"claude-code"},
    "claude-stream-json": {"claude-stream-json"},
    "cline-roo": {"cline", "roo"},
    "clients": {"aider", "api", "claude-code", "codex", "copilot-cli", "mini-swe-agent", "opencode", "pi"},
    "codex": {"codex"},
    "copilot-chat": {"copilot-chat", "copilot-chatreplay"},
    "copilot-cli": {"copilot-cli"},
    "copilot-sdk-events": {"copilot-cli"},
    "cursor": {"cursor"},
    "gemini-cli": {"gemini-cli"},
    "goose": {"goose", "goose-recordings"},
    "inspect-ai": {"inspect-ai"},
    "langfuse": {"langfuse"},
    "langsmith": {"langsmith"},
    "luminarys": {"luminarys"},
    "mapped-context-events": {"native"},
    "mcp-agent-runs": {"live-mcp-bench"},
    "mcp-sessions": {"mcp-session"},
    "mcp-tools": {"mcp-tools"},
    "mini-swe-agent": {"mini-swe-agent"},
    "opencode": {"opencode"},
    "openhands": {"openhands"},
    "otel-genai": {"openinference", "otel"},
    "other-agents": {"droid", "hail", "iflow", "kimi", "qwen-code"},
    "pi": {"pi"},
    "pi-rpc": {"pi-rpc"},
    "sanqian": {"sanqian"},
    # One of its files is the log of a Codex session.
    "sibyl": {"codex", "sibyl"},
    "swe-agent": {"swe-agent"},
    "tau-bench": {"tau-bench"},
}  # fmt: skip
"""By folder of captures: the formats that its files are read as."""

CLIENTS = ("aider", "claude-code", "codex-websocket", "copilot-cli", "mini-swe-agent", "opencode", "pi")
REFUSED: dict[str, str] = {
    "README.md": "no-events",
    "agentcontext/validation-report.json": "no-events",
    "run-streaming-openai/views.jsonl": "no-events",
    "published-c37652eb/llm-request-sizes.json": "no-events",
    "published-compaction-storm-445ac89c.head.tsv": "no-events",
    "sanqian/blog-diff-simulated.jsonl": "no-events",
    # Notes and results of the tests that the captures come from.
    "3a7c1e90-1f4b-4d2a-9c11-0b2e5d6f7a01/metadata.json": "no-events",
    "chat-history-search-replace-gold.txt": "no-events",
    "fixtures/real-conversations/metadata.json": "no-events",
    "v6-spans/capture-results.json": "no-events",
    # A pointer of Git LFS in place of the file.
    "test_eval_log/long_log.eval": "no-events",
    # What the stand-in for the providers noted of each call.
    **{f"{client}/calls.jsonl": "no-events" for client in CLIENTS},
    # Not read yet: a database whose pages lie in another order.
    "opencode/native/opencode.db": "no-events",
}
"""Files that are no captures, by the end of their path: the slug of the reason."""

NOT_CAPTURES = frozenset({"models"})
"""Folders of data that nobody would open as a capture."""

MEMORY = 600 << 20
"""Bytes: a tenth of it is the interpreter; documents are read whole, and the largest has 4 MB."""


def kinds() -> list[Path]:
    """Return the folders of captures."""
    found = [p for top in ("data", "samples") for p in sorted((CORPUS / top).glob("*")) if p.is_dir()]
    return [path for path in found if path.name not in NOT_CAPTURES]


def table(folder: Path) -> tuple[list[dict[str, Any]], int]:
    """Return what became of each file, and the peak of memory in bytes; in a process of its own."""
    command = [sys.executable, "-m", "tests.corpus.table", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    *rows, last = [json.loads(line) for line in done.stdout.splitlines()]
    return rows, last["peak"]


@pytest.mark.parametrize("folder", kinds(), ids=lambda p: f"{p.parent.name}-{p.name}")
def test_every_capture_is_read_as_what_it_is(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows, peak = table(folder)
    problems: Counter[str] = Counter()
    for row in rows:
        problems.update(row["problems"])
    with capsys.disabled():
        print(
            f"\n{folder.parent.name + '/' + folder.name:30} {len(rows):4} files"
            f" {sum(row['steps'] for row in rows):6} steps {sum(problems.values()):5} problems"
            f" {sum(row['seconds'] for row in rows):7.1f} s {peak / 1e6:5.0f} MB",
            end="",
        )
    for row in rows:
        name = row["path"]
        if row["reason"] is not None:
            expected = {slug for end, slug in REFUSED.items() if name.endswith(end)}
            assert row["slug"] in expected, f"{name}: {row['reason']}"
            assert "\n" not in row["reason"]
            continue
        assert row["format"] in FORMATS[folder.name], f"{name}: read as {row['format']}"
        assert not row["unbalanced"], f"{name}: {row['unbalanced']} ledgers do not balance"
        assert not row["overclaimed"], f"{name}: declared as never recorded: {row['overclaimed']}"
        assert "invalid-event" not in row["problems"], name
    assert peak < MEMORY
