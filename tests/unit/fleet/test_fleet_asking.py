"""Captures of a directory are asked again only where something that the answer rests on has changed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ctxctl.errors import UsageError
from ctxctl.fleet.asking import Asker, Failed, Question
from ctxctl.fleet.captures import CaptureFile, captures_in
from ctxctl.fleet.store import AnswerStore
from ctxctl.model.results import Step
from ctxctl.session import Inspector

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"
Ask = Callable[..., dict[str, bytes | Failed]]


class Calls:
    """A directory of captures, a store, and which captures were really read."""

    def __init__(self, top: Path) -> None:
        self.top = top / "captures"
        self.top.mkdir()
        self.log = top / "calls"
        self.store = top / "answers.sqlite3"

    def ask(self, rests_on: str = "", more: dict[str, bytes] | None = None) -> dict[str, bytes | Failed]:
        """Ask all files."""
        self.log.write_text("")
        question = Question("fleet_work:size_of", os.fsencode(self.log), rests_on)
        files = [CaptureFile(path.name, "native") for path in sorted(self.top.iterdir())]
        with AnswerStore(self.store, 1 << 30) as store:
            return {one.name: data for one, data in Asker(str(self.top), store).ask(question, files, more)}

    @property
    def read(self) -> list[str]:
        """Names of the captures that were read."""
        return self.log.read_text().split()


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Calls:
    monkeypatch.setattr("ctxctl.trace.inputs.YOUNG", -60.0)  # what a test has just written is old enough
    made = Calls(tmp_path)
    (made.top / "a").write_text("aaa")
    (made.top / "b").write_text("bb")
    return made


def test_an_answer_is_kept(calls: Calls) -> None:
    assert calls.ask() == {"a": b"aaa", "b": b"bb"}
    assert sorted(calls.read) == ["a", "b"]
    assert calls.ask() == {"a": b"aaa", "b": b"bb"}
    assert calls.read == []


def test_other_words_and_other_surroundings_are_other_questions(calls: Calls) -> None:
    calls.ask("code 1")
    assert calls.ask("code 1", {"a": b"+"})["a"] == b"aaa+"
    assert calls.read == ["a"]
    calls.ask("code 2")
    assert sorted(calls.read) == ["a", "b"]


def test_a_file_that_changed_is_read_again_and_no_other(calls: Calls) -> None:
    calls.ask()
    with (calls.top / "a").open("a") as file:
        file.write("more")
    assert calls.ask()["a"] == b"aaamore"
    assert calls.read == ["a"]


def test_other_bytes_of_the_same_size_and_time_are_read_again(calls: Calls) -> None:
    calls.ask()
    before = (calls.top / "a").stat()
    (calls.top / "a").write_text("xyz")
    os.utime(calls.top / "a", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert calls.ask()["a"] == b"xyz"


def test_other_ends_are_read_again_even_where_the_file_system_tells_nothing(
    calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ctxctl.trace.inputs.file_state", lambda _name: None)
    calls.ask()
    (calls.top / "a").write_text("xyz")
    assert calls.ask()["a"] == b"xyz"


def test_a_file_that_was_just_written_is_not_kept(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctxctl.trace.inputs.YOUNG", 60.0)
    calls.ask()
    calls.ask()
    assert sorted(calls.read) == ["a", "b"]


def test_what_may_pass_and_what_failed_is_asked_again(calls: Calls) -> None:
    (calls.top / "a").write_text("passing")
    (calls.top / "b").write_text("unreadable")
    for _ in range(2):
        assert calls.ask() == {"a": b"passing", "b": Failed("bad-thing", "it cannot be read", 3)}
        assert sorted(calls.read) == ["a", "b"]


def test_a_bug_is_one_captures_problem_and_tells_nothing_of_the_data(calls: Calls) -> None:
    (calls.top / "a").write_text("bug")
    found = calls.ask()
    assert found["b"] == b"bb"
    failed = found["a"]
    assert isinstance(failed, Failed)
    assert failed.slug == "capture-failed"
    assert "KeyError" in failed.message
    assert "secret" not in failed.message


def test_worker_processes_answer_the_same(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    here = calls.ask()
    calls.store.unlink()
    monkeypatch.setattr("ctxctl.fleet.asking.processes_for", lambda _size, pieces: pieces)
    assert calls.ask() == here
    assert sorted(calls.read) == ["a", "b"]


# What a directory holds -------------------------------------------------------------------------------------


def put(top: Path, name: str, fixture: str) -> None:
    path = top / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes((FIXTURES / fixture).read_bytes())


def test_a_projects_sessions_are_captures_and_their_sub_agents_are_not(tmp_path: Path) -> None:
    put(tmp_path, "p/one.jsonl", "claude_code/session.jsonl")
    put(tmp_path, "p/two.jsonl", "claude_code/sidechain.jsonl")
    put(tmp_path, "p/agent-x.jsonl", "claude_code/session.jsonl")
    put(tmp_path, "p/one/subagents/agent-y.jsonl", "claude_code/session.jsonl")
    expected = [CaptureFile("p/one.jsonl", "claude-code"), CaptureFile("p/two.jsonl", "claude-code")]
    assert captures_in(str(tmp_path)) == expected
    put(tmp_path, "codex/r.jsonl", "codex/rollout.jsonl")
    assert captures_in(str(tmp_path), "claude-code")[-2:] == expected
    found = captures_in(str(tmp_path), "codex")
    assert found == []  # one capture is not several


def test_formats_and_traces_beside_each_other_are_captures(tmp_path: Path) -> None:
    put(tmp_path, "a.jsonl", "codex/rollout.jsonl")
    put(tmp_path, "b.har", "har/chrome.har")
    put(tmp_path, "c.jsonl", "../traces/coding-agent.jsonl")
    put(tmp_path, "notes.txt", "../README.md")
    found = [(one.name, one.format) for one in captures_in(str(tmp_path))]
    assert found == [("a.jsonl", "codex"), ("b.har", "har"), ("c.jsonl", "native")]


@pytest.mark.parametrize(
    ("name", "fixture", "format_name"),
    [
        ("crush.db", "crush/crush.db", "crush"),
        ("b.har", "har/chrome.har", "har"),
        ("calls.traj", "swe_agent/calls.traj", "swe-agent"),
        ("B.HAR", "har/chrome.har", "har"),
    ],
)
def test_what_lies_beside_transcripts_in_other_files_is_a_capture_too(
    tmp_path: Path, name: str, fixture: str, format_name: str
) -> None:
    put(tmp_path, "one.jsonl", "claude_code/session.jsonl")
    put(tmp_path, name, fixture)
    expected = sorted([("one.jsonl", "claude-code"), (name, format_name)])
    assert [(one.name, one.format) for one in captures_in(str(tmp_path))] == expected


def test_results_of_tools_are_no_captures_whatever_lies_beside_the_transcripts(tmp_path: Path) -> None:
    put(tmp_path, "p/one.jsonl", "claude_code/session.jsonl")
    put(tmp_path, "p/one/tool-results/r.json", "har/chrome.har")
    put(tmp_path, "p/one/subagents/agent-x.jsonl", "claude_code/session.jsonl")
    put(tmp_path, "x.har", "har/chrome.har")
    expected = [CaptureFile("p/one.jsonl", "claude-code"), CaptureFile("x.har", "har")]
    assert captures_in(str(tmp_path)) == expected


@pytest.mark.parametrize("other", ["har/chrome.har", "crush/crush.db", "codex/rollout.jsonl"])
def test_transcripts_and_what_lies_between_them_are_replayed_together(tmp_path: Path, other: str) -> None:
    put(tmp_path, "p/one.jsonl", "claude_code/session.jsonl")
    put(tmp_path, "p/one/subagents/agent-x.jsonl", "claude_code/session.jsonl")
    name = f"x{Path(other).suffix}"
    put(tmp_path, name, other)

    def steps(path: Path) -> int:
        with Inspector.open(path) as inspector:
            return sum(isinstance(one, Step) for one in inspector.replay())

    with Inspector.open(tmp_path) as inspector:
        assert inspector.format == "several"
    assert steps(tmp_path) == steps(tmp_path / "p") + steps(tmp_path / name)


def test_a_trace_beside_captures_is_told_and_not_left_out_in_silence(tmp_path: Path) -> None:
    put(tmp_path, "a.jsonl", "codex/rollout.jsonl")
    put(tmp_path, "c.jsonl", "../traces/coding-agent.jsonl")
    with Inspector.open(tmp_path) as inspector:
        (problem,) = [one for one in inspector.problems if one.slug == "trace-beside-captures"]
    assert problem.message.startswith("c.jsonl ")


def test_what_lies_in_a_transcripts_own_directory_is_not_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "p/one.jsonl", "claude_code/session.jsonl")
    put(tmp_path, "p/two.jsonl", "claude_code/session.jsonl")
    for n in range(3):
        own = tmp_path / f"p/one/subagents/agent-{n}.meta.json"
        own.parent.mkdir(parents=True, exist_ok=True)
        own.write_text("{}")
    looked: list[str] = []
    monkeypatch.setattr("ctxctl.importers.registry.format_in", lambda _folder, name, *_: looked.append(name))
    assert [one.name for one in captures_in(str(tmp_path))] == ["p/one.jsonl", "p/two.jsonl"]
    assert looked == []


def test_a_directory_within_that_is_one_capture_is_one(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "amplifier/sessions", tmp_path / "there/sessions")
    put(tmp_path, "a.jsonl", "codex/rollout.jsonl")
    expected = [CaptureFile("a.jsonl", "codex"), CaptureFile("there", "amplifier")]
    assert captures_in(str(tmp_path)) == expected


def test_one_capture_is_none_of_several(tmp_path: Path) -> None:
    assert captures_in(str(tmp_path)) == []
    put(tmp_path, "a.jsonl", "codex/rollout.jsonl")
    assert captures_in(str(tmp_path)) == []
    with pytest.raises(UsageError, match="no format named"):
        captures_in(str(tmp_path), "nonsense")
