"""Captures of any size that cost time if work grows faster than they do: parents that cannot be, and rewinds.

Each function makes the bytes of one capture of about `count` records.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

Json = dict[str, Any]
_TIME = "2026-03-02T09:00:00.000Z"


def _rows(rows: Iterable[Json]) -> bytes:
    return b"".join(json.dumps(row, separators=(",", ":")).encode() + b"\n" for row in rows)


# -- Claude Code ----------------------------------------------------------------------------------------


def asked(uuid: str, parent: str | None, text: str = "q", **fields: Any) -> Json:
    """A line that a person wrote."""
    message = {"role": "user", "content": text}
    return {"type": "user", "uuid": uuid, "parentUuid": parent, "sessionId": "s", "timestamp": _TIME,
            "message": message, **fields}  # fmt: skip


def answered(uuid: str, parent: str | None, message_id: str = "", **fields: Any) -> Json:
    """A line of an answer: an API call of its own, unless `message_id` is that of another."""
    message = {
        "id": message_id or f"m-{uuid}", "role": "assistant", "model": "claude-opus-4",
        "content": [{"type": "text", "text": f"a {uuid}"}], "usage": {"input_tokens": 3, "output_tokens": 1},
    }  # fmt: skip
    return {"type": "assistant", "uuid": uuid, "parentUuid": parent, "sessionId": "s", "timestamp": _TIME,
            "message": message, **fields}  # fmt: skip


def _turns(count: int, parent: Callable[[int], str | None]) -> bytes:
    """Lines 0 to `count`, by turns asked and answered; `parent` names the one that each follows."""
    return _rows(
        (answered if at % 2 else asked)(str(at), parent(at), **({} if at % 2 else {"text": f"q {at}"}))
        for at in range(count)
    )


def straight(count: int) -> bytes:
    """A session that goes on and on: each line follows the one before."""
    return _turns(count, lambda at: str(at - 1) if at else None)


def of_itself(count: int) -> bytes:
    """Each line is its own parent."""
    return _turns(count, str)


def one_cycle(count: int) -> bytes:
    """Each line follows the next one, and the last one the first."""
    return _turns(count, lambda at: str((at + 1) % count))


def pairs(count: int) -> bytes:
    """Two by two, lines follow each other in a circle."""
    return _turns(count, lambda at: str(at ^ 1))


def children_first(count: int) -> bytes:
    """The file is upside down: each line follows the next one, and the last one is the root."""
    return _turns(count, lambda at: str(at + 1) if at + 1 < count else None)


def star(count: int) -> bytes:
    """A long conversation, and then as many answers to its first prompt."""
    half = count // 2
    return _turns(count, lambda at: (str(at - 1) if at else None) if at < half else "0")


def from_the_beginning(count: int) -> bytes:
    """A long conversation, whose last prompt and first prompt are answered by turns, again and again."""
    half = count // 2
    long = [asked(str(at), str(at - 1) if at else None, f"q {at}") for at in range(half)]
    again = [answered(str(half + at), str(half - 1) if at % 2 else "0") for at in range(half)]
    return _rows([*long, *again])


def two_ends(count: int) -> bytes:
    """Two long conversations from one prompt, which are answered by turns."""
    half = count // 2
    long = [asked(str(at), str(max(at - 2, 0)) if at else None, f"q {at}") for at in range(half)]
    again = [answered(str(half + at), str(half - 1 - at % 2)) for at in range(half)]
    return _rows([*long, *again])


def roots(count: int) -> bytes:
    """Each prompt begins anew, and each answer follows the prompt before its own."""
    return _turns(count, lambda at: str(max(at - 3, 0)) if at % 2 else None)


def same_uuid(count: int) -> bytes:
    """All lines have one id, and different contents."""
    return _rows(
        answered("x", None, f"m-{at}") if at % 2 else asked("x", "x", f"q {at}") for at in range(count)
    )


def one_answer(count: int) -> bytes:
    """One answer of many lines, each with a text of its own."""
    lines = [answered(str(at), str(at - 1), "m") for at in range(1, count)]
    return _rows([asked("0", None), *lines])


def one_line(count: int) -> bytes:
    """One answer of many blocks in one line."""
    line = answered("1", "0", "m")
    line["message"]["content"] = [{"type": "text", "text": f"a {at}"} for at in range(count)]
    return _rows([asked("0", None), line, asked("2", "1"), answered("3", "2")])


def late_results(count: int) -> bytes:
    """One answer with many calls, each result followed by a request of its own."""
    line = answered("1", "0", "m")
    line["message"]["content"] = [
        {"type": "tool_use", "id": f"t{at}", "name": "Read", "input": {}} for at in range(count // 2)
    ]
    rows = [asked("0", None), line]
    last = "1"
    for at in range(count // 2):
        result = asked(f"r{at}", last)
        result["message"]["content"] = [{"type": "tool_result", "tool_use_id": f"t{at}", "content": str(at)}]
        last = f"a{at}"
        rows += [result, answered(last, f"r{at}")]
    return _rows(rows)


CLAUDE_CODE = (
    straight, of_itself, one_cycle, pairs, children_first, star, from_the_beginning, two_ends, roots,
    same_uuid, one_answer, one_line, late_results,
)  # fmt: skip
