"""Every kind of bad input ends in a message with line and byte, and everything else is still shown."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from ctxctl.errors import UnreadableError
from ctxctl.model.event import Event
from ctxctl.model.records import Item
from ctxctl.trace.reader import PROBLEM_LIMIT, Trace
from ctxctl.trace.source import Source, open_source

DAMAGED = Path(__file__).resolve().parents[3] / "fixtures" / "damaged"
EXPECTED: dict[str, dict[str, Any]] = json.loads((DAMAGED / "expected.json").read_bytes())
SOUND = (DAMAGED / "sound.jsonl").read_bytes()


def read(data: bytes) -> tuple[list[Event], list[tuple[int, int, str]]]:
    trace = Trace(Source.from_bytes("memory", data))
    events = list(trace.events())
    return events, [(problem.line, problem.byte, problem.slug) for problem in trace.problems]


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_damaged_file(name: str) -> None:
    expected = EXPECTED[name]
    if "error" in expected:
        with pytest.raises(UnreadableError) as caught:
            list(Trace(open_source(DAMAGED / name)).events())
        assert caught.value.slug == expected["error"]
        assert "\n" not in caught.value.message
        return
    trace = Trace(open_source(DAMAGED / name))
    events = list(trace.events())
    assert len(events) == expected["events"]
    assert [[p.line, p.byte, p.slug] for p in trace.problems] == expected["problems"]
    assert all("\n" not in problem.message and problem.message for problem in trace.problems)


def test_the_table_is_what_the_script_writes() -> None:
    assert {path.name for path in DAMAGED.iterdir()} - {"make.py", "expected.json"} == set(EXPECTED)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("bad-utf8.jsonl", "text \ufffd\ufffd 2"),
        ("lone-surrogate.jsonl", "half \ufffd x"),
        ("bad-escape.jsonl", "C:\\user\new"),
        ("nul-in-text.jsonl", "text\0of note"),
        ("bare-tab.jsonl", "a\tb"),
        ("deep-content.jsonl", "[" * 200 + json.dumps("[" * 1800 + "]" * 1800) + "]" * 200),
    ],
)
def test_what_is_readable_of_a_damaged_content_is_kept(name: str, text: str) -> None:
    trace = Trace(open_source(DAMAGED / name))
    second = list(trace.events())[1].record
    assert isinstance(second, Item)
    assert second.content is not None
    shown = trace.contents.text(second.content)
    assert shown == text or (name == "deep-content.jsonl" and len(shown) > 3000)
    trace.contents.close()


def test_a_damaged_head_keeps_its_other_fields() -> None:
    events = list(Trace(open_source(DAMAGED / "bad-utf8-in-head.jsonl")).events())
    assert [event.source for event in events] == ["fixture", "fix\ufffdture", "fixture"]


def test_numbers_as_ids_become_strings() -> None:
    events = list(Trace(open_source(DAMAGED / "wrong-types.jsonl")).events())
    assert [event.turn_id for event in events] == ["t1", "12", "t1"]


def test_a_line_of_fifty_megabytes() -> None:
    line = SOUND.splitlines()[1]
    big = line.replace(b"text of note 2", b"x" * 50_000_000)
    trace = Trace(Source.from_bytes("memory", SOUND.replace(line, big)))
    events = list(trace.events())
    assert len(events) == 3
    assert trace.problems == []
    record = events[1].record
    assert isinstance(record, Item)
    assert record.content is not None
    assert record.content.size == 50_000_000


def test_a_line_longer_than_the_limit_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctxctl.trace.lines.LINE_LIMIT", 1 << 20)
    lines = SOUND.splitlines(keepends=True)
    long = b'{"x":"' + b"y" * (3 << 20) + b'"}\n'
    events, problems = read(lines[0] + long + lines[1] + lines[2])
    assert [event.line for event in events] == [1, 3, 4]
    assert problems == [(2, len(lines[0]), "line-too-long")]


def test_a_hole_of_nuls_larger_than_a_block() -> None:
    lines = SOUND.splitlines(keepends=True)
    events, problems = read(lines[0] + bytes(1 << 20) + lines[1] + lines[2])
    assert len(events) == 3
    assert {slug for _, _, slug in problems} == {"nul-bytes"}
    assert {line for line, _, _ in problems} == {2}


@pytest.mark.parametrize("behind", [b"", b"\n", b"more"])
def test_nuls_beyond_the_longest_line_are_told_as_what_they_are(
    behind: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ctxctl.trace.lines.LINE_LIMIT", 1 << 20)
    lines = SOUND.splitlines(keepends=True)
    for damaged in (SOUND + bytes(5 << 20) + behind, lines[0] + bytes(5 << 20) + lines[1] + lines[2]):
        events, problems = read(damaged)
        assert len(events) == 3
        assert "nul-bytes" in {slug for _, _, slug in problems}
        assert "line-too-long" not in {slug for _, _, slug in problems}


def test_a_line_that_begins_with_nuls_and_is_too_long_is_told_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctxctl.trace.lines.LINE_LIMIT", 1 << 20)
    events, problems = read(SOUND + b"{" + bytes(3 << 20))
    assert len(events) == 3
    assert [slug for _, _, slug in problems] == ["line-too-long"]


def test_nesting_that_only_the_stack_limits() -> None:
    line = SOUND.splitlines()[1]
    for depth in (150, 250, 500, *range(880, 1030, 3), 5000, 100_000):
        deep = line.replace(b'"text of note 2"', b'{"a":' * depth + b"1" + b"}" * depth)
        for spelling in (deep, deep.replace(b'"t1"', b"12")):
            events, problems = read(SOUND.replace(line, spelling))
            assert len(events) == 3, depth
            assert {slug for _, _, slug in problems} == ({"too-deep"} if depth > 200 else set()), depth


def test_blocks_at_the_edge_of_the_stack() -> None:
    head = b'{"schema_version":"0.1.1","event_id":"x","event_type":"context.assembly.created","turn_id":7,'
    for depth in (150, *range(880, 1030, 3), 5000):
        for key in (b"content", b"wrapper", b"odd"):
            deep = b'{"item_refs":["a"],"%b":%b%b}' % (key, b"[" * depth, b"]" * depth)
            events, _ = read(SOUND + head + b'"data":{"ordered_blocks":[' + deep + b"]}}\n")
            assert [event.event_id for event in events] == ["e1", "e2", "e3", "x"]
            assert events[-1].record is not None


def test_deep_metadata_is_left_out_and_said() -> None:
    line = SOUND.splitlines()[1]
    deep = line.replace(b'"visibility"', b'"metadata":{"a":%b},"visibility"' % (b"[" * 250 + b"]" * 250))
    events, problems = read(SOUND.replace(line, deep))
    record = events[1].record
    assert isinstance(record, Item)
    assert record.metadata == {}
    assert [slug for _, _, slug in problems] == ["too-deep"]


def test_digits_by_the_million() -> None:
    line = SOUND.splitlines()[1]
    digits = line.replace(b'"token_estimate":2', b'"token_estimate":' + b"9" * 1_000_000)
    events, problems = read(SOUND.replace(line, digits))
    assert len(events) == 3
    assert [slug for _, _, slug in problems] != []


def test_problems_are_counted_beyond_those_kept() -> None:
    trace = Trace(Source.from_bytes("memory", SOUND + b"oops\n" * (PROBLEM_LIMIT + 500)))
    assert len(list(trace.events())) == 3
    assert len(trace.problems) == PROBLEM_LIMIT
    assert trace.problem_count == PROBLEM_LIMIT + 500


def test_only_the_damaged_line_changes() -> None:
    """One bit of each 31st byte, as journald's own test does: the neighbours stay as they are."""
    lines = SOUND.splitlines(keepends=True)
    sound = [(event.event_id, event.line) for event in read(SOUND)[0]]
    dice = random.Random(1)
    begin, end = len(lines[0]), len(lines[0]) + len(lines[1]) - 1
    for at in range(begin, end, 31):
        data = bytearray(SOUND)
        data[at] ^= 1 << dice.randrange(8)
        if data[at] == 0x0A:
            continue
        events, _ = read(bytes(data))
        kept = [(event.event_id, event.line) for event in events]
        assert kept[0] == sound[0]
        assert kept[-1] == sound[2]


