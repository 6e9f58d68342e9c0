"""The pages in man/ are what the help of the commands says; ``make docs`` writes them anew."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ctxctl.cli.commands import COMMANDS
from ctxctl.cli.main import run
from scripts.man_pages import ENVIRONMENT, PAGES, pages

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    return pages()


def words(page: str) -> str:
    """A page as it is read: without fonts, escapes and requests, each blank one."""
    said = re.sub(r"^\.(?!\\).*?(?= |$)", "", re.sub(r"\\f[BR]|\\&", "", page), flags=re.MULTILINE)
    for name, sign in (
        ("\\(aq", "'"),
        ("\\(ga", "`"),
        ("\\(ha", "^"),
        ("\\(ti", "~"),
        ("\\-", "-"),
        ("\\e", "\\"),
    ):
        said = said.replace(name, sign)
    return " ".join(said.split())


def test_the_pages_are_up_to_date(made: dict[str, str]) -> None:
    found = {path.name: path.read_text(encoding="utf-8") for path in PAGES.glob("*.1")}
    assert found == made, "run: make docs"


@pytest.mark.parametrize("name", ["check", "find", "replay"])
def test_a_page_says_all_that_the_help_says(
    made: dict[str, str], name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert run([name, "--help"]) == 0
    said, _, _ = capsys.readouterr().out.partition("Examples:")
    page = words(made[f"ctxctl-{name}.1"])
    for entry in re.split(r"\n  (?=\S)|\n\n", re.sub(r"\n {4,}", " ", said)):
        for part in re.split(r"\s{2,}", entry.strip()):
            if not part.endswith(":"):
                assert " ".join(part.removeprefix("Usage: ").split()) in page


def test_no_line_of_a_text_is_a_request(made: dict[str, str]) -> None:
    known = re.compile(r"\.(?:TH|SH|PP|TP|BR?|RS 4|RE|nf|fi|nh|ad l|\\\")(?: |$)")
    for name, page in made.items():
        assert [line for line in page.splitlines() if line[:1] in ".'" and not known.match(line)] == [], name


def test_each_command_has_its_page_and_stands_in_the_first(made: dict[str, str]) -> None:
    assert set(made) == {"ctxctl.1", *(f"ctxctl-{name.replace(' ', '-')}.1" for name in COMMANDS)}
    for name, command in COMMANDS.items():
        group, _, word = name.partition(" ")
        listed = made[f"ctxctl-{group}.1" if word else "ctxctl.1"]
        assert f"ctxctl-{name.replace(' ', '-')} (1) {command.line}" in words(listed)


def test_variables_are_those_of_the_docs() -> None:
    told = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert [name for name, _ in ENVIRONMENT for one in name.split(", ") if one not in told] == []
