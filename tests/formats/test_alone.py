"""A file that lies alone in a directory is read there as it is by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ctxctl.errors import CtxctlError
from ctxctl.importers.capture import open_capture
from ctxctl.importers.registry import capture_events
from tests.formats.damage import captures


class _Read(NamedTuple):
    format: str | None
    """None for a trace of our own."""
    steps: list[tuple[Any, ...]]
    texts: list[str | None]


def _read(path: Path) -> _Read | None:
    """What a path gives, without the ids that tell files of a directory apart; None: nobody knows it."""
    try:
        capture = open_capture(path)
    except CtxctlError:
        return None
    with capture:
        if capture.format is None:
            return _Read(None, [], [])
        events = list(capture_events(capture.format, capture.source, lambda _: None))
    bills = [e for e in events if e["event_type"] == "ctxctl.usage.reported"]
    asked = [e["event_type"] for e in events if e["event_type"] == "context.injection.applied"]
    counts = ("input_tokens", "cached_tokens", "output_tokens", "model")
    steps = [tuple(bill["data"].get(name) for name in counts) for bill in bills]
    texts = [e["data"].get("content") for e in events if e["event_type"].startswith("context.item.")]
    return _Read(capture.format.name, [*steps, ("requests", len(asked))], texts)


@pytest.mark.parametrize("name", [name for name, _ in captures()])
def test_a_directory_of_one_file_is_read_as_the_file(name: str, tmp_path: Path) -> None:
    source = dict(captures())[name]
    folder = tmp_path / "folder"
    folder.mkdir()
    file = folder / source.name
    file.write_bytes(source.read_bytes())
    by_itself = _read(file)
    if by_itself is not None and by_itself.format is not None:
        assert _read(folder) == by_itself
