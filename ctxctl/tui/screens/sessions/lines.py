"""What the lines of the list of sessions say, as parts.  Plain Python."""

from __future__ import annotations

import os
from typing import Final

from ctxctl.item_names import both_ends
from ctxctl.model.session_list import ListedSession
from ctxctl.report.session_list import LIVE, LIVE_WORDS, session_words, short_path, tail, widths
from ctxctl.text import cells, pad, visible
from ctxctl.tui.layout import Column, Parts, Piece, laid_out, one_line, spread
from ctxctl.tui.screens.sessions.state import Arranged
from ctxctl.wording import number, plural

_FILE: Final = 18
"""Cells of a file's name in front of a prompt."""
_CLOSED: Final = 5
"""Of what may not be read, as many are named."""
_HEADS: Final = {
    "age": "age",
    "client": "client",
    "project": "project",
    "turns": "turns",
    "sent": "sent",
    "cost": "cost",
}


def head(view: Arranged, width: int) -> Parts:
    """How many sessions there are, and what is known of them."""
    found = plural(view.total, "session") if view.looked else "looking for sessions…"
    if view.wish.typed.strip() and view.looked:
        found = f"{number(len(view.rows))} of {found}"
    closed = f"{number(len(view.closed))} not readable" if view.closed else ""
    left = [
        Piece("ctxctl", "name", 9),
        Piece(found, "strong", 10),
        Piece(f"{LIVE} {number(view.live)} going on" if view.live else "", "good", 7),
        Piece(closed, "warning", 8),
    ]
    unread = f"{number(view.unread)} not read yet" if view.unread else ""
    right = [Piece(f"reading: {unread}" if view.reading and unread else unread, "muted", 6)]
    return spread(left, right, width)


def heading(view: Arranged, width: int) -> Parts:
    """The names of the columns; that of the order has a sign."""
    room = widths(width)
    sign = "▲" if view.wish.reverse else "▼"

    def name(column: str, size: int) -> tuple[str, str]:
        if view.wish.order != column:
            return column, "muted"
        return f"{column}{' ' * (cells(column) + 2 <= size)}{sign}", "strong"

    def column(which: str, size: int, *, right: bool = False) -> list[Column]:
        text, style = name(which, size)
        return [Column(text, style, size, right=right)] if size else []

    return laid_out(
        [
            Column("", "", 2), *column("age", 7, right=True), Column("", "", 2),
            *column("client", room.client), *_gap(room.client),
            *column("project", room.project), *_gap(room.project),
            *column("turns", 6, right=True), Column("", "", 1), *column("sent", 7, right=True),
            Column("", "", 1), *column("cost", 10, right=True), Column("", "", 2),
            *([Column("first prompt", "muted", room.prompt)] if room.prompt else []),
        ],
        width,
    )  # fmt: skip


def _gap(size: int) -> list[Column]:
    return [Column("", "", 2)] if size else []


def line(session: ListedSession, now: float, typed: str, width: int, *, twin: bool = False) -> Parts:
    """One session; what was looked for is marked in its project and prompt.  A `twin` of another one has the
    name of its file in front of its prompt.
    """
    words, room = session_words(session, now), widths(width)
    file = visible(os.path.basename(session.path))
    prompt = f"{both_ends(file, _FILE)}  {words.prompt}" if twin else words.prompt
    dim = "muted" if session.facts is None else ""
    parts: Parts = [(words.live, "good"), (" ", ""), (pad(words.age, 7, right=True), "muted"), ("  ", "")]
    if room.client:
        parts += [(pad(words.client, room.client), "muted"), ("  ", "")]
    if room.project:
        parts += [*_marked(pad(tail(words.project, room.project), room.project), typed, "name"), ("  ", "")]
    parts += [
        (pad(words.turns, 6, right=True), dim), (" ", ""), (pad(words.sent, 7, right=True), dim), (" ", ""),
        (pad(words.cost, 10, right=True), dim), ("  ", ""),
    ]  # fmt: skip
    return [*parts, *_marked(pad(prompt, room.prompt), typed, dim)]


def _marked(text: str, typed: str, style: str) -> Parts:
    """A text with the first word that was looked for marked, where it stands in it."""
    lower = text.lower()
    found = [(at, at + len(word)) for word in typed.lower().split() if (at := lower.find(word)) >= 0]
    if not found or len(lower) != len(text):
        return [(text, style)]
    at, end = min(found)
    return [(text[:at], style), (text[at:end], "match"), (text[end:], style)]


def foot(view: Arranged, session: ListedSession | None, width: int) -> list[Parts]:
    """Two lines on the session in front: its file, and what is special about it."""
    if session is None:
        return [spread([], [], width), spread([], [], width)]
    path = tail(visible(short_path(session.path)), max(width - 2, 0))
    facts = session.facts
    said = [Piece(f"{LIVE} {LIVE_WORDS[session.live]}", "good", 9)] if session.live else []
    if session.failed is not None:
        said.append(Piece(f"cannot be read: {session.failed}", "warning", 8))
    elif facts is None:
        said.append(Piece("not read yet", "muted", 8))
    else:
        said.append(Piece(one_line(facts.prompt or ""), "", 8))
        if session.outdated:
            said.append(Piece("continued since it was read", "muted", 7))
    return [[(f" {path}", "muted"), (" " * max(width - 1 - cells(path), 0), "")], spread(said, [], width)]


def nothing(view: Arranged, width: int) -> list[Parts]:
    """What to do where no session is listed, and where was looked."""
    if not view.looked:
        return []
    if view.total:
        said = [f"no session fits “{one_line(view.wish.typed)}”", "", "Esc lists all sessions"]
        return [laid_out([Column(f"  {text}", "muted" if n else "")], width) for n, text in enumerate(said)]
    said = [
        "no session of a known client on this machine", "",
        "ctxctl replay FILE         opens any trace or capture, wherever it is",
        "ctxctl record -- COMMAND   records a session while it runs",
        "ctxctl formats             what can be opened, and where clients write it", "",
        *(["not readable:"] if view.closed else []),
        *(f"  {one_line(short_path(one))}" for one in view.closed[:_CLOSED]),
        *([""] if view.closed else []),
        "looked in:",
        *(f"  {short_path(place)}" for place in view.places),
    ]  # fmt: skip
    return [laid_out([Column(f"  {text}", "muted" if n else "")], width) for n, text in enumerate(said)]
