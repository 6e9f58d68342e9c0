"""What the lines of a dataset's overview say, as parts.  Plain Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ctxctl.dataset.session_groups import Group
from ctxctl.dataset.session_values import SessionRow
from ctxctl.report.session_figures import (
    COLUMNS,
    GROUPED,
    NOT_RECORDED,
    cost_words,
    figure_value,
    figure_words,
)
from ctxctl.report.session_list import tail
from ctxctl.text import cells, clip, pad, preview, visible
from ctxctl.tui.layout import Column, Parts, Piece, laid_out, one_line, spread
from ctxctl.tui.screens.fleet.state import Arranged, Matter, Wish, by_client
from ctxctl.tui.series import size_bar
from ctxctl.wording import NOT_KNOWN, number, plural

_WIDTHS: Final = {
    "sessions": 8, "began": 16, "requests": 8, "sent": 7, "window": 6, "read": 5, "misses": 6,
    "compactions": 11, "cost": 12,
}  # fmt: skip
"""Cells of the columns beside the name; one for the sign of the order is in them."""
_RANKS: Final = {
    "cost": 9, "sent": 8, "window": 7, "sessions": 6, "misses": 5, "began": 4, "compactions": 3, "read": 2,
    "requests": 1,
}  # fmt: skip
"""What goes first where there is no room."""
_BRIEF: Final = {"compactions": ("compact.", 8), "began": ("began", 10)}
"""Titles and cells where there is little room."""
_NAME: Final = 18
_NAME_MOST: Final = 40
_BAR: Final = 24
_CLIENT: Final = 20
_TITLE: Final = 24
"""Cells of a session's title: without it, only figures tell sessions of one project apart."""
_TITLED: Final = 100
"""Cells of a list from which on that is kept free, and columns go before it."""


class Shape(NamedTuple):
    """The columns of a list in so many cells."""

    name: int
    """Cells of the group's name, or of the session's project."""
    client: int
    """Cells of a session's client; 0: left out."""
    columns: tuple[tuple[str, str, int], ...]
    """Name, title and cells of the others."""
    rest: int
    """Cells of what comes last: a bar of a group, the title or path of a session; 0: left out."""


def shape(wish: Wish, width: int) -> Shape:
    """The columns for a list of `width` cells; the one that it is sorted by is always there."""
    first = "began" if wish.flat else "sessions"
    names = [first, *(column.name for column in COLUMNS)]
    brief = width < 110
    shown = {name: _BRIEF[name] if brief and name in _BRIEF else (name, _WIDTHS[name]) for name in names}
    if wish.sorted_by in shown:
        title, size = shown[wish.sorted_by]
        shown[wish.sorted_by] = (title, max(size, cells(title) + 2))
    free = _TITLE + 2 if wish.flat and width >= _TITLED else 0
    while len(shown) > 1 and _NAME + free + sum(size + 1 for _, size in shown.values()) > width:
        least = min(shown, key=lambda name: _RANKS[name] + 10 * (name == wish.sorted_by))
        del shown[least]
    room = width - sum(size + 1 for _, size in shown.values())
    if not wish.flat:
        name = max(min(room, _NAME_MOST), 0)
        rest = min(room - name - 2, _BAR)
        return Shape(name, 0, _listed(shown), rest if rest >= 6 else 0)
    name = max(min(room - free, 28), 0)
    client = _CLIENT if room - name >= _CLIENT + _TITLE + 4 and not by_client(wish) else 0
    rest = room - name - (client + 2 if client else 0) - 2
    return Shape(name, client, _listed(shown), rest if rest >= 10 else 0)


def _listed(shown: dict[str, tuple[str, int]]) -> tuple[tuple[str, str, int], ...]:
    return tuple((name, title, size) for name, (title, size) in shown.items())


