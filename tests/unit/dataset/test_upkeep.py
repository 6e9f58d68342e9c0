"""Joining, removing and forgetting: which files there are, and of the rows only those that are meant."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="needs the extra `fleet`")
pytest.importorskip("obstore", reason="needs the extra `fleet`")

from ctxctl.dataset import add as adding
from ctxctl.dataset.log import Snapshot, live
from ctxctl.dataset.upkeep import compact, erased, forget, outdated, sessions_table, vacuum
from ctxctl.trace import inputs
from tests.unit.dataset.fleet_kit import added, fleet, opened, rows_in, run, session, write

_LATER = timedelta(hours=2)


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Snapshot:
    """A dataset of many small files."""
    monkeypatch.setattr(inputs, "YOUNG", -60.0)
    monkeypatch.setattr(adding, "_CAPTURES", 1)
    return added(tmp_path / "d", fleet(tmp_path / "logs"))


def test_joined_files_hold_the_same_rows(made: Snapshot) -> None:
    rows = rows_in(made)
    done = compact(made)
    assert done.after < done.before
    assert rows_in(done.snapshot) == rows
    partitions = [(one.table, one.month, one.format) for one in done.snapshot.files.values()]
    assert len(partitions) == len(set(partitions))
    assert compact(done.snapshot).snapshot.version == done.snapshot.version
    assert rows_in(live(made.store.place, made.version)) == rows


def test_unused_files_go_after_their_time_and_no_others(made: Snapshot, tmp_path: Path) -> None:
    rows = rows_in(made)
    now = compact(made).snapshot
    leaving = tmp_path / "d" / "data" / "stays" / "2026-01" / "x" / f"{0:032x}.parquet"
    leaving.parent.mkdir(parents=True)
    leaving.write_bytes(b"of a command that was ended")
    partial = tmp_path / "d" / "data" / "stays" / "y.parquet#1"
    partial.write_bytes(b"half")
    early = vacuum(now, datetime.now(UTC))
    assert (early.files, early.young > 2) == (0, True)
    assert rows_in(made) == rows
    done = vacuum(now, datetime.now(UTC) + _LATER)
    assert done.files == early.young
    assert rows_in(live(now.store.place)) == rows
    left = {str(path.relative_to(tmp_path / "d")) for path in (tmp_path / "d" / "data").rglob("*.parquet*")}
    assert left == set(now.files)


def test_a_forgotten_session_is_in_no_file_and_does_not_come_back(made: Snapshot, tmp_path: Path) -> None:
    table = sessions_table(made, ("session", "source", "name"))
    gone = next(row for row in table if row["name"] == "s-1")
    before = rows_in(made)
    done = forget(made, erased(made, [gone["session"]]))
    assert done.sessions == 1
    after = rows_in(done.snapshot)
    key, source = repr(gone["session"]), repr(gone["source"])
    assert done.rows == sum(map(len, before.values())) - sum(map(len, after.values())) > 0
    for name, rows in after.items():
        assert set(rows) < set(before[name]) or name in ("misses", "compactions")
        assert not any(key in row or source in row for row in rows)
    whole = b"".join(path.read_bytes() for path in (tmp_path / "d" / "data").rglob("*.parquet"))
    assert b"s-1" not in whole.replace(b"claude-s-1", b"")
    write(tmp_path / "logs" / "claude" / "p1" / "s-1.jsonl", session(1, 9))
    run(opened(tmp_path / "d"), [tmp_path / "logs"], again=True)
    assert not any("'s-1'" in row for row in rows_in(live(made.store.place))["sessions"])


def test_a_capture_keeps_its_other_sessions_and_only_their_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "YOUNG", -60.0)
    one, two = session(1, 2, "count the boats"), session(2, 2, "paint the shed")
    write(tmp_path / "logs" / "both.jsonl", one + two)
    write(tmp_path / "logs" / "other.jsonl", session(3))
    made = added(tmp_path / "d", tmp_path / "logs")
    table = sessions_table(made, ("session", "source", "name"))
    if len({row["source"] for row in table}) == len(table):
        pytest.skip("a transcript is one session here")
    alone = rows_in(made)
    gone = next(row["session"] for row in table if row["name"] == "s-2")
    now = forget(made, erased(made, [gone])).snapshot
    assert 0 < len(rows_in(now)["contents"]) < len(alone["contents"])
    run(opened(tmp_path / "d"), [tmp_path / "logs"], again=True)
    assert rows_in(live(made.store.place))["contents"] == rows_in(now)["contents"]


def test_retention_removes_what_ended_before_and_does_not_read_it_again(
    made: Snapshot, tmp_path: Path
) -> None:
    table = sessions_table(made, ("session", "ended"))
    moment = datetime(2026, 2, 15, tzinfo=UTC)
    old = [row for row in table if row["ended"] is not None and row["ended"] < moment]
    assert 0 < len(old) < len(table)
    sources = len(rows_in(made)["sources"])
    now = forget(made, outdated(made, moment)).snapshot
    assert len(sessions_table(now, ("session",))) == len(table) - len(old)
    assert len(rows_in(now)["sources"]) == sources
    done, plan = run(opened(tmp_path / "d"), [tmp_path / "logs"])
    assert (done.captures, plan.unchanged) == (0, 9)
