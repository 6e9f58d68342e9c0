"""A directory of sessions of which some are written to, as `watch` meets it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

SESSIONS, LIVE = 5000, 200


def session(name: int) -> str:
    """The id of a session."""
    return f"5e55{name:04d}-0000-4000-8000-000000000000"


def record(kind: str, name: int, number: int, parent: str | None, content: object) -> str:
    """A line of Claude Code's transcripts, in its schema."""
    message: dict[str, object] = {"role": kind, "content": content}
    if kind == "assistant":
        usage = {"input_tokens": 900 + number, "output_tokens": 9}
        message |= {
            "id": f"msg_{name}_{number}",
            "model": "claude-sonnet-4-5",
            "type": "message",
            "usage": usage,
        }
    line = {
        "parentUuid": parent, "isSidechain": False, "userType": "external", "cwd": "/home/dev/shop",
        "sessionId": session(name), "version": "2.1.62", "type": kind, "uuid": f"{name}-{number}",
        "timestamp": "2026-03-02T09:00:00.000Z", "message": message,
    }  # fmt: skip
    return json.dumps(line) + "\n"


def turn(name: int, number: int) -> str:
    """A prompt that says when it was written, and its answer."""
    parent = f"{name}-{2 * number - 1}" if number else None
    said = [{"type": "text", "text": f"Answer {number}."}]
    return record("user", name, 2 * number, parent, f"at {time.monotonic()} turn {number}") + record(
        "assistant", name, 2 * number + 1, f"{name}-{2 * number}", said
    )


def make(folder: Path) -> None:
    """All sessions, with two turns each, none of them written to lately."""
    folder.mkdir(parents=True)
    for name in range(SESSIONS):
        path = folder / f"{session(name)}.jsonl"
        path.write_text(turn(name, 0) + turn(name, 1))
        os.utime(path, (1.7e9 + name, 1.7e9 + name))


class Writers:
    """Adds a turn to one live session after another."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._turns = [2] * LIVE
        self._at = 0

    def write(self) -> None:
        """The next one's turn."""
        name = self._at = (self._at + 1) % LIVE
        with open(self._folder / f"{session(name)}.jsonl", "a") as file:
            file.write(turn(name, self._turns[name]))
        self._turns[name] += 1
