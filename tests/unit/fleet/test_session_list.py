"""The list of sessions: which files are sessions, what is kept of them, and what is read anew."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import msgspec
import pytest

from ctxctl.analysis.cost_groups import CostWords
from ctxctl.fleet.asking import Asker, Question
from ctxctl.fleet.session_files import ListPlace, machine_places, open_for_writing
from ctxctl.fleet.session_list import WORK, SessionList
from ctxctl.fleet.store import AnswerStore
from ctxctl.model.session_list import LIVE_SECONDS, ListedSession

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"
WORDS = CostWords("model", None, None, None, "none", "none", {})
QUESTION = Question(WORK, msgspec.msgpack.encode(WORDS), "these tests")


@pytest.fixture(autouse=True)
def _old_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was made a moment ago may be kept."""
    monkeypatch.setattr("ctxctl.trace.inputs.YOUNG", -60.0)


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A place of Claude Code with a session, a sub-agent's file beside it, a note, and nonsense."""
    project = tmp_path / "projects" / "-work-thing"
    (project / "session" / "subagents").mkdir(parents=True)
    shutil.copy(FIXTURES / "claude_code/session.jsonl", project / "session.jsonl")
    shutil.copy(FIXTURES / "claude_code/session.jsonl", project / "session" / "subagents" / "agent-a1.jsonl")
    (project / "notes.md").write_text("# what was done\n")
    (project / "other.jsonl").write_text('{"no": "session"}\n')
    (project / "empty.jsonl").touch()
    os.symlink(project / "session.jsonl", project / "link.jsonl")
    return tmp_path / "projects"


def place(top: Path) -> ListPlace:
    return ListPlace(str(top), ("claude-code",))


def names(found: list[ListedSession]) -> list[str]:
    return [Path(one.path).name for one in found]


def read_all(sessions: SessionList, store: AnswerStore | None = None) -> list[ListedSession]:
    found = sessions.scan(time.time())
    done = {one.path: one for one in sessions.read(Asker("/", store), sessions.unread(found, time.time()))}
    return [done.get(one.path, one) for one in found]


def test_only_sessions_are_listed(top: Path) -> None:
    (found,) = SessionList([place(top)], None, QUESTION).scan(time.time())
    assert Path(found.path).name == "session.jsonl"
    assert found.format == "claude-code"
    assert found.facts is None
    assert found.directory is not None


def test_a_session_is_as_young_as_its_sub_agents(top: Path) -> None:
    session = top / "-work-thing/session.jsonl"
    os.utime(session, (1000, 1000))
    os.utime(top / "-work-thing/session/subagents/agent-a1.jsonl", (5000, 5000))
    (found,) = SessionList([place(top)], None, QUESTION).scan(time.time())
    assert found.written == 5000


@pytest.mark.parametrize("end", ["", "/"])
def test_a_place_that_is_one_session_has_the_time_and_size_of_its_files(tmp_path: Path, end: str) -> None:
    for name, size in (("a.md", 3), ("b.md", 4)):
        (tmp_path / name).write_text("x" * size)
        os.utime(tmp_path / name, (1000 + size, 1000 + size))
    path = f"{tmp_path}{end}"
    (found,) = SessionList([ListPlace(path, named={path: "agent-context"})], None, QUESTION).scan(time.time())
    assert (found.written, found.size) == (1004.0, 7)


def test_the_one_written_last_comes_first(top: Path) -> None:
    for n, age in enumerate((300, 100, 200)):
        made = top / f"-work-thing/{n}.jsonl"
        shutil.copy(FIXTURES / "claude_code/session.jsonl", made)
        os.utime(made, (time.time() - age, time.time() - age))
    os.utime(top / "-work-thing/session.jsonl", (0, 0))
    shutil.rmtree(top / "-work-thing/session")
    found = SessionList([place(top)], None, QUESTION).scan(time.time())
    assert names(found) == ["1.jsonl", "2.jsonl", "0.jsonl", "session.jsonl"]


