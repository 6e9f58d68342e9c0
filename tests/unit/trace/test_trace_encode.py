"""Both ways of making a line give the same bytes, and lines that JSON can hold."""

from __future__ import annotations

import math
from hashlib import sha256
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.trace.encode import (
    InvalidEventError,
    head_of,
    line_of,
    line_of_parts,
    with_content,
    with_reference,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 53), 1 << 53) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


def fields(values: dict[str, Any]) -> bytes:
    """Return fields with a comma in front of each."""
    return b"," + orjson.dumps(values)[1:-1] if values else b""


@pytest.mark.parametrize("shows", [True, False])
@given(
    number=st.integers(1, 1 << 40),
    source=TEXTS,
    place=st.dictionaries(st.sampled_from(["session_id", "thread_id", "turn_id", "step_id"]), TEXTS),
    marks=st.dictionaries(st.just("redacted"), JSON),
    metadata=st.dictionaries(TEXTS.map("x-{}".format), JSON, max_size=2),
    body=st.dictionaries(TEXTS.map("y-{}".format), JSON, min_size=1, max_size=3),
    content=st.none() | JSON.filter(lambda value: value is not None),
)
def test_parts_make_the_line_of_the_event(
    shows: bool,
    number: int,
    source: str,
    place: dict[str, Any],
    marks: dict[str, Any],
    metadata: dict[str, Any],
    body: dict[str, Any],
    content: Any,
) -> None:
    time = "2026-01-01T00:00:00.000000Z"
    raw, digest = orjson.dumps(content), sha256(orjson.dumps(content)).hexdigest()
    data: tuple[bytes, ...] = (orjson.dumps(body),)
    record = dict(body)
    if content is not None and shows:
        data, record = with_content(*data, raw), {**body, "content_mode": "inline", "content": content}
    elif content is not None:
        data = with_reference(*data, digest)
        record = {**body, "content_mode": "ref", "content_ref": f"sha256:{digest}"}
    made = line_of_parts(
        head_of("0.1.1", "w"), number, "context.item.added", orjson.dumps(source), time.encode(),
        fields(place), fields(marks), fields(metadata), data,
    )  # fmt: skip
    event = {
        "schema_version": "0.1.1", "event_id": f"w-{number}", "event_type": "context.item.added",
        "source": source, "time": time, **place,
        "metadata": {"ctxctl": {"seq": number, **marks}, **metadata}, "data": record,
    }  # fmt: skip
    assert made == line_of(event)[0]


def test_what_json_cannot_hold_is_replaced_or_refused() -> None:
    line, event = line_of({"data": {"text": "a\ud800b", "much": math.inf}})
    assert event == {"data": {"text": "a\ufffdb", "much": None}}
    assert orjson.loads(line) == event
    with pytest.raises(InvalidEventError, match="of type object is not JSON"):
        line_of({"data": object()})
