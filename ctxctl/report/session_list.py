"""A list of sessions, in plain text and as JSON, and the words of its columns for every view."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from ctxctl.model.session_list import ListedSession
from ctxctl.report.bill_notes import known_text
from ctxctl.report.cost_sums import stated_object
from ctxctl.report.jsonout import VERSION, exact
from ctxctl.text import ELLIPSIS, cells, clip, pad, preview, visible
from ctxctl.wording import APPROXIMATE, AT_LEAST, NOT_KNOWN, duration, number, short

LIVE: Final = "●"
"""A session that goes on."""
LIVE_WORDS: Final = {
    "open": "a program has it open for writing",
    "written": "written in the last two minutes",
}
NOT_READ: Final = "not read yet"
_PROMPT: Final = 200


class SessionWords(NamedTuple):
    """What the columns say of one session; shown text."""

    live: str
    age: str
    client: str
    project: str
    turns: str
    sent: str
    cost: str
    prompt: str


def session_words(session: ListedSession, now: float) -> SessionWords:
    """The words of all columns; `now`: seconds since the epoch.  What is not known is `-`."""
    facts = session.facts
    project = NOT_KNOWN if session.directory is None else visible(short_path(session.directory))
    line = (LIVE if session.live else " ", age(session, now), visible(session.format), project)
    if facts is None:
        said = NOT_READ if session.failed is None else f"cannot be read: {session.failed}"
        return SessionWords(*line, NOT_KNOWN, NOT_KNOWN, NOT_KNOWN, f"({preview(said, _PROMPT)})")
    more = AT_LEAST if session.outdated else ""
    about = AT_LEAST if facts.unsized else APPROXIMATE if facts.unbilled else more
    cost = known_text(
        facts.cost, facts.stated, facts.steps, counted=facts.counted, least=facts.at_least,
        grown=session.outdated,
    )  # fmt: skip
    prompt = (
        preview(facts.prompt, _PROMPT) if facts.prompt else "(no prompt)" if facts.steps else "(no request)"
    )
    if facts.sessions > 1:
        prompt = f"({number(facts.sessions)} sessions) {prompt}"
    return SessionWords(
        *line, f"{more}{number(facts.turns)}",
        NOT_KNOWN if facts.unsized and not facts.sent else f"{about}{short(facts.sent)}",
        cost, prompt,
    )  # fmt: skip


def age(session: ListedSession, now: float) -> str:
    """How long ago it was written last."""
    return duration(max(0.0, now - session.written))


def short_path(path: str) -> str:
    """A path with `~` for the user's own directory; raw."""
    home = os.path.expanduser("~")
    inside = home not in ("~", "/") and (path == home or path.startswith(f"{home}/"))
    return f"~{path[len(home) :]}" if inside else path


def tail(text: str, width: int, *, names: bool = True) -> str:
    """The end of shown text in at most `width` cells: of a path, what tells it from others.

    Args:
        text: Is visible already.
        width: Cells.
        names: Begin with a whole name of a path, if that leaves a third of the text or more.
    """
    if cells(text) <= width:
        return text
    while text and cells(text) >= width:
        text = text[1:]
    at = text.find("/")
    if names and 0 < at <= len(text) * 2 // 3:
        text = text[at:]
    return f"{ELLIPSIS}{text}" if width > 0 else ""


class Widths(NamedTuple):
    """Cells of the columns whose width depends on the room; 0: left out."""

    client: int
    project: int
    prompt: int


