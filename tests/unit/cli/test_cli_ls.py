"""``ctxctl ls``, and commands without a path: which session they take, and what they say of it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ctxctl.cli.ls import moment_since
from ctxctl.cli.main import run
from ctxctl.errors import UsageError

ROOT = Path(__file__).resolve().parents[3]
FIXTURES = ROOT / "fixtures"
SCHEMA = json.loads((ROOT / "docs/json.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
Out = pytest.CaptureFixture[str]
NOW = 1_795_000_000.0


class Machine:
    """A user's own directory with sessions, and a project in it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.project = home / "work" / "thing"
        self.project.mkdir(parents=True)

    def claude(self, name: str, directory: Path, age: float) -> Path:
        """A Claude Code session that was recorded in a directory."""
        made = self.home / ".claude/projects/p" / f"{name}.jsonl"
        made.parent.mkdir(parents=True, exist_ok=True)
        text = (FIXTURES / "claude_code/session.jsonl").read_text()
        lines = [json.loads(line) for line in text.splitlines()]
        made.write_text("".join(json.dumps({**one, "cwd": str(directory)}) + "\n" for one in lines))
        os.utime(made, (time.time() - age, time.time() - age))
        return made


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr("ctxctl.trace.inputs.YOUNG", -60.0)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    made = Machine(tmp_path / "home")
    monkeypatch.chdir(made.project)
    return made


