"""Files whose names are not UTF-8: read and written by every command, and shown so that nothing breaks."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ctxctl.cli.main import run
from ctxctl.errors import Exit
from ctxctl.session import import_cache

ROOT = Path(__file__).parents[3]
CAPTURE = ROOT / "fixtures" / "claude_code" / "compaction.jsonl"
NATIVE = ROOT / "tests" / "golden" / "traces" / "window.jsonl"
Out = pytest.CaptureFixture[bytes]

COMMANDS = (
    "replay FILE", "replay FILE --json", "diff FILE@1 @2", "show FILE@1", "show FILE@1 --json",
    "blame FILE@1", "find kind:tool_result FILE", "compactions FILE", "cost FILE", "cost FILE --json",
    "lint FILE", "lint FILE --json", "check FILE --max-tool-result 1 --junit OUT",
    "check FILE --max-tool-result 1 --github", "validate FILE", "export FILE -o OUT.html",
    "export FILE --format markdown", "export FILE --format csv",
    "export FILE --format otlp", "export FILE --format envelopes", "watch FILE --plain --idle 0",
    "watch FILE --json --idle 0", "calibrate FILE", "bisect FILE used>1", "ls FOLDER", "ls FOLDER --json",
    "cost FOLDER", "lint FOLDER", "watch FOLDER --plain --idle 0", "replay FOLDER/none.jsonl",
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder and files in it, in the Latin-1 of another time."""
    made = os.fsencode(tmp_path) + b"/d\xff"
    try:
        os.mkdir(made)
    except OSError:
        pytest.skip("this file system takes names in UTF-8 only")
    return Path(os.fsdecode(made))


@pytest.mark.parametrize("source", [CAPTURE, NATIVE], ids=["capture", "native"])
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command(command: str, source: Path, folder: Path, capfdbinary: Out) -> None:
    file = os.fsdecode(os.fsencode(folder) + b"/caf\xe9.jsonl")
    shutil.copyfile(source, file)
    out = os.fsdecode(os.fsencode(folder) + b"/\xe9t\xe9")
    words = [
        word.replace("FILE", file).replace("FOLDER", str(folder)).replace("OUT", out)
        for word in command.split()
    ]
    code = run(words)
    printed, said = capfdbinary.readouterr()
    assert code in (0, 1, 2, 3), said
    assert b"bug in" not in said
    assert said.decode() is not None
    printed.decode()
    if "--json" in words:
        assert all(json.loads(line) for line in printed.splitlines())
    if "OUT" in command and code < 2:
        made = [one for one in os.listdir(os.fsencode(folder)) if one.startswith(b"\xe9t\xe9")]
        assert len(made) == 1


@pytest.mark.parametrize("command", ["replay FILE", "replay FOLDER", "validate FOLDER", "cost FOLDER --json"])
def test_what_is_kept_of_a_large_capture(
    command: str, folder: Path, capfdbinary: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run that would keep something answers, and so does the next one."""
    monkeypatch.setattr(import_cache, "LEAST", 0)
    file = os.fsdecode(os.fsencode(folder) + b"/caf\xe9.jsonl")
    shutil.copyfile(ROOT / "fixtures" / "codex" / "rollout.jsonl", file)
    words = [word.replace("FILE", file).replace("FOLDER", str(folder)) for word in command.split()]
    answers = []
    for _ in range(2):
        assert run(words) == 0
        answers.append(capfdbinary.readouterr().out)
    assert answers[0] == answers[1] != b""


def test_a_dataset_in_a_folder_of_such_a_name_is_asked_under_another(
    folder: Path, tmp_path: Path, capfdbinary: Out
) -> None:
    shutil.copyfile(CAPTURE, folder / "run.jsonl")
    dataset = str(folder / "set")
    assert run(["fleet", "add", "--dataset", dataset, str(folder / "run.jsonl")]) == 0
    assert run(["fleet", "ask", "--dataset", dataset, "sessions"]) == 3
    assert b"by a name that is UTF-8" in capfdbinary.readouterr().err
    (tmp_path / "link").symlink_to(folder)
    assert run(["fleet", "ask", "--dataset", str(tmp_path / "link" / "set"), "sessions"]) == 0


def test_import_and_what_it_says(folder: Path, capfdbinary: Out) -> None:
    file = os.fsdecode(os.fsencode(folder) + b"/caf\xe9.jsonl")
    shutil.copyfile(CAPTURE, file)
    out = os.fsdecode(os.fsencode(folder) + b"/\xe9t\xe9.jsonl")
    assert run(["import", file, "-o", out, "--json"]) == 0
    (told,) = map(json.loads, capfdbinary.readouterr().out.splitlines())
    assert told["events"] > 0
    assert run(["validate", out]) == 0


def test_watching_a_folder_of_such_a_name_sees_what_is_written(folder: Path) -> None:
    """Not told of by the system, so looked for."""
    from ctxctl.trace.file_events import FileWaiter

    waiter = FileWaiter()
    waiter.at([str(folder)], lambda path: True, deep=False)
    waiter.wait(0.01, lambda: False)
    waiter.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", ["replay FILE", "ls FOLDER", "export FILE -o OUT.html", "import FILE -o OUT"]
)
def test_in_a_locale_without_characters(command: str, folder: Path) -> None:
    file = os.fsencode(folder) + b"/caf\xc3\xa9\xe9.jsonl"
    shutil.copyfile(CAPTURE, file)
    words = [
        word.encode()
        .replace(b"FILE", file)
        .replace(b"FOLDER", os.fsencode(folder))
        .replace(b"OUT", file + b"-out")
        for word in command.split()
    ]
    env = {
        **os.environ, "LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0",
        "PYTHONIOENCODING": "ascii",
    }  # fmt: skip
    arguments = [os.fsencode(sys.executable), b"-m", b"ctxctl", *words]
    done = subprocess.run(arguments, env=env, cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert done.stderr.isascii()
    assert b"Traceback" not in done.stderr
    # The valid bytes of the name as characters, the other ones as marks, and neither with escaped brackets.
    assert rb"caf\xe9<U+DCE9>" in done.stdout + done.stderr or "-o" in command
    assert b"u27e8" not in done.stdout + done.stderr


@pytest.mark.slow
def test_a_file_of_five_gigabytes_with_nothing_in_it(tmp_path: Path, capfdbinary: Out) -> None:
    """A hole costs no disk, and is not read; what is written behind it is."""
    path = tmp_path / "run.jsonl"
    with path.open("wb") as file:
        file.truncate(5 << 30)
    assert run(["replay", str(path)]) == 3
    said = capfdbinary.readouterr().err.decode()
    assert said == f"ctxctl: error: {path} holds no readable context event: it is all NUL bytes\n"
    with path.open("ab") as file:
        file.write(NATIVE.read_bytes())
    assert run(["replay", str(path), "--json"]) == 0
    rows = [json.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    assert [row["slug"] for row in rows if row["type"] == "problem"] == ["nul-bytes"]
    assert run(["replay", str(NATIVE), "--json"]) == 0
    plain = [json.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    assert [row for row in rows if row["type"] == "step"] == [row for row in plain if row["type"] == "step"]


@pytest.mark.parametrize(
    "command",
    ["lint REL", "replay REL", "cost REL", "find REL alpha", "validate REL", "export REL", "ls REL",
     "fleet ask overview --dataset REL"],
)  # fmt: skip
def test_a_path_in_a_directory_that_is_gone_is_named(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert run(command.replace("REL", "rel.jsonl").split()) == Exit.UNREADABLE
    assert capsys.readouterr().err == "ctxctl: error: rel.jsonl: No such file or directory\n"
