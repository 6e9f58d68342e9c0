"""Every capture with wire bodies or bills: a reader that shares no line with ctxctl agrees, or why not."""

from __future__ import annotations

import io
import json
import sys
import tomllib
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from ctxctl.cli.main import run
from tools.independent.compare import Disagreement
from tools.independent.held import held
from tools.independent.raw import Object

KNOWN = Path(__file__).parents[2] / "tools" / "independent" / "disagreements.toml"
VERDICTS = {"ctxctl wrong", "checker cannot know", "definition"}

LEAST = {
    "aider": 2, "amplifier": 200, "api-captures": 480, "atif": 15, "bills": 37, "claude-code": 4500,
    "claude-stream-json": 600, "clients": 75, "cline-roo": 120, "codex": 1500, "copilot-chat": 4,
    "copilot-cli": 6, "cursor": 6, "denied": 13, "gemini-cli": 100, "goose": 8, "inspect-ai": 380,
    "langfuse": 40, "langsmith": 6, "mini-swe-agent": 800, "opencode": 30, "openhands": 110,
    "other-agents": 25, "otel-genai": 14, "pi": 1700, "pi-rpc": 4, "swe-agent": 3,
}  # fmt: skip
"""Requests and stated totals that the reader finds in each kind of capture, so that it cannot agree by
finding none."""
ASKED = {"api-captures", "clients", "goose"}
"""Kinds of which `blame` and `why` are asked too: the bodies tell the answers."""


def ask(arguments: list[str]) -> list[Object]:
    """What ctxctl prints, an object a line; as the command does, without starting a process each time."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with redirect_stdout(out), redirect_stderr(io.StringIO()) as told:
        code = run(arguments)
        sys.stdout.flush()
    assert isinstance(out.buffer, io.BytesIO)
    if arguments[0] in {"blame", "why"} and code:
        raise AssertionError(f"{arguments}: exit {code}, {told.getvalue()}")
    return [json.loads(line) for line in out.buffer.getvalue().splitlines()]


def captures(folder: Path) -> list[Path]:
    """What is opened of a kind: files, and folders that are one capture."""
    folders = [path for path in folder.rglob("wire") if path.is_dir()]
    folders += [path.parent for path in folder.rglob("ui_messages.json")]
    files = [
        path
        for path in folder.rglob("*")
        if path.is_file() and path.name != "README.md" and not any(one in path.parents for one in folders)
    ]
    return sorted(folders + files)


def entries() -> list[Object]:
    return list(tomllib.loads(KNOWN.read_text())["disagreement"])


def explains(entry: Object, path: Path, wrong: Disagreement) -> bool:
    return (
        path.as_posix().endswith(entry["capture"])
        and wrong.what in entry["what"]
        and wrong.where.startswith(entry.get("where", ""))
    )


def test_the_list_has_verdicts_and_reasons() -> None:
    for entry in entries():
        assert entry["verdict"] in VERDICTS
        assert entry["why"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(LEAST))
def test_the_raw_file_says_the_same(corpus: Path, kind: str) -> None:
    folder = next(
        (top / kind for top in (corpus / "data", corpus / "cases", corpus) if (top / kind).is_dir()), None
    )
    if folder is None:
        pytest.skip(f"no {kind}")
    known = [entry for entry in entries() if any(str(p).endswith(entry["capture"]) for p in captures(folder))]
    used: set[str] = set()
    requests, unknown = 0, []
    for path in captures(folder):
        found = held(path, ask, asking=kind in ASKED)
        requests += found.requests
        for wrong in found.wrong:
            told = [entry for entry in known if explains(entry, path, wrong)]
            used.update(str(entry) for entry in told)
            unknown += [] if told else [f"{path.relative_to(folder)}: {wrong}"]
    assert not unknown, "\n".join(unknown[:40])
    assert requests >= LEAST[kind]
    stale = [entry for entry in known if str(entry) not in used]
    assert not stale, f"no longer so, take it out of {KNOWN.name}: {stale}"
