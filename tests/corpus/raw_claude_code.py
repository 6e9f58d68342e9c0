"""Answers of a fleet worked out from Claude Code's lines, by a reader that shares no code with ctxctl.

A request is a message of the assistant by its id, with a bill; its lines are its pieces, of which the last
has the whole bill.  One that several logs hold counts in the log where its first line is earliest.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple


class Request(NamedTuple):
    """One request of one log."""

    id: str
    log: str
    session: str
    time: str
    version: str | None
    model: str | None
    side: bool
    read: int
    sent: int
    output: int


def requests(logs: Iterable[Path]) -> list[Request]:
    """Each request once, of all logs."""
    held: dict[str, list[Request]] = defaultdict(list)
    for log in logs:
        for one in requests_of(log):
            held[one.id].append(one)
    return [min(several, key=lambda one: one.time) for several in held.values()]


def records(log: Path) -> list[dict[str, Any]]:
    """The records of a log; a line that is none is passed over."""
    found = []
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            found.append(record)
    return found


def requests_of(log: Path) -> list[Request]:
    """The requests of one log, in the order of their first lines."""
    found: dict[str, Request] = {}
    for record in records(log):
        message = record.get("message")
        if (
            record.get("type") != "assistant"
            or not isinstance(message, dict)
            or message.get("model") == "<synthetic>"
        ):
            continue
        usage = message.get("usage")
        if not isinstance(usage, dict):
            continue
        read = usage.get("cache_read_input_tokens") or 0
        sent = (usage.get("input_tokens") or 0) + read + (usage.get("cache_creation_input_tokens") or 0)
        name = message["id"]
        first = found.get(name)
        made = Request(
            name, str(log), record.get("sessionId") or "", record.get("timestamp") or "",
            record.get("version"), message.get("model"), bool(record.get("isSidechain")), read, sent,
            usage.get("output_tokens") or 0,
        )  # fmt: skip
        found[name] = made if first is None else first._replace(read=read, sent=sent, output=made.output)
    return list(found.values())


def began_in(log: Path) -> str | None:
    """The last part of the directory that a log names first."""
    named = next((record["cwd"] for record in records(log) if record.get("cwd")), None)
    return None if named is None else Path(named).name


def alone(logs: Iterable[Path]) -> list[Path]:
    """The logs of sessions that have no log of a sub-agent beside them: those are read as one with it."""
    sessions = {
        log: {record["sessionId"] for record in records(log) if record.get("sessionId")} for log in logs
    }
    with_agents = {name for log, names in sessions.items() if log.name.startswith("agent-") for name in names}
    return [log for log, names in sessions.items() if names and not names & with_agents]


def nearest_rank(values: Iterable[int], per_cent: int) -> int:
    """The least value that so many in a hundred do not exceed."""
    ordered = sorted(values)
    return ordered[-(-len(ordered) * per_cent // 100) - 1]
