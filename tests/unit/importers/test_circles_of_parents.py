"""What follows itself, in each format whose records name parents: told by line, broken at its last record."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ctxctl.importers import registry
from ctxctl.importers.registry import capture_events
from ctxctl.ingest.parents import Kinship, Lineage
from ctxctl.model.problem import Problem
from ctxctl.trace.source import open_source
from tests.unit.importers.agent_help import Json, imported, jsonl, of_type

ASSEMBLY = "context.assembly.created"


def told(problems: list[Problem], slug: str = "circular-parents") -> list[tuple[int, str]]:
    return [(one.line, one.message) for one in problems if one.slug == slug]


def of_path(path: Path, name: str) -> tuple[list[Json], list[Problem]]:
    """The events and problems of a capture that has others beside it, or that is a directory."""
    problems: list[Problem] = []

    def events() -> Iterator[Json]:
        if path.is_dir():
            from ctxctl.ingest.folder import Folder

            yield from registry.by_name(name).folder_events(Folder(path.name, path), problems.append)
            return
        with open_source(path) as source:
            yield from capture_events(registry.by_name(name), source, problems.append)

    return list(events()), problems


def threads(events: list[Json]) -> list[tuple[str | None, str]]:
    return [(e.get("session_id"), e.get("thread_id", "main")) for e in events if e["event_type"] == ASSEMBLY]


def test_a_walk_ends_where_no_parent_is_known() -> None:
    lineage: Lineage[str] = Lineage()
    assert lineage.enter("a", None) is Kinship.FITS
    assert lineage.enter("b", "a") is Kinship.FITS
    assert lineage.enter("d", "lost") is Kinship.FITS
    assert [lineage.top(one) for one in ("a", "b", "d", "z")] == ["a", "a", "lost", "z"]
    assert [one in lineage for one in ("a", "b", "lost")] == [True, True, False]
    assert lineage.enter("lost", "b") is Kinship.FITS
    assert lineage.top("d") == "a", "what was walked before goes on where it ended"


# -- opencode ---------------------------------------------------------------------------------------------


def database(path: Path, *sessions: tuple[str, str | None]) -> Path:
    """One answer in each session."""
    with sqlite3.connect(path) as made:
        columns = "id TEXT PRIMARY KEY, time_created INTEGER, time_updated INTEGER"
        made.execute(f"CREATE TABLE session ({columns}, project_id TEXT, parent_id TEXT, version TEXT)")
        made.execute(f"CREATE TABLE message ({columns}, session_id TEXT, data TEXT)")
        made.execute(f"CREATE TABLE part ({columns}, message_id TEXT, session_id TEXT, data TEXT)")
        for at, (name, parent) in enumerate(sessions):
            made.execute("INSERT INTO session VALUES (?, ?, 0, 'p', ?, '1.2.27')", (name, at, parent))
            info = json.dumps({"role": "assistant", "agent": "build"})
            made.execute("INSERT INTO message VALUES (?, ?, 0, ?, ?)", (f"m-{name}", at, name, info))
            part = json.dumps({"type": "text", "text": f"said in {name}"})
            made.execute("INSERT INTO part VALUES (?, 0, 0, ?, ?, ?)", (f"p-{name}", f"m-{name}", name, part))
    made.close()
    return path


def test_sessions_of_an_opencode_database(tmp_path: Path) -> None:
    path = database(tmp_path / "opencode.db", ("a", "c"), ("b", "a"), ("c", "b"), ("own", "own"))
    events, problems = of_path(path, "opencode")
    assert told(problems) == [
        (1, "session c follows session b, which follows from it: it is taken to begin a conversation"),
        (1, "session own names itself as its parent: it is taken to begin a conversation"),
    ]
    assert threads(events) == [("c", "a"), ("c", "b"), ("c", "main"), ("own", "main")]


def test_a_long_chain_of_opencode_sessions_is_walked_once(tmp_path: Path) -> None:
    chain = [("s0", None), *((f"s{n}", f"s{n - 1}") for n in range(1, 1500))]
    events, problems = of_path(database(tmp_path / "opencode.db", *chain), "opencode")
    assert not told(problems)
    assert {session for session, _ in threads(events)} == {"s0"}


def created(session: str, parent: str | None) -> list[Any]:
    info = {"id": session, "parentID": parent}
    return ["event", {"event": {"type": "session.created", "properties": {"info": info}}}]


def answered(session: str) -> list[list[Any]]:
    info = {"id": f"m-{session}", "role": "assistant", "sessionID": session, "time": {"completed": 1}}
    part = {"id": f"p-{session}", "messageID": f"m-{session}", "type": "text", "text": "x"}
    both = [
        ("message.updated", {"info": info, "sessionID": session}),
        ("message.part.updated", {"part": {**part, "sessionID": session}, "sessionID": session}),
    ]
    return [["event", {"event": {"type": kind, "properties": value}}] for kind, value in both]


def test_sessions_of_an_opencode_log() -> None:
    rows = [created("a", "b"), created("b", "a"), *answered("a"), *answered("b")]
    events, problems = imported("opencode", jsonl(*rows))
    assert told(problems) == [
        (2, "session b follows session a, which follows from it: it is taken to begin a conversation")
    ]
    assert threads(events) == [("b", "a"), ("b", "main")]


def test_an_opencode_session_of_two_parents_keeps_the_first() -> None:
    rows = [created("a", None), created("k", "a"), created("k", "z"), *answered("a"), *answered("k")]
    events, problems = imported("opencode", jsonl(*rows))
    assert told(problems, "second-parent") == [
        (3, "session k has another parent here, session z: the first one counts")
    ]
    assert threads(events) == [("a", "main"), ("a", "k")]


# -- Qwen Code --------------------------------------------------------------------------------------------


def qwen(native: str, parent: str | None, kind: str, text: str) -> Json:
    role = "model" if kind == "assistant" else "user"
    message = {"role": role, "parts": [{"text": text}]}
    return {"uuid": native, "parentUuid": parent, "sessionId": "q", "type": kind, "message": message}


@pytest.mark.parametrize(
    ("parents", "line", "how"),
    [
        ((None, "u1", "u3", "u3"), 3, "u3 names itself as its parent"),
        (("u4", "u1", "u2", "u3"), 4, "u4 follows u3, which follows from it"),
    ],
)
def test_records_of_a_qwen_chat(parents: tuple[str | None, ...], line: int, how: str) -> None:
    kinds = ("user", "assistant", "user", "assistant")
    rows = [
        qwen(f"u{at + 1}", parent, kind, f"text {at + 1}")
        for at, (parent, kind) in enumerate(zip(parents, kinds, strict=True))
    ]
    events, problems = imported("qwen-code", jsonl(*rows))
    assert told(problems) == [(line, f"{how}: it is taken to follow the line before it")]
    assert len(of_type(events, ASSEMBLY)) == 2


def test_a_qwen_record_that_comes_again_otherwise_is_told() -> None:
    rows = [qwen("u1", None, "user", "a"), qwen("u2", "u1", "assistant", "b")]
    again = [*rows, rows[1], qwen("u2", "u1", "assistant", "another")]
    events, problems = imported("qwen-code", jsonl(*again))
    ((line, message),) = told(problems, "duplicate-uuid")
    assert (line, message) == (4, "record u2 was there before, with other contents: the first one counts")
    assert len(of_type(events, ASSEMBLY)) == 1


# -- Inspect AI -------------------------------------------------------------------------------------------


def span(native: str, parent: str | None, kind: str = "agent") -> Json:
    return {"event": "span_begin", "id": native, "parent_id": parent, "type": kind, "name": native}


def asked(inside: str) -> Json:
    answer = {"choices": [{"message": {"id": "a", "role": "assistant", "content": "x"}}]}
    question = [{"id": "u", "role": "user", "content": f"in {inside}"}]
    return {"event": "model", "uuid": f"e-{inside}", "model": "m", "input": question, "tools": [],
            "output": answer, "span_id": inside}  # fmt: skip


def test_spans_of_inspect_ai() -> None:
    found = [span("a", "b"), span("b", "a"), asked("a"), span("k", "a"), span("k", "b"), asked("k")]
    sample = {"id": 1, "epoch": 1, "events": found}
    log = json.dumps({"version": 2, "eval": {"model": "m"}, "samples": [sample]}).encode()
    events, problems = imported("inspect-ai", log)
    assert told(problems) == [
        (0, "span b follows span a, which follows from it: it is taken to be the outermost")
    ], "once, though the spans are walked twice"
    assert told(problems, "second-parent") == [
        (0, "span k has another parent here, span b: the first one counts")
    ]
    assert len(of_type(events, ASSEMBLY)) == 2


# -- Amplifier --------------------------------------------------------------------------------------------


def amplifier(session: str, parent: str | None, at: int) -> list[Json]:
    schema = {"name": "amplifier.log", "ver": "1.0.0"}
    ask = {"provider": "anthropic", "model": "claude-x", "messages": [{"role": "user", "content": session}]}
    answer = {"provider": "anthropic", "model": "claude-x", "usage": {"input": 5, "output": 2}}
    rows = (("session:start", {}), ("llm:request", ask), ("llm:response", answer))
    return [
        {"ts": f"2026-05-04T10:00:{at:02d}.{n}00000+00:00", "lvl": "INFO", "schema": schema, "event": event,
         "session_id": session, "data": {"parent_id": parent, **payload}}
        for n, (event, payload) in enumerate(rows)
    ]  # fmt: skip


CIRCLE = [amplifier("a", "b", 1), amplifier("b", "c", 2), amplifier("c", "a", 3)]


def test_sessions_of_one_amplifier_log() -> None:
    events, problems = imported("amplifier", jsonl(*(row for rows in CIRCLE for row in rows)))
    assert told(problems) == [
        (8, "session c follows session a, which follows from it: it is taken to be one of its own")
    ]
    assert [session for session, _ in threads(events)] == ["a", "b", "c"]


def test_sessions_of_an_amplifier_folder(tmp_path: Path) -> None:
    for rows in CIRCLE:
        place = tmp_path / rows[0]["session_id"]
        place.mkdir()
        (place / "events.jsonl").write_bytes(jsonl(*rows))
    events, problems = of_path(tmp_path, "amplifier")
    assert told(problems) == [
        (1, "c: session c follows session a, which follows from it: it is taken to be one of its own")
    ], "once: for the folder, and not again for its log"
    assert threads(events) == [("c", "main"), ("c", "b"), ("c", "a")]


# -- ATIF, Codex ------------------------------------------------------------------------------------------


def trajectory(name: str, following: str | None) -> Json:
    steps = [
        {"step_id": 1, "source": "user", "message": f"task of {name}"},
        {"step_id": 2, "source": "agent", "message": "done"},
    ]
    made: Json = {"schema_version": "ATIF-v1.6", "session_id": name, "agent": {"name": "x"}, "steps": steps}
    return {**made, "continued_trajectory_ref": following} if following is not None else made


def test_trajectories_that_continue_each_other(tmp_path: Path) -> None:
    """All of them are shown: those of a circle were left out where there was another one beside them."""
    for name, following in (("a", "b.json"), ("b", "a.json"), ("c", None)):
        (tmp_path / f"{name}.json").write_text(json.dumps(trajectory(name, following)))
    events, problems = of_path(tmp_path, "atif")
    assert told(problems) == [
        (1, "a.json follows b.json, which follows from it: it is taken to begin a session")
    ]
    shown = {e["data"].get("content") for e in events if ".item." in e["event_type"]}
    assert {"task of a", "task of b", "task of c"} <= shown


def rollout(folder: Path, name: str, base: str | None) -> Path:
    meta: Json = {"id": name, "cwd": "/w", "cli_version": "0.150.0"}
    if base is not None:
        meta["history_base"] = {"thread_id": base, "end_ordinal_exclusive": 2}
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": f"in {name}"}]}
    answer = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]}
    rows = (("session_meta", meta), ("response_item", said), ("response_item", answer))
    path = folder / f"rollout-2026-01-01T00-00-00-{name}.jsonl"
    time = "2026-01-01T00:00:00.000Z"
    path.write_bytes(jsonl(*({"timestamp": time, "type": kind, "payload": one} for kind, one in rows)))
    return path


def test_rollouts_that_begin_with_each_other(tmp_path: Path) -> None:
    """That one of them is not there was said of both."""
    first = rollout(tmp_path, "a", "b")
    rollout(tmp_path, "b", "a")
    events, problems = of_path(first, "codex")
    assert told(problems) == [
        (
            1,
            "rollout-2026-01-01T00-00-00-b.jsonl follows rollout-2026-01-01T00-00-00-a.jsonl, "
            "which follows from it: it is taken to begin without that history",
        )
    ]
    assert not told(problems, "history-elsewhere")
    assert len(of_type(events, ASSEMBLY)) == 1


def test_rollouts_beyond_the_sixteenth_are_told(tmp_path: Path) -> None:
    first = rollout(tmp_path, "n00", "n01")
    for number in range(1, 20):
        rollout(tmp_path, f"n{number:02d}", f"n{number + 1:02d}")
    _, problems = of_path(first, "codex")
    ((_, message),) = told(problems, "history-elsewhere")
    assert message.startswith(
        "this fork begins with the history of more than 16 others, one behind the other"
    )
