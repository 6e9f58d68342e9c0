"""Where a command writes: pipes, full devices, folders, and the file that it reads."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import pytest

from ctxctl.cli.main import run

ROOT = Path(__file__).parents[3]
CAPTURE = ROOT / "fixtures" / "claude_code" / "compaction.jsonl"
NATIVE = ROOT / "tests" / "golden" / "traces" / "window.jsonl"
Out = pytest.CaptureFixture[str]


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    return Path(shutil.copy(CAPTURE, tmp_path / "run.jsonl"))


def read_in_thread(path: Path) -> tuple[threading.Thread, list[bytes]]:
    found: list[bytes] = []
    thread = threading.Thread(target=lambda: found.append(path.read_bytes()), daemon=True)
    return thread, found


@pytest.mark.parametrize("command", ["import", "export"])
def test_a_pipe_gets_what_a_file_would(command: str, capture: Path, tmp_path: Path, capsys: Out) -> None:
    assert run([command, str(capture), "-o", str(tmp_path / "out.jsonl")]) == 0
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader, found = read_in_thread(pipe)
    reader.start()
    assert run([command, str(capture), "-o", str(pipe)]) == 0
    reader.join(10)
    assert found == [(tmp_path / "out.jsonl").read_bytes()]
    assert pipe.is_fifo()


def test_a_pipe_that_nobody_reads_yet_is_waited_for_and_that_is_said(
    capture: Path, tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ctxctl.cli import destination

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader, found = read_in_thread(pipe)
    said: list[str] = []

    def note(text: str) -> None:
        said.append(text)
        if len(said) == 1:
            reader.start()

    monkeypatch.setattr(destination, "note", note)
    assert run(["import", str(capture), "-o", str(pipe)]) == 0
    reader.join(10)
    assert found[0]
    assert said[0] == f"ctxctl: {pipe} is a pipe that nobody reads yet: waiting for a reader"


@pytest.mark.parametrize("name", ["run.jsonl", "link", "hard", "./run.jsonl", "sub/../run.jsonl"])
@pytest.mark.parametrize("command", ["import", "export"])
def test_what_is_read_is_never_written_over(
    command: str, name: str, capture: Path, tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    (tmp_path / "link").symlink_to("run.jsonl")
    (tmp_path / "hard").hardlink_to(capture)
    assert run([command, "run.jsonl", "-o", name, "--force"]) == 2
    assert f"{name} is the file that is read" in capsys.readouterr().err
    assert capture.read_bytes() == CAPTURE.read_bytes()


def test_a_second_source_is_read_too(capture: Path, tmp_path: Path, capsys: Out) -> None:
    other = Path(shutil.copy(CAPTURE, tmp_path / "other.jsonl"))
    assert run(["import", str(capture), str(other), "-o", str(other), "--force"]) == 2
    assert other.read_bytes() == CAPTURE.read_bytes()


@pytest.mark.parametrize("command", ["import", "export"])
def test_a_file_of_a_directory_that_is_read_is_not_written_over(
    command: str, capture: Path, tmp_path: Path, capsys: Out
) -> None:
    assert run([command, str(tmp_path), "-o", str(capture), "--force"]) == 2
    assert f"{capture} is in {tmp_path}, and all of that is read" in capsys.readouterr().err
    assert capture.read_bytes() == CAPTURE.read_bytes()
    assert run([command, str(tmp_path), "-o", str(tmp_path / "new.jsonl"), "--force"]) == 0


def test_a_report_is_written_again_into_the_directory_that_it_is_of(
    capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in ("first", "again"):
        assert run(["export", ".", "--format", "html", "-o", "page.html", "--force"]) == 0
        assert run(["check", ".", "--max", "1", "--junit", "report.xml"]) == 1
    assert b"<testsuite" in (tmp_path / "report.xml").read_bytes()
    shutil.copy(CAPTURE, tmp_path / "disguised.xml")
    assert run(["check", ".", "--max", "1", "--junit", "disguised.xml"]) == 2
    assert (tmp_path / "disguised.xml").read_bytes() == CAPTURE.read_bytes()


@pytest.mark.parametrize("name", ["page.html", "table.csv"])
def test_what_is_looked_at_because_it_would_be_replaced_is_not_read_for_that(
    name: str, capture: Path, tmp_path: Path, capsys: Out
) -> None:
    """However odd its name is: a capture of another session that nobody asked to read."""
    there = Path(shutil.copy(CAPTURE, tmp_path / name))
    assert run(["export", str(capture), "-o", str(there), "--force"]) == 0
    assert there.read_bytes() != CAPTURE.read_bytes()


@pytest.mark.parametrize("force", [["--force"], []], ids=["forced", "not forced"])
def test_no_file_of_a_dataset_is_written_over(
    force: list[str], capture: Path, tmp_path: Path, capsys: Out
) -> None:
    dataset = tmp_path / "set"
    assert run(["fleet", "add", str(capture), "--dataset", str(dataset)]) == 0
    rules = tmp_path / "rules.toml"
    rules.write_text("[cost]\nmax = 1\n")
    files = {path: path.read_bytes() for path in dataset.rglob("*") if path.is_file()}
    assert len(files) > 3
    for path in files:
        assert run(["fleet", "report", "--dataset", str(dataset), "-o", str(path), *force]) == 2
        assert run(["export", str(capture), "-o", str(path), *force]) == 2
        assert run(["check", str(capture), "--max", "1", "--junit", str(path)]) == 2
        assert "is a file of the dataset" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in dataset.rglob("*") if path.is_file()} == files
    page = dataset / "page.html"
    for _ in ("first", "again"):
        assert run(["fleet", "report", "--dataset", str(dataset), "-o", str(page), "--force"]) == 0


def test_a_link_to_a_file_that_is_read_may_be_replaced_where_it_lies(
    capture: Path, tmp_path: Path, capsys: Out
) -> None:
    folder, other = tmp_path / "folder", tmp_path / "elsewhere"
    folder.mkdir()
    other.mkdir()
    shutil.copy(capture, folder)
    (folder / "keep.txt").write_text("kept")
    (other / "link").symlink_to(folder / "keep.txt")
    assert run(["import", str(capture), "-o", str(other / "link"), "--force"]) == 0
    assert (folder / "keep.txt").read_text() == "kept"
    assert not (other / "link").is_symlink()


@pytest.mark.parametrize("command", ["import", "export"])
def test_nor_is_a_file_beside_a_capture_that_completes_it(command: str, tmp_path: Path, capsys: Out) -> None:
    folder = Path(shutil.copytree(ROOT / "fixtures/claude_code", tmp_path / "project"))
    agent = next(folder.glob("requests/subagents/*.jsonl"))
    (tmp_path / "link.jsonl").symlink_to(agent)
    before = agent.read_bytes()
    for output in (agent, tmp_path / "link.jsonl"):
        for _ in ("read", "kept"):
            assert run([command, str(folder / "requests.jsonl"), "-o", str(output), "--force"]) == 2
            assert f"{output} is one of the files that were read" in capsys.readouterr().err
    assert agent.read_bytes() == before
    assert not [path for path in agent.parent.iterdir() if path.suffix == ".partial"]


def test_a_report_does_not_take_the_place_of_the_trace(tmp_path: Path, capsys: Out) -> None:
    trace = Path(shutil.copy(NATIVE, tmp_path / "run.jsonl"))
    assert run(["check", str(trace), "--max-tokens", "1", "--junit", str(trace)]) == 2
    assert trace.read_bytes() == NATIVE.read_bytes()


@pytest.mark.parametrize("command", ["import", "export"])
def test_standard_output_is_not_the_file_that_is_read(command: str, capture: Path, tmp_path: Path) -> None:
    """As with `>>`: what is written would be read, and written, and read."""
    from subprocess import PIPE
    from subprocess import run as start
    from sys import executable

    with capture.open("ab") as out:
        done = start([executable, "-m", "ctxctl", command, str(capture)], stdout=out, stderr=PIPE, cwd=ROOT)
    assert done.returncode == 2
    assert b"standard output is the file that is read" in done.stderr
    assert capture.read_bytes() == CAPTURE.read_bytes()


@pytest.mark.parametrize("command", ["import", "export"])
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("folder", "Is a directory"),
        ("none/out.jsonl", "No such file or directory"),
        ("run.jsonl/out.jsonl", "Not a directory"),
        ("n" * 300, "File name too long"),
        ("/dev/full", "No space left on device"),
        ("a\0b", "not a file name"),
    ],
)
def test_the_message_names_the_file_and_the_cause(
    command: str, name: str, says: str, capture: Path, tmp_path: Path, capsys: Out
) -> None:
    (tmp_path / "folder").mkdir()
    before = sorted(tmp_path.rglob("*"))
    place = name if name.startswith("/") else str(tmp_path / name)
    assert run([command, str(capture), "-o", place, "--force"]) in (1, 3)
    err = capsys.readouterr().err
    assert err.count("\n") == 1, err
    assert says in err
    assert place.replace("\0", "") in err.replace("␀", "").replace("\\x00", "")
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written(capture: Path, tmp_path: Path, capsys: Out) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    assert run(["import", str(capture), "-o", str(closed / "out.jsonl")]) == 3
    assert "closed/out.jsonl: Permission denied" in capsys.readouterr().err
