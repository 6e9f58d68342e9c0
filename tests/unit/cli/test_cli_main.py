"""Wrong usage, bad input and our own bugs: one line, a hint, the documented exit code, never a traceback."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ctxctl.cli.commands import COMMANDS
from ctxctl.cli.main import BUG, run
from ctxctl.errors import UnavailableError

ROOT = Path(__file__).parent.parent.parent.parent
TRACES = ROOT / "tests" / "golden" / "traces"
WINDOW = str(TRACES / "window.jsonl")
DAMAGED = ROOT / "fixtures" / "damaged"
Out = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("arguments", "code", "says", "hint"),
    [
        (["frobnicate"], 2, "No such command 'frobnicate'", "`ctxctl --help`"),
        ([WINDOW], 2, "No such command", f"to open it: ctxctl replay {WINDOW}"),
        (["validate"], 2, "Missing argument 'TRACE'", "`ctxctl validate --help`"),
        (["replay"], 3, "no session was recorded in", "`ctxctl ls`"),
        (["replay", WINDOW, "--jsn"], 2, "No such option: --jsn", "`ctxctl replay --help`"),
        (["replay", WINDOW, "--turn"], 2, "requires an argument", "`ctxctl replay --help`"),
        (["replay", WINDOW, "--turn", "9"], 2, "no turn 9", "turns 1 to 2"),
        (["replay", WINDOW, "--turn", "x"], 2, "'x' is not a turn", "3..5"),
        (["replay", WINDOW, "--thread", "nope"], 2, "no thread is called 'nope'", "there are: main"),
        (["replay", WINDOW, "--target", "nope"], 2, "no target is called 'nope'", "model"),
        (["replay", WINDOW, "--encoding", "nope"], 2, "no encoding is called 'nope'", "o200k_base"),
        (["replay", WINDOW, "--policy", "nope"], 2, "no policy is called 'nope'", "recorded"),
        (["replay", WINDOW, "--read-as", "nope"], 2, "no format named 'nope'", "ctxctl formats lists them"),
        (["replay", WINDOW, "--color", "pink"], 2, "color must be one of auto", None),
        (["replay", "gone.jsonl"], 3, "no such file: gone.jsonl", None),
        (["replay", "docs/screenshots"], 3, "none of its", "ctxctl formats lists"),
        (["show", "gone.jsonl@2"], 3, "no such file: gone.jsonl", None),
        (["show", f"{WINDOW}@9"], 2, "no such turn", "from 1 to 2"),
        (["show", f"{WINDOW}@1.7"], 2, "no such step in turn 1", "from 1 to 1"),
        (["show", f"{WINDOW}@x"], 2, "'x' is not an address", "[SESSION/]"),
        (["show", f"{WINDOW}@"], 2, "nothing after the @", "[SESSION/]"),
        (["show", f"{WINDOW}@1", "--turn", "2"], 2, "cannot be combined", "give one"),
        (["show", f"{WINDOW}@1", "--stage", "nope"], 2, "no stage is called 'nope'", "surface"),
        (["show", "@1"], 3, "no session was recorded in", "name a file"),
        (["log"], 2, "no item is named", "a piece of its text"),
        (["ls", "--since", "soon"], 2, "not a time", "2d"),
        (["diff", f"{WINDOW}@1"], 2, "first frame of its thread", "second frame"),
        (["diff", f"{WINDOW}@1", "@9"], 2, "no such turn", "from 1 to 2"),
        (
            ["blame", f"{WINDOW}@1", "--item", "dog"],
            2,
            "no item is called 'dog', and no text contains it",
            "opening-hours.md",
        ),
        (["find", WINDOW], 2, "the query is missing", "in quotes"),
        (["bisect", WINDOW], 2, "a query, or a second trace, is missing", "window > 80%"),
        (["bisect", WINDOW, WINDOW, "a", "b"], 2, "4 arguments", "in quotes"),
        (["diff", f"{WINDOW}@1", WINDOW, "--sessions"], 2, "two whole traces", "without @"),
        (["diff", WINDOW, "--sessions"], 2, "two whole traces", "without @"),
        (["replay", WINDOW, "--where", "new>1", "--compare"], 2, "cannot be combined", "ctxctl find"),
        (["log", WINDOW, "dog"], 2, "no item is called 'dog'", "opening-hours.md"),
        (["log", WINDOW, "u"], 2, "2 items match 'u'", "2. “When are you open?” (user message"),
    ],
)
def test_wrong_usage(arguments: list[str], code: int, says: str, hint: str | None, capsys: Out) -> None:
    assert run(arguments) == code
    out, err = capsys.readouterr()
    first, *rest = err.splitlines()
    assert out == ""
    assert first.startswith("ctxctl: error: ")
    assert says in first
    if hint is not None:
        assert [line.startswith("hint: ") and hint in line for line in rest] == [True]


def test_no_arguments_is_help_and_wrong_usage(capsys: Out) -> None:
    assert run([]) == 2
    out, err = capsys.readouterr()
    assert (out, err.startswith("Usage: ctxctl")) == ("", True)


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["replay", "-h"], ["--version"]])
def test_help_and_version_are_data(arguments: list[str], capsys: Out) -> None:
    assert run(arguments) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith(("Usage: ctxctl", "ctxctl "))


@pytest.mark.parametrize("path", sorted(p.name for p in DAMAGED.glob("*.*") if p.suffix not in (".py",)))
@pytest.mark.parametrize("command", ["replay", "validate", "show", "log"])
def test_damaged_input_never_ends_in_a_traceback(path: str, command: str, capsys: Out) -> None:
    arguments = [command, str(DAMAGED / path)] + ["x"] * (command == "log")
    code = run(arguments)
    out, err = capsys.readouterr()
    assert code in (0, 1, 2, 3), err
    assert "Traceback" not in out + err
    if code in (2, 3):
        assert err.splitlines()[0].startswith("ctxctl: error: ")
        assert out == "" or command == "replay"


def test_problems_are_capped_counted_and_strict_about(tmp_path: Path, capsys: Out) -> None:
    trace = tmp_path / "many.jsonl"
    trace.write_text(Path(WINDOW).read_text() + "junk\n" * 50)
    assert run(["replay", str(trace)]) == 0
    err = capsys.readouterr().err.splitlines()
    assert len(err) == 21
    assert err[0].startswith(f"{trace}:19: byte ")
    assert "30 more problems not shown (50 in all)" in err[-1]
    assert run(["replay", str(trace), "--all", "--strict"]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 50
    assert run(["show", f"{trace}@1", "--strict"]) == 1
    assert run(["diff", f"{trace}@1", "@2", "--strict"]) == 1
    assert run(["log", str(trace), "doc", "--strict"]) == 1
    assert run(["replay", WINDOW, "--strict"]) == 0


def test_settings_come_from_file_and_environment(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CTXCTL_CONFIG")
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    (tmp_path / "ctxctl.toml").write_text('encoding = "cl100k_base"\n')
    assert run(["replay", WINDOW]) == 0
    assert "counted with cl100k_base" in capsys.readouterr().out
    monkeypatch.setenv("CTXCTL_ENCODING", "o200k_harmony")
    assert run(["replay", WINDOW, "--steps"]) == 0
    assert "encoding  o200k_harmony" in capsys.readouterr().out
    (tmp_path / "ctxctl.toml").write_text("strict = maybe\n")
    assert run(["replay", WINDOW]) == 2
    assert "ctxctl.toml" in capsys.readouterr().err


class Panic(BaseException):
    """As a native library raises it."""


@pytest.mark.parametrize(
    "error", [KeyError("secret of the trace"), Panic("secret of the trace"), RecursionError()]
)
def test_a_bug_is_one_line_without_data(
    error: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    from ctxctl.session import Inspector

    def broken(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(Inspector, "open", broken)
    assert run(["replay", WINDOW]) == BUG
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 2
    assert f"bug in ctxctl: {type(error).__name__} at cli/run.py:" in err
    assert "secret" not in err
    monkeypatch.setenv("CTXCTL_TRACEBACK", "1")
    run(["replay", WINDOW])
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (MemoryError(), 3, "out of memory"),
        (OSError(5, "Input/output error"), 3, "Input/output error"),
        (PermissionError(13, "Permission denied", "/x\x1b"), 3, "/x␛: Permission denied"),
        (UnavailableError("needs-zstd", "needs\nzstandard", hint="install it"), 4, "needs zstandard"),
        (KeyboardInterrupt(), 130, "ctxctl: interrupted"),
    ],
)
def test_failures_of_the_machine(
    error: BaseException, code: int, says: str, monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    from ctxctl.session import Inspector

    def broken(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(Inspector, "open", broken)
    assert run(["replay", WINDOW]) == code
    assert says in capsys.readouterr().err


def test_spellings_of_one_trace_give_the_same_bytes(tmp_path: Path, capsys: Out) -> None:
    def shuffled(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: shuffled(value[key]) for key in sorted(value, key=hash)}
        return [shuffled(v) for v in value] if isinstance(value, list) else value

    outputs = set()
    for name in ("window", "append", "threads"):
        events = [json.loads(line) for line in (TRACES / f"{name}.jsonl").read_text().splitlines()]
        spellings = {
            "compact": "".join(
                json.dumps(e, separators=(",", ":"), ensure_ascii=False) + "\n" for e in events
            ),
            "spaced": "".join(json.dumps(e, separators=(" , ", " : ")) + "\n" for e in events),
            "crlf": "".join(json.dumps(e) + "\r\n" for e in events),
            "shuffled": "".join(json.dumps(shuffled(e), ensure_ascii=False) + "\n" for e in events),
        }
        outputs = set()
        for spelling, text in spellings.items():
            folder = tmp_path / spelling
            folder.mkdir(exist_ok=True)
            (folder / f"{name}.jsonl").write_bytes(text.encode())
            for arguments in (["--json"], ["--plain", "--all"]):
                assert run(["replay", str(folder / f"{name}.jsonl"), *arguments]) == 0
                outputs.add((len(arguments), capsys.readouterr().out))
        assert len(outputs) == 2


def test_completion_opens_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ctxctl.cli import options

    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.jsonl").write_text("not json")
    (tmp_path / "runs").mkdir()
    (tmp_path / ".hidden").touch()
    os.mkfifo(tmp_path / "run.pipe")
    assert options.complete_files("ru") == ["run.jsonl", "run.pipe", "runs/"]
    assert options.complete_files("") == ["run.jsonl", "run.pipe", "runs/"]
    assert options.complete_files("gone/") == []
    assert options.complete_encodings("o") == ["o200k_base", "o200k_harmony"]
    assert options.complete_targets("to") == ["tool"]
    assert options.complete_stages("se") == ["selection"]
    assert options.complete_formats("claude-c") == ["claude-code"]
    assert options.complete_policies("rec") == ["recorded"]


def test_completed_names_are_the_real_ones() -> None:
    from ctxctl.cli import options
    from ctxctl.model.vocab import STAGES, TARGETS
    from ctxctl.tokens.ranks import NAMES

    assert options.complete_encodings("") == list(NAMES)
    assert options.complete_targets("") == list(TARGETS)
    assert options.complete_stages("") == list(STAGES)


def test_shell_completion_answers(tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_CTXCTL_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "ctxctl replay --enc")
    monkeypatch.setenv("COMP_CWORD", "2")
    run([])
    assert "--encoding" in capsys.readouterr().out


def test_half_a_character_names_no_item(capsys: Out) -> None:
    assert run(["why", WINDOW, "do\udcff"]) == 0
    assert "was never available" in capsys.readouterr().out


def test_every_command_has_help(capsys: Out) -> None:
    assert list(COMMANDS) == [
        "ls", "replay", "watch", "record", "diff", "show", "blame", "find", "bisect", "log", "why",
        "compactions", "cost", "budget", "lint", "check", "validate", "import", "export", "sql",
        "formats", "policies", "calibrate", "learn", "fleet", "fleet add", "fleet status", "fleet files",
        "fleet compact", "fleet vacuum", "fleet forget", "fleet ask", "fleet diff", "fleet check",
        "fleet report", "models", "cache",
    ]  # fmt: skip
    for name in COMMANDS:
        assert run([*name.split(), "--help"]) == 0
        assert capsys.readouterr().out.startswith(f"Usage: ctxctl {name} ")
