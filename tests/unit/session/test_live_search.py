"""A trace is searched while it grows."""

from __future__ import annotations

from pathlib import Path
from threading import Thread

import msgspec
import pytest

from ctxctl.analysis.search import search_trace
from ctxctl.engine.query import parse_query
from ctxctl.model.hits import Hit
from ctxctl.session import Inspector
from ctxctl.session.live import LiveNews, LiveSession

ROOT = Path(__file__).parent.parent.parent.parent


def hits(inspector: Inspector, text: str) -> list[Hit]:
    return [hit for found in search_trace(inspector, parse_query(text), lambda: None) for hit in found.hits]


def by_step(found: list[Hit]) -> list[str]:
    """Of several threads a watch has the steps as they are over, a replay as they begin."""
    return sorted(repr(msgspec.structs.replace(hit, ordinal=0)) for hit in found)


@pytest.mark.parametrize("source", ["traces/coding-agent.jsonl", "fixtures/claude_code/session.jsonl"])
def test_hits_are_those_of_what_was_read(tmp_path: Path, source: str) -> None:
    lines = (ROOT / source).read_bytes().splitlines(keepends=True)
    path = tmp_path / "run.jsonl"
    path.write_bytes(b"".join(lines[:4]))
    news: list[LiveNews] = []
    faults: list[BaseException] = []
    searched = 0
    over = False

    def look() -> None:
        nonlocal searched
        while not over:
            now = news[-1] if news else None
            if now is None or now.inspector is None or not len(now.rows):
                continue
            try:
                found = hits(now.inspector, "e")
                assert [hit.ordinal for hit in found] == sorted(hit.ordinal for hit in found)
                searched += 1
            except BaseException as error:
                faults.append(error)
                return

    with LiveSession(path) as live:
        reader = Thread(target=look)
        reader.start()
        try:
            for n in range(4, len(lines), 9):
                with path.open("ab") as file:
                    file.write(b"".join(lines[n : n + 9]))
                news.append(live.poll(0.5))
        finally:
            over = True
            reader.join()
        last = live.finish()
        assert not faults, faults
        assert searched
        assert last.inspector is not None
        with Inspector.open(path) as inspector:
            for text in ("e or status:removed", "window>0"):
                assert by_step(hits(last.inspector, text)) == by_step(hits(inspector, text))
