"""The benchmark's inputs are the same every time and replay cleanly; its page copes with what is missing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from ctxctl.model.results import Step
from ctxctl.session import Inspector
from ctxctl.trace.validate import validate_event
from tests.bench import generate, report
from tests.bench.cases import Bench
from tests.bench.measure import run


def replayed(lines: Iterator[bytes], tmp_path: Path) -> list[Step]:
    path = tmp_path / "trace.jsonl"
    path.write_bytes(b"".join(lines))
    with Inspector.open(path) as inspector:
        found = [result for result in inspector.replay() if isinstance(result, Step)]
        assert inspector.problems == []
    return found


def test_repeating_log_is_the_same_every_time_and_valid() -> None:
    first, second = (b"".join(generate.repeating(400_000)) for _ in range(2))
    assert first == second
    assert not [f for line in first.splitlines() for f in validate_event(orjson.loads(line))]


def test_repeating_log_repeats_itself(tmp_path: Path) -> None:
    steps = replayed(generate.repeating(25_000_000), tmp_path)
    assert any("compacted" in step.flags for step in steps)
    assert all(step.counts.added <= 3 for step in steps if step.turn > 1)
    assert sum(step.ledger.new for step in steps) * 20 < sum(step.window.used for step in steps)


def test_deep_session_keeps_its_window(tmp_path: Path) -> None:
    steps = replayed(generate.deep(30, 40), tmp_path)
    assert len(steps) == 30
    assert {sum((s.counts.added, s.counts.updated, s.counts.skipped)) for s in steps} == {40}


def test_files_are_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTXCTL_BENCH_DIR", str(tmp_path))
    path = generate.ensure("x", iter([b"1\n", b"2\n"]))
    assert generate.ensure("x", iter([])) == path
    assert path.read_bytes() == b"1\n2\n"


def test_measures_a_child(tmp_path: Path) -> None:
    good = run(["sh", "-c", "echo 7"], {"PATH": "/usr/bin:/bin"}, tmp_path, keep=True)
    bad = run(["sh", "-c", "echo no >&2; exit 3"], {"PATH": "/usr/bin:/bin"}, tmp_path)
    assert (good.good, good.output, good.rss > 0) == (True, "7\n", True)
    assert (bad.good, bad.status, bad.complaint) == (False, 3, "no")


def test_page_without_measurements_says_so() -> None:
    bench = Bench.__new__(Bench)
    bench.runs, bench.cases, bench.files = 1, {}, {"1gb": Path(__file__)}
    page = report.page(bench, 0.5)
    assert "not measured" in page
    assert "0 of" in page
