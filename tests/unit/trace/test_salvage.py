"""What a damaged line is taken for."""

from __future__ import annotations

import pytest

from ctxctl.trace.salvage import nesting_balance, over_lines


@pytest.mark.parametrize(
    "line",
    [
        b"{", b"[", b"  {", b"{\r", b"{ [", b"]", b"}", b"],", b"}},", b"} ]", b'"a": 1,', b'"a": {',
        b'  "a" : "b"',
        b'{ "a": [1,', b'[[1, 2],', b'{"a": {"b": 1},',
    ],
)  # fmt: skip
def test_a_part_of_a_value_over_several_lines_is_known(line: bytes) -> None:
    assert over_lines(line)


@pytest.mark.parametrize(
    "line",
    [
        b"", b"text", b"1,", b"[1, 2],", b'{"a": 1},', b'{"a": "torn,', b'{"a": 1', b'{"a": [1',
        b"} text", b'"text"', b'{"event_id": "e1",', b'{ "schema_version": "0.1.1", "data": {"a": 1,',
    ],
)  # fmt: skip
def test_a_line_that_was_cut_or_is_something_else_is_not(line: bytes) -> None:
    assert not over_lines(line)


@pytest.mark.parametrize(
    ("line", "balance"),
    [(b"{[", 2), (b"}", -1), (b'{"[": "{"}', 0), (b'{"a\\"[": [', 2), (b'{"a', None), (b"", 0)],
)
def test_brackets_in_strings_do_not_count(line: bytes, balance: int | None) -> None:
    assert nesting_balance(line) == balance
