"""Where the values of a capture that is one document stand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxctl.ingest.document import Places
from ctxctl.trace.source import Source

DOCUMENT: dict[str, Any] = {
    "schema": 2,
    'odd "key" \\ é': {"a": [1, 2]},
    "runs": [{"id": "r, {1}", "messages": [{"role": "user"}, None]}, [], {}, 7, {"deep": {"er": [{"x": 1}]}}],
    "last": "end",
}


def places(data: bytes) -> Places:
    return Places(Source.from_bytes("x", data))


def paths(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[tuple[str | int, ...], Any]]:
    found = [(path, value)]
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        found += paths(one, (*path, key))
    return found


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf", b"\n \n"])
def test_each_value_begins_at_its_place(indent: int | None, before: bytes) -> None:
    data = before + json.dumps(DOCUMENT, indent=indent, ensure_ascii=False).encode()
    where = places(data)
    for path, value in paths(DOCUMENT):
        if len(path) > 4:
            continue
        line = where.at(*path)
        decoded, _ = json.JSONDecoder().raw_decode(data[line.offset :].decode())
        assert decoded == value, path
        assert line.number == data.count(b"\n", 0, line.offset) + 1


def test_what_is_not_known_is_told_by_what_it_is_in() -> None:
    where = places(b'{"runs": [\n{"a": 1}]}')
    assert where.at("runs", 0, "b", 3) == where.at("runs", 0)
    assert where.at("runs", 0)[:2] == (2, 11)
    assert where.at("none")[:2] == (1, 0)
    assert places(b"").at("runs")[:2] == (1, 0)


@pytest.mark.parametrize("data", [b'{"a": [1, 2', b"]]]{", b'{"a" "b"', b',,"', b'{"a": {"b": "c\n'])
def test_damage_is_no_error(data: bytes) -> None:
    places(data).at("a", 1)