def head(view: Arranged, width: int) -> Parts:
    """Which dataset it is, which part of it is listed, and its sums."""
    held, whole = view.held, view.whole
    if held is None or whole is None:
        return spread(
            [Piece("ctxctl fleet", "name", 9), Piece("reading the dataset…", "strong", 10)], [], width
        )
    left = [Piece("ctxctl fleet", "name", 4), Piece(one_line(tail(visible(held.dataset), 40)), "muted", 3)]
    if view.wish.inside is not None:
        by, key = view.wish.inside
        left.append(Piece(f"{GROUPED[by]} {NOT_RECORDED if key is None else key}", "name", 11))
    found = plural(whole.sessions, "session")
    filtered = bool(view.wish.typed.strip()) or view.wish.inside is not None
    if filtered or held.more:
        found = f"{number(whole.sessions)} of {plural(held.total, 'session')}"
    left.append(Piece(found, "strong", 10))
    if held.more:
        left.append(Piece(f"the newest {number(len(held.rows))} are read", "warning", 9))
    words = figure_words(whole.figures)
    right = [
        Piece("reading…" if view.reading else "", "muted", 8),
        Piece(f"{words['sent']} sent" if whole.figures.requests else "", "", 5),
        Piece(words["cost"] if whole.figures.usd is not None else "", "", 6),
    ]
    return spread(left, right, width)


def heading(view: Arranged, width: int) -> Parts:
    """The titles of the columns; that of the order has a sign."""
    wish = view.wish
    made = shape(wish, width)
    sign = "▲" if wish.reversed else "▼"

    def title(name: str, text: str) -> tuple[str, str]:
        return (f"{text} {sign}", "strong") if wish.sorted_by == name else (text, "muted")

    columns = [Column(*title("name", _named_by(wish)), made.name)]
    if made.client:
        columns += [Column("", "", 2), Column("client", "muted", made.client)]
    for name, text, size in made.columns:
        columns += [Column("", "", 1), Column(*title(name, text), size, right=True)]
    if made.rest:
        columns += [Column("", "", 2), Column("session" if wish.flat else "", "muted", made.rest)]
    return laid_out(columns, width)


def _named_by(wish: Wish) -> str:
    """What the first column is of: of sessions what their group does not say."""
    if not wish.flat:
        return GROUPED[wish.by]
    return "client" if by_client(wish) else "project"


def line(view: Arranged, row: int, width: int) -> Parts:
    """One group or session."""
    if view.wish.flat:
        return _session(view.sessions[row], view.wish, width)
    return _group(view.groups[row], view, width)


def _group(group: Group, view: Arranged, width: int) -> Parts:
    made = shape(view.wish, width)
    words = {"sessions": number(group.sessions), **figure_words(group.figures)}
    name, style = (NOT_RECORDED, "muted") if group.key is None else (preview(group.key, 200), "name")
    parts: Parts = [(pad(name, made.name), style), *_figures(words, made)]
    if made.rest:
        parts += [("  ", ""), (pad(_bar(group, view, made.rest), made.rest), "gauge")]
    return parts


def _bar(group: Group, view: Arranged, width: int) -> str:
    """How much of the list's largest figure a group has, in the column that the list is sorted by."""
    if view.wish.order == "name":
        return ""
    largest = max((_value(one, view.wish.order) for one in view.groups), default=0.0)
    return size_bar(round(_value(group, view.wish.order) * 10**6), round(largest * 10**6), width)


def _value(group: Group, order: str) -> float:
    return float(group.sessions if order == "sessions" else figure_value(group.figures, order) or 0.0)


def _session(row: SessionRow, wish: Wish, width: int) -> Parts:
    made = shape(wish, width)
    words = {"began": began(row), **figure_words(row.own)}
    told = (
        client(row) if by_client(wish) else NOT_RECORDED if row.project is None else preview(row.project, 200)
    )
    known = row.client if by_client(wish) else row.project
    parts: Parts = [(pad(told, made.name), "muted" if known is None else "name")]
    left = 0 if made.rest else made.name - cells(told) - 2
    if left >= _END:
        parts = [(told, parts[0][1]), ("  ", ""), (pad(_called(row, left), left), "muted")]
    if made.client:
        parts += [("  ", ""), (pad(client(row), made.client), "muted")]
    parts += _figures(words, made)
    if made.rest:
        parts += [("  ", ""), (pad(_called(row, made.rest), made.rest), "muted")]
    return parts


_END: Final = 6
"""Cells beside a project's name from which on they say which session it is."""


