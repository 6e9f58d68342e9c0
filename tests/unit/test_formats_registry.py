from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ctxctl.errors import UsageError
from ctxctl.formats import registry
from ctxctl.formats.about import About
from ctxctl.formats.lines import Report
from ctxctl.trace.source import Source


class Plugin:
    """A format that somebody else's package brings."""

    name = "plugin"
    title = "A plug-in's format"
    default_policy = "recorded"
    about = About(reads="lines", places=(), turns="none", claims={})

    def detect(self, head: bytes) -> int:
        return 99 if head.startswith(b"PLUGIN") else 0

    def events(self, source: Source, report: Report) -> Iterator[dict[str, Any]]:
        return iter(())


class Point:
    def __init__(self, made: object) -> None:
        self.made = made

    def load(self) -> object:
        if isinstance(self.made, Exception):
            raise self.made
        return self.made


def test_plug_ins_are_found_and_broken_ones_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [Point(ImportError("broken")), Point(Plugin), Point(object())]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: points)
    registry.available.cache_clear()
    try:
        assert [f.name for f in registry.available()] == [*(f.name for f in registry.built_in()), "plugin"]
        found = registry.detect(Source.from_bytes("x", b"PLUGIN 1"))
        assert found is not None
        assert found.name == "plugin"
    finally:
        registry.available.cache_clear()


def test_names() -> None:
    assert registry.by_name("sanqian").default_policy == "sanqian"
    with pytest.raises(UsageError) as caught:
        registry.by_name("claude")
    assert caught.value.slug == "unknown-format"
    assert "claude-code" in (caught.value.hint or "")


@pytest.mark.parametrize("data", [b"", b"\0\1\2", b"[1, 2]", b'{"a": 1}', b'{"event_type":"x","source":"y"}'])
def test_what_nobody_knows(data: bytes) -> None:
    assert registry.detect(Source.from_bytes("x", data)) is None
