"""The benchmark's inputs are the same every time and replay cleanly; programs are measured and ended."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from ctxctl.model.results import Step
from ctxctl.session import Inspector
from ctxctl.trace.validate import validate_event
from tools.bench import generate, probes
from tools.bench.measure import run


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


def test_a_child_that_does_not_end_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    script = f"sh -c 'echo $$ > {tmp_path}/inner; cat {fifo}' & cat {fifo}"
    late = run(["sh", "-c", script], {"PATH": "/usr/bin:/bin"}, tmp_path, limit=1.0)
    assert (late.good, late.complaint) == (False, "it took longer than 1 s")
    inner = int((tmp_path / "inner").read_text())
    assert ended(inner)


def ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


HOLDS = "held = bytearray(60_000_000); held[::4096] = b'x' * len(held[::4096])"


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="Linux tells memory by process")
def test_memory_of_a_program_and_of_those_it_started_together(tmp_path: Path) -> None:
    inner = [sys.executable, "-c", f"{HOLDS}; print(flush=True); input()"]
    outer = (
        f"import subprocess, time; {HOLDS}; p = subprocess.Popen({inner!r}, stdin=-1, stdout=-1);"
        "p.stdout.readline(); time.sleep(0.5); p.communicate(b'\\n')"
    )
    alone, together = (
        run([sys.executable, "-c", outer], {}, tmp_path, whole_tree=whole).rss for whole in (False, True)
    )
    assert alone < 110_000_000 < together


def test_texts_of_sessions_are_extracted_once(tmp_path: Path) -> None:
    folder = tmp_path / "sessions"
    folder.mkdir()
    lines = list(generate.transcript(40_000, 3))
    for name in ("a.jsonl", "b.jsonl"):
        (folder / name).write_bytes(b"".join(lines))
    probes.extract_sessions(str(folder), str(tmp_path / "unique"))
    found = [orjson.loads(line) for line in (tmp_path / "unique").read_bytes().splitlines()]
    assert found[0] == orjson.loads(lines[0])["message"]["content"]
    assert orjson.dumps(orjson.loads(lines[1])["message"]["content"][0]["input"]).decode() in found
    assert orjson.loads(lines[2])["message"]["content"][0]["content"] in found
    assert len(found) == len(set(found)) == len(lines)
