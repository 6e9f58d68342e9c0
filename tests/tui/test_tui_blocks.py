"""The assembled text block by block: exact, wherever it is broken into rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.session import Inspector
from ctxctl.text import cells
from ctxctl.tui.answers import assembled
from ctxctl.tui.screens.assembled import lines
from ctxctl.tui.screens.assembled.values import (
    BREAK,
    HEADING,
    TEXT,
    Assembled,
    Block,
    BlockDocument,
    BlockWrap,
)
from ctxctl.tui.spans import Spans

ROOT = Path(__file__).parents[2]
TRACES = sorted(
    [*ROOT.glob("traces/*.jsonl")]
    + [ROOT / "fixtures" / name for name in ("codex/rollout.jsonl", "claude_code/session.jsonl")]
    + sorted((ROOT / "fixtures" / "sanqian").glob("*.jsonl"))
    + sorted((ROOT / "fixtures" / "api").glob("*.json*"))
)


def nothing() -> None:
    """Nobody has given up."""


def document(*texts: str, breaks: int | None = None) -> BlockDocument:
    blocks = []
    at = 0
    for n, text in enumerate(texts):
        why = "the cache prefix ends here" if n == breaks else ""
        blocks.append(
            Block(
                at, at + len(text), f"item-{n}", "user_message", f"title {n}", "user", n, True, False, (), why
            )
        )
        at += len(text)
    return BlockDocument("".join(texts), blocks, Spans())


def wrapped(of: BlockDocument, width: int, work: int = 10**9) -> BlockWrap:
    wrap = BlockWrap(of, width)
    for _ in range(1_000_000):
        if wrap.done:
            return wrap
        wrap.extend(work)
    raise AssertionError("it did not come to an end")


def test_each_block_has_a_heading_and_begins_on_a_row() -> None:
    wrap = wrapped(document("one\ntwo\n", "three", " four\n", "", "five", breaks=2), 20)
    kinds = [wrap.kind_of(n) for n in range(wrap.count)]
    assert kinds == [HEADING, TEXT, TEXT, HEADING, TEXT, BREAK, HEADING, TEXT, HEADING, HEADING, TEXT]
    assert [wrap.row(n).text for n in range(wrap.count)] == [
        "", "one", "two", "", "three", "", "", " four", "", "", "five",
    ]  # fmt: skip
    assert [wrap.block_of(n) for n in range(wrap.count)] == [0, 0, 0, 1, 1, 2, 2, 2, 3, 4, 4]
    assert [wrap.first_of(n) for n in range(6)] == [0, 3, 5, 8, 9, None]


def test_a_text_without_blocks() -> None:
    wrap = wrapped(document(), 10)
    assert wrap.count == 0


TEXTS = st.lists(st.text("ab \n\t\u200d\x1b\u202eé漢👩", max_size=40), max_size=8)


@given(TEXTS, st.integers(1, 30), st.integers(1, 60))
def test_rows_put_together_are_the_text(texts: list[str], width: int, work: int) -> None:
    of = document(*texts, breaks=1)
    wrap = wrapped(of, width, work)
    assert "".join(wrap.stretch(n) for n in range(wrap.count)) == of.text
    whole = wrapped(of, width)
    assert [wrap.stretch(n) for n in range(wrap.count)] == [whole.stretch(n) for n in range(whole.count)]
    for n in range(wrap.count):
        block = of.blocks[wrap.block_of(n)]
        assert block.start <= wrap.start(n) <= block.end
        assert wrap.stretch(n).startswith(wrap.row(n).text)
    for n, block in enumerate(of.blocks):
        first = wrap.first_of(n)
        assert first is not None
        assert wrap.start(first) == block.start


@pytest.mark.parametrize("trace", TRACES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_text_is_what_the_inspector_assembles(trace: Path) -> None:
    with Inspector.open(trace) as inspector:
        rows = inspector.outline().rows
        for ordinal in range(0, len(rows), max(len(rows) // 8, 1)):
            shown = assembled.assembled(inspector, ordinal, nothing)
            assert shown.document is not None
            text = inspector.assembled(ordinal)
            assert shown.document.text == text
            wrap = wrapped(shown.document, 61)
            assert "".join(wrap.stretch(n) for n in range(wrap.count)) == text
            # The prefix that is marked is the one that the engine counted.
            marked = sum(block.tokens for block in shown.document.blocks if block.cached)
            assert shown.prefix is None or marked == shown.prefix
            assert sum(block.tokens for block in shown.document.blocks) == shown.recorded


def test_a_broken_prefix_says_who_and_what_it_cost() -> None:
    with Inspector.open(ROOT / "traces" / "coding-agent.jsonl") as inspector:
        rows = inspector.outline().rows
        found = [assembled.assembled(inspector, n, nothing) for n in range(len(rows))]
    broken = [shown for shown in found if shown.break_block is not None and shown.again]
    assert broken
    for shown in broken:
        assert shown.document is not None
        assert shown.break_block is not None
        block = shown.document.blocks[shown.break_block]
        assert not block.cached
        assert f"{shown.again:,} unchanged tokens behind it" in block.breaks
        assert shown.again <= shown.recorded - (shown.prefix or 0)


def test_what_is_special_about_a_block_is_said() -> None:
    with Inspector.open(ROOT / "traces" / "notes-assistant.jsonl") as inspector:
        rows = inspector.outline().rows
        notes = {
            note
            for ordinal in range(len(rows))
            for block in (assembled.assembled(inspector, ordinal, nothing).document or document()).blocks
            for note in block.notes
        }
    assert "stale copy" in notes


def head(shown: Assembled, width: int = 100) -> str:
    return "\n".join("".join(text for text, _ in parts) for parts in lines.head(shown, width))


def test_the_head_tells_what_is_not_known() -> None:
    shown = Assembled(
        3, document("a", "b"), "run.jsonl", "2.1", layer="view", basis="selection", recorded=7, sent=7,
        first=True, joint_known=False,
        remarks=("not known to have been sent: no injection is recorded",),
    )  # fmt: skip
    text = head(shown)
    assert "run.jsonl@2.1" in text
    assert "the first request of its thread: no cache prefix is possible" in text
    assert "! not known to have been sent" in text
    assert "the text between blocks is not recorded: shown as line breaks" in head(shown, 200)
    assert "it cannot be read" in head(Assembled(3, None, error="it cannot be read"))


@pytest.mark.parametrize("width", [1, 3, 8, 20, 40, 80, 190])
def test_lines_fill_their_width(width: int) -> None:
    hostile = "a\x1b[31m\nb\u202e 漢字 [/] " * 9
    block = Block(0, 1, hostile, hostile, hostile, hostile, 12_345, True, True, (hostile,), hostile)
    for made in (
        lines.heading(block, width, current=True),
        lines.break_line(block, width),
        lines.outline_line(block, width, prefix=True),
    ):
        shown = "".join(text for text, _ in made)
        assert "\x1b" not in shown
        assert cells(shown) <= max(width, 2)
    edge = "".join(text for text, _ in lines.gutter(block, current=True, heading=True, prefix=True))
    assert cells(edge) == 4
