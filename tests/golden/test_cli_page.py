"""The commands in docs/cli.md are what ``--help`` says; ``make goldens`` writes them anew."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ctxctl.cli.commands import COMMANDS
from ctxctl.cli.main import run

PAGE = Path(__file__).parent.parent.parent / "docs" / "cli.md"
MARK = "<!-- From here on the page is made from --help: `make goldens`. -->\n"


def test_the_page_is_up_to_date(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    head, found, _ = PAGE.read_text(encoding="utf-8").partition(MARK)
    assert found
    page = head + found
    for name in COMMANDS:
        assert run([*name.split(), "--help"]) == 0
        page += f"\n### `ctxctl {name}`\n\n```text\n{capsys.readouterr().out.rstrip()}\n```\n"
    if os.environ.get("CTXCTL_UPDATE_GOLDENS"):
        PAGE.write_text(page, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page
