"""Counts outlive the run, and nothing that can happen to their file is more than a miss."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from ctxctl.cache_database import CacheDatabase
from ctxctl.tokens import cache as module
from ctxctl.tokens.cache import CountCache, counts_at, default_path, kept_open

KEY = CountCache.key("o200k_base", b"hello")
OTHER = CountCache.key("o200k_base", b"world")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "cache" / "counts.sqlite3"


def stored(path: Path, key: bytes = KEY) -> tuple[int, bool] | None:
    """What a new run finds."""
    with CountCache(path) as cache:
        return cache.get(key)


def test_counts_outlive_the_run(path: Path) -> None:
    with CountCache(path) as cache:
        assert cache.get(KEY) is None
        cache.put(KEY, 1)
        cache.put(OTHER, 0, False)
        assert cache.get(KEY) == (1, True)
        assert cache.get(OTHER) == (0, False)
    assert stored(path) == (1, True)
    assert stored(path, OTHER) == (0, False)


def test_key_is_of_what_decides_the_count() -> None:
    assert len(KEY) == 16
    assert KEY != OTHER
    assert CountCache.key("cl100k_base", b"hello") != KEY
    assert CountCache.key("o200k_harmony", b"hello") == KEY


def test_buffer_is_written_by_itself_and_by_flush(path: Path) -> None:
    cache = CountCache(path)
    for number in range(module._FLUSH_AT - 1):
        cache.put(number.to_bytes(16, "big"), number)
    assert stored(path, (0).to_bytes(16, "big")) is None
    cache.put(KEY, 7)
    assert stored(path) == (7, True)
    cache.put(OTHER, 8)
    cache.flush()
    assert stored(path, OTHER) == (8, True)
    cache.close()
    cache.put(KEY, 9)
    cache.close()
    assert stored(path) == (9, True)


def test_only_the_user_can_read_it(path: Path) -> None:
    before = os.umask(0)
    try:
        cache = CountCache(path)
        cache.put(KEY, 1)
        cache.flush()
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    files = {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}
    assert len(files) >= 3
    assert set(files.values()) == {0o600}
    cache.close()


@pytest.mark.parametrize(
    "content", [b"garbage" * 1000, b"SQLite format 3\0" + b"\xff" * 4080, b"x", b"\0" * 8192]
)
def test_damaged_file_is_a_miss_and_made_anew(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    with CountCache(path) as cache:
        assert cache.get(KEY) is None
        cache.put(KEY, 3)
    assert stored(path) == (3, True)


def test_damage_inside_is_a_miss_and_made_anew(path: Path) -> None:
    with CountCache(path) as cache:
        for number in range(5_000):
            cache.put(CountCache.key("o200k_base", b"%d" % number), number)
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xaa" * (len(content) - 4096)
    path.write_bytes(content)
    with CountCache(path) as cache:
        assert cache.get(KEY) is None
        cache.put(KEY, 3)
    assert stored(path) == (3, True)


def test_damage_while_open_is_survived(path: Path) -> None:
    cache = CountCache(path)
    cache.put(KEY, 1)
    cache.flush()
    for suffix in ("", "-wal"):
        Path(f"{path}{suffix}").write_bytes(b"garbage" * 2000)
    cache.get(OTHER)
    cache.put(OTHER, 2)
    cache.flush()
    cache.close()
    with CountCache(path) as cache:
        cache.put(OTHER, 2)
    assert stored(path, OTHER) == (2, True)


@pytest.mark.parametrize(
    "statement",
    ["PRAGMA user_version = 5", "DROP TABLE counts", "ALTER TABLE counts RENAME COLUMN key TO other"],
)
def test_another_layout_is_replaced(path: Path, statement: str) -> None:
    with CountCache(path) as cache:
        cache.put(KEY, 1)
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()
    with CountCache(path) as cache:
        assert cache.get(KEY) is None
        cache.put(KEY, 2)
    assert stored(path) == (2, True)


def test_a_value_of_another_type_is_a_miss(path: Path) -> None:
    with CountCache(path) as cache:
        cache.put(KEY, 1)
        cache.flush()
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE counts SET tokens = 'many'")
        connection.close()
        cache._new.clear()
        assert cache.get(KEY) is None


def test_a_file_that_has_grown_too_large_is_started_afresh(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with CountCache(path) as cache:
        cache.put(KEY, 1)
    monkeypatch.setattr(module, "MAX_FILE_BYTES", 1000)
    assert stored(path) is None


@pytest.mark.parametrize("obstacle", ["file in the way", "directory", "dangling link of the lock"])
def test_unusable_place_is_a_miss(path: Path, obstacle: str) -> None:
    if obstacle == "file in the way":
        path.parent.parent.mkdir()
        path.parent.write_text("not a directory")
    elif obstacle == "directory":
        path.mkdir(parents=True)
    else:
        path.parent.mkdir(parents=True)
        path.with_suffix(".lock").symlink_to("elsewhere")
    with CountCache(path) as cache:
        for number in range(50):
            assert cache.get(number.to_bytes(16, "big")) is None
            cache.put(number.to_bytes(16, "big"), number)
            cache.flush()
        # The run itself remembers.
        assert cache.get((5).to_bytes(16, "big")) == (5, True)


def test_no_sqlite_is_a_miss(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlite3", None)
    with CountCache(path) as cache:
        assert cache.get(KEY) is None
        cache.put(KEY, 1)
        assert cache.get(KEY) == (1, True)


def test_busy_file_keeps_the_buffer(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctxctl.cache_database.BUSY_SECONDS", 0.01)
    with CountCache(path) as cache:
        cache.put(OTHER, 1)
        cache.flush()
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        for _ in range(20):
            cache.put(KEY, 1)
            cache.flush()
        assert cache.get(KEY) == (1, True)
        assert cache.get(OTHER) == (1, True)
        other.execute("ROLLBACK")
        other.close()
    assert stored(path) == (1, True)


@pytest.mark.parametrize(
    ("error", "given_up"),
    [
        (sqlite3.DatabaseError("file is not a database"), True),
        (sqlite3.OperationalError("disk I/O error"), True),
        (sqlite3.OperationalError("database is locked"), False),
    ],
)
def test_a_file_that_never_opens_is_given_up_but_not_a_busy_one(
    path: Path, monkeypatch: pytest.MonkeyPatch, error: sqlite3.Error, given_up: bool
) -> None:
    opened: list[int] = []

    def fails(_: CacheDatabase) -> sqlite3.Connection:
        opened.append(1)
        raise error

    connect = CacheDatabase.connect
    monkeypatch.setattr(CacheDatabase, "connect", fails)
    with CountCache(path) as cache:
        for _ in range(40):
            assert cache.get(KEY) is None
        before = len(opened)
        assert cache.get(KEY) is None
        assert (len(opened) == before) is given_up
        # What fails now and then is not given up: each success starts the count of failures anew.
        other = CountCache(path)
        for _ in range(10):
            monkeypatch.setattr(CacheDatabase, "connect", fails)
            assert other.get(KEY) is None
            monkeypatch.setattr(CacheDatabase, "connect", connect)
            assert other.get_all([KEY]) == {}
            other.close()
        other.put(KEY, 4)
        other.close()
    assert stored(path) == (4, True)


def test_buffer_is_bounded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_KEEP_AT_MOST", 600)
    path.mkdir(parents=True)
    with CountCache(path) as cache:
        for number in range(5_000):
            cache.put(number.to_bytes(16, "big"), number)
        assert len(cache._new) == 600


def test_threads_share_one_cache(path: Path) -> None:
    with CountCache(path) as cache:

        def work(part: int) -> None:
            for number in range(part * 1000, part * 1000 + 1000):
                cache.put(number.to_bytes(16, "big"), number)
                assert cache.get(number.to_bytes(16, "big")) == (number, True)

        threads = [threading.Thread(target=work, args=(part,)) for part in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert all(stored(path, number.to_bytes(16, "big")) == (number, True) for number in (0, 999, 1000, 3999))


WRITER = """
import sys
from ctxctl.tokens.cache import CountCache
part = int(sys.argv[2])
with CountCache(sys.argv[1]) as cache:
    sys.stdin.readline()
    for number in range(3000):
        cache.put((part * 1500 + number).to_bytes(16, "big"), part * 1500 + number)
        cache.get(number.to_bytes(16, "big"))