def test_what_goes_on_is_told_by_its_time_or_by_who_has_it_open(top: Path) -> None:
    sessions = SessionList([place(top)], None, QUESTION)
    shutil.rmtree(top / "-work-thing/session")
    written = (top / "-work-thing/session.jsonl").stat().st_mtime
    assert sessions.scan(written + LIVE_SECONDS - 1)[0].live == "written"
    assert sessions.scan(written + LIVE_SECONDS + 1)[0].live == ""


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="nothing tells of open files")
def test_a_file_that_another_program_writes_is_open_and_one_that_it_reads_is_not(tmp_path: Path) -> None:
    import subprocess

    written, read = tmp_path / "written", tmp_path / "read"
    read.touch()
    code = f"a = open({str(written)!r}, 'a'); b = open({str(read)!r}); print('open', flush=True); input()"
    with subprocess.Popen(
        ["python3", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:  # fmt: skip
        assert other.stdout is not None
        other.stdout.readline()
        assert open_for_writing({str(written), str(read)}) == {str(written)}
        other.communicate(b"\n")
    assert open_for_writing({str(written), str(read)}) == set()


def test_what_was_read_is_kept_until_a_file_changes(top: Path, tmp_path: Path) -> None:
    with AnswerStore(tmp_path / "kept.sqlite3", 1 << 30) as store:
        first = SessionList([place(top)], store, QUESTION)
        (one,) = read_all(first, store)
        assert one.facts is not None
        assert one.facts.turns > 0
        first.save()
        (again,) = (second := SessionList([place(top)], store, QUESTION)).scan(time.time())
        assert again.facts == one.facts
        assert second.unread([again], time.time()) == []
        with (top / "-work-thing/session.jsonl").open("ab") as file:
            file.write(b"\n")
        (grown,) = (third := SessionList([place(top)], store, QUESTION)).scan(time.time())
        assert grown.outdated
        assert grown.facts == one.facts
        assert third.unread([grown], time.time()) == [grown]


def test_what_was_read_of_a_file_that_was_replaced_is_forgotten(top: Path, tmp_path: Path) -> None:
    with AnswerStore(tmp_path / "kept.sqlite3", 1 << 30) as store:
        first = SessionList([place(top)], store, QUESTION)
        read_all(first, store)
        first.save()
        other = top / "-work-thing/other-name"
        shutil.copy(FIXTURES / "claude_code/session.jsonl", other)
        os.replace(other, top / "-work-thing/session.jsonl")
        (found,) = SessionList([place(top)], store, QUESTION).scan(time.time())
        assert found.facts is None


def test_a_new_file_of_a_sub_agent_makes_what_was_read_outdated(top: Path, tmp_path: Path) -> None:
    with AnswerStore(tmp_path / "kept.sqlite3", 1 << 30) as store:
        first = SessionList([place(top)], store, QUESTION)
        read_all(first, store)
        first.save()
        beside = top / "-work-thing/session/subagents/agent-b2.jsonl"
        shutil.copy(FIXTURES / "claude_code/session.jsonl", beside)
        (found,) = SessionList([place(top)], store, QUESTION).scan(time.time())
        assert found.outdated


def test_a_session_that_cannot_be_read_says_why(top: Path) -> None:
    (top / "-work-thing/packed.jsonl").write_bytes(b"\x1f\x8b and no more")
    named = {str(top / "-work-thing/packed.jsonl"): "claude-code"}
    sessions = SessionList([ListPlace(str(top), (), named)], None, QUESTION)
    (found,) = read_all(sessions)
    assert found.facts is None
    assert found.failed
    assert sessions.unread([found], time.time()) == []


def test_a_damaged_row_is_none(top: Path, tmp_path: Path) -> None:
    with AnswerStore(tmp_path / "kept.sqlite3", 1 << 30) as store:
        first = SessionList([place(top)], store, QUESTION)
        first.scan(time.time())
        first.save()
        for one in first._places:
            store.put(one.key, b"\xc1 nonsense")
        store.flush()
        (found,) = SessionList([place(top)], store, QUESTION).scan(time.time())
        assert found.format == "claude-code"


def test_a_place_that_is_not_there_and_one_that_is_a_file_have_no_sessions(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    places = [ListPlace(str(tmp_path / "none")), ListPlace(str(tmp_path / "file"))]
    assert SessionList(places, None, QUESTION).scan(time.time()) == []


def test_the_places_of_clients_are_below_the_users_own_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with AnswerStore(tmp_path / "kept.sqlite3", 1 << 30) as store:
        found = machine_places(store, "x")
        assert ListPlace(str(tmp_path / ".claude/projects"), ("claude-code",)) in found
        assert ListPlace(str(tmp_path / ".codex/sessions"), ("codex",)) in found
        assert machine_places(store, "x") == found
        monkeypatch.setenv("HOME", "/somewhere")
        assert all(place.path.startswith("/somewhere/") for place in machine_places(store, "x"))
