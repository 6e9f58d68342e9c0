"""What an import tells stands in the line of the capture that it names: `source_line` is where to look."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ctxctl.importers import registry
from ctxctl.trace.source import open_source
from tests.formats.damage import captures, imported, is_lines

IN_PIECES = frozenset(
    {"api/envelopes.jsonl", "claude_trace/session.jsonl", "lhar/full.lhar", "luminarys/calls.jsonl"}
)
"""Fixtures with answers that were streamed: their words are parted between pieces."""
CAPTURES = [pytest.param(name, path, id=name) for name, path in captures() if is_lines(path.read_bytes())]


def texts(value: Any, deep: int = 4) -> Iterator[str]:
    """Every text and number of a JSON value, and of the JSON that its texts hold."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from texts(inner, deep)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner, deep)
    else:
        yield value if isinstance(value, str) else json.dumps(value)
        if isinstance(value, str) and value[:1] in ("{", "[") and deep:
            try:
                yield from texts(json.loads(value), deep - 1)
            except ValueError:
                return


@pytest.mark.parametrize(("name", "path"), CAPTURES)
def test_what_is_told_stands_in_the_line_that_is_named(name: str, path: Path) -> None:
    with open_source(path) as source:
        importer = registry.detect(source)
        data = source.read(0, source.size)
    if importer is None:
        return
    lines = data.split(b"\n")
    for event in imported(importer, data).events:
        item = event["data"]
        if ".item." not in event["event_type"] or item.get("metadata", {}).get("ctxctl", {}).get("derived"):
            continue
        at = event["metadata"]["ctxctl"].get("source_line")
        assert at, f"{event['event_id']} names no line"
        told = item.get("content")
        if isinstance(told, str) and name not in IN_PIECES:
            there = "\n".join(texts(json.loads(lines[at - 1])))
            words = re.findall(r"\w+", re.sub(r"\\[nrt]", " ", told))
            missing = [word for word in words if word not in there]
            assert not missing, f"line {at} holds no {missing[:3]} of {told[:60]!r}"
