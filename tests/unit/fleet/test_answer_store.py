"""The file of answers: never a wrong row, whatever happens to it, and never an error."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ctxctl.fleet.store import AnswerStore

MOST = 1 << 30
KEYS = [bytes([n]) * 16 for n in range(6)]


def rows(path: Path, keys: list[bytes] = KEYS) -> dict[bytes, bytes]:
    with AnswerStore(path, MOST) as store:
        return dict(store.get_all(keys))


def kept(path: Path, made: dict[bytes, bytes]) -> None:
    with AnswerStore(path, MOST) as store:
        for key, data in made.items():
            store.put(key, data)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "answers" / "answers.sqlite3"


def test_what_was_put_last_is_there_for_the_next_run(path: Path) -> None:
    assert rows(path) == {}
    kept(path, {KEYS[0]: b"one", KEYS[1]: b""})
    kept(path, {KEYS[0]: b"two"})
    assert rows(path) == {KEYS[0]: b"two", KEYS[1]: b""}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_two_who_write_keep_both(path: Path) -> None:
    with AnswerStore(path, MOST) as one, AnswerStore(path, MOST) as two:
        one.put(KEYS[0], b"a")
        two.put(KEYS[1], b"b")
        one.flush()
        two.flush()
    assert rows(path) == {KEYS[0]: b"a", KEYS[1]: b"b"}


def test_a_row_that_was_changed_or_moved_is_not_there(path: Path) -> None:
    kept(path, {KEYS[0]: b"a", KEYS[1]: b"b", KEYS[2]: b"c"})
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE answers SET data = ? WHERE key = ?", (b"x", KEYS[0]))
        connection.execute("UPDATE answers SET key = ? WHERE key = ?", (KEYS[3], KEYS[1]))
    assert rows(path) == {KEYS[2]: b"c"}


@example(damage=[(18, 3)])  # the header says: for a later SQLite to write
@given(damage=st.lists(st.tuples(st.integers(0, 40_000), st.integers(0, 255)), min_size=1, max_size=60))
def test_damage_is_a_row_that_is_missing_and_never_another(
    tmp_path_factory: pytest.TempPathFactory, damage: list[tuple[int, int]]
) -> None:
    path = tmp_path_factory.mktemp("store") / "answers.sqlite3"
    made = {key: key * 200 for key in KEYS}
    kept(path, made)
    data = bytearray(path.read_bytes())
    for place, byte in damage:
        data[place % len(data)] = byte
    path.write_bytes(data)
    found = rows(path)
    assert all(made[key] == held for key, held in found.items())
    kept(path, {KEYS[0]: b"new"})
    assert rows(path).get(KEYS[0], b"new") == b"new"


def test_what_is_no_database_is_made_anew(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(b"not a database, but long enough to be taken for something" * 100)
    kept(path, {KEYS[0]: b"a"})
    assert rows(path) == {KEYS[0]: b"a"}


def test_a_database_of_another_layout_is_made_anew(path: Path) -> None:
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA user_version = 7")
        connection.execute("CREATE TABLE answers (key BLOB, other TEXT)")
    kept(path, {KEYS[0]: b"a"})
    assert rows(path) == {KEYS[0]: b"a"}


def test_a_link_is_not_followed(path: Path, tmp_path: Path) -> None:
    path.parent.mkdir(parents=True)
    other = tmp_path / "other"
    other.write_bytes(b"")
    path.symlink_to(other)
    kept(path, {KEYS[0]: b"a"})
    assert rows(path) == {}
    assert other.read_bytes() == b""


def test_a_place_where_nothing_can_be_written_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    kept(tmp_path / "file" / "answers.sqlite3", {KEYS[0]: b"a"})
    assert rows(tmp_path / "file" / "answers.sqlite3") == {}


def test_a_full_disk_loses_what_is_new_and_keeps_what_there_was(path: Path) -> None:
    kept(path, {KEYS[0]: b"a"})
    with AnswerStore(path, MOST) as store:
        assert dict(store.get_all(KEYS))
        assert store._connection is not None
        (pages,) = store._connection.execute("PRAGMA page_count").fetchone()
        store._connection.execute(f"PRAGMA max_page_count = {pages}")
        store.put(KEYS[1], b"b" * 100_000)
        store.flush()
    assert rows(path) == {KEYS[0]: b"a"}


def test_the_oldest_rows_go_first(path: Path) -> None:
    keys = [n.to_bytes(16, "big") for n in range(100)]
    kept(path, dict.fromkeys(keys, b"x" * 4000))
    with closing(sqlite3.connect(path)) as connection, connection:
        for n, key in enumerate(keys):
            connection.execute("UPDATE answers SET used = ? WHERE key = ?", (n, key))
    with AnswerStore(path, 200_000) as store:
        assert dict(store.get_all(keys[:5]))  # used today: the newest of all
        store.put(b"n" * 16, b"new")
    left = rows(path, [*keys, b"n" * 16])
    assert os.path.getsize(path) <= 200_000
    assert {b"n" * 16, *keys[:5], *keys[-5:]} <= left.keys()
    assert not left.keys() & set(keys[5:40])


WRITER = """
import sys
from pathlib import Path
from ctxctl.fleet.store import AnswerStore
with AnswerStore(Path(sys.argv[1]), 1 << 30) as store:
    print("ready", flush=True)
    for round in range(1_000_000):
        for n in range(6):
            store.put(bytes([n]) * 16, bytes([n, round % 256]) * 3000)
        store.flush()
"""


def test_who_is_killed_while_writing_leaves_whole_rows(path: Path) -> None:
    for wait in (0.0, 0.02, 0.05, 0.11):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, env=os.environ
        ) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            time.sleep(wait)
            writer.kill()
        found = rows(path)
        assert all(data == data[:2] * 3000 and data[0] == key[0] for key, data in found.items())
        kept(path, {b"after" + bytes(11): b"x"})
        assert rows(path, [b"after" + bytes(11)]) == {b"after" + bytes(11): b"x"}
    assert rows(path).keys() == set(KEYS)
