"""The changes between two frames as a table grouped by status."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ctxctl.item_names import ItemNames, Named
from ctxctl.model.results import Change, Counts
from ctxctl.model.vocab import STATUSES, Mode
from ctxctl.report.paint import Paint
from ctxctl.report.tables import Column, fits, labelled, table, width_of
from ctxctl.text import visible
from ctxctl.wording import SIGNS, UNCHANGED, number, short_kind

_IMPLIED = {"derived-identity", "carried-in"}
_COLUMNS = (
    Column("status"),
    Column("kind"),
    Column("item", least=24),
    Column("id", least=16),
    Column("window", right=True),
    Column("new", right=True),
    Column("freed", right=True),
    Column("cause"),
)
_UNCUT = tuple(column._replace(least=0) for column in _COLUMNS)
_TIGHT = (
    _COLUMNS[0],
    Column("kind", least=9),
    Column("item", least=14),
    Column("id", least=12),
    *_COLUMNS[4:-1],
)
_ITEM = 2
"""The column with the names."""
_ALIKE = {1: "", 2: "both: "}
"""What stands before a cause that so many changes share."""
_NARROW = 50
"""Cells below which causes have no line of their own: rows are stacked there anyway."""


def counts_line(counts: Counts, mode: Mode | None = None) -> str:
    """``+1 added  ~0 updated  \u22120 removed  =2 skipped (unchanged, sent again)  ∅0 omitted``.

    Where the frame's mode is given, what skipped items were is said, as that hangs on it.
    """
    said = {"skipped": f" ({UNCHANGED[mode]})"} if mode is not None and counts.skipped else {}
    return "  ".join(f"{SIGNS[s]}{number(getattr(counts, s))} {s}{said.get(s, '')}" for s in STATUSES)


def counts_short(counts: Counts) -> str:
    """``+1 ~0 \u22120 =2 ∅0``."""
    return " ".join(f"{SIGNS[s]}{number(getattr(counts, s))}" for s in STATUSES)


def short_version(version: str | None) -> str:
    """A version short enough to be read beside another; `?` where there is none."""
    if version is None:
        return "?"
    return visible(version if len(version) <= 12 else version[:8])


def titles_of(changes: Iterable[Change]) -> dict[str, str | None]:
    """The titles of changed items, by id."""
    return {change.item: change.title for change in changes}


def cause_text(change: Change, names: ItemNames, titles: Mapping[str, str | None]) -> str:
    """Cause, reason, versions and flags of one change, in words; `titles` are those of its step's changes."""
    said = []
    if change.status == "updated" and change.previous_version != change.version:
        said.append(f"{short_version(change.previous_version)} -> {short_version(change.version)}")
    if change.cause and not (change.status == "omitted" and change.cause == "omitted" and change.reason):
        said.append(visible(change.cause))
    if change.reason:
        reason = visible(change.reason)
        said.append(reason if change.status == "omitted" else f"({reason})")
    if change.status == "omitted" and change.tokens:
        said.append(f"({change.tokens:,} tokens)")
    if change.into:
        said.append(f"into {names.of_ref(change.into, titles)}")
    if "carried-in" in change.flags:
        said.append("carried in")
    said += [f"[{visible(flag)}]" for flag in change.flags if flag not in _IMPLIED]
    if change.provenance != "native":
        said.append(f"[{change.provenance}]")
    return " ".join(said)


def rows(changes: Iterable[Change], *, skipped: bool = False) -> list[Change]:
    """The changes grouped by status, in the order of `STATUSES`; skipped ones only if asked for."""
    wanted = [s for s in STATUSES if skipped or s != "skipped"]
    return sorted((c for c in changes if c.status in wanted), key=lambda c: STATUSES.index(c.status))


def changes_table(
    changes: Sequence[Change], width: int, paint: Paint, names: ItemNames, *, indent: int
) -> Iterator[str]:
    """Head line and one line a change; nothing for no changes.

    Where the causes do not fit beside the numbers, each stands on a line of its own below its change, and one
    that several changes in a row share below the last of them.
    """
    if not changes:
        return
    named = [names.row(c.item, c.title, f"{c.status} {c.kind}") for c in changes]
    whole = names.listed(named)
    titles = titles_of(changes)
    body = [
        _row(c, name, cause_text(c, names, titles), ids=names.ids)
        for c, name in zip(changes, whole, strict=True)
    ]
    columns, body, causes = _arranged(body, width - indent)
    found = table(columns, with_names(columns, body, _ITEM, names, named, width - indent), width - indent)
    margin = " " * indent
    for line in found.head:
        yield margin + paint("dim", line)
    for change, cause, (first, *rest) in zip(changes, _said_once(changes, causes), found.rows, strict=True):
        end = len(change.status) + 2
        yield margin + paint(change.status, first[:end]) + first[end:]
        yield from (margin + line for line in rest)
        if cause:
            yield from labelled("", cause, width, indent=indent, tab=11)


def _said_once(changes: Sequence[Change], causes: Sequence[str]) -> list[str]:
    """The causes, one that a run of changes shares only at its end, with their number."""
    said = []
    alike = 0
    for n, (change, cause) in enumerate(zip(changes, causes, strict=True)):
        alike += 1
        following = n + 1 < len(changes) and (changes[n + 1].status, causes[n + 1]) == (change.status, cause)
        if following or not cause:
            said.append("")
        else:
            said.append(f"{_ALIKE.get(alike, f'all {alike:,}: ')}{cause}")
        if not following:
            alike = 0
    return said


def with_names(
    columns: Sequence[Column], body: Sequence[tuple[str, ...]], at: int, names: ItemNames,
    named: Sequence[Named], width: int,
) -> list[tuple[str, ...]]:  # fmt: skip
    """The rows of a table with the items of its column `at` called as its width allows."""
    room = width_of(columns, body, at, width)
    found = names.listed(named, room)
    return [(*row[:at], name, *row[at + 1 :]) for row, name in zip(body, found, strict=True)]


def _arranged(
    body: list[tuple[str, ...]], width: int
) -> tuple[tuple[Column, ...], list[tuple[str, ...]], list[str]]:
    """Columns, cells, and the causes that go below: the fullest arrangement that fits."""
    inline = [""] * len(body)
    if fits(_UNCUT, body, width):
        return _COLUMNS, body, inline
    short = [(row[0], short_kind(row[1]), *row[2:]) for row in body]
    if fits(_COLUMNS, short, width):
        return _COLUMNS, short, inline
    if width < _NARROW:
        return _COLUMNS, short, inline
    return _TIGHT, [row[:-1] for row in short], [row[-1] for row in short]


def _row(change: Change, name: str, cause: str, *, ids: bool) -> tuple[str, ...]:
    return (
        f"{SIGNS[change.status]} {change.status}",
        visible(change.kind),
        name,
        visible(change.item) if ids else "",
        *amounts(change),
        cause,
    )


_UNSIZED = {"added": (0, 1), "updated": (0, 1), "skipped": (0,), "removed": (2,)}
"""Which amounts of an item without a size are not known: those that it would add to."""


def amounts(change: Change) -> list[str]:
    """Tokens in the window, new and freed; `-` where the item has neither text nor count, and so adds 0."""
    counted = (change.in_window, change.new, change.freed)
    unknown = _UNSIZED.get(change.status, ()) if change.unsized else ()
    return [number(None if n in unknown and not tokens else tokens) for n, tokens in enumerate(counted)]


def tokens_text(change: Change) -> str:
    """The size of the version spoken of; `-` where it is not known."""
    return number(change.size)
