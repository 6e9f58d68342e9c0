"""What is too long for a line says so, or has several."""

from __future__ import annotations

import io

import pytest

from ctxctl.cli.output import complain
from ctxctl.importers.claude_code.blocks import call_title as of_claude_code
from ctxctl.ingest.parts import call_title, first_line


class Terminal(io.StringIO):
    """A standard error that somebody looks at."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("title", [call_title, of_claude_code])
def test_a_title_that_was_cut_ends_in_an_ellipsis(title) -> None:  # type: ignore[no-untyped-def]
    whole, longer = "/" + "x" * 79, "/" + "x" * 80
    assert title("read", {"path": whole}) == f"read: {whole}"
    assert title("read", {"path": longer}) == f"read: {longer[:79]}…"


def test_a_command_that_was_cut_ends_in_an_ellipsis() -> None:
    assert first_line("y" * 80 + "\nmore") == "y" * 80
    assert first_line("y" * 81) == "y" * 79 + "…"


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