def test_missing_file_directory_pipe_and_device(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    below = DAMAGED / "sound.jsonl" / "x"
    for path, slug in (
        (tmp_path / "nothing", "no-such-file"),
        (below, "no-such-file"),
        (tmp_path / "a\0b", "no-such-file"),
        (tmp_path, "is-a-directory"),
        (pipe, "not-a-regular-file"),
        (Path("/dev/zero"), "not-a-regular-file"),
        (Path("/dev/null"), "not-a-regular-file"),
    ):
        with pytest.raises(UnreadableError) as caught:
            open_source(path)
        assert caught.value.slug == slug, path
        assert caught.value.exit_code == 3


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_file(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(SOUND)
    path.chmod(0)
    with pytest.raises(UnreadableError) as caught:
        open_source(path)
    assert caught.value.slug == "not-readable"


def test_a_line_of_more_than_64_mib_is_passed_over_as_the_page_of_messages_says() -> None:
    lines = SOUND.splitlines(keepends=True)
    long = b'{"x":"' + b"y" * ((64 << 20) + (1 << 19)) + b'"}\n'
    events, problems = read(lines[0] + long + lines[1] + lines[2])
    assert [event.line for event in events] == [1, 3, 4]
    assert problems == [(2, len(lines[0]), "line-too-long")]