def listed(capsys: Out, *arguments: str) -> list[dict[str, Any]]:
    assert run(["ls", "--json", *arguments]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    for line in lines:
        VALIDATOR.validate(line)
    assert lines[0]["type"] == "session_list"
    assert lines[0]["sessions"] == len(lines) - 1
    return lines[1:]


def names(found: list[dict[str, Any]]) -> list[str]:
    return [Path(one["path"]).stem for one in found]


def test_sessions_are_listed_with_what_cost_says_of_them(machine: Machine, capsys: Out) -> None:
    path = machine.claude("a", machine.project, 500)
    (found,) = listed(capsys)
    assert run(["cost", "--json", str(path)]) == 0
    cost = next(one for one in map(json.loads, capsys.readouterr().out.splitlines()) if one["type"] == "cost")
    assert found["cost"] == cost["sent"]["total"]
    assert found["steps"] == cost["steps"]
    assert found["directory"] == str(machine.project)
    assert found["live"] is None
    assert found["read"] == "yes"
    assert found["prompt"]


def test_quick_reads_nothing_and_tells_what_was_read_before(machine: Machine, capsys: Out) -> None:
    machine.claude("a", machine.project, 500)
    (found,) = listed(capsys, "--quick")
    assert (found["read"], found["turns"], found["directory"]) == ("no", None, str(machine.project))
    listed(capsys)
    (found,) = listed(capsys, "--quick")
    assert found["read"] == "yes"
    assert found["turns"] > 0


def test_here_is_the_directory_and_what_is_below_it(machine: Machine, capsys: Out) -> None:
    machine.claude("here", machine.project, 500)
    machine.claude("below", machine.project / "src", 400)
    machine.claude("beside", machine.project.parent / "thing2", 300)
    machine.claude("above", machine.project.parent, 200)
    shutil.copy(ROOT / "traces/coding-agent.jsonl", machine.project / "lying.jsonl")
    assert names(listed(capsys, "--quick", "--here")) == ["lying", "below", "here"]
    assert len(listed(capsys, "--quick")) == 5


def test_since_leaves_out_what_is_older(machine: Machine, capsys: Out) -> None:
    machine.claude("old", machine.project, 3 * 86_400)
    machine.claude("new", machine.project, 3600)
    assert names(listed(capsys, "--quick", "--since", "2d")) == ["new"]
    assert names(listed(capsys, "--quick", "--since", "1w")) == ["new", "old"]


def test_times_ago_and_dates_are_understood() -> None:
    assert moment_since("2d", NOW) == NOW - 2 * 86_400
    assert moment_since("12h", NOW) == NOW - 12 * 3600
    assert moment_since("30min", NOW) == moment_since("30m", NOW) == NOW - 1800
    assert moment_since("2026-11-01", NOW) == time.mktime((2026, 11, 1, 0, 0, 0, 0, 0, -1))
    for wrong in ("", "2y", "d", "-2d", "yesterday", "99999999d", "2026-13-01"):
        with pytest.raises(UsageError, match="not a time"):
            moment_since(wrong, NOW)


def test_a_directory_is_listed_as_cost_reads_it_and_paths_can_be_pasted_back(
    machine: Machine, capsys: Out
) -> None:
    top = machine.project / "my captures"
    top.mkdir()
    shutil.copy(FIXTURES / "claude_code/session.jsonl", top / "one.jsonl")
    shutil.copy(FIXTURES / "codex/rollout.jsonl", top / "it's.jsonl")
    assert run(["ls", "my captures"]) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    pasted = {shlex.split(line)[-1] for line in lines}
    assert pasted == {"my captures/one.jsonl", "my captures/it's.jsonl"}
    assert all(Path(path).exists() for path in pasted)
    assert run(["replay", "my captures"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == lines


def test_a_directory_with_one_capture_lists_it_whatever_it_is(machine: Machine, capsys: Out) -> None:
    for name, file in (("native", "traces/coding-agent.jsonl"), ("codex", "fixtures/codex/rollout.jsonl")):
        (machine.project / name).mkdir()
        shutil.copy(ROOT / file, machine.project / name / "run.jsonl")
        (found,) = listed(capsys, name)
        assert (found["path"], found["format"], found["read"]) == (f"{name}/run.jsonl", name, "yes")
    (found,) = listed(capsys, "codex/run.jsonl")
    assert (found["path"], found["read"]) == ("codex/run.jsonl", "yes")
    shutil.copytree(FIXTURES / "roo", machine.project / "roo")
    task = next(path.parent for path in (machine.project / "roo").rglob("api_conversation_history.json"))
    (found,) = listed(capsys, str(task))
    assert (found["path"], found["format"], found["read"]) == (str(task), "roo", "yes")


def test_a_directory_that_is_asked_as_one_trace_is_read_as_one(machine: Machine, capsys: Out) -> None:
    for name in ("one", "two"):
        shutil.copy(FIXTURES / "codex/rollout.jsonl", machine.project / f"{name}.jsonl")
    assert run(["replay", "--json", "."]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[0])["type"] == "trace"


def test_without_a_session_the_places_are_named(machine: Machine, capsys: Out) -> None:
    (machine.home / ".codex/sessions").mkdir(parents=True)
    assert run(["ls"]) == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    looked, absent = printed.err.split("not there:")
    assert "~/.codex/sessions" in looked
    assert "~/.claude/projects" in absent


def test_without_a_users_own_directory_nothing_breaks(
    machine: Machine, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("HOME")
    monkeypatch.setattr(Path, "home", nowhere)
    shutil.copy(FIXTURES / "codex/rollout.jsonl", machine.project / "run.jsonl")
    assert names(listed(capsys)) == ["run"]


def test_hostile_names_and_prompts_are_made_visible(machine: Machine, capsys: Out) -> None:
    (machine.project / "a\x1b[2J\u202e.jsonl").write_bytes((FIXTURES / "codex/rollout.jsonl").read_bytes())
    assert run(["ls"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\u202e" not in out


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_no_session(machine: Machine, capsys: Out) -> None:
    machine.claude("a", machine.project, 500).chmod(0)
    assert listed(capsys) == []


COMMANDS: list[tuple[list[str], list[str]]] = [
    (["replay", "--plain"], ["replay", "--plain", "PATH"]),
    (["cost"], ["cost", "PATH"]),
    (["lint"], ["lint", "PATH"]),
    (["show"], ["show", "PATH"]),
    (["show", "@1"], ["show", "PATH@1"]),
    (["diff", "@1"], ["diff", "PATH@1"]),
    (["diff", "@1", "@-1"], ["diff", "PATH@1", "PATH@-1"]),
    (["blame", "@1", "--stat"], ["blame", "PATH@1", "--stat"]),
    (["find", "tokens > 10"], ["find", "PATH", "tokens > 10"]),
    (["bisect", "window > 10"], ["bisect", "PATH", "window > 10"]),
    (["log", "ITEM"], ["log", "PATH", "ITEM"]),
    (["why", "ITEM"], ["why", "PATH", "ITEM"]),
    (["why", "@1", "ITEM"], ["why", "PATH@1", "ITEM"]),
    (["export", "--format", "markdown"], ["export", "PATH", "--format", "markdown"]),
]


@pytest.mark.parametrize(("short", "long"), COMMANDS, ids=lambda words: " ".join(words))
def test_without_a_path_the_newest_session_of_the_directory_is_taken(
    machine: Machine, capsys: Out, short: list[str], long: list[str]
) -> None:
    machine.claude("elsewhere", machine.home, 100)
    path = machine.claude("newest", machine.project, 200)
    machine.claude("older", machine.project, 300)
    assert run(["replay", "--json", str(path)]) == 0
    steps = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    item = next(change["item"] for step in steps for change in step.get("changes", ()) if change.get("item"))

    def done(words: list[str]) -> tuple[int, str, str]:
        code = run([word.replace("PATH", str(path)).replace("ITEM", item) for word in words])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    expected = done(long)
    code, out, err = done(short)
    first, *rest = err.splitlines(keepends=True)
    assert (code, out, "".join(rest)) == expected
    assert first.startswith(f"ctxctl: newest session here: {path} (claude-code, written ")
    assert "of 2 sessions here" in first


def test_a_session_of_another_directory_is_never_taken(machine: Machine, capsys: Out) -> None:
    machine.claude("elsewhere", machine.home / "work", 100)
    assert run(["cost"]) == 3
    assert "no session was recorded in ~/work/thing or below it" in capsys.readouterr().err


def test_a_trace_alone_is_no_item(machine: Machine, capsys: Out) -> None:
    path = machine.claude("newest", machine.project, 200)
    for command in ("log", "why"):
        assert run([command, str(path)]) == 2
        assert "no item is named" in capsys.readouterr().err


def test_without_a_terminal_and_without_a_word_there_is_the_help(capsys: Out) -> None:
    assert run([]) == 2
    assert "Usage: ctxctl" in capsys.readouterr().err
