"""Compact, spaced, key-shuffled, CRLF and ASCII-escaped spellings of one trace read alike."""

from __future__ import annotations

import json
import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ctxctl.model import vocab
from ctxctl.model.content import Content
from ctxctl.trace.reader import Trace
from ctxctl.trace.source import Source

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
numbers = st.integers(-(1 << 70), 1 << 70) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
ids = st.sampled_from(["a", "b", "c@1", "d é", 7]) | text
refs = st.lists(
    ids | st.fixed_dictionaries({"item_ref": ids}, optional={"version": text, "reason": text}), max_size=3
)
fields: dict[str, st.SearchStrategy[Any]] = {
    "item_id": ids,
    "content": values,
    "title": text | values,
    "token_estimate": st.integers(-2, 1 << 66),
    "visibility": st.lists(st.sampled_from(["model", "tool"]), max_size=2) | text,
    "metadata": st.dictionaries(text | st.just("version") | st.just("ctxctl"), values, max_size=3),
    "selected_item_refs": refs,
    "source_item_refs": refs,
    "ordered_blocks": st.lists(
        st.fixed_dictionaries({}, optional={"item_refs": refs, "content": values}), max_size=3
    ),
    "max_tokens": numbers,
    "priority": numbers,
}
data = st.fixed_dictionaries({}, optional=fields)
events = st.lists(
    st.fixed_dictionaries(
        {"event_type": st.sampled_from([*vocab.STANDARD_EVENTS, vocab.USAGE_REPORTED, "acme.other"])},
        optional={
            "event_id": text,
            "source": text,
            "session_id": ids,
            "turn_id": ids,
            "data": data | values,
            "extra": values,
            "schema_version": st.sampled_from(["0.1.1", "0.1.0"]),
        },
    ),
    min_size=1,
    max_size=5,
)


def shuffled(value: Any, dice: random.Random) -> Any:
    """The same value with the keys of every object in another order."""
    if isinstance(value, dict):
        keys = list(value)
        dice.shuffle(keys)
        return {key: shuffled(value[key], dice) for key in keys}
    return [shuffled(child, dice) for child in value] if isinstance(value, list) else value


def plain(value: Any) -> Any:
    """A record as comparable data: contents by digest, dicts in one order."""
    if isinstance(value, Content):
        return ("content", value.digest, value.size, value.form)
    if isinstance(value, dict):
        return {key: plain(child) for key, child in sorted(value.items())}
    if isinstance(value, tuple | list):
        return [plain(child) for child in value]
    if hasattr(value, "__struct_fields__"):
        return [type(value).__name__, *[plain(getattr(value, name)) for name in value.__struct_fields__]]
    return repr(value)


def reading(lines: list[str], end: str) -> tuple[Any, Any, Any]:
    trace = Trace(Source.from_bytes("memory", "".join(line + end for line in lines).encode()))
    found = []
    texts = []
    for event in trace.events():
        event.offset = event.length = 0
        found.append(plain(event))
        content = getattr(event.record, "content", None)
        if content is not None:
            trace.contents._texts.clear()
            texts.append(trace.contents.text(content))
    told = [(problem.line, problem.slug, problem.message) for problem in trace.problems]
    trace.close()
    return found, texts, sorted(told)


@given(events, st.integers(0, 1 << 30))
def test_spellings_of_one_trace_read_alike(trace: list[dict[str, Any]], seed: int) -> None:
    trace = trace + trace
    dice = random.Random(seed)
    compact = [json.dumps(event, ensure_ascii=False, separators=(",", ":")) for event in trace]
    spaced = [json.dumps(event, ensure_ascii=False, separators=(" , ", " :  ")) for event in trace]
    escaped = [json.dumps(event, ensure_ascii=True) for event in trace]
    mixed = [json.dumps(shuffled(event, dice), ensure_ascii=False) for event in trace]
    expected = reading(compact, "\n")
    assert reading(spaced, "\n") == expected
    assert reading(escaped, "\n") == expected
    assert reading(compact, "\r\n") == expected
    assert reading(spaced, " \t\r\n") == expected
    events, texts, told = reading(mixed, "\n")
    assert (events, texts) == expected[:2]
    assert {(line, slug) for line, slug, _ in told} == {(line, slug) for line, slug, _ in expected[2]}