def widths(room: int) -> Widths:
    """For a line of so many cells: age 7, turns 6, sent 7 and cost 10 are always there."""
    fixed = 2 + 7 + 2 + 6 + 1 + 7 + 1 + 10 + 2
    client = 13 if room >= 96 else 0
    rest = max(room - fixed - client - (2 if client else 0), 0)
    project = min(max(rest * 2 // 5, 12), 40) if rest >= 26 else 0
    return Widths(client, project, max(rest - project - (2 if project else 0), 0))


def heading(width: int) -> str:
    """The names of the columns."""
    return _line(
        SessionWords(" ", "age", "client", "project", "turns", "sent", "cost", "first prompt"), width
    )


def terminal_line(session: ListedSession, now: float, width: int) -> str:
    """One session in `width` cells."""
    return _line(session_words(session, now), width)


def _line(words: SessionWords, width: int) -> str:
    room = widths(width)
    parts = [words.live, " ", pad(words.age, 7, right=True), "  "]
    if room.client:
        parts += [pad(words.client, room.client), "  "]
    if room.project:
        parts += [pad(tail(words.project, room.project), room.project), "  "]
    parts += [pad(words.turns, 6, right=True), " ", pad(words.sent, 7, right=True), " "]
    parts += [pad(words.cost, 10, right=True), "  ", clip(words.prompt, room.prompt)]
    return "".join(parts).rstrip()


_PLAIN: Final = (17, 7, 13, 6, 8, 12, 30, 40)
"""Cells of the columns where the output is no terminal; only the first prompt is cut."""


def plain_heading() -> str:
    """The names of the columns of `plain_line`."""
    return _columns("written", "live", "client", "turns", "sent", "cost", "project", "first prompt", "path")


def plain_line(session: ListedSession, now: float, path: str) -> str:
    """One session for a pipe: times in UTC, and at the end the path as a shell takes it."""
    words = session_words(session, now)
    return _columns(
        moment(session.written)[:16] + "Z", session.live or NOT_KNOWN, words.client, words.turns, words.sent,
        words.cost, words.project, words.prompt, shlex.quote(visible(path)),
    )  # fmt: skip


def _columns(*texts: str) -> str:
    *first, prompt, last = texts
    made = [text + " " * max(0, size - cells(text)) for text, size in zip(first, _PLAIN, strict=False)]
    return "  ".join([*made, pad(prompt, _PLAIN[-1]), last])


def moment(seconds: float) -> str:
    """A time in UTC as ISO 8601, to the second, with its `Z`."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return NOT_KNOWN


def list_object(places: Sequence[str], sessions: int, version: str) -> dict[str, Any]:
    """The first line of JSON."""
    return {
        "type": "session_list",
        "version": VERSION,
        "ctxctl": version,
        "places": list(places),
        "sessions": sessions,
    }


def session_object(session: ListedSession, path: str) -> dict[str, Any]:
    """One session."""
    facts = session.facts
    read = "failed" if session.failed is not None else "no" if facts is None else "yes"
    return {
        "type": "listed_session",
        "path": path,
        "format": session.format,
        "directory": session.directory,
        "written": moment(session.written),
        "bytes": session.size,
        "live": session.live or None,
        "read": "outdated" if session.outdated and facts is not None else read,
        "error": session.failed,
        "prompt": None if facts is None else facts.prompt,
        "sessions": None if facts is None else facts.sessions,
        "turns": None if facts is None else facts.turns,
        "steps": None if facts is None else facts.steps,
        "sent": None if facts is None else facts.sent,
        "unbilled_steps": None if facts is None else facts.unbilled,
        "unsized_steps": None if facts is None else facts.unsized,
        "cost": None if facts is None else exact(facts.cost),
        "counted": None if facts is None else facts.counted,
        "at_least": None if facts is None else facts.at_least,
        "stated": None if facts is None else stated_object(facts.stated),
        "first": None if facts is None else facts.first,
        "last": None if facts is None else facts.last,
    }


def nothing_lines(places: Sequence[str]) -> Iterator[str]:
    """Where was looked, where there is no session."""
    there = [place for place in places if os.path.isdir(place)]
    absent = [place for place in places if place not in there]
    if there:
        yield "looked in:"
        yield from (f"  {visible(short_path(place))}" for place in there)
    if absent:
        yield "not there:"
        yield from (f"  {visible(short_path(place))}" for place in absent)
