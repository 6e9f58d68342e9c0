"""A JSON value over several lines is read where a format is known, else called what it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxctl.errors import UnreadableError
from ctxctl.ingest.document import mended_document
from ctxctl.ingest.lines import values
from ctxctl.model.problem import Problem
from ctxctl.model.results import Step
from ctxctl.session import Inspector
from ctxctl.trace.source import Source

EVENTS: list[dict[str, Any]] = [
    {
        "schema_version": "0.1.1", "event_id": f"e{n}", "event_type": kind, "time": "2026-03-02T09:00:00Z",
        "session_id": "s", "source": "test", "data": data,
    }
    for n, (kind, data) in enumerate(
        [
            ("context.item.added", {"item_id": "a", "kind": "user_message", "content": "Hi"}),
            ("context.injection.applied", {"injection_id": "i", "target": "model", "injection_point": "x"}),
        ]
    )
]  # fmt: skip


def found(data: bytes) -> tuple[list[Any], list[Problem]]:
    problems: list[Problem] = []
    return [value for _, value in values(Source.from_bytes("x", data), problems.append)], problems


@pytest.mark.parametrize("indent", [0, 1, 2, "\t"])
def test_records_over_several_lines_are_read_one_after_the_other(indent: int | str) -> None:
    records = [
        {"type": "a", "of": [{"x": 1}, {}], "text": "{[,"},
        {"type": "b"},
        {"type": "c", "n": {"d": 1}},
    ]
    data = "\n".join(json.dumps(record, indent=indent) for record in records).encode()
    assert found(data) == (records, [])


def test_one_line_a_record_and_several_lines_a_record_mix() -> None:
    data = b'{"type": "a"}\n{"type": "b",\n "x": [1,\n 2]}\n{"type": "c"}\n'
    assert found(data) == ([{"type": "a"}, {"type": "b", "x": [1, 2]}, {"type": "c"}], [])


def test_a_record_that_was_cut_behind_a_comma_takes_none_with_it() -> None:
    data = b'{"type": "a",\n{"type": "b"}\n{"type": "c",\n'
    read, problems = found(data)
    assert read == [{"type": "b"}]
    assert [p.line for p in problems] == [1, 3]


@pytest.mark.parametrize("text", ['{\n  "foo": 1,\n  "bar": [1, 2]\n}\n', '{"foo": 1,\n "bar": [\n1, 2]}'])
def test_an_object_of_no_known_format_is_called_that(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(UnreadableError) as caught:
        list(Inspector.open(path).replay())
    assert "one JSON object over several lines, of no known format (keys: foo, bar)" in str(caught.value)


def test_in_a_trace_nothing_is_wrong_with_it_but_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    lines = [json.dumps(event) for event in EVENTS]
    broken = json.dumps({"event_type": "context.item.added", "data": {"item_id": "b"}}, indent=2)
    path.write_text("\n".join([lines[0], broken, lines[1], ""]))
    with Inspector.open(path) as inspector:
        assert len([r for r in inspector.replay() if isinstance(r, Step)]) == 1
        assert {p.slug for p in inspector.problems} == {"several-lines"}
        assert [p.line for p in inspector.problems] == [2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (r"a\nb \u00e9\t\"q\" c:\\x \/", 'a\nb é\t"q" c:\\x /'),
        (r"\ud83d\ude00 and half \ud83d", "😀 and half \ufffd"),
        (r"cut \u00", "cut \ufffd"),
        (r"kept \q", r"kept \q"),
    ],
)
def test_the_strings_of_a_damaged_document_are_decoded(written: str, read: str) -> None:
    torn = '{"messages": [{"role": "user", "content": "' + written
    assert mended_document(torn) == {"messages": [{"role": "user", "content": read}]}
    lost = torn + '\n, "more": 1}]}'
    assert mended_document(lost)["messages"][0]["content"] == read


def test_a_key_with_an_escape_is_decoded_where_the_document_is_damaged() -> None:
    assert mended_document('{"caf\\u00e9\\n": {"x": "y') == {"café\n": {"x": "y"}}
