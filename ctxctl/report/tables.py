"""Plain text laid out in cells: tables, labelled paragraphs, bars, and problems as one line each.

All text is shown text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from ctxctl.model.problem import Problem
from ctxctl.model.vocab import SEGMENTS, UNRECORDED
from ctxctl.text import cells, clip, is_plain, pad, visible
from ctxctl.wording import plural

GAP = "  "
_SLIVER = 6
"""Cells that a squeezed column keeps on the narrowest terminal."""


class Column(NamedTuple):
    """One column of a table."""

    title: str
    right: bool = False
    least: int = 0
    """Cells below which it is not squeezed; 0: it never shrinks."""


def layout(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """Cells for each column so that the table fits `width` where its squeezable columns allow it.

    Of the columns that may shrink, those with the lowest `least` (the least telling ones) give first; where
    that is not enough, all of them go down to `_SLIVER`.
    """
    wide = [max(cells(c.title), _widest([row[n] for row in rows])) for n, c in enumerate(columns)]
    over = sum(wide) + len(GAP) * (len(columns) - 1) - width
    able = sorted((c.least, n) for n, c in enumerate(columns) if c.least)
    for least, n in [*able, *((_SLIVER, n) for _, n in able)]:
        cut = max(0, min(over, wide[n] - least))
        wide[n] -= cut
        over -= cut
    return wide


def _widest(texts: Sequence[str]) -> int:
    """Cells of the widest of some texts: told of all at once where they are plain, as they mostly are."""
    size = len if is_plain("".join(texts)) else cells
    return max(map(size, texts), default=0)


def _padded(texts: list[str], width: int, *, right: bool) -> list[str]:
    """As `pad`, of each cell of a column."""
    if not is_plain("".join(texts)) or max(map(len, texts)) > width:
        return [pad(text, width, right=right) for text in texts]
    return [text.rjust(width) for text in texts] if right else [text.ljust(width) for text in texts]


def width_of(columns: Sequence[Column], rows: Sequence[Sequence[str]], at: int, width: int) -> int:
    """Cells that a column gets in a table of such a width; where it is empty in every row, none."""
    used = [n for n in range(len(columns)) if any(row[n] for row in rows)]
    if at not in used:
        return 0
    return layout(*_used(columns, rows), width)[used.index(at)]


def fits(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> bool:
    """Whether a table can be as narrow as `width` without cutting into a column that does not shrink."""
    columns, rows = _used(columns, rows)
    wide = layout(columns, rows, 1 << 30)
    least = [c.least or whole for c, whole in zip(columns, wide, strict=True)]
    return sum(map(min, wide, least)) + len(GAP) * (len(columns) - 1) <= width


class Table(NamedTuple):
    """A table as text."""

    head: list[str]
    """The line of titles; none where rows are stacked."""
    rows: list[list[str]]
    """The lines of each row."""


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> Table:
    """One line a row, without trailing blanks; columns that are empty are left out.

    On a line too narrow for that, each row is a paragraph of its cells with their titles.
    """
    columns, rows = _used(columns, rows)
    if not columns:
        return Table([""], [[""] for _ in rows])
    wide = layout(columns, rows, width)
    if sum(wide) + len(GAP) * (len(columns) - 1) > width:
        return Table([], [list(_stacked(columns, row, width)) for row in rows])
    made = [
        _padded([c.title, *(row[n] for row in rows)], wide[n], right=c.right) for n, c in enumerate(columns)
    ]
    head, *body = (GAP.join(cells_).rstrip(" ") for cells_ in zip(*made, strict=True))
    return Table([head], [[line] for line in body])


def _stacked(columns: Sequence[Column], row: Sequence[str], width: int) -> Iterator[str]:
    """The first cell, then the others by title, wrapped under it."""
    rest = ", ".join(f"{c.title} {cell}" for c, cell in zip(columns[1:], row[1:], strict=True) if cell)
    for n, line in enumerate(wrap(f"{row[0]}{GAP}{rest}", width - 2)):
        yield "  " * bool(n) + line


def _used(
    columns: Sequence[Column], rows: Sequence[Sequence[str]]
) -> tuple[list[Column], list[list[str]]]:  # fmt: skip
    """The columns that are not empty in every row."""
    used = [n for n in range(len(columns)) if any(row[n] for row in rows)]
    return [columns[n] for n in used], [[row[n] for n in used] for row in rows]


def wrap(text: str, width: int) -> Iterator[str]:
    """Lines of at most `width` cells, broken at blanks; a longer word is clipped on a line of its own."""
    size = len if is_plain(text) else cells
    if size is len and len(text) <= width and not text.startswith(" "):
        if text:
            yield text.rstrip(" ")
        return
    line = ""
    for word in text.split(" "):
        joined = f"{line} {word}" if line else word
        if line.strip(" ") and size(joined) > width:
            yield clip(line.rstrip(" "), width)
            line = word
        else:
            line = joined
    if line.strip(" "):
        yield clip(line.rstrip(" "), width)


def labelled(label: str, text: str, width: int, *, indent: int = 0, tab: int = 10) -> Iterator[str]:
    """A label and its text beside it, wrapped with a hanging indent."""
    lead = " " * indent + pad(label, tab)
    for line in wrap(text, max(20, width - indent - tab)):
        yield (lead + line).rstrip(" ")
        lead = " " * (indent + tab)


def letters(segments: Iterable[str]) -> dict[str, str]:
    """One letter for each window segment: its own first, else another of its own, else a digit."""
    ordered = ordered_segments(segments)
    taken: dict[str, str] = {}
    for name in ordered:
        if name == UNRECORDED:
            taken[name] = "/"
            continue
        options = [c.upper() for c in name if c.isascii() and c.isalpha()] + list("0123456789#%&*+=?@")
        letter = next((c for c in options if c not in taken.values()), "?")
        taken[name] = letter
    return taken


def ordered_segments(segments: Iterable[str]) -> list[str]:
    """Window segments in the provider's order, unknown ones last by name."""
    names = set(segments)
    return [s for s in SEGMENTS if s in names] + sorted(names.difference(SEGMENTS))


