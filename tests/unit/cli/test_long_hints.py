"""What is too long for a line says so, or has several."""

from __future__ import annotations

import io
from typing import Any

import pytest

from ctxctl.cli.output import complain
from ctxctl.ingest.parts import TITLE, call_title, first_line


class Terminal(io.StringIO):
    """A standard error that somebody looks at."""

    def isatty(self) -> bool:
        return True


def test_a_title_that_was_cut_ends_in_an_ellipsis() -> None:
    whole, longer = "/" + "x" * (TITLE - 1), "/" + "x" * TITLE
    assert call_title("read", {"path": whole}) == f"read: {whole}"
    assert call_title("read", {"path": longer}) == f"read: {longer[: TITLE - 1]}…"


def test_a_command_that_was_cut_ends_in_an_ellipsis() -> None:
    assert first_line("y" * TITLE + "\nmore") == "y" * TITLE
    assert first_line("y" * (TITLE + 1)) == "y" * (TITLE - 1) + "…"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"path": "src", "pattern": "def "}, "tool: def"),
        ({"command": "view", "path": "a.py"}, "tool: a.py"),
        ({"command": ["bash", "-lc", "git status"]}, "tool: git status"),
        ({"command": ["/bin/zsh", "-c", "ls\nls"]}, "tool: ls"),
        ({"command": ["git", "log"]}, "tool: git log"),
        ({"command": ["git", 1]}, "tool"),
        ({"input": "*** Begin Patch\n*** Update File: src/a.py\n@@"}, "tool: src/a.py"),
        ("*** Begin Patch\n*** Add File: b.py\n+x", "tool: b.py"),
        ({"city": "Paris", "days": 3}, "tool: Paris"),
        ({"from": "Paris", "to": "Rome"}, "tool"),
        ({"path": "  "}, "tool"),
        ("free text", "tool"),
        (None, "tool"),
    ],
)
def test_a_title_holds_the_telling_argument(arguments: Any, told: str) -> None:
    assert call_title("tool", arguments) == told


def test_a_long_hint_has_several_lines_on_a_terminal_and_one_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = "; ".join(f"name-{n} (tool result, something or other)" for n in range(4))
    for stream, lines in ((Terminal(), 5), (io.StringIO(), 2)):
        monkeypatch.setattr("sys.stderr", stream)
        complain("4 items fit", f"name one by its id: {names}")
        assert len(stream.getvalue().splitlines()) == lines
        complain("no", "do this; or that")
        assert stream.getvalue().endswith("hint: do this; or that\n")
