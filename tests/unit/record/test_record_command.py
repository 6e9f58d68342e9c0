"""`ctxctl record`: which options go together, where it writes, and what views say of losses and failures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from record_help import ROOT, ctxctl

from ctxctl import Recorder
from ctxctl.cli.main import run
from ctxctl.errors import UsageError
from ctxctl.record import options as made
from ctxctl.record.options import Options, check_appendable


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "nothing to record"),
        (["--stdin", "--proxy"], "cannot be combined"),
        (["--stdin", "--otlp", "--events"], "cannot be combined"),
        (["--mcp"], "--mcp needs the server to run"),
        (["--stdin", "--", "ls"], "--stdin runs no command, but `ls` was given"),
        (["--proxy", "ls"], "a proxy of its own"),
        (["--port", "1", "--stdin"], "--port cannot be combined with --stdin"),
        (["--read-as", "codex", "--", "ls"], "--read-as cannot be combined with -- COMMAND"),
        (["--session", "s", "--watch", "."], "--session cannot be combined with --watch"),
        (["--rotate", "1G", "--stdin"], "--rotate cannot be combined with --stdin"),
        (["--rotate", "many", "--", "ls"], "not a size"),
        (["--rotate", "10", "--", "ls"], "at least 1 KiB"),
        (["--redact", "x.toml", "--no-redact", "--", "ls"], "contradict each other"),
        (["-o", "-", "--", "ls"], "give -o FILE"),
        (["--redact", "/no/such/rules.toml", "--mcp", "--", "cat"], "cannot read /no/such/rules.toml"),
    ],
)
def test_what_does_not_go_together_is_explained(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert run(["record", *arguments]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert "hint: " in told or "cannot read" in told
    assert [path.name for path in tmp_path.iterdir()] == []


def test_options_of_the_command_are_its_own(tmp_path: Path) -> None:
    trace = tmp_path / "t.jsonl"
    done = ctxctl("record", "-q", "-o", str(trace), "--mcp", "echo", "-n", "--port", "x")
    assert (done.returncode, done.stdout) == (0, "--port x")


def test_without_a_name_it_is_a_new_file_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(made.time, "strftime", lambda form: "ctxctl-20260101-000000")
    first = made.default_name()
    assert first == Path("ctxctl-20260101-000000.jsonl")
    first.touch()
    assert made.default_name() == Path("ctxctl-20260101-000000-2.jsonl")


@pytest.mark.parametrize(
    ("content", "fits"),
    [
        (b"", True), (b"\n\n", True), (b'{"event_type":"x"}\n', True),
        (b'{"schema_version":"0.1.1","ev', True), (b'torn\n{"event_type":"x"}\n', True),
        (b"# notes\n", False), (b'{"a": 1}\n', False), (b"\x7fELF", False),
    ],
)  # fmt: skip
def test_only_a_trace_is_appended_to(tmp_path: Path, content: bytes, fits: bool) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(content)
    if fits:
        check_appendable(str(path))
        return
    with pytest.raises(UsageError) as caught:
        Options(path).recorder()
    assert caught.value.slug == "not-a-trace"
    assert path.read_bytes() == content


def test_the_summary_says_what_came_of_it(tmp_path: Path) -> None:
    said: list[str] = []
    options = Options(tmp_path / "a trace.jsonl", say=said.append)
    options.begin("listening")
    recorder = options.recorder()
    recorder.item("x", "gh" + "p_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6")
    options.finish(recorder, "more")
    where = str(options.out)
    assert said == [
        "ctxctl: listening",
        f"ctxctl: to follow it: ctxctl watch '{where}'",
        f"ctxctl: {where}: 1 event written, 1 secret replaced (github-token 1)",
        "ctxctl: more",
    ]


def test_a_program_that_has_to_run_goes_on_without_a_trace(tmp_path: Path) -> None:
    said: list[str] = []
    (tmp_path / "file").write_text("x")
    options = Options(tmp_path / "file" / "t.jsonl", say=said.append, quiet=True)
    recorder = options.recorder(must=False)
    recorder.item("x", "y")
    options.finish(recorder)
    assert "going on without" in said[0]
    assert "0 events written, 1 event lost" in said[1]


def rows(path: Path, *more: str) -> list[dict[str, Any]]:
    done = ctxctl(*more, "--json", str(path))
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def failing(path: Path) -> Path:
    """A session with a failed request, one that failed twice before its answer, and a gap."""
    with Recorder(path, session="s") as recorder:
        with recorder.turn() as turn, turn.step(model="m") as step:
            step.request(messages=[{"role": "user", "content": "one"}])
            step.failed(TimeoutError("a text that nobody shall see"))
        recorder._core.journal.count_lost("ENOSPC", 3)
        recorder._core.journal.count_lost("busy")
        with recorder.turn() as turn, turn.step(model="m") as step:
            step.request(messages=[{"role": "user", "content": "one"}, {"role": "user", "content": "two"}])
            step.failed("HTTP 429: rate_limit_error")
            step.failed("HTTP 500: api_error")
            step.usage(input_tokens=2, output_tokens=1)
    return path


@pytest.mark.parametrize("command", [("replay",), ("watch", "--idle", "0")])
def test_views_say_what_failed_and_what_was_lost(tmp_path: Path, command: tuple[str, ...]) -> None:
    path = failing(tmp_path / "t.jsonl")
    found = rows(path, *command)
    first, second = (row for row in found if row["type"] == "step")
    assert first["stages"]["evidence"] == {"verdict": "recorded", "failed": "TimeoutError"}
    assert first["flags"] == ["failed"]
    evidence = second["stages"]["evidence"]
    # It was answered in the end.
    assert (evidence["retried_after"], evidence["retried"], evidence["output"]) == (
        "HTTP 500: api_error",
        2,
        1,
    )
    assert "failed" not in evidence
    assert "failed" not in second["flags"]
    problems = [row for row in found if row["type"] == "problem"]
    assert [(row["slug"], row["message"]) for row in problems] == [
        ("events-lost", "4 events were not recorded before this one (ENOSPC 3, busy 1)")
    ]
    by_step = "--steps" if command == ("replay",) else "--plain"
    plain = ctxctl(*command, by_step, str(path))
    assert "failed   TimeoutError" in plain.stdout
    assert "retried  answered after 2 failures, the last HTTP 500: api_error" in plain.stdout
    assert "events-lost: 4 events were not recorded" in plain.stderr
    assert "nobody shall see" not in path.read_text() + plain.stdout


def test_a_frame_says_that_its_request_failed(tmp_path: Path) -> None:
    path = failing(tmp_path / "t.jsonl")
    assert "evidence   recorded: failed TimeoutError" in ctxctl("show", f"{path}@1").stdout


@pytest.mark.parametrize("most", range(8, 17))
def test_without_descriptors_there_is_one_line_and_no_traceback(most: int, tmp_path: Path) -> None:
    script = (
        "import resource, runpy; "
        f"resource.setrlimit(resource.RLIMIT_NOFILE, ({most}, {most})); "
        "runpy.run_module('ctxctl', run_name='__main__')"
    )
    command = [sys.executable, "-c", script, "record", "-o", str(tmp_path / "t.jsonl"), "--", "true"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    if done.returncode:
        assert done.stderr.startswith("ctxctl: error: ")
        assert done.stderr.endswith("Too many open files\n")
        assert done.stderr.count("\n") == 1
    else:
        assert "Traceback" not in done.stderr
