"""Blame as a person reads it: rows, gutter, what is shown, sums."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxctl.analysis.blame import blame_frame, shown_blocks
from ctxctl.model.blame import BEFORE, OLDER, Blame, Block, age_class
from ctxctl.report.blame import block_json, head_lines, sum_lines, text_lines, to_json
from ctxctl.report.paint import plain
from ctxctl.session import Inspector
from ctxctl.session.live import LiveSession
from ctxctl.text import cells, visible
from tests.unit.engine.making import Json, add, assembly, event, inject, inspect

LONG = " ".join(f"word{n}" for n in range(40))
NEARLY = LONG.replace("word7 ", "other ")


def made(*events: Json, ordinal: int = -1) -> tuple[Inspector, Blame]:
    inspector = inspect(list(events))
    count = len(inspector.outline().rows)
    return inspector, blame_frame(inspector, ordinal % count)


def rejoined(found: Blame, width: int, *, wrapped: bool = False) -> str:
    """The text again, out of its rows."""
    text = ""
    gutter = None
    for line in list(text_lines(found, found.blocks, width, plain, wrapped=wrapped))[1:]:
        gutter = line.index(" | ") if gutter is None and " | " in line else gutter
        assert gutter is not None
        mark, part = line[gutter + 1 : gutter + 2], line[gutter + 3 :]
        text += ("\n" if mark == "|" and text else "") + part
    return text


def three(joint: str = "\n") -> tuple[Inspector, Blame]:
    return made(
        add("a", "one\ntwo\n\nfour", turn="1"),
        add("b", LONG, turn="1"),
        add("c", "naïve 漢字 " * 20 + "\n" + "x" * 200, turn="1"),
        assembly("A1", "a", "b", "c", turn="1", ours=None),
        inject("A1", turn="1"),
    )


@pytest.mark.parametrize("width", [60, 80, 130, 200])
@pytest.mark.parametrize("wrapped", [False, True])
def test_the_rows_are_the_text(width: int, wrapped: bool) -> None:
    inspector, found = three()
    with inspector:
        assert rejoined(found, width, wrapped=wrapped) == visible(found.text, newline=True)
        if wrapped:
            rows = text_lines(found, found.blocks, width, plain, wrapped=True)
            assert max(map(cells, rows)) <= max(width, 60)


def test_a_block_that_begins_within_a_line_says_so() -> None:
    block = {"block_id": "x", "item_refs": ["a"]}
    data = assembly("A1", block, {"block_id": "y", "item_refs": ["b"]}, turn="1")
    data["data"]["separator_policy"] = "none"
    inspector, found = made(
        add("a", "one", turn="1"), add("b", "two", turn="1"), data, inject("A1", turn="1")
    )
    with inspector:
        assert found.text == "onetwo"
        rows = list(text_lines(found, found.blocks, 80, plain))[1:]
        assert [row.split(" ")[-2:] for row in rows if row.endswith(("one", "two"))] == [
            ["|", "one"], ["+", "two"],
        ]  # fmt: skip


def test_stale_copies_duplicates_and_items_can_be_asked_for() -> None:
    events = [
        add("a", LONG, turn="1"), inject(point="user_message_appendix", turn="1"),
        add("b", NEARLY, turn="2"), inject(point="user_message_appendix", turn="2"),
        {**add("a", "now short", turn="3"), "event_type": "context.item.updated"},
        add("c", LONG, turn="3"), inject(point="user_message_appendix", turn="3"),
    ]  # fmt: skip
    inspector, found = made(*events)
    with inspector:
        names = [b.placement.item for b in found.blocks]
        assert names == ["a", "b", "a", "c"]
        assert [b.placement.item for b in shown_blocks(found, stale=True)] == ["a"]
        twins = [
            (b.position, b.twin.position, b.twin.share) for b in shown_blocks(found, duplicate=True) if b.twin
        ]
        assert [twin[:2] for twin in twins] == [(1, 0), (3, 0)]
        assert twins[1][2] == 100
        assert twins[0][2] < 100
        assert [b.position for b in shown_blocks(found, stale=True, duplicate=True)] == [0, 1, 3]
        assert [b.position for b in shown_blocks(found, item="a")] == [0, 2]
        assert shown_blocks(found, item="nothing") == ()
        assert found.blocks[0].repeated == 2
        assert found.blocks[2].changed == found.blocks[2].since
        assert found.blocks[2].entered == found.blocks[0].since
        assert [b.age for b in found.blocks] == [2, 1, 0, 0]
        sums = "\n".join(sum_lines(found, shown_blocks(found, stale=True), 80, plain))
        assert "stale: 1 block" in sums
        assert "repeat others: 2 blocks" in sums.replace("\n          ", " ")
        assert "the sums are of all blocks" in sums.replace("\n          ", " ")


def test_a_name_in_the_trace_does_nothing_to_the_terminal() -> None:
    evil = "\x1b]0;x\x07\u202e[red]"
    inspector, found = made(
        add(evil, f"{evil}\r\n{evil}", title=evil, turn="1"),
        assembly("A1", evil, turn="1"),
        inject("A1", turn="1"),
    )
    with inspector:
        for width in (40, 80, 140):
            lines = [
                *head_lines(found, evil, "under", width),
                *text_lines(found, found.blocks, width, plain, wrapped=True),
                *sum_lines(found, found.blocks, width, plain),
            ]
            assert not any(char in line for line in lines for char in "\x1b\x07\u202e\r\n")
        assert block_json(found, found.blocks[0])["text"] == found.text
        assert to_json(found, found.blocks)["blocks"] == 1


def test_what_has_no_text_repeats_nothing_and_is_told() -> None:
    selected = event("selection.completed", {"selected_item_refs": ["x", "y"]}, turn="1")
    inspector, found = made(selected, inject(turn="1"))
    with inspector:
        assert [b.twin for b in found.blocks] == [None, None]
        assert all("not recorded" in found.text[b.start : b.end] for b in found.blocks)


def test_ages_have_classes() -> None:
    ages = [None, 0, 1, 2, 4, 5, 9, 10, 19, 20, 5000]
    assert [age_class(age) for age in ages] == [
        BEFORE, "this turn", "1 turn", "2-4 turns", "2-4 turns", "5-9 turns", "5-9 turns", "10-19 turns",
        "10-19 turns", OLDER, OLDER,
    ]  # fmt: skip


def moment(block: Block) -> tuple[int, ...]:
    """Turn and step of `since` and `entered`."""
    assert block.since is not None
    assert block.entered is not None
    return block.since.turn, block.since.step, block.entered.turn, block.entered.step


@pytest.mark.parametrize("source", ["traces/coding-agent.jsonl", "traces/notes-assistant.jsonl"])
def test_a_trace_that_grows_is_blamed_as_what_was_read_of_it(tmp_path: Path, source: str) -> None:
    lines = (Path(__file__).parents[3] / source).read_bytes().splitlines(keepends=True)
    path = tmp_path / "run.jsonl"
    path.write_bytes(b"".join(lines[:4]))
    compared = 0
    with LiveSession(path) as live:
        for n in range(4, len(lines), 60):
            with path.open("ab") as file:
                file.write(b"".join(lines[n : n + 60]))
            news = live.poll(0.5)
            for _ in range(60):  # a part of what was appended may be read before the rest
                if news.inspector is not None and news.inspector.read >= path.stat().st_size:
                    break
                news = live.poll(0.5)
            if news.inspector is None or not len(news.rows):
                continue
            with Inspector.open(path) as inspector:
                for ordinal in {0, len(news.rows) // 2, len(news.rows) - 1}:
                    row = news.rows[ordinal]
                    here = next(  # threads that are open may be in another order
                        n
                        for n, span in enumerate(inspector.places().spans)
                        if (span.thread, span.turn, span.step) == (row.thread, row.turn, row.step)
                    )
                    now, whole = blame_frame(news.inspector, ordinal), blame_frame(inspector, here)
                    assert now.text == whole.text
                    assert [(moment(b), b.twin) for b in now.blocks] == [
                        (moment(b), b.twin) for b in whole.blocks
                    ]
                    compared += 1
        live.finish()
    assert compared


def test_the_largest_blocks_stand_first_where_there_are_many() -> None:
    sizes = [*range(1, 11), 40]
    names = [f"b{n}" for n in sizes]
    events = [add(name, "word " * n, turn="1") for name, n in zip(names, sizes, strict=True)]
    sent = [assembly("A1", *names, turn="1", ours=None), inject("A1", turn="1")]
    inspector, found = made(*events, *sent)
    with inspector:
        told = list(sum_lines(found, found.blocks, 80, plain))
    at = next(n for n, line in enumerate(told) if "largest blocks" in line)
    assert [line.split()[0] for line in told[at + 1 : at + 6]] == ["b40", "b10", "b9", "b8", "b7"]
    assert told[at + 1].split()[1] == "11"
    assert not told[at + 6]
    few, found = made(*events[:10], assembly("A1", *names[:10], turn="1", ours=None), inject("A1", turn="1"))
    with few:
        assert not any("largest" in line for line in sum_lines(found, found.blocks, 80, plain))
