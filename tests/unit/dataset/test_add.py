"""Captures go into a dataset once: new ones, changed ones in the place of what they were, and no others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="needs the extra `fleet`")
pytest.importorskip("obstore", reason="needs the extra `fleet`")

from ctxctl.dataset import add as adding
from ctxctl.dataset.add import in_processes
from ctxctl.dataset.batch import WORK, Batch, Capture, Made, batch
from ctxctl.dataset.key_file import keep_key, key_of
from ctxctl.dataset.keys import KeyedDigests
from ctxctl.dataset.known import KnownSources
from ctxctl.dataset.log import commit, fold, live, read_commit
from ctxctl.errors import CtxctlError, UnreadableError
from ctxctl.ingest.folder import Folder
from ctxctl.trace import inputs
from tests.unit.dataset.fleet_kit import (
    added,
    files_in,
    fleet,
    opened,
    rows_in,
    run,
    session,
    settle,
    words,
    write,
)
from tests.unit.dataset.kit import FIXTURES


@pytest.fixture(autouse=True)
def _old(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test has written does not count as young."""
    monkeypatch.setattr(inputs, "YOUNG", -60.0)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return fleet(tmp_path / "logs")


def test_every_capture_is_in_and_rows_are_those_of_each_alone(logs: Path, tmp_path: Path) -> None:
    snapshot = added(tmp_path / "d", logs)
    rows = rows_in(snapshot)
    assert len(rows["sources"]) == 9
    assert len(rows["sessions"]) >= 9
    apart: dict[str, list[tuple[object, ...]]] = {name: [] for name in rows}
    for number, path in enumerate(sorted(p for p in logs.rglob("*") if p.is_file())):
        one = rows_in(added(tmp_path / f"one-{number}", path))
        for name, found in one.items():
            apart[name] += found
    assert {name: sorted(found) for name, found in apart.items()} == rows


def test_processes_make_the_same_bytes_as_one(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adding, "_CAPTURES", 2)
    added(tmp_path / "one", logs)
    added(tmp_path / "two", logs, runner=in_processes(2))
    one, two = files_in(tmp_path / "one"), files_in(tmp_path / "two")
    assert one == two
    assert sum(name.startswith("log/") for name in one) > 1


def test_a_second_run_reads_nothing_and_writes_nothing(logs: Path, tmp_path: Path) -> None:
    added(tmp_path / "d", logs)
    before = files_in(tmp_path / "d")
    done, plan = run(opened(tmp_path / "d"), [logs])
    assert (done.captures, plan.unchanged) == (0, 9)
    assert files_in(tmp_path / "d") == before
    done, plan = run(opened(tmp_path / "d"), [logs], again=True)
    assert done.captures == 9
    assert rows_in(live(str(tmp_path / "d"))) == rows_in(live(str(tmp_path / "d"), version=1))


def test_a_capture_that_was_alone_in_its_directory_is_in_once(tmp_path: Path) -> None:
    for name in ("one", "agents"):
        logs = tmp_path / name
        write(logs / "s-1.jsonl", session(1))
        if name == "agents":
            write(logs / "s-1" / "subagents" / "agent-a.jsonl", session(9))
        alone = added(tmp_path / f"d-{name}", logs)
        write(logs / "s-2.jsonl", session(2))
        both = added(tmp_path / f"d-{name}", logs)
        assert (len(rows_in(alone)["sources"]), len(rows_in(both)["sources"])) == (1, 2)
        assert len({row[0] for row in rows_in(both)["sessions"]}) == len(rows_in(both)["sessions"]) == 2
        assert rows_in(both) == rows_in(added(tmp_path / f"anew-{name}", logs))


def test_a_directory_of_very_many_files_is_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        write(tmp_path / "logs" / f"p{number}" / "a.jsonl", session(number))
    for bounded in (inputs.files_under, Folder.__init__):
        monkeypatch.setattr(bounded, "__defaults__", (2,))
    assert len(rows_in(added(tmp_path / "d", tmp_path / "logs"))["sources"]) == 6


