"""Tells, for a log that is watched while it is written, whether its end says that the turn is over.

A turn that is over is told by the record that the runtime itself ends it with, or by an answer that calls no
tool where the record says why the model stopped.  Formats that have neither are not here: a turn of theirs is
over when the next one begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import orjson

from ctxctl.ingest.build import Json
from ctxctl.ingest.database import MAGIC, first_rows
from ctxctl.ingest.parts import listed
from ctxctl.trace.source import Source

_TAIL: Final = 1 << 20
"""The bytes at the end of a log that are looked at."""
_RECORDS: Final = 1000
Verdict = bool | None
"""What a record says of its turn: that it is over, that it goes on, or nothing."""

_STOPPED: Final = frozenset(
    ("end_turn", "stop_sequence", "max_tokens", "refusal", "model_context_window_exceeded")
)
"""The reasons for which Anthropic's models stop without waiting for a tool (https://docs.anthropic.com, stop
reasons)."""
_INTERRUPTED: Final = "[Request interrupted by user"
_THOUGHTS: Final = frozenset(("thinking", "redacted_thinking"))
_CODEX: Final = {
    "task_complete": True, "turn_complete": True, "turn_aborted": True,
    "task_started": False, "turn_started": False, "user_message": False,
}  # fmt: skip
_CODEX_EXEC: Final = {
    "turn.completed": True, "turn.failed": True, "turn.started": False,
    "item.started": False, "item.updated": False, "item.completed": False,
}  # fmt: skip
_COPILOT: Final = {
    "session.shutdown": True, "session.idle": True, "abort": True, "user.message": False,
    "assistant.turn_start": False, "tool.execution_start": False, "tool.execution_complete": False,
    "subagent.started": False, "subagent.completed": False,
}  # fmt: skip
_NEWEST: Final = (
    "SELECT m.data FROM message m JOIN session s ON s.id = m.session_id WHERE s.parent_id IS NULL"
    " ORDER BY m.time_created DESC, m.id DESC"
)


def is_over(name: str, source: Source) -> bool:
    """Whether the last turn of a session is over, as far as the format `name` tells; else False."""
    if name == "opencode" and source.read(0, len(MAGIC)) == MAGIC:
        return _opencode(first_rows(source, _NEWEST, 1))
    told = _TOLD.get(name)
    if told is None:
        return False
    verdicts = (told(record) for record in _newest_first(source))
    return next((verdict for verdict in verdicts if verdict is not None), False)


def _newest_first(source: Source) -> Iterator[Json]:
    size = source.size
    start = max(0, size - _TAIL)
    lines = source.read(start, size - start).split(b"\n")
    if start:
        del lines[0]
    for line in lines[: -_RECORDS - 1 : -1]:
        if not line.strip():
            continue
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError:
            # The last one may be half written.
            yield {"type": None}
            continue
        if isinstance(record, dict):
            yield record


def _object_at(record: Json, name: str) -> Json:
    found = record.get(name)
    return found if isinstance(found, dict) else {}


def _claude_code(record: Json) -> Verdict:
    kind = record.get("type")
    if record.get("isSidechain") is True:
        return None
    message = _object_at(record, "message")
    if kind == "assistant":
        blocks = [
            str(block.get("type")) for block in listed(message.get("content")) if isinstance(block, dict)
        ]
        # Each block is a record; behind thoughts there comes another one.
        return str(message.get("stop_reason")) in _STOPPED and not _THOUGHTS.issuperset(blocks)
    if kind == "user":
        content = message.get("content")
        first = content[0] if isinstance(content, list) and content else content
        text = first.get("text") if isinstance(first, dict) else first
        return isinstance(text, str) and text.startswith(_INTERRUPTED)
    if kind == "system" and record.get("subtype") == "turn_duration":
        return True
    return False if kind == "api-request" else None


def _codex(record: Json) -> Verdict:
    kind = record.get("type")
    if kind == "event_msg":
        return _CODEX.get(str(_object_at(record, "payload").get("type")))
    return False if kind in ("response_item", "turn_context", "compacted") else None


def _pi(record: Json) -> Verdict:
    if record.get("type") != "message":
        return None
    message = _object_at(record, "message")
    if message.get("role") != "assistant":
        return False
    # `length` ends it as well, `error` may be tried again: pi then writes another answer.
    return message.get("stopReason") in ("stop", "length", "aborted")


def _copilot_cli(record: Json) -> Verdict:
    kind, data = record.get("type"), _object_at(record, "data")
    if data.get("parentToolCallId") is not None:
        return False  # a sub-agent's: the call that it answers is running
    if kind == "assistant.message":
        chunks = data.get("chunkCount")
        whole = not isinstance(chunks, int) or data.get("chunkIndex") == chunks - 1
        return whole and not data.get("toolRequests")
    return _COPILOT.get(str(kind))


def _stream_json(record: Json) -> Verdict:
    kind = record.get("type")
    return True if kind == "result" else False if kind in ("assistant", "user", "stream_event") else None


def _opencode(found: list[tuple[Any, ...]]) -> bool:
    try:
        message = orjson.loads(found[0][0]) if found else None
    except (orjson.JSONDecodeError, TypeError):
        return False
    if not isinstance(message, dict) or message.get("role") != "assistant":
        return False
    ended = _object_at(message, "time").get("completed") is not None
    finish = message.get("finish")
    return ended and (message.get("error") is not None or finish not in (None, "tool-calls", "unknown"))


_TOLD: Final[dict[str, Callable[[Json], Verdict]]] = {
    "claude-code": _claude_code,
    "claude-stream-json": _stream_json,
    "codex": _codex,
    "codex-exec": lambda record: _CODEX_EXEC.get(str(record.get("type"))),
    "copilot-cli": _copilot_cli,
    "pi": _pi,
}
