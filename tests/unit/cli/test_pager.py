"""A long report on a terminal goes through the user's pager; nothing else does."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.unit.cli.test_cli_streams import on_terminal

ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.usefixtures("one_cache")


@pytest.fixture(autouse=True)
def _trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "traces" / "coding-agent.jsonl", "run.jsonl")
    Path("pager").write_text("#!/bin/sh\ncat > paged\necho seen\n")
    Path("pager").chmod(0o755)


def env(pager: str) -> dict[str, str]:
    return {"CTXCTL_PAGER": pager, "TERM": "xterm-256color"}


def test_the_pager_gets_the_report_with_its_colours() -> None:
    code, said = on_terminal("show", "run.jsonl@3", env=env("./pager"))
    assert (code, said) == (0, b"seen\r\n")
    paged = Path("paged").read_bytes()
    assert b"\x1b[" in paged
    code, said = on_terminal("show", "run.jsonl@3", "--no-pager", env=env("./pager"))
    assert code == 0
    assert said.replace(b"\r\n", b"\n") == paged


@pytest.mark.parametrize(
    "arguments",
    [
        ("replay", "run.jsonl", "--plain"), ("diff", "run.jsonl@3"), ("why", "run.jsonl@12", "gauge.py"),
        ("find", "run.jsonl", "turn > 3"), ("cost", "run.jsonl"), ("lint", "run.jsonl"), ("models",),
    ],
    ids=lambda words: words[0],
)  # fmt: skip
def test_reports_are_paged(arguments: tuple[str, ...]) -> None:
    code, said = on_terminal(*arguments, env=env("./pager"))
    assert code in (0, 1)
    assert said.endswith(b"seen\r\n")
    assert Path("paged").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "pager"),
    [
        (("show", "run.jsonl@3", "--json"), "./pager"),
        (("watch", "run.jsonl", "--plain", "--until", "3"), "./pager"),
        (("ls", "."), "./pager"), (("show", "run.jsonl@3"), ""), (("show", "run.jsonl@3"), "cat"),
        (("show", "run.jsonl@3"), "no-such-pager -x"),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_not_paged(arguments: tuple[str, ...], pager: str) -> None:
    code, said = on_terminal(*arguments, env=env(pager))
    assert code == 0
    assert not Path("paged").exists()
    assert b"seen" not in said
    assert len(said) > 100


def test_narration_does_not_run_into_the_pagers_screen() -> None:
    """Standard error is the same terminal: what is said of the report comes behind it, in the pager."""
    Path("run.jsonl").write_bytes(Path("run.jsonl").read_bytes() + b"{\n")
    code, said = on_terminal("find", "run.jsonl", "turn > 3", env=env("./pager"))
    assert (code, said) == (0, b"seen\r\n")
    paged = Path("paged").read_text()
    assert "steps of" in paged
    assert "run.jsonl:" in paged


def test_a_pager_that_is_left_early_ends_it_quietly() -> None:
    Path("pager").write_text("#!/bin/sh\nhead -c 10 > paged\n")
    code, said = on_terminal("replay", "run.jsonl", "--plain", "--steps", "--all", env=env("./pager"))
    assert (code, said) == (0, b"")


def test_what_less_is_told(tmp_path: Path) -> None:
    Path("pager").write_text('#!/bin/sh\nprintf "%s" "$LESS" > paged; cat > /dev/null\n')
    assert on_terminal("formats", env=env("./pager"))[0] == 0
    assert Path("paged").read_text() == "FRX"
    assert on_terminal("formats", env=env("./pager") | {"LESS": "S"})[0] == 0
    assert Path("paged").read_text() == "S"


def test_an_error_is_told_at_once() -> None:
    code, said = on_terminal("show", "run.jsonl@99", env=env("./pager"))
    assert code == 2
    assert b"no such turn" in said
    assert not Path("paged").exists()