def test_what_has_changed_replaces_its_own_rows(logs: Path, tmp_path: Path) -> None:
    added(tmp_path / "d", logs)
    grown = logs / "claude" / "p0" / "s-0.jsonl"
    write(grown, session(0, 7))
    write(logs / "claude" / "p1" / "new.jsonl", session(77))
    (logs / "other" / "exec.jsonl").unlink()
    done, plan = run(opened(tmp_path / "d"), [logs])
    assert (done.captures, plan.unchanged) == (2, 7)
    rows = rows_in(live(str(tmp_path / "d")))
    expected = rows_in(added(tmp_path / "anew", logs))
    for name, found in expected.items():  # what is gone from the disk stays in the dataset
        assert set(found) <= set(rows[name])
    assert len(rows["sources"]) == len(expected["sources"]) + 1
    assert len(rows["steps"]) == len(set(rows["steps"]))


def test_a_file_that_was_written_a_moment_ago_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "logs" / "a.jsonl", session(1))
    write(tmp_path / "logs" / "b.jsonl", session(2))
    monkeypatch.setattr(inputs, "YOUNG", 2.0)
    added(tmp_path / "d", tmp_path / "logs")
    _, plan = run(opened(tmp_path / "d"), [tmp_path / "logs"])
    assert (plan.captures, plan.unchanged) == (2, 0)


def test_a_capture_that_cannot_be_read_for_now_keeps_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise UnreadableError("read-failed", "cannot read it: Input/output error")

    path = os.fsencode(FIXTURES / "claude_code" / "compaction.jsonl")
    monkeypatch.setattr("ctxctl.dataset.batch.read_rows", fails)
    known = batch(Batch([Capture(path, "claude-code", 5, known=True)], words()))
    assert (known.files, [one.kept for one in known.unread]) == ([], [True])
    new = batch(Batch([Capture(path, "claude-code", 5)], words()))
    assert ([file.table for file, _ in new.files], [one.kept for one in new.unread]) == (["sources"], [False])


def test_a_capture_that_cannot_be_read_is_a_row_that_says_why(logs: Path, tmp_path: Path) -> None:
    from ctxctl.dataset.known import read_file

    path = FIXTURES / "damaged" / "all-nul.jsonl"
    unread = Capture(os.fsencode(path), "native", 5)
    made = batch(Batch([unread], words()))
    assert [(one.source, one.slug) for one in made.unread] == [(5, made.unread[0].slug)]
    assert [file.table for file, _ in made.files] == ["sources"]
    before = opened(tmp_path / "d")
    committer = adding.Committer(before, KnownSources())
    written = committer.written(made)
    committer.commit([written], {5})
    now = committer.snapshot
    (row,) = read_file(now, now.of("sources")[0]).to_pylist()
    assert row["failed"] == made.unread[0].slug
    assert row["sessions"] == 0


