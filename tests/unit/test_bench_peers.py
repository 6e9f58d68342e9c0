"""Other tools are asked about the same captures, and one that has read nothing is not called fast."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.bench import generate
from tools.bench.cases import Bench
from tools.bench.measure import Sample
from tools.bench.peers import report
from tools.bench.peers.homes import ClaudeHome, claude_home
from tools.bench.peers.running import add_peer, case_name, checked, filled
from tools.bench.peers.specs import COSTS, PEERS, Peer

TOOL = """#!/bin/sh
test -d "$HOME/.claude/projects" || exit 3
echo "$HTTPS_PROXY" > "$HOME/proxy"
test -n "$WRONG" && echo 1 && exit 0
cat "$CLAUDE_CONFIG_DIR"/projects/*/*.jsonl | grep -o '"output_tokens":[0-9]*' | cut -d: -f2 \\
    | awk '{ sum += $1 } END { printf "%d tokens\\n", sum }'
"""


@pytest.fixture
def captures(tmp_path: Path) -> ClaudeHome:
    folder = tmp_path / "sessions"
    folder.mkdir()
    for number in range(2):
        (folder / f"{number}.jsonl").write_bytes(b"".join(generate.transcript(20_000, number)))
    return claude_home(tmp_path / "captures", folder)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    scratch, tool = tmp_path / "scratch", tmp_path / "peers" / "tool" / "bin" / "tool"
    scratch.mkdir()
    tool.parent.mkdir(parents=True)
    tool.write_text(TOOL)
    tool.chmod(0o700)
    return Bench(1, gigabyte=False, scratch=scratch, peers=tmp_path / "peers")


def test_sessions_lie_as_their_client_leaves_them(captures: ClaudeHome) -> None:
    files = sorted(captures.projects.glob("*/*.jsonl"))
    assert len(files) == 2
    assert captures.first in files
    assert f'"sessionId":"{captures.first.stem}"' in captures.first.read_text()
    assert captures.output_tokens > 200


@pytest.mark.parametrize("wrong", ["", "1"])
def test_a_tool_is_asked_in_a_home_of_its_own(bench: Bench, captures: ClaudeHome, wrong: str) -> None:
    peer = Peer("tool", {COSTS: ("costs",)}, pip=("tool",), env={"WRONG": wrong})
    add_peer(bench, peer, COSTS, captures, "few")
    list(bench.prepare())
    assert len([*bench.rounds(60.0)]) == 2
    for state in ("first", "again"):
        case = bench.cases[case_name("tool", COSTS, "few", state)]
        assert case.ready is not bool(wrong)
        assert not wrong or "lacks the" in str(case.failed)
    assert (bench.scratch / "home-tool-few" / "proxy").read_text() == "http://127.0.0.1:9\n"


def test_an_answer_must_name_the_sum(tmp_path: Path, captures: ClaudeHome) -> None:
    good, said = Sample(1.0, 1.0, 1, 0, "", ""), tmp_path / "said"
    said.write_text(f"Output {captures.output_tokens:,}")
    assert checked(good, said, captures) == good
    said.write_text(f"Output {captures.output_tokens - 1:,}")
    assert not checked(good, said, captures).good


def test_arguments_name_the_captures(captures: ClaudeHome) -> None:
    words = filled(("context", "{id}", "{session}@-1", "-o", "{out}"), captures, Path("page.html"))
    assert words == ["context", captures.first.stem, f"{captures.first}@-1", "-o", "page.html"]


def test_the_page_says_which_tools_are_not_here(bench: Bench, captures: ClaudeHome) -> None:
    bench.add_input("240 sessions", captures.path)
    samples = {"ctxctl": 2.0, "ccusage": 3.0}
    for tool, cpu in samples.items():
        bench.add_case(
            case_name(tool, COSTS, "240 sessions", "again"),
            lambda cpu=cpu: Sample(cpu, cpu, 9_000_000, 0, "", ""),
        )  # type: ignore[misc]
    list(bench.rounds(60.0))
    missing = {peer.name: "not installed" for peer in PEERS if peer.name != "ccusage"}
    page = report.page(bench, {"ctxctl": "1", "ccusage": "20"}, missing, 0.1)
    assert "| ccusage | 240 sessions | again | 3.00 | 1.50 × | 3.00 | 9 MB | 1 |" in page
    assert "| codeburn | not here: not installed |" in page
    assert "| codeburn | | | not here | | | | |" in page
