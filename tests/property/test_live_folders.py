"""Captures of several files, and databases, that grow under a watch end as one replay of them says."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ctxctl.report import jsonout
from ctxctl.session.live import LiveSession
from tests.property.test_live import Watched, batch, by_thread, encoded, same_as_now

FIXTURES = Path(__file__).parent.parent.parent / "fixtures"
SESSION = "5e550000-0000-4000-8000-000000000001"
FOLDERS = (
    "amplifier/sessions/0f1e2d3c-garden", "amplifier/sessions", "cursor/agent-transcripts",
    "cursor/agent-transcripts/a-1", "api/pairs", "luminarys/pairs", "openhands_completions/session",
    "roo/task", "agent_context/folder", "mcp_tools", "atif/summarised", "claude_code/agents/" + SESSION,
)  # fmt: skip

Step = Callable[[], None]


def ends_as_replayed(watched: Watched) -> None:
    """Nothing more comes: everything is as if it had been there from the beginning."""
    news = watched.finish()
    results, summary, problems, steps, _ = batch(Path(news.name))
    inspector = news.inspector
    assert inspector is not None
    assert results, "the capture holds nothing that could be lost"
    assert by_thread(watched.lines.values()) == by_thread(results)
    assert inspector.summary is not None
    assert jsonout.line(jsonout.summary(inspector.summary)) == summary
    assert [jsonout.line(jsonout.problem(problem)) for problem in inspector.problems] == problems
    shown = [encoded(inspector.step(row.ordinal)) for row in news.rows]
    assert by_thread(shown) == by_thread(map(encoded, steps))


def watch(path: Path, growing: Iterator[None]) -> Watched:
    """Look after each thing that happens, and hold what is shown against itself."""
    watched = Watched(path)
    with watched.live:
        for _ in growing:
            same_as_now(watched.poll())
        ends_as_replayed(watched)
    return watched


def pieces(source: Path, target: Path, names: list[str]) -> Iterator[None]:
    """Files that are written one after the other, each in three pieces."""
    for name in names:
        data = (source / name).read_bytes()
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        for n in range(3):
            with (target / name).open("ab") as file:
                file.write(data[len(data) * n // 3 : len(data) * (n + 1) // 3])
            yield


def interleaved(source: Path, target: Path, names: list[str]) -> Iterator[None]:
    """Files that are written at the same time, a piece of each at a time."""
    growing = [pieces(source, target, [name]) for name in names]
    while growing:
        growing = [one for one in growing if next(one, "over") != "over"]
        yield


def names_of(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("how", [pieces, interleaved])
@pytest.mark.parametrize("order", [1, -1], ids=["forth", "back"])
@pytest.mark.parametrize("folder", FOLDERS)
def test_a_directory_in_pieces_ends_as_one_replay(
    tmp_path: Path, folder: str, order: int, how: Callable[[Path, Path, list[str]], Iterator[None]]
) -> None:
    source, target = FIXTURES / folder, tmp_path / "capture"
    names = names_of(source)
    # It is there already: what a directory is, is asked when the watch begins.
    (target / names[0]).parent.mkdir(parents=True)
    shutil.copy(source / names[0], target / names[0])
    watch(target, how(source, target, names[1:][::order]))


@pytest.mark.parametrize("late", [True, False], ids=["late", "at once"])
@pytest.mark.parametrize("named", ["the file", "the directory"])
def test_sub_agents_files_appear_beside_a_session(tmp_path: Path, named: str, late: bool) -> None:
    source, project = FIXTURES / "claude_code" / "agents", tmp_path / "-home-ada-bees"
    project.mkdir()
    main = f"{SESSION}.jsonl"
    agents = [name for name in names_of(source) if name != main]
    (project / main).write_bytes((source / main).read_bytes()[:400])

    def growing() -> Iterator[None]:
        rest = (source / main).read_bytes()[400:]
        for n in range(4):
            with (project / main).open("ab") as file:
                file.write(rest[len(rest) * n // 4 : len(rest) * (n + 1) // 4])
            yield
            if not late:
                yield from pieces(source, project, agents[n : n + 1] if n < 3 else agents[n:])
        if late:
            yield from pieces(source, project, agents)

    watched = watch(project / main if named == "the file" else project, growing())
    threads = {json.loads(line)["thread"] for line in watched.lines.values()}
    assert len(threads) > 1, "no sub-agent was found"


def test_a_project_is_not_one_session(tmp_path: Path) -> None:
    """A directory of transcripts holds many sessions: the newest one is followed, not all of them as one."""
    data = (FIXTURES / "claude_code" / "session.jsonl").read_bytes()
    project = tmp_path / "projects" / "-home-ada-bees"
    project.mkdir(parents=True)
    (project / "one.jsonl").write_bytes(data)
    for top in (project, project.parent):
        with LiveSession(top) as live:
            news = live.poll(1.0)
            assert news.name == str(project / "one.jsonl")
            assert news.inspector is not None


# Databases, written by another connection -------------------------------------------------------------------


def opencode(database: sqlite3.Connection) -> Iterator[None]:
    session = json.loads((FIXTURES / "opencode" / "export.json").read_bytes())
    native = session["info"]["id"]
    columns = "id TEXT PRIMARY KEY, time_created INTEGER, time_updated INTEGER"
    database.execute(f"CREATE TABLE session ({columns}, project_id TEXT, parent_id TEXT, version TEXT)")
    database.execute(f"CREATE TABLE message ({columns}, session_id TEXT, data TEXT)")
    database.execute(f"CREATE TABLE part ({columns}, message_id TEXT, session_id TEXT, data TEXT)")
    database.execute("INSERT INTO session VALUES (?, 1, 1, 'p', NULL, '1.2.27')", (native,))
    yield
    for at, one in enumerate(session["messages"]):
        row = (one["info"]["id"], at, native, json.dumps(one["info"]))
        database.execute("INSERT INTO message VALUES (?, ?, 0, ?, ?)", row)
        yield
        for part in one["parts"]:
            found = (part["id"], one["info"]["id"], native, json.dumps(part))
            database.execute("INSERT INTO part VALUES (?, 0, 0, ?, ?, ?)", found)
        yield


def goose(database: sqlite3.Connection) -> Iterator[None]:
    session = json.loads((FIXTURES / "goose" / "export.json").read_bytes())
    database.execute(
        "CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT, working_dir TEXT, created_at TIMESTAMP, "
        "total_tokens INTEGER, model_config_json TEXT)"
    )
    database.execute(
        "CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT, session_id TEXT, "
        "role TEXT, content_json TEXT, created_timestamp INTEGER, timestamp TIMESTAMP, tokens INTEGER, "
        "metadata_json TEXT)"
    )
    row = (session["id"], "n", "/home/ada/bees", "2026-02-01", 700, json.dumps(session["model_config"]))
    database.execute("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?)", row)
    yield
    for one in session["conversation"]:
        values = (one["id"], session["id"], one["role"], json.dumps(one["content"]), one["created"],
                  json.dumps(one["metadata"]))  # fmt: skip
        database.execute(
            "INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, "
            "metadata_json) VALUES (?, ?, ?, ?, ?, ?)",
            values,
        )
        yield


def cursor(database: sqlite3.Connection) -> Iterator[None]:
    database.execute("CREATE TABLE cursorDiskKV (key TEXT UNIQUE, value BLOB)")
    headers: list[dict[str, Any]] = []
    for n in range(1, 9):
        kind = 1 if n % 2 else 2
        headers.append({"bubbleId": f"b{n}", "type": kind})
        composer = {
            "name": "bug",
            "modelConfig": {"modelName": "gpt-5"},
            "fullConversationHeadersOnly": headers,
        }
        bubble = {"type": kind, "text": f"words of message {n}", "createdAt": f"2026-10-04T08:00:{n:02}Z"}
        for key, value in (("composerData:c-1", composer), (f"bubbleId:c-1:b{n}", bubble)):
            database.execute("INSERT OR REPLACE INTO cursorDiskKV VALUES (?, ?)", (key, json.dumps(value)))
        yield


@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
@pytest.mark.parametrize("checkpoints", [False, True], ids=["log only", "checkpoints"])
@pytest.mark.parametrize(
    ("name", "write"),
    [("opencode.db", opencode), ("sessions.db", goose), ("state.vscdb", cursor)],
    ids=["opencode", "goose", "cursor"],
)
def test_a_database_that_another_program_writes(
    tmp_path: Path,
    name: str,
    write: Callable[[sqlite3.Connection], Iterator[None]],
    mode: str,
    checkpoints: bool,
) -> None:
    path = tmp_path / name
    database = sqlite3.connect(path, isolation_level=None)
    assert database.execute(f"PRAGMA journal_mode = {mode}").fetchone()[0].upper() == mode
    database.execute("PRAGMA wal_autocheckpoint = 0")

    def growing() -> Iterator[None]:
        for n, _ in enumerate(write(database)):
            yield
            if checkpoints and n % 3 == 2:
                database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                yield

    try:
        watch(path, growing())
        assert mode == "DELETE" or checkpoints or path.with_name(f"{name}-wal").stat().st_size
    finally:
        database.close()


def test_a_database_whose_log_is_written_is_the_newest_session(tmp_path: Path) -> None:
    data = (FIXTURES / "claude_code" / "session.jsonl").read_bytes()
    database = sqlite3.connect(tmp_path / "sessions.db", isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    os.utime(tmp_path / "sessions.db", (1_000_000_000, 1_000_000_000))
    try:
        for _ in goose(database):
            pass
        (tmp_path / "older.jsonl").write_bytes(data)
        os.utime(tmp_path / "older.jsonl", (1_500_000_000, 1_500_000_000))
        os.utime(tmp_path / "sessions.db", (1_000_000_000, 1_000_000_000))
        with LiveSession(tmp_path) as live:
            assert live.poll(1.0).name == str(tmp_path / "sessions.db")
    finally:
        database.close()