def test_a_capture_that_ends_its_process_is_told_and_the_others_are_read(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import msgspec

    bad = os.fsencode(logs / "claude" / "p0" / "s-2.jsonl")

    def fragile(work: str, pieces: list[bytes], *, apart: bool = False):  # type: ignore[no-untyped-def]
        for number, piece in enumerate(pieces):
            asked = msgspec.msgpack.decode(piece, type=Batch)
            if any(one.path == bad and one.read for one in asked.captures):
                yield number, None
            else:
                yield number, msgspec.msgpack.encode(batch(asked))

    done, _ = run(opened(tmp_path / "d"), [logs], fragile)  # type: ignore[arg-type]
    assert [(path, one.slug) for path, one in done.unread] == [(os.fsdecode(bad), "capture-failed")]
    assert len(rows_in(live(str(tmp_path / "d")))["sources"]) == 9
    assert WORK


def test_readers_of_a_version_see_that_version(logs: Path, tmp_path: Path) -> None:
    first = added(tmp_path / "d", logs)
    seen = rows_in(first)
    write(logs / "claude" / "p0" / "s-0.jsonl", session(0, 9))
    second = added(tmp_path / "d", logs)
    assert second.version == first.version + 1
    assert rows_in(first) == seen  # its files are still there
    assert rows_in(live(str(tmp_path / "d"), first.version)) == seen
    assert rows_in(second) != seen
    with pytest.raises(CtxctlError, match="no version 99"):
        live(str(tmp_path / "d"), 99)


def test_of_two_writers_the_loser_builds_its_commit_anew(logs: Path, tmp_path: Path) -> None:
    base = added(tmp_path / "d", logs)
    write(logs / "claude" / "p0" / "s-0.jsonl", session(0, 9))
    write(logs / "claude" / "p1" / "s-1.jsonl", session(1, 9))
    # Both read the same changed captures at the same version; one of them also has a new one.
    stale = fold(base.store, base.head)
    run(fold(base.store, base.head), [logs])
    more = tmp_path / "more"
    write(more / "x.jsonl", session(50))
    write(more / "y.jsonl", session(51))
    run(stale, [logs, more])
    now = live(str(tmp_path / "d"))
    rows = rows_in(now)
    whole = tmp_path / "whole"
    expected = opened(whole)
    run(expected, [logs, more])
    assert rows == rows_in(live(str(whole)))
    assert now.version > base.version + 1


def test_a_lost_race_changes_nothing(tmp_path: Path) -> None:
    empty = opened(tmp_path / "d")
    won = commit(empty, [], [], [1])
    assert won is not None
    assert won.version == 1
    assert commit(empty, [], [], [2]) is None
    assert live(str(tmp_path / "d")).forgotten == {1}
    assert read_commit(empty.store, 1).forget == [1]


def test_checkpoints_tell_the_same_as_all_commits(tmp_path: Path) -> None:
    from ctxctl.dataset.log import DataFile

    now = opened(tmp_path / "d")
    for number in range(1, 71):
        file = DataFile("steps", f"data/steps/x/y/{number}.parquet", "x", "y", 1, 1, "0")
        gone = [f"data/steps/x/y/{number - 3}.parquet"] if number % 2 else []
        after = commit(now, [file], [path for path in gone if path in now.files])
        assert after is not None
        now = after
    assert sorted(path.name for path in (tmp_path / "d" / "log").glob("*checkpoint*")) == [
        f"{32:020}.checkpoint.json", f"{64:020}.checkpoint.json",
    ]  # fmt: skip
    for version in (1, 31, 32, 33, 64, 70):
        found = live(str(tmp_path / "d"), version)
        expected = set()
        for number in range(1, version + 1):
            expected.add(number)
            if number % 2:
                expected.discard(number - 3)
        assert {int(path.rpartition("/")[2].removesuffix(".parquet")) for path in found.files} == expected


def test_a_key_of_another_dataset_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    head = opened(tmp_path / "d").head
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    with pytest.raises(CtxctlError) as lacking:
        key_of(head)
    assert (lacking.value.slug, lacking.value.exit_code) == ("no-key", 4)
    path = keep_key(head, bytes(range(32)))
    assert path.stat().st_mode & 0o777 == 0o600
    assert key_of(head) == bytes(range(32))
    monkeypatch.setenv("CTXCTL_FLEET_KEY", "00" * 32)
    with pytest.raises(CtxctlError) as wrong:
        key_of(head)
    assert wrong.value.slug == "wrong-key"


def test_what_is_sealed_is_for_its_key_alone() -> None:
    mine, other = KeyedDigests(bytes(32)), KeyedDigests(b"1" * 32)
    for data in (b"", b"x", b"/home/ann/secret-project/run.jsonl" * 9):
        sealed = mine.seal(data)
        assert mine.unseal(sealed) == data
        assert other.unseal(sealed) is None
        assert len(data) < 5 or data[:5] not in sealed
        assert mine.unseal(sealed[:-1] + bytes([sealed[-1] ^ 1])) is None or not data
    assert mine.number("item", b"a") != mine.number("content", b"a") != other.number("content", b"a")


def test_made_says_all(logs: Path) -> None:
    path = logs / "other" / "exec.jsonl"
    settle(path)
    made = batch(Batch([Capture(os.fsencode(path), "codex-exec", 3)], words()))
    assert isinstance(made, Made)
    assert made == batch(Batch([Capture(os.fsencode(path), "codex-exec", 3)], words()))
    assert made.sessions == 1