def bar(segments: Mapping[str, int], total: int, width: int) -> str:
    """A bar of exactly `width` cells for `total` tokens: a letter a segment, `.` what is free.

    Every segment that holds tokens gets at least one cell where there is room; shares go by largest
    remainder.
    """
    parts = [(name, segments[name]) for name in ordered_segments(segments) if segments[name] > 0]
    used = sum(tokens for _, tokens in parts)
    total = max(total, used)
    if width <= 0 or total == 0:
        return "." * max(width, 0)
    shares = [*(tokens for _, tokens in parts), total - used]
    exact = [tokens * width / total for tokens in shares]
    drawn = [int(share) for share in exact]
    for n in sorted(range(len(exact)), key=lambda n: (drawn[n] - exact[n], n))[: width - sum(drawn)]:
        drawn[n] += 1
    for n, tokens in enumerate(shares):
        if tokens and not drawn[n] and max(drawn) > 1:
            drawn[drawn.index(max(drawn))] -= 1
            drawn[n] = 1
    names = letters(segments)
    signs = [*(names[name] for name, _ in parts), "."]
    return "".join(sign * count for sign, count in zip(signs, drawn, strict=True))


_CUTS: Final = frozenset({"contradictory-records", "windows-too-large"})
"""Problems of a capture of which the rest is not read: each is the only one of its kind."""


def problem_line(name: str, problem: Problem) -> str:
    """``file:line: byte N: slug: message``; a problem of the whole file has no line."""
    place = f"{problem.line}: byte {problem.byte}: " if problem.line else " "
    return f"{visible(name)}:{place}{problem.slug}: {visible(problem.message)}"


def problem_lines(name: str, problems: Sequence[Problem], total: int, cap: int | None) -> Iterator[str]:
    """At most `cap` of the problems (None: all) and those that say what was cut, then how many more there are
    of the `total`.
    """
    shown = listed(problems, cap)
    for problem in shown:
        yield problem_line(name, problem)
    if total > len(shown):
        yield unshown_line(name, total - len(shown), total)


def listed(problems: Sequence[Problem], cap: int | None) -> list[Problem]:
    """The first problems, no more than `cap` (None: all), and those behind them that say what was cut."""
    behind = () if cap is None else problems[cap:]
    return [*problems[:cap], *(problem for problem in behind if problem.slug in _CUTS)]


def unshown_line(name: str, more: int, total: int) -> str:
    """How many problems there are beside those shown, of how many."""
    return f"{visible(name)}: {plural(more, 'more problem')} not shown ({total:,} in all)"