def _called(row: SessionRow, width: int) -> str:
    """A session's title, else the end of its file's name: without its suffix where that takes much."""
    if row.title:
        return preview(row.title, 200)
    path = visible(row.path or "")
    return tail(path if width >= _TITLE else path.removesuffix(".jsonl"), width, names=False)


def _figures(words: dict[str, str], made: Shape) -> Parts:
    parts: Parts = []
    for name, _, size in made.columns:
        text = words[name][:size] if name == "began" else words[name].replace("under ", "<")
        parts += [(" ", ""), (pad(text, size, right=True), "muted" if text == NOT_KNOWN else "")]
    return parts


def began(row: SessionRow) -> str:
    """Day and minute (UTC) at which a session began."""
    return NOT_KNOWN if row.started is None else row.started.strftime("%Y-%m-%d %H:%M")


def client(row: SessionRow) -> str:
    """A session's client with its version."""
    told = " ".join(text for text in (row.client, row.client_version) if text)
    return preview(told, 200) if told else NOT_RECORDED


def foot(view: Arranged, front: Group | SessionRow | None, matter: Matter | None, width: int) -> list[Parts]:
    """Two lines on the group or session in front."""
    if isinstance(front, Group):
        return [spread(_said_of_group(front), [], width), spread(_silent(front), [], width)]
    if front is None:
        return [spread([], [], width), spread([], [], width)]
    path = "its path is not kept" if front.path is None else tail(visible(front.path), max(width - 2, 0))
    opens = "" if matter is None else f"opens at {matter.address}: {matter.why}"
    said = [
        Piece(clip(one_line(front.title or ""), max(width - cells(opens) - 4, 0)), "", 8),
        Piece(opens, "", 9),
        Piece(f"{plural(front.turns, 'turn')}" if front.turns else "", "muted", 4),
        Piece(front.model or "", "muted", 5),
        Piece(f"branch {front.branch}" if front.branch else "", "muted", 2),
        Piece(" ".join(f"{key}={value}" for key, value in front.labels), "muted", 1),
    ]
    if front.copied.requests:
        requests = plural(front.own.requests, "request")
        copies = f"{number(front.copied.requests)} of its {requests} count in another capture"
        said.insert(0, Piece(copies, "warning", 8))
    top: Parts = [(f" {path}", "muted"), (" " * max(width - 1 - cells(path), 0), "")]
    return [top, spread(said, [], width)]


def _said_of_group(group: Group) -> list[Piece]:
    name = NOT_RECORDED if group.key is None else group.key
    figures = group.figures
    said = [Piece(name, "strong", 10), Piece(plural(group.sessions, "session"), "", 9)]
    words = figure_words(figures)
    if figures.requests:
        said.append(Piece(f"{plural(figures.requests, 'request')}", "", 8))
        said.append(
            Piece(f"cost {cost_words(figures)}" if figures.usd is not None else "cost not recorded", "", 6)
        )
        if figures.filled is not None:
            said.append(Piece(f"largest window {words['window']} of its limit", "", 7))
    if group.copies:
        said.append(Piece(f"{plural(group.copies, 'request')} more count in another capture", "muted", 5))
    return said


def _silent(group: Group) -> list[Piece]:
    """What is not known of a group's figures."""
    figures = group.figures
    silent = (
        (figures.unpriced, "without a price"), (figures.unlimited, "without a known limit"),
        (figures.unbilled, "without a bill"),
    )  # fmt: skip
    said = [f"{number(count)} {why}" for count, why in silent if count]
    pieces = [Piece(f"of its requests {', '.join(said)}", "muted", 6)] if said else []
    if figures.unread:
        pieces.append(Piece(f"{plural(figures.unread, 'session')} without cache figures", "muted", 5))
    return pieces


def nothing(view: Arranged, width: int) -> list[Parts]:
    """What to do where nothing is listed."""
    held = view.held
    if held is None:
        return []
    said: Sequence[str] = (
        (f"no session fits “{one_line(view.wish.typed)}”", "", "Esc lists all sessions")
        if held.rows
        else (
            "this dataset holds no session yet",
            "",
            "ctxctl fleet add DIR --to DATASET   adds captures to it",
        )
    )
    return [laid_out([Column(f"  {text}", "muted" if n else "")], width) for n, text in enumerate(said)]
