from __future__ import annotations

from typing import Any

import pytest

from ctxctl.ingest.lines import values
from ctxctl.model.problem import Problem
from ctxctl.trace.source import Source


def read(data: bytes) -> tuple[list[tuple[int, int, Any]], list[Problem]]:
    problems: list[Problem] = []
    found = [(at.number, at.offset, v) for at, v in values(Source.from_bytes("x", data), problems.append)]
    return found, problems


def test_lines_and_their_places() -> None:
    found, problems = read(b'{"a":1}\r\n\n  \n{"a":2}\n{"a":3}')
    assert found == [(1, 0, {"a": 1}), (4, 13, {"a": 2}), (5, 21, {"a": 3})]
    assert problems == []


def test_a_byte_order_mark_is_not_part_of_the_line() -> None:
    assert read(b'\xef\xbb\xbf{"a":1}\n')[0] == [(1, 3, {"a": 1})]


def test_lines_longer_than_a_block_and_many_blocks() -> None:
    data = b"\n".join(b'{"n":%d,"x":"%s"}' % (n, b"x" * 90_000) for n in range(12))
    found, _ = read(data)
    assert [value["n"] for _, _, value in found] == list(range(12))
    assert [offset for _, offset, _ in found] == [data.index(b'{"n":%d,' % n) for n in range(12)]


@pytest.mark.parametrize("data", [b'{\n "a": 1\n}\n', b'[\n {"a": 1}\n]', b'\xef\xbb\xbf{\n "a": 1\n}'])
def test_a_pretty_printed_document(data: bytes) -> None:
    found, problems = read(data)
    assert [(number, value) for number, _, value in found] == [(1, {"a": 1})]
    assert problems == []


def test_an_opening_brace_alone_that_begins_no_document() -> None:
    found, problems = read(b'{\n{"type":"x"}\n')
    assert [value for _, _, value in found] == [{"type": "x"}]
    assert [(p.line, p.byte) for p in problems] == [(1, 0)]


@pytest.mark.parametrize(
    ("data", "wanted", "slugs"),
    [
        (b'{"type":1}{"type":2}', [{"type": 1}, {"type": 2}], ["glued-lines"]),
        (b'{"type":1,"x":"to{"type":2}', [{"type": 2}], ["bad-json"]),
        (b'{"type":1}{"type":2,', [{"type": 1}], ["bad-json"]),
        (b'{"a":"x\\qy"}', [{"a": "x\\qy"}], ["bad-escape"]),
        (b'{"a":"\\ud800"}', [{"a": "\N{REPLACEMENT CHARACTER}"}], ["lone-surrogate"]),
        (b'{"a":"\xff"}', [{"a": "\N{REPLACEMENT CHARACTER}"}], ["bad-utf8"]),
        (b'\0\0{"a":1}\0', [{"a": 1}], ["nul-bytes"]),
        (b"no json", [], ["bad-json"]),
    ],
)
def test_salvage(data: bytes, wanted: list[Any], slugs: list[str]) -> None:
    found, problems = read(b'{"ok":0}\n' + data + b'\n{"ok":1}\n')
    assert [value for number, _, value in found if number == 2] == wanted
    assert [(p.line, p.slug) for p in problems] == [(2, slug) for slug in slugs]
    assert all(p.byte >= 9 for p in problems)
    assert [value for number, _, value in found if number != 2] == [{"ok": 0}, {"ok": 1}]


def test_a_line_of_records_cut_short_costs_bounded_work() -> None:
    found, problems = read(b'{"type":"' * 20_000)
    assert found == []
    assert 0 < len(problems) < 40
