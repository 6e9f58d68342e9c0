"""Tests of hooks against the real packages; each file runs in the environments that it names.

A file says `ENVIRONMENTS = ("httpx2",)`: names of the `.in` files here.  `make frameworks` makes the
environments and runs the tests in each; elsewhere none of them is collected.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.register_assert_rewrite("tests.frameworks.session", "tests.unit.providers.wire_rebuild")

from tests.frameworks.fake import Fake  # noqa: E402
from tests.frameworks.session import Recording  # noqa: E402

HERE = Path(__file__).resolve().parent
ENVIRONMENT = os.environ.get("CTXCTL_FRAMEWORKS")


def environments_of(path: Path) -> tuple[str, ...]:
    """What a test file names; it is read, not imported, as its packages may not be here."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "ENVIRONMENTS":
            return tuple(ast.literal_eval(node.value))
    raise AssertionError(f"{path.name} names no ENVIRONMENTS")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Only what belongs to this environment."""
    if collection_path.suffix != ".py" or not collection_path.name.startswith("test_"):
        return None
    return True if ENVIRONMENT not in environments_of(collection_path) else None


@pytest.fixture(scope="session")
def _server() -> Iterator[Fake]:
    with Fake() as fake:
        yield fake


@pytest.fixture
def fake(_server: Fake) -> Fake:
    """A loopback server that speaks like the providers, without what earlier tests sent to it."""
    _server.reset()
    return _server


@pytest.fixture
def recording(tmp_path: Path, fake: Fake) -> Recording:
    """A trace to record to, which is held against what the server received."""
    return Recording(tmp_path / "run.jsonl", fake)
