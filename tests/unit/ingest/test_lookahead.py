"""Values over several lines: each line is looked at once, and a damaged one takes nothing else with it."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from ctxctl.ingest import lookahead
from ctxctl.ingest.lines import ignore_problem, values
from ctxctl.trace.salvage import nesting_balance
from ctxctl.trace.source import Source


def read(data: bytes) -> list[Any]:
    return [value for _, value in values(Source.from_bytes("x", data), ignore_problem)]


def records(data: bytes) -> list[Any]:
    return [value for value in read(data) if isinstance(value, dict)]


class _Parser:
    """What the look-ahead calls of orjson, with the bytes that it was given."""

    JSONDecodeError = orjson.JSONDecodeError

    def __init__(self) -> None:
        self.given = 0

    def loads(self, data: bytes) -> Any:
        self.given += len(data)
        return orjson.loads(data)


@pytest.mark.parametrize("opening", [b"[\n", b'{"a":\n', b'[{"a": [\n'])
def test_a_line_is_looked_at_once_however_many_values_are_open(
    monkeypatch: pytest.MonkeyPatch, opening: bytes
) -> None:
    looked: list[bytes] = []

    def balance(line: bytes) -> int | None:
        looked.append(line)
        return nesting_balance(line)

    monkeypatch.setattr(lookahead, "nesting_balance", balance)
    for n in (100, 400):
        looked.clear()
        assert read(b'{"type": "a"}\n' + opening * n) == [{"type": "a"}]
        assert n <= len(looked) <= 2 * n


def test_what_is_joined_in_vain_is_bounded_by_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookahead, "_IN_VAIN", 1000)
    parser = _Parser()
    monkeypatch.setattr(lookahead, "orjson", parser)
    data = b'{"type": "a"}\n' + b"[\n" * 400 + b"x\n" + b"]\n" * 400
    assert read(data) == [{"type": "a"}]
    assert parser.given <= 1000 + lookahead._TIMES_IN_VAIN * len(data)


def test_records_behind_one_that_was_cut_are_read() -> None:
    whole = b'{\n"type": "b",\n"x": [\n1,\n2\n]\n}\n'
    data = b'{"type": "a"}\n{\n"type": "cut",\n"x": [\n' + whole * 3
    assert records(data) == [{"type": "a"}, *[{"type": "b", "x": [1, 2]}] * 3]


def test_of_a_value_that_is_damaged_those_within_are_read() -> None:
    data = b'{"type": "a"}\n[\n[\n1,\n2\n],\noops,\n{\n"b": 3\n}\n]\n'
    assert records(data) == [{"type": "a"}, {"b": 3}]


def test_no_record_is_looked_for_beyond_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    data = b'{"type": "a"}\n[\n' + b"1,\n" * 40 + b"1\n]\n"
    assert [1] * 41 in read(data)
    monkeypatch.setattr(lookahead, "MAX_JOINED", 100)
    assert [1] * 41 not in read(data)
    monkeypatch.setattr(lookahead, "MAX_JOINED", 1000)
    monkeypatch.setattr(lookahead, "_MAX_LINES", 30)
    assert [1] * 41 not in read(data)
