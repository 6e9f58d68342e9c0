"""What is allowed by its shape is what the schema allows; what a trace is made of is allowed by its shape."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import fastjsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.trace.shapes import Shapes
from ctxctl.trace.validate import RECORD_SCHEMAS

ROOT = Path(__file__).resolve().parents[3]
NAMES = sorted({"event", *RECORD_SCHEMAS.values()})
TIMES = (
    "2026-01-31T10:00:00Z", "2026-02-28T10:00:00.123Z", "2026-11-30T23:59:59+01:00", "2024-02-29T00:00:00Z",
    "2026-02-29T00:00:00Z", "2026-02-30T00:00:00Z", "2026-04-31T00:00:00Z", "2026-13-01T00:00:00Z",
    "2026-01-00T00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01 10:00:00Z", "2026-01-01T10:00:00",
    "2026-01-01T10:00:00Z\n", "2026-01-01T10:00:60Z", "2026-01-01T10:00:00+0100",
    "2026-01-01t10:00:00z", "now",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    *TIMES, "", "x", "turn", 0, 1, -1, 1.5, 2.0, True, None, {}, {"a": 1}, [], ["x"], [{}], ["x", {}],
    [1], [None],
)  # fmt: skip


def schema(name: str) -> dict[str, Any]:
    path = resources.files("ctxctl.trace") / "schemas" / f"agentcontext-{name}.schema.json"
    read: dict[str, Any] = json.loads(path.read_bytes())
    return read


SCHEMAS = {name: schema(name) for name in NAMES}
COMPILED = {name: fastjsonschema.compile(made) for name, made in SCHEMAS.items()}
SHAPES = {name: Shapes(made) for name, made in SCHEMAS.items()}


def is_valid(name: str, record: dict[str, Any]) -> bool:
    try:
        COMPILED[name](record)
    except fastjsonschema.JsonSchemaValueException:
        return False
    return True


def fine(name: str) -> dict[str, Any]:
    """A record with every field of a schema, that the schema allows."""
    record: dict[str, Any] = {"of its own": [object]}
    for field in SCHEMAS[name]["properties"]:
        record[field] = next(
            value for value in VALUES
            if is_valid(name, {**record, **required(name), field: value})
        )  # fmt: skip
    return record


def required(name: str) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for field in SCHEMAS[name]["required"]:
        kind = SCHEMAS[name]["properties"][field]
        said = kind["type"] if isinstance(kind["type"], str) else kind["type"][0]
        given[field] = {"string": TIMES[0] if "format" in kind else "turn", "array": [], "object": {}}[said]
    return given


@pytest.mark.parametrize("name", NAMES)
def test_each_value_of_each_field_is_refused_or_valid(name: str) -> None:
    record = fine(name)
    assert is_valid(name, record)
    for field in SCHEMAS[name]["properties"]:
        for value in VALUES:
            changed = {**record, field: value}
            if SHAPES[name].allow(changed):
                assert is_valid(name, changed), (field, value)
        lacking = {key: value for key, value in record.items() if key != field}
        if SHAPES[name].allow(lacking):
            assert is_valid(name, lacking), field


@given(st.sampled_from(NAMES), st.data())
def test_what_is_allowed_is_valid(name: str, data: st.DataObject) -> None:
    fields = st.sampled_from([*SCHEMAS[name]["properties"], "x"])
    record = required(name) | data.draw(st.dictionaries(fields, st.sampled_from(VALUES), max_size=4))
    if SHAPES[name].allow(record):
        assert is_valid(name, record)


@pytest.mark.parametrize("path", sorted((ROOT / "traces").glob("*.jsonl")), ids=lambda path: path.stem)
def test_events_of_traces_are_allowed_without_the_schema(path: Path) -> None:
    events = [json.loads(line) for line in path.read_bytes().splitlines()]
    valid = [event for event in events if is_valid("event", event)]
    assert valid
    assert all(SHAPES["event"].allow(event) for event in valid)
    for event in valid:
        name = RECORD_SCHEMAS.get(event["event_type"])
        if name in ("context-item", "assembly", "compaction") and is_valid(name, event["data"]):
            assert SHAPES[name].allow(event["data"])


@pytest.mark.parametrize(
    "changed",
    [
        {"type": "array"},
        {"additionalProperties": False},
        {"oneOf": []},
        {"properties": {"a": {"pattern": "x"}}},
    ],
)
def test_a_schema_of_another_kind_allows_nothing(changed: dict[str, Any]) -> None:
    plain = {"type": "object", "additionalProperties": True, "properties": {"a": {"type": "string"}}}
    assert Shapes(plain).allow({"a": "b"})
    assert not Shapes({**plain, **changed}).allow({"a": "b"})