"""


@pytest.mark.parametrize("before", [None, b"garbage" * 2000])
def test_processes_share_one_file(path: Path, before: bytes | None) -> None:
    if before:
        path.parent.mkdir(parents=True)
        path.write_bytes(before)
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), str(part)],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for part in range(3)
    ]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write(b"\n")
        writer.stdin.flush()
    for writer in writers:
        assert writer.communicate(timeout=60)[1] == b""
        assert writer.returncode == 0
    with CountCache(path) as cache:
        assert all(cache.get(number.to_bytes(16, "big")) == (number, True) for number in range(6000))


def test_a_forked_child_opens_the_file_for_itself(path: Path) -> None:
    with CountCache(path) as cache:
        cache.put(KEY, 1)
        cache.flush()
        child = os.fork()
        if child == 0:
            cache.put(OTHER, 2)
            cache.flush()
            os._exit(0 if cache.get(KEY) == (1, True) else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert cache.get(OTHER) == (2, True)


def test_default_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CTXCTL_CACHE", raising=False)
    monkeypatch.setenv("CTXCTL_CACHE_DIR", str(tmp_path))
    assert default_path() == tmp_path / module.FILE_NAME
    monkeypatch.delenv("CTXCTL_CACHE_DIR")
    place = default_path()
    assert place is not None
    assert place.parent.name == "ctxctl"
    monkeypatch.setenv("CTXCTL_CACHE", "off")
    assert default_path() is None


def test_many_are_asked_for_at_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [bytes([n % 256, n // 256]) * 8 for n in range(1300)]
    with CountCache(path) as cache:
        for n, key in enumerate(keys[:1200]):
            cache.put(key, n, exact=n % 2 == 0)
    with CountCache(path) as cache:
        cache.put(keys[1250], 7)
        assert cache.get_all([]) == {}
        found = cache.get_all(keys + keys)
        assert found == {key: (n, n % 2 == 0) for n, key in enumerate(keys[:1200])} | {keys[1250]: (7, True)}
        monkeypatch.setattr(cache, "_read", lambda key: pytest.fail("looked for again"))
        assert cache.get(keys[1299]) is None
        monkeypatch.undo()
        with CountCache(path) as other:
            other.put(keys[1299], 3)
        assert cache.get(keys[1299]) is None
        assert cache.get_all(keys[1298:]) == {keys[1299]: (3, True)}
        assert cache.get(keys[1299]) == (3, True)


def test_no_more_is_remembered_to_be_absent_than_there_is_room_for(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ctxctl.tokens.cache._ABSENT_AT_MOST", 10)
    keys = [bytes([n]) * 16 for n in range(40)]
    with CountCache(path) as cache:
        cache.get_all(keys[:30])
        with CountCache(path) as other:
            other.put(keys[0], 3)
        assert cache.get(keys[0]) is None
        cache.get_all(keys[30:])
        assert cache.get(keys[0]) == (3, True)


def test_nothing_is_taken_for_absent_that_could_not_be_asked_for(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir()
    cache = CountCache(path)
    assert cache.get_all([KEY]) == {}
    path.rmdir()
    with CountCache(path) as other:
        other.put(KEY, 5)
    assert cache.get(KEY) == (5, True)


def test_other_values_among_many_are_misses(path: Path) -> None:
    with CountCache(path) as cache:
        cache.put(KEY, 5)
        cache.put(bytes(16), 6)
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE counts SET tokens = 'a,b 3' WHERE key = ?", (KEY,))
    with CountCache(path) as cache:
        assert cache.get_all([KEY, bytes(16)]) == {bytes(16): (6, True)}


def test_a_buffer_is_written_in_one_transaction(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads meanwhile sees all of it or nothing; another writer is waited for first."""
    monkeypatch.setattr(module, "_WRITE_AT_ONCE", 1)
    said: list[str] = []
    with CountCache(path) as cache:
        cache.get(KEY)
        assert cache._connection is not None
        cache._connection.set_trace_callback(said.append)
        cache.put(KEY, 1)
        cache.put(OTHER, 2)
        cache.flush()
    verbs = [statement.split()[:2] for statement in said]
    insert = ["INSERT", "OR"]
    assert verbs == [["BEGIN", "IMMEDIATE"], insert, insert, ["COMMIT"]], (
        "and what is written is not written again"
    )


def test_a_file_of_somebody_else_is_not_held_open(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.parent.mkdir(parents=True)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    opened: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def noted(*args: Any, **options: Any) -> sqlite3.Connection:
        opened.append(connect(*args, **options))
        return opened[-1]

    monkeypatch.setattr(sqlite3, "connect", noted)
    with pytest.raises(sqlite3.DatabaseError, match="somebody else"):
        CountCache(path)._database.connect()
    (one,) = opened
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        one.execute("SELECT 1")


def test_a_process_that_keeps_files_open_opens_each_once_and_writes_at_the_end(path: Path) -> None:
    with kept_open():
        with counts_at(path) as cache:
            cache.put(KEY, 1)
        with counts_at(path) as again:
            assert again is cache
            assert again.get(KEY) == (1, True)
            again.put(OTHER, 2)
            again.flush()
        assert counts_at(path.with_name("another.sqlite3")) is not cache
        assert stored(path) is None
        for number in range(600):  # enough to be written at once
            cache.put(CountCache.key("o200k_base", b"%d" % number), number)
        assert stored(path) == (1, True)
        last = CountCache.key("o200k_base", b"last")
        cache.put(last, 3)
    assert stored(path, last) == (3, True)
    assert counts_at(path) is not cache
