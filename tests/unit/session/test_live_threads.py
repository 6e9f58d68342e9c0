"""Steps are opened by one thread while another reads on."""

from __future__ import annotations

import random
from pathlib import Path
from threading import Thread

import pytest

from ctxctl.errors import UsageError
from ctxctl.session import Inspector
from ctxctl.session.live import LiveNews, LiveSession

ROOT = Path(__file__).parent.parent.parent.parent


@pytest.mark.parametrize("source", ["traces/coding-agent.jsonl", "fixtures/claude_code/session.jsonl"])
def test_steps_are_opened_while_the_trace_grows(tmp_path: Path, source: str) -> None:
    data = (ROOT / source).read_bytes()
    path = tmp_path / "run.jsonl"
    lines = data.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:4]))
    news: list[LiveNews] = []
    faults: list[BaseException] = []
    over = False
    opened = 0

    def look() -> None:
        nonlocal opened
        rng = random.Random(1)
        while not over:
            now = news[-1] if news else None
            if now is None or now.inspector is None or not len(now.rows):
                continue
            row = now.rows[rng.randrange(len(now.rows))]
            try:
                frame = now.inspector.frame(row.ordinal)
                if row.ordinal < now.kept and news[-1].epoch == now.epoch:
                    assert frame.step.window.used == row.used
                assert sum(p.tokens for p in frame.placements) == frame.step.window.recorded
                for placement in frame.placements[:5]:
                    if placement.content is not None:
                        now.inspector.text(placement.content)
                now.inspector.turn(row.ordinal)
                opened += 1
            except UsageError as error:
                if error.slug != "no-such-frame":
                    faults.append(error)
            except BaseException as error:
                faults.append(error)
                return

    with LiveSession(path) as live:
        reader = Thread(target=look)
        reader.start()
        try:
            for n in range(4, len(lines), 7):
                with path.open("ab") as file:
                    file.write(b"".join(lines[n : n + 7]))
                news.append(live.poll(0.5))
        finally:
            over = True
            reader.join()
        last = live.finish()
        assert not faults, faults
        assert opened
        with Inspector.open(path) as inspector:
            whole = inspector.outline().rows
            assert [row.used for row in sorted(last.rows, key=lambda row: row.first_line)] == [
                row.used for row in whole
            ]
