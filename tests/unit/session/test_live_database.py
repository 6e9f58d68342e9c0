"""A session that its program keeps in a database, with the last of it in a log beside the file."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ctxctl.model.results import Step, Turn
from ctxctl.session import Inspector, live_capture
from ctxctl.session.live import LiveSession

Json = dict[str, Any]
TOKENS = {"input": 900, "output": 20, "reasoning": 0, "cache": {"read": 0, "write": 0}}


class Program:
    """Writes as opencode does: a message when it begins, its parts, and the message again at its end."""

    def __init__(self, path: Path) -> None:
        self.database = sqlite3.connect(path)
        self.database.execute("PRAGMA journal_mode = WAL")
        self.database.execute("PRAGMA wal_autocheckpoint = 0")
        columns = "id TEXT PRIMARY KEY, time_created INTEGER, time_updated INTEGER"
        for table, more in (
            ("session", "project_id TEXT, parent_id TEXT, version TEXT"),
            ("message", "session_id TEXT, data TEXT"),
            ("part", "message_id TEXT, session_id TEXT, data TEXT"),
        ):
            self.database.execute(f"CREATE TABLE {table} ({columns}, {more})")
        self.database.execute("INSERT INTO session VALUES ('ses_1', 1, 1, 'p', NULL, '1.18.0')")
        self.database.commit()
        self._number = 0

    def prompt(self, text: str) -> None:
        self._number += 1
        self._message({"role": "user", "agent": "build"})
        self._part({"type": "text", "text": text}, 1)

    def step(self, *, calls: bool) -> Iterator[str]:
        """One request; what has been written after each of its pieces."""
        self._number += 1
        info = {"role": "assistant", "parentID": "m01", "modelID": "gpt-5", "providerID": "openai",
                "tokens": TOKENS, "cost": 0}  # fmt: skip
        self._message(info)
        yield "begun"
        self._part({"type": "step-start"}, 1)
        self._part({"type": "text", "text": f"Saying {self._number}."}, 2)
        if calls:
            state = {"status": "completed", "input": {"path": "tide.txt"}, "output": "06:12", "metadata": {}}
            self._part({"type": "tool", "callID": f"call_{self._number}", "tool": "read", "state": state}, 3)
        yield "answered"
        finish = "tool-calls" if calls else "stop"
        self._part({"type": "step-finish", "reason": finish, "tokens": TOKENS, "cost": 0}, 4)
        self._message({**info, "finish": finish}, completed=True)
        yield "ended"

    def _message(self, info: Json, *, completed: bool = False) -> None:
        began = 1_771_000_000_000 + self._number
        info["time"] = {"created": began, **({"completed": began + 1} if completed else {})}
        row = (f"m{self._number:02}", began, began, "ses_1", json.dumps(info))
        self.database.execute("INSERT OR REPLACE INTO message VALUES (?, ?, ?, ?, ?)", row)
        self.database.commit()

    def _part(self, part: Json, at: int) -> None:
        row = (f"p{self._number:02}{at}", at, at, f"m{self._number:02}", "ses_1", json.dumps(part))
        self.database.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", row)
        self.database.commit()


def looked_at(live: LiveSession) -> None:
    for _ in range(3):
        if isinstance(live._feed, live_capture.CaptureFeed):
            live._feed._free_at = 0.0
        live.poll(0)


def test_new_steps_are_shown_and_a_turn_is_over_with_its_last_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_capture, "_TURN_END_SECONDS", 0.0)
    path = tmp_path / "opencode.db"
    told: list[tuple[str, Step | Turn]] = []
    moment = ""
    with LiveSession(path, take=lambda one: told.append((moment, one))) as live:  # type: ignore[arg-type]
        looked_at(live)
        with closing((program := Program(path)).database):
            for turn in (1, 2):
                program.prompt(f"Prompt {turn}")
                looked_at(live)
                for step in (1, 2, 3):
                    for piece in program.step(calls=step < 3):
                        moment = f"{turn}.{step} {piece}"
                        looked_at(live)
            assert path.stat().st_size < (tmp_path / "opencode.db-wal").stat().st_size
            turns = [(at, one.turn, one.steps) for at, one in told if isinstance(one, Turn)]
            assert turns == [("1.3 ended", 1, 3), ("2.3 ended", 2, 3)]
            steps = [one for _, one in told if isinstance(one, Step)]
            last = {(one.turn, one.step): one for one in steps}
            with Inspector.open(path) as inspector:
                whole = [one for one in inspector.replay() if isinstance(one, Step)]
        live.finish()
    assert list(last) == [(one.turn, one.step) for one in whole]
    assert [one.window.used for one in last.values()] == [one.window.used for one in whole]
