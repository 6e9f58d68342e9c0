"""Whatever bytes a file holds, reading ends without a traceback and the sound lines are shown."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ctxctl.errors import UnreadableError
from ctxctl.model import vocab
from ctxctl.trace.decode import parse_line
from ctxctl.trace.depth import deeper_than, flatten_below, nests_deeper
from ctxctl.trace.reader import Trace
from ctxctl.trace.source import Source


def event(number: int) -> dict[str, Any]:
    data = {"item_id": f"i{number}", "content": 'text "quoted" \\ é', "visibility": ["model"]}
    return {
        "schema_version": "0.1.1",
        "event_id": f"e{number}",
        "event_type": vocab.ITEM_ADDED,
        "source": "s",
        "data": data,
    }


FIRST, SECOND, THIRD = (json.dumps(event(n), ensure_ascii=False).encode() + b"\n" for n in (1, 2, 3))
SNIPPETS = [
    b"\0",
    b"\xff",
    b"\xed\xa0\x80",
    b"\\ud800",
    b"\\",
    b'"',
    b"{",
    b"}",
    b"[" * 300,
    b"]" * 300,
    b"NaN",
]
SNIPPETS += [
    b"\r",
    b"\x0b",
    "\u2028".encode(),
    b",",
    b":",
    b"1e999",
    b"9" * 40,
    b"null",
    b'"data":',
    b"-Infinity",
]
SNIPPETS += [b'{"event_type":"x"}', b'{"event_id":"y","event_type":"x"}']


def read(data: bytes) -> tuple[list[str | None], Trace]:
    trace = Trace(Source.from_bytes("memory", data))
    found = []
    ended = None
    try:
        for one in trace.events():
            found.append(one.event_id)
            content = getattr(one.record, "content", None)
            if content is not None:
                trace.contents._texts.clear()
                trace.contents.text(content)
    except UnreadableError as error:
        ended = error.slug
    assert ended == (None if found else "no-events")
    assert len(list(trace.headers())) >= len(found)
    for problem in trace.problems:
        assert 0 <= problem.byte <= len(data)
        assert 0 <= problem.line <= data.count(b"\n") + 1
        assert "\n" not in problem.message
    trace.close()
    return found, trace


@given(st.binary(max_size=300))
def test_any_bytes(data: bytes) -> None:
    read(data)
    parse_line(data)


@given(st.integers(0, len(SECOND) - 1), st.integers(0, 40), st.sampled_from(SNIPPETS) | st.binary(max_size=8))
def test_damage_stays_in_its_line(at: int, cut: int, junk: bytes) -> None:
    body = SECOND[:-1]
    damaged = (body[:at] + junk + body[at + cut :]).replace(b"\n", b"")
    found, _ = read(FIRST + damaged + b"\n" + THIRD)
    assert found[0] == "e1"
    assert found[-1] == "e3"
    parse_line(damaged)


@given(st.integers(0, len(SECOND)))
def test_a_file_cut_anywhere_keeps_its_whole_lines(at: int) -> None:
    found, _ = read(FIRST + SECOND[:at])
    assert found == (["e1", "e2"] if at >= len(SECOND) - 1 else ["e1"])


@given(st.lists(st.sampled_from([b"[", b"]", b"{", b"}", b'"', b"\\", b"a", b'"a":', b","]), max_size=60))
def test_depth_of_anything_is_found_without_an_exception(parts: list[bytes]) -> None:
    raw = b"".join(parts)
    deeper_than(5, raw)
    flatten_below(raw, 5)


nested = st.recursive(
    st.integers(0, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=30,
)


@given(nested, st.integers(0, 8))
def test_depth_is_that_of_the_value(value: Any, limit: int) -> None:
    def depth(node: Any) -> int:
        if not isinstance(node, dict | list):
            return 0
        return 1 + max(
            [depth(child) for child in (node.values() if isinstance(node, dict) else node)], default=0
        )

    raw = json.dumps(value).encode()
    assert deeper_than(limit, raw) == (depth(value) > limit)
    assert nests_deeper(limit, value) == (depth(value) > limit)
    flat = json.loads(flatten_below(raw, limit))
    assert depth(flat) <= limit
    if depth(value) <= limit:
        assert flat == value
