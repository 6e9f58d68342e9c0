"""What opencode sends, from 1.18 on, to have a summary written: the history as one text."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import orjson

from ctxctl.formats.build import Json, canonical
from ctxctl.formats.kit.parts import Part, count, string
from ctxctl.formats.opencode.parts import CLEARED, Native

_RESULT: Final = 2000
"""UTF-16 units of a tool's result that are kept."""


class Line(NamedTuple):
    """A piece of a message as the history has it."""

    text: str
    cleared: int | None = None
    """Milliseconds since 1970: from then on the result is blank."""


class Told(NamedTuple):
    """A message as the history has it."""

    native: str | None
    role: str
    compaction: bool
    """It asked for a summary."""
    lines: list[Line]


def told(info: Json, parts: list[Native]) -> Told:
    """What a message says in the history."""
    compaction = any(part.get("type") == "compaction" for part, _ in parts)
    role = str(info.get("role"))
    own = [part for part, _ in parts]
    lines = _of_user(own) if role == "user" else [line for part in own for line in _of_assistant(part)]
    return Told(string(info.get("id")), role, compaction, lines)


def question(
    messages: list[Told], summed: str | None, tail: str | None, parent: str, overflow: bool, now: int | None
) -> list[Part]:
    """The request for a summary, but for its system prompt and the instructions at its end.

    Args:
        messages: The history.
        summed: The summary before, if there is one.
        tail: The first message that is kept, and not told.
        parent: The message that asks for the summary.
        overflow: It is asked for because the last message was too large: that message is not told either.
        now: When; milliseconds since 1970.
    """
    before = [one for one in messages if not one.compaction and one.native != parent]
    first = next((at for at, one in enumerate(before) if one.native == tail), None)
    if tail is not None and first is not None:
        before = before[:first]
    elif overflow:
        before = _without_last(before)
    texts = []
    for one in before:
        text = "\n".join(_text(line, now) for line in one.lines)
        if text:
            texts.append(text)
    told_so_far = "\n\n".join(texts)
    made = f"Here is the conversation so far:\n\n<conversation>\n{told_so_far}\n</conversation>"
    if summed is not None:
        made += (
            "\n\nHere is the summary of the conversation before the <conversation> above:\n\n"
            f"<prior-summary>\n{summed}\n</prior-summary>"
        )
    mark = {"type": "compaction"}
    return [Part("user_message", made, "user", key=f"{parent}/history", derived=True, native=mark)]


def _without_last(messages: list[Told]) -> list[Told]:
    """All before the last message of the user's, if the user said something before that."""
    asked = [at for at, one in enumerate(messages) if one.role == "user"]
    return messages[: asked[-1]] if len(asked) > 1 else messages


def _text(line: Line, now: int | None) -> str:
    if line.cleared is not None and now is not None and line.cleared <= now:
        return f"[Tool result]: {CLEARED}"
    return line.text


def _of_user(parts: list[Json]) -> list[Line]:
    said = [
        str(part["text"])
        for part in parts
        if part.get("type") == "text" and not part.get("ignored") and string(part.get("text"))
    ]
    lines = [Line("[User]: " + "\n".join(said))] if said else []
    return lines + [Line(_attached(part)) for part in parts if part.get("type") == "file"]


def _of_assistant(part: Json) -> list[Line]:
    kind, text = part.get("type"), string(part.get("text"))
    if kind == "text":
        return [Line(f"[Assistant]: {text}")] if text is not None else []
    if kind == "reasoning":
        return [Line(f"[Assistant reasoning]: {text}")] if text is not None else []
    state = part.get("state")
    if kind != "tool" or not isinstance(state, dict):
        return []
    made = [Line(f"[Assistant tool call]: {part.get('tool')}({_json(state.get('input'))})")]
    if state.get("status") == "completed":
        files = state.get("attachments")
        told = [_attached(one) for one in files if isinstance(one, dict)] if isinstance(files, list) else []
        time = state.get("time")
        cleared = count(time.get("compacted")) if isinstance(time, dict) else None
        result = _cut("\n".join([str(state.get("output")), *told]))
        made.append(Line(f"[Tool result]: {result}", cleared))
    elif state.get("status") == "error":
        made.append(Line(f"[Tool error]: {state.get('error')}"))
    return made


def _attached(part: Json) -> str:
    return f"[Attached {part.get('mime')}: {string(part.get('filename')) or 'file'}]"


def _cut(text: str) -> str:
    if len(text) * 2 <= _RESULT:
        return text
    units = text.encode("utf-16-le", "surrogatepass")
    if len(units) <= _RESULT * 2:
        return text
    return units[: _RESULT * 2].decode("utf-16-le", "replace") + "\n[truncated]"


def _json(value: Any) -> str:
    try:
        return orjson.dumps(value).decode("utf-8", "replace")
    except TypeError:  # nested too deep
        return canonical(value)
