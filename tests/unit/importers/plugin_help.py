"""Plug-ins as an installer puts them: packages with metadata of their own, for the time of a test."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ctxctl.importers import registry

Install = Callable[[dict[str, str], str], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Put packages where an installer puts them, with metadata of their own."""

    roots: set[str] = set()

    def put(files: dict[str, str], points: str) -> None:
        roots.update(name.partition("/")[0].removesuffix(".py") for name in files)
        about = tmp_path / "my_runtime-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: my-runtime\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(points)
        for name, code in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(code)
        forget()

    def forget() -> None:
        for cached in (registry.available, registry.built_in, registry._plugins, registry._loaded):
            cached.cache_clear()
        for name in [name for name in sys.modules if name.partition(".")[0] in roots]:
            del sys.modules[name]

    monkeypatch.syspath_prepend(str(tmp_path))
    yield put
    monkeypatch.undo()
    forget()
