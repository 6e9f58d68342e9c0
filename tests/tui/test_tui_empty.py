"""What the screens say where a capture has nothing to show."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from fake import FakeInspector, Request, Thing
from helpers import LARGE, made, running

from ctxctl.analysis.blame import blame_frame
from ctxctl.session import Inspector
from ctxctl.tui.answers.pointers import blame_lines
from ctxctl.tui.app import CtxApp
from tests.oracle.build import assembly, at, item, lines

EMBEDDING = {
    "name": "embed",
    "attributes": {"gen_ai.operation.name": "embeddings", "gen_ai.provider.name": "x"},
}


async def test_a_file_without_a_request_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "spans.json"
    path.write_text(json.dumps([EMBEDDING]))
    async with running(CtxApp(lambda: Inspector.open(path, format="otel"), path.name), LARGE) as session:
        assert "no request to a model was found in this file" in session.text
        assert ":about says" in session.text
        assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT" in "".join(
            note.text for note in session.app.turns.state.table.notes
        )
        await session.press("tab", "enter")
        assert "such captures come from" in session.text, "all of it can be read"


async def test_without_a_turn_no_key_is_offered_that_does_nothing(tmp_path: Path) -> None:
    path = tmp_path / "spans.json"
    path.write_text(json.dumps([EMBEDDING]))
    async with running(CtxApp(lambda: Inspector.open(path, format="otel"), path.name), LARGE) as session:
        assert session.lines[-1].split()[:8] == ["Tab", "pane", ":", "command", "?", "help", "q", "quit"]
        await session.press("tab")
        assert "open" in session.lines[-1], "a note can be opened"
        assert "turn" not in session.lines[-1]
        await session.press("slash", "x", "enter")
        assert "nothing in the trace fits" in session.text
        assert "move" not in session.lines[-1]


async def test_a_trace_with_turns_says_nothing_of_that() -> None:
    requests = [Request(1, (Thing("a", "words " * 9),))]
    async with running(made(FakeInspector(requests)), LARGE) as session:
        assert "was found in this file" not in session.text
        assert "holds no text" not in session.text


async def test_items_without_any_text_are_told_and_cost_nothing_that_is_known() -> None:
    requests = [Request(n + 1, (Thing("a", None), Thing("b", None))) for n in range(2)]
    async with running(made(FakeInspector(requests)), LARGE) as session:
        assert "the capture holds no text of 2 items" in session.text
        assert "$" not in session.text, "what nobody billed and nobody recorded has no price"


def opened(path: Path, *texts: str | None) -> Callable[[], Inspector]:
    """A trace of a request for each pair of texts, which stay; None: the trace has no such text."""
    events = []
    for n in range(len(texts) // 2):
        made = [item(f"i{2 * n + k}", text, kind="tool_result") for k, text in enumerate(texts[2 * n :][:2])]
        blocks = [f"i{k}" for k in range(2 * n + 2)]
        events += at(f"t{n}", "s", *made, assembly(f"a{n}", blocks))
    path.write_bytes(lines(events))
    return lambda: Inspector.open(path, calibration="none")


async def test_sizes_that_nobody_counted_are_no_zeros_on_any_screen(tmp_path: Path) -> None:
    app = CtxApp(opened(tmp_path / "t.jsonl", *[None] * 4), "t.jsonl")
    async with running(app, LARGE) as session:
        heading = next(line for line in session.lines if " turn " in line and " prompt " in line)
        assert not {"sent", "record"} & {*heading.partition("┃│")[0].split()}, "their room goes to words"
        await session.press("v")
        overview = session.text
        assert "what was sent is not known" in overview
        assert "0 new" not in overview
        assert "0 recorded" not in overview
        await session.press("escape", "W", *"20k", "enter")
        whatif = session.text
        assert whatif.count("what was sent is not known, so ctxctl cannot tell what fits") == 2
        assert "fits in all" not in whatif
        assert "0.0000" not in whatif
        assert re.search(r"^▌?1 +- +- +- ", whatif, re.MULTILINE)


def test_groups_of_blocks_without_a_count_are_of_unknown_size(tmp_path: Path) -> None:
    with opened(tmp_path / "t.jsonl", None, None, "hello world", None)() as inspector:
        none, mixed = ([line.text for line in blame_lines(blame_frame(inspector, n))] for n in range(2))
    assert none[none.index("by kind") + 1].split() == ["-", "tool_result,", "2", "blocks"]
    assert none[-1] == "2 blocks, size not known"
    assert mixed[mixed.index("by kind") + 1].split() == ["≥2", "tool_result,", "4", "blocks"]
    assert mixed[-1] == "4 blocks, 2 tokens recorded, 3 uncounted"
