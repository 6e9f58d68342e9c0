"""Small histories of aider that tell of endless windows end where these have cost enough."""

from __future__ import annotations

import pytest

from ctxctl.importers.aider.reader import History
from ctxctl.ingest import run
from ctxctl.ingest.lines import ignore_problem
from tests.unit.importers.agent_help import imported

HEAD = "# aider chat started at 2025-01-01 00:00:00\n\n"
END = "#### Thanks\n\nYou are welcome.\n\n> Tokens: 900 sent, 8 received.\n"


def read(text: str) -> tuple[int, set[str]]:
    """How many events a history comes to, and what is wrong with it."""
    events, problems = imported("aider", (HEAD + text + END).encode())
    return len(events), {problem.slug for problem in problems}


def test_a_history_that_is_restored_again_and_again_is_not_told_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said, restored = "#### y\nx\n" * 20, "> Restored previous conversation history\n"
    assert read(said + restored * 3)[1] == set()
    monkeypatch.setattr(run, "WORK", 2000)
    for times in (100, 400):
        told, slugs = read(said + restored * times)
        assert slugs == {"windows-too-large"}
        assert told < 500 + times


class _Path(str):
    """A path that counts how often it is compared."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        _Path.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_a_file_is_not_looked_for_among_all_that_were_added() -> None:
    history = History("aider", ignore_problem)
    paths = [_Path(f"f{number}") for number in range(400)]
    _Path.compared = 0
    for path in paths * 2:
        history._add(path)
    assert _Path.compared < 2 * len(paths)
    assert history._run.make.work < 2 * len(paths)


def test_files_that_are_dropped_one_by_one_are_counted_as_looked_at() -> None:
    history, paths = History("aider", ignore_problem), [_Path(f"f{number}") for number in range(640)]
    for path in paths:
        history._add(path)
    _Path.compared, before = 0, history._run.make.work
    for path in reversed(paths):
        history._remove(path)
    assert _Path.compared < 64 * (history._run.make.work - before)
    assert history._files == {}
    assert len(history._window) == 0


def test_all_files_are_dropped_at_once() -> None:
    history, paths = History("aider", ignore_problem), [_Path(f"f{number}") for number in range(400)]
    for path in paths:
        history._add(path)
    _Path.compared = 0
    history._printed("Dropping all files from the chat session.")
    assert _Path.compared == 0
    assert history._files == {}
    assert len(history._window) == 0


def test_a_log_of_requests_ends_where_its_windows_have_cost_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = "TO LLM 2025-01-01T00:00:00\n-------\n" + "USER y\n-------\nASSISTANT x\n-------\n" * 20
    log = (sent * 30).encode()
    whole, problems = imported("aider", log)
    assert not problems
    monkeypatch.setattr(run, "WORK", 1000 - len(log) // 4)
    cut, problems = imported("aider", log)
    assert {problem.slug for problem in problems} == {"windows-too-large"}
    assert len(cut) < len(whole)
