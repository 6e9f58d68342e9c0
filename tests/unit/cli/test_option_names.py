"""One option means one thing in every command; what it was called before is understood, and told."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import get_args

import pytest

from ctxctl.cli.commands import COMMANDS
from ctxctl.cli.main import run
from ctxctl.cli.parameters import Option

TRACE = str(Path(__file__).parents[3] / "traces" / "notes-assistant.jsonl")
CODEX = str(Path(__file__).parents[3] / "fixtures" / "codex" / "compacted.jsonl")
Said = pytest.CaptureFixture[str]


def test_what_a_capture_is_read_as_has_one_name_everywhere(capsys: Said, tmp_path: Path) -> None:
    commands = ["replay", "show", "diff", "log", "why", "blame", "compactions", "cost", "lint", "validate"]
    commands += ["import", "export", "calibrate", "learn", "find", "bisect"]
    for command in commands:
        item = (
            ["item"] if command in ("log", "why") else ["turn > 0"] if command in ("find", "bisect") else []
        )
        assert run([command, CODEX, *item, "--read-as", "nope"]) == 2, command
        assert "no format named 'nope'" in capsys.readouterr().err, command


def test_the_old_name_is_understood_and_the_new_one_told(capsys: Said) -> None:
    assert run(["replay", "--format", "nope", TRACE]) == 2
    said = capsys.readouterr().err
    assert "no format named 'nope'" in said
    assert "--format is now called --read-as" in said
    assert run(["replay", "--read-as", "native", TRACE]) == 0
    assert "is now called" not in capsys.readouterr().err


def test_lint_writes_the_form_and_understands_its_old_name(capsys: Said) -> None:
    run(["lint", TRACE, "--format", "sarif"])
    form = capsys.readouterr()
    assert json.loads(form.out)["version"] == "2.1.0"
    assert form.err == ""
    run(["lint", TRACE, "--output", "sarif"])
    old = capsys.readouterr()
    assert old.out == form.out
    assert "--output is now called --format" in old.err
    run(["lint", TRACE, "--format", "native"])
    read = capsys.readouterr()
    run(["lint", TRACE])
    assert read.out == capsys.readouterr().out
    assert "--read-as" in read.err


@pytest.mark.parametrize(
    ("file", "options", "begins"),
    [
        ("x.html", [], b"<!doctype html>"), ("x.HTM", [], b"<!doctype html>"), ("x.md", [], b"#"),
        ("x.csv", [], b"ordinal,"), ("x.parquet", [], b"PAR1"), ("x.jsonl", [], b'{"'), ("x.json", [], b'{"'),
        ("x.html", ["--format", "markdown"], b"#"),
    ],
    ids=str,
)  # fmt: skip
def test_a_file_is_exported_as_what_it_is_called(
    file: str, options: list[str], begins: bytes, tmp_path: Path
) -> None:
    assert run(["export", TRACE, "-o", str(tmp_path / file), *options]) == 0
    assert (tmp_path / file).read_bytes().startswith(begins)


def test_quiet_leaves_narration_out_and_problems_in(
    capsys: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["find", TRACE, "turn > 0"]) == 0
    told = capsys.readouterr()
    assert "steps of" in told.err
    assert run(["find", TRACE, "turn > 0", "-q"]) == 0
    assert capsys.readouterr() == (told.out, "")
    damaged = tmp_path / "damaged.jsonl"
    damaged.write_bytes(Path(TRACE).read_bytes() + b"{\n")
    assert run(["find", str(damaged), "turn > 0", "--quiet"]) == 0
    assert "damaged.jsonl" in capsys.readouterr().err
    assert run(["find", TRACE, "turn > 0"]) == 0
    assert "steps of" in capsys.readouterr().err


def test_a_setting_by_its_old_name(capsys: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("CTXCTL_FORMAT", "CTXCTL_READ_AS"):
        with monkeypatch.context() as set_one:
            set_one.setenv(variable, "nope")
            assert run(["replay", TRACE]) == 2
            assert "no format named 'nope'" in capsys.readouterr().err


def options(name: str) -> dict[str, Option]:
    """What a command takes, by flag."""
    parameters = inspect.signature(COMMANDS[name].function(), eval_str=True).parameters
    found = [how for one in parameters.values() if isinstance(how := get_args(one.annotation)[1], Option)]
    return {flag: how for how in found for flag in how.flags}


NO_REPORT = {"record", "import", "export", "fleet report"}
THREADS = {
    "replay", "show", "diff", "log", "why", "blame", "find", "bisect", "compactions", "cost", "lint",
    "check", "export",
}  # fmt: skip
WRITES_FORMS = {"budget", "lint", "export"}
NOT_PAGED = NO_REPORT | {
    "ls", "watch", "cache", "learn", "fleet add", "fleet status", "fleet files", "fleet compact",
    "fleet vacuum", "fleet forget",
}  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_takes_what_makes_sense_for_it(name: str) -> None:
    taken = options(name)
    assert {"--quiet", "-q"} <= set(taken)
    assert ("--plain" in taken) is (name not in NO_REPORT)
    assert ("--json" in taken) is (name not in NO_REPORT - {"import"})
    assert ("--thread" in taken) is (name in THREADS)
    assert ("--no-pager" in taken) is (name not in NOT_PAGED)
    assert ("--oneline" in taken) is (name in {"replay", "find", "diff", "log"})


@pytest.mark.parametrize("name", COMMANDS)
def test_format_in_help_is_what_is_written(name: str) -> None:
    form = options(name).get("--format")
    assert (form is not None and not form.said["hidden"]) is (name in WRITES_FORMS)
