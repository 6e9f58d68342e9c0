"""The second question about a trace that has not changed replays nothing, with few exceptions."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from ctxctl.analysis.blame import blame_frame
from ctxctl.analysis.search import search_trace
from ctxctl.cli.commands import COMMANDS
from ctxctl.cli.main import run
from ctxctl.engine.query.parsing import parse_query
from ctxctl.engine.replay.run import Engine
from ctxctl.report.database import TABLES
from ctxctl.session import Inspector, import_cache, kept_replays
from ctxctl.trace import inputs

CAPTURE = Path(__file__).parents[3] / "fixtures" / "claude_code" / "compaction.jsonl"

FROM_THE_CACHE = (
    "replay --json {}", "replay --plain {}", "replay --steps {}",
    "replay --plain --turn 2 {}", "replay --plain --policy fifo {}",
    "replay --plain --window 8k {}", "replay --plain --where tokens>100 {}", "replay --strict --json {}",
    "show {}", "show --json --text {}@2", "show --strict {}", "diff {}@-2 @-1", "diff --json {}@-1",
    "diff --sessions {} {}", "blame {}", "blame --json --stat {}@2", "blame --strict {}", "log {} toolu_01",
    "find {} the", "find --json {} tokens>100", "find --count {} window>20%",
    "find {} text:the", "find {} cost>0.001", "find {} segment:history", "find {} status:omitted",
    "find --policy fifo {} the", "find . the", "bisect {} window>20%", "bisect {} {}",
    "compactions {}",
    "cost {}", "cost --json {}", "cost --steps {}", "cost --by item {}", "cost --by session {}", "cost .",
    "budget --from {} --init", "lint {}", "lint --json {}",
    "lint --select all {}", "lint --set CTX009.share=0.4 {}", "lint .", "validate {}", "calibrate {}",
    "check {} --max 80% --max-growth 9 --max-tool-result 9 --max-cost 1 --stable-prefix --no-misses",
    "check --json {} --no-compaction --never the --always tokens>1", "check . --max 80%",
    "calibrate .", "import {}", "export {}", "export --format html {}", "export --format markdown {}",
    "export --format csv {}", "export --format otlp {}", "export --format envelopes {}",
    *(f"sql {{}} SELECT*FROM`{name}`" for name in TABLES),
)  # fmt: skip
"""`{}` is the trace, `.` its directory."""
REPLAYED = {
    "replay --all --plain {}": "what every step skipped is not kept",
    "find --all {} the": "what every step skipped is not kept",
    "find {} status:skipped": "what every step skipped is not kept",
    "check {} --never status:skipped": "what every step skipped is not kept",
    "find --first {} tokens>1": "it reads no further than it has to, and only whole replays are kept",
    "budget --from {}@2 --init": "it reads no further than it has to, and only whole replays are kept",
    "replay --plain --drop kind:tool_result {}": "what is supposed is replayed",
    "replay --plain --compare --policy fifo {}": "two replays side by side",
}
WITHOUT_A_TRACE = frozenset(("ls", "record", "formats", "policies", "learn", "models", "cache"))
OF_A_DATASET = frozenset(name for name in COMMANDS if name.startswith("fleet"))
ELSEWHERE = frozenset(("watch", "why"))
"""A session that grows; tests/unit/analysis asks `why`."""


@pytest.fixture(autouse=True)
def _everything_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """However small, and however young."""
    monkeypatch.setattr(import_cache, "LEAST", 0)
    monkeypatch.setattr(kept_replays, "LEAST", 0)
    monkeypatch.setattr(inputs, "YOUNG", -1e9)


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    (tmp_path / "captures").mkdir()
    return Path(shutil.copy(CAPTURE, tmp_path / "captures" / "one.jsonl"))


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> list[Engine]:
    """The engines that were made."""
    made: list[Engine] = []
    begin = Engine.__init__

    def begun(self: Engine, *args: Any, **kwargs: Any) -> None:
        made.append(self)
        begin(self, *args, **kwargs)

    monkeypatch.setattr(Engine, "__init__", begun)
    return made


def ask(line: str, capture: Path, out: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    words = [word.replace("{}", str(capture)) for word in line.split()]
    words = [str(capture.parent) if word == "." else word for word in words]
    code = run(words)
    told = out.readouterr()
    return code, told.out, told.err


def test_every_command_is_asked() -> None:
    asked = {line.split()[0] for line in (*FROM_THE_CACHE, *REPLAYED)}
    assert asked | WITHOUT_A_TRACE | ELSEWHERE | OF_A_DATASET == set(COMMANDS)
    assert not asked & (WITHOUT_A_TRACE | ELSEWHERE)


@pytest.mark.parametrize("line", FROM_THE_CACHE)
def test_nothing_is_replayed_twice(
    line: str,
    capture: Path,
    engines: list[Engine],
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CTXCTL_CACHE", "off")
    plain = ask(line, capture, capfd)
    assert plain[0] in (0, 1), plain[2]
    monkeypatch.delenv("CTXCTL_CACHE")
    assert ask(line, capture, capfd) == plain
    engines.clear()
    assert ask(line, capture, capfd) == plain
    assert engines == []


@pytest.mark.parametrize("first", ["replay --json {}", "show {}@-1"])
@pytest.mark.parametrize(
    "line", ["show {}@2", "diff {}@-2 @-1", "log {} toolu_01", "why {}@-1 toolu_01 --no-what-if"]
)
def test_whatever_was_asked_first(
    first: str, line: str, capture: Path, engines: list[Engine], capfd: pytest.CaptureFixture[str]
) -> None:
    """Another question about the trace replays nothing either."""
    assert ask(first, capture, capfd)[0] == 0
    engines.clear()
    assert ask(line, capture, capfd)[0] == 0
    assert engines == []


@pytest.mark.parametrize("line", REPLAYED)
def test_what_is_known_to_be_replayed_is(
    line: str, capture: Path, engines: list[Engine], capfd: pytest.CaptureFixture[str]
) -> None:
    """So that the list of exceptions is true."""
    first = ask(line, capture, capfd)
    engines.clear()
    assert ask(line, capture, capfd) == first
    assert engines


def test_the_ui_opens_without_a_replay(capture: Path, engines: list[Engine]) -> None:
    with Inspector.open(capture) as inspector:
        rows = inspector.outline().rows
        blamed = blame_frame(inspector, len(rows) - 1)
        found = list(search_trace(inspector, parse_query("the"), lambda: None))[-1]
    engines.clear()
    with Inspector.open(capture) as inspector:
        shares: list[float] = []
        outline = inspector.outline(shares.append)
        assert outline.rows == rows
        assert outline.summary == inspector.summary
        assert shares
        assert inspector.at(1).step.first_line == rows[1].first_line
        assert blame_frame(inspector, len(rows) - 1).totals == blamed.totals
        again = list(search_trace(inspector, parse_query("the"), lambda: None))[-1]
        assert (again.total, again.steps) == (found.total, found.steps)
    assert engines == []
