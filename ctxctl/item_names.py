"""What an item is called in a list: the one place that decides it, for text reports, findings and the UI.

A recorded title goes before the first words of the content, which stand in quotation marks so that nobody
takes them for a title, and these before the id.  A path below the session's directory is shown from there.
What is too long for the room is cut where it says least: a path on its left, at separators; all else on its
right.  Items of one list that would look the same are cut before the place where they differ, and those that
do not differ get the end of their id.  The script of the HTML report mirrors `told`
(``report/html/assets/data.js``).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from ctxctl.text import ELLIPSIS, cells, clip, preview

LONGEST: Final = 400
"""Cells of a name in a room without bounds."""
WORDS: Final = 120
"""Cells of the first words that stand for a title."""
REF: Final = 40
"""Cells of an item that is named in a sentence about another."""
BLANK: Final = "(blank)"
"""Stands for the words of a text of blanks and line ends."""
_WIDTHS: Final = 4
"""Widths for which a list knows its names at a time."""
_HEAD: Final = 1000
"""Characters of a text in which its first words are looked for."""
_TAIL: Final = 4
"""Characters of the end of an id that tells two items apart, at least."""
_ROUNDS: Final = 4
"""How often names that look alike are cut at the next place where they differ."""
_LEAST: Final = 6
"""Cells below which a path is not cut at its separators."""
_FEW: Final = 3
"""Cells below which a name is left out in front of the end of an id."""
_TOOL: Final = re.compile(r"[\w.:/-]{1,60}?: ")
_SERVER: Final = re.compile(r"^\S+(?:__|\.)(?=\w)")
"""What stands in front of a tool's own name: ``mcp__linear__get_issue``."""
_CHANGED_TO: Final = re.compile(r"cd (?:\"([^\"]+)\"|'([^']+)'|([^\s;&|\"']+))\s*(?:&&|;)\s*")
_SEPARATORS: Final = re.compile(r"[/\\]")
_ROOTED: Final = re.compile(r"/|~/|\.{1,2}/|[A-Za-z]:[\\/]")
_NO_PATH: Final = re.compile(r"://|[|&;<>$\"'`*?\n]| -")
_RESULT: Final = "/result"
"""How importers name the result of a call, behind the call's id."""


class Named(NamedTuple):
    """What there is to call an item by."""

    item: str
    title: str | None
    words: str = ""
    """The beginning of its content, as recorded; empty where it is not to be shown or not known."""
    beside: str = ""
    """What stands beside the name in the list (its kind), which tells it from others too."""


_remembered = lru_cache(maxsize=8192)
"""Frames of one trace list much the same items: each name in each width is asked for again and again."""


def told(title: str | None, words: str, item: str, directory: str | None = None) -> str:
    """The whole name of an item, visible and on one line."""
    known = _told if len(title or "") + len(item) < _HEAD else _told.__wrapped__
    return known(title, words[:_HEAD], item, directory)


@_remembered
def _told(title: str | None, words: str, item: str, directory: str | None) -> str:
    if title is not None and title.strip():
        return preview(local(title, directory), LONGEST)
    if not words:
        return preview(item, LONGEST)
    first = preview(words, WORDS)
    return f"“{first}”" if first else BLANK


def local(title: str, directory: str | None) -> str:
    """A title with a path below the directory, from there; a command that goes there first, without that."""
    if not directory:
        return title
    root = directory.rstrip("/\\")
    if root not in title or not root:
        return title
    tool, said = parted_title(title)
    changed = _CHANGED_TO.match(said)
    if changed is not None:
        to = next(filter(None, changed.groups()))
        inner, rest = _below(to, root), said[changed.end() :]
        if inner is None or not rest:
            return title
        return f"{tool}{rest}" if inner == "." else f"{tool}cd {inner} && {rest}"
    inner = _below(said, root)
    return title if inner is None else f"{tool}{inner}"


@_remembered
def fitted(name: str, width: int) -> str:
    """A shown name in at most `width` cells."""
    if cells(name) <= width:
        return name
    if name.startswith("“"):
        return f"{clip(name.removesuffix('”'), width - 1)}”" if width > 2 else clip(name, width)
    tool, said = parted_title(name)
    if not is_path(said):
        return clip(name, width)
    room = width - cells(tool)
    return clip(tool + (shortened_path(said, room) if room >= _LEAST else _last_part(said)), width)


def fitted_call(name: str, width: int) -> str:
    """A shown name in at most `width` cells, without its tool where that would take half of them, or of a
    command a third: what a tool was called with tells one call from another.  Of a tool with its server in
    front the last part stays, where there is room for it.
    """
    return fitted(_called(name, width), width)


@_remembered
def _called(name: str, width: int) -> str:
    """A name without its tool, where that would take much of the room that the name has not."""
    tool, said = parted_title(name)
    share = 2 if is_path(said) else 3
    if not said or cells(name) <= width or cells(tool) * share <= width:
        return name
    brief = f"{_SERVER.sub('', tool)}{said}"
    return brief if cells(brief) <= width else said


def shortened_path(path: str, width: int) -> str:
    """The end of a path in at most `width` cells, cut at a separator: its last parts tell it from others."""
    if cells(path) <= width:
        return path
    end = ""
    for start in reversed([found.start() for found in _SEPARATORS.finditer(path, 0, len(path) - 1)]):
        tail = path[start:]
        if cells(tail) + 1 > width:
            break
        end = tail
    if end:
        return ELLIPSIS + end
    return clip(_last_part(path), width)


def _last_part(path: str) -> str:
    return _SEPARATORS.split(path.rstrip("/\\"))[-1]


def is_rooted(path: str) -> bool:
    """Whether a path says from where it starts."""
    return _ROOTED.match(path) is not None


def is_path(text: str) -> bool:
    """Whether a text is to be read as the path of a file, and as nothing else."""
    if not _SEPARATORS.search(text) or _NO_PATH.search(text):
        return False
    return _ROOTED.match(text) is not None or " " not in text


def names(rows: Sequence[Named], width: int | Sequence[int], directory: str | None = None) -> list[str]:
    """What the items of one list are called in `width` cells (or in as many for each row); no two of them the
    same.

    Rows of the same item have the same name, and so may items whose rows differ in `beside`.
    """
    rooms = [width] * len(rows) if isinstance(width, int) else width
    return _apart(rows, [told(row.title, row.words, row.item, directory) for row in rows], rooms)


def _apart(rows: Sequence[Named], whole: Sequence[str], rooms: Sequence[int]) -> list[str]:
    """Whole names, each in as many cells as there are for it, and no two of them the same."""
    found = [fitted_call(name, room) for name, room in zip(whole, rooms, strict=True)]
    for _ in range(_ROUNDS):
        groups = [group for group in _alike(rows, found) if len({whole[n] for n in group}) > 1]
        for group in groups:
            told_apart = _from_difference([whole[n] for n in group], [rooms[n] for n in group])
            for n, name in zip(group, told_apart, strict=True):
                found[n] = name
        if not groups:
            break
    for group in _alike(rows, found):
        ends = id_ends(list(dict.fromkeys(rows[n].item for n in group)))
        for n in group:
            mark = f" #{ends[rows[n].item]}"
            room = rooms[n] - cells(mark)
            found[n] = f"{fitted_call(whole[n], room)}{mark}" if room >= _FEW else mark.lstrip()
    return found


def _alike(rows: Sequence[Named], found: Sequence[str]) -> list[list[int]]:
    """The rows that look like one of another item."""
    groups: dict[tuple[str, str], list[int]] = {}
    for n, (row, name) in enumerate(zip(rows, found, strict=True)):
        groups.setdefault((row.beside, name), []).append(n)
    return [group for group in groups.values() if len({rows[n].item for n in group}) > 1]


def _from_difference(whole: Sequence[str], rooms: Sequence[int]) -> list[str]:
    """Names that look the same when cut at one end, cut so that most of them differ."""
    called = [_called(name, room) for name, room in zip(whole, rooms, strict=True)]
    bare = [parted_title(name)[1] or name for name in whole]
    ways = [
        *([fitted(name, room) for name, room in zip(texts, rooms, strict=True)] for texts in (whole, bare)),
        *(
            [_cut_before(name, at, room) for name, room in zip(texts, rooms, strict=True)]
            for texts in (called, whole)
            for at in [_difference(texts)]
        ),
    ]
    return max(ways, key=lambda names: len(set(names)))


def _difference(texts: Sequence[str]) -> int:
    """The first character at which some texts differ."""
    first, last = min(texts), max(texts)
    return next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))


@_remembered
def _cut_before(name: str, at: int, width: int) -> str:
    """The beginning of a name and what stands at one of its characters, in at most `width` cells."""
    if cells(name) <= width:
        return name
    quoted = name.startswith("“") and name.endswith("”") and at > 0
    inner, at, room = (name[1:-1], at - 1, width - 2) if quoted else (name, at, width)
    least = room // 3
    start = max(inner.rfind(blank, 0, at) for blank in " /\\") + 1
    rest = inner[start if at - start <= least else at :]
    head = _first(inner, max(room - 1 - cells(rest), least))
    if len(inner) - len(rest) <= len(head):  # the beginning says it: the end is worth more than the middle
        rest = inner[-max(room - 1 - cells(head), 1) :]
    cut = f"{head}{ELLIPSIS}{clip(rest, room - 1 - cells(head))}"
    return f"“{cut}”" if quoted else cut


def is_cut_from(cut: str, name: str) -> bool:
    """Whether a name, with or without its tool, may be shown so where there is less room."""
    pieces = cut.split(ELLIPSIS)
    for whole in (name, parted_title(name)[1]):
        at = len(pieces[0]) if whole.startswith(pieces[0]) else -1
        for piece in pieces[1:]:
            found = whole.find(piece, at) if at >= 0 else -1
            at = found + len(piece) if found >= 0 else -1
        if at >= 0 and whole.endswith(pieces[-1]):
            return True
    return False


def both_ends(text: str, width: int) -> str:
    """The beginning and the end of a shown text in at most `width` cells: ids of one trace begin alike, or
    end alike.
    """
    if cells(text) <= width or width < _LEAST:
        return clip(text, width)
    head = _first(text, (width - 1) // 2)
    end = max(len(text) - (width - 1 - cells(head)), 0)
    while cells(text[end:]) > width - 1 - cells(head):
        end += 1
    return f"{head}{ELLIPSIS}{text[end:]}"


def _first(text: str, width: int) -> str:
    """As many characters as fill so many cells, without a sign that there are more."""
    return text if cells(text) <= width else clip(text, width + 1).removesuffix(ELLIPSIS)


class NameList:
    """What the items of one list are called, at any width; made once, asked as lines are drawn.

    Args:
        rows: One for each item; of several for one item the last counts.
    """

    def __init__(self, rows: Iterable[Named] = (), directory: str | None = None) -> None:
        self._rows = list({row.item: row for row in rows}.values())
        self._whole = [told(row.title, row.words, row.item, directory) for row in self._rows]
        self._fitted: dict[int, dict[str, str]] = {}

    def at(self, item: str, width: int = LONGEST) -> str | None:
        """An item's name in at most `width` cells; None of one that is not in the list."""
        found = self._fitted.get(width)
        if found is None:
            if len(self._fitted) >= _WIDTHS:
                self._fitted.clear()
            shown = _apart(self._rows, self._whole, [width] * len(self._rows))
            found = {row.item: name for row, name in zip(self._rows, shown, strict=True)}
            self._fitted[width] = found
        return found.get(item)

    def at_ref(self, ref: str) -> str:
        """An item as records name it, with its version or without; all of that of one not in the list."""
        return self.at(ref, REF) or self.at(ref.rpartition("@")[0], REF) or ref


def id_ends(items: Sequence[str]) -> dict[str, str]:
    """For each of several ids the shortest end that no other of them has, of four characters at least.

    What all of them end with, behind a slash, is left out: a tool's name behind the call that brought it.
    """
    cores = {item: item.replace(_RESULT, "", 1) for item in items}
    if len(set(cores.values())) < len(cores):
        cores = {item: item for item in items}
    while len(cores) > 1 and len({core.rpartition("/")[2] for core in cores.values()}) == 1:
        heads = {item: core.rpartition("/")[0] for item, core in cores.items()}
        if not all(heads.values()):
            break
        cores = heads
    for size in range(_TAIL, max(map(len, cores.values())) + 1):
        ends = {item: core[-size:] for item, core in cores.items()}
        if max(Counter(ends.values()).values()) == 1:
            return {item: preview(end, LONGEST) for item, end in ends.items()}
    return {item: preview(core, LONGEST) for item, core in cores.items()}


def ends_with(item: str, end: str) -> bool:
    """Whether an id ends so, as `id_ends` tells ends of ids that do not end alike."""
    return item.endswith(end) or item.replace(_RESULT, "", 1).endswith(end)


def head_ends_with(item: str, end: str) -> bool:
    """Whether what stands in front of a slash in an id ends so, as `id_ends` tells ids that end alike."""
    parts = item.replace(_RESULT, "", 1).split("/")
    return any("/".join(parts[:n]).endswith(end) for n in range(1, len(parts)))


def path_ends_with(title: str, end: str) -> bool:
    """Whether what a title or source says is a path that ends so, whole parts of it."""
    said = parted_title(title)[1]
    return (said == end and " " not in end) or (is_path(said) and said.endswith((f"/{end}", f"\\{end}")))


class ItemNames(NamedTuple):
    """How one report or screen calls the items of a trace."""

    directory: str | None = None
    """Where the session ran; paths below it are shown from there."""
    words: Callable[[str], str] | None = None
    """The beginning of an item's content, by its id; empty where it is not to be shown."""
    ids: bool = False
    """Ids are asked for, in a column of their own."""

    def row(self, item: str, title: str | None, beside: str = "") -> Named:
        """An item of a list."""
        words = "" if title or self.words is None else self.words(item)
        return Named(item, title, words, beside)

    def of(self, item: str, title: str | None, width: int = LONGEST) -> str:
        """An item that stands alone."""
        row = self.row(item, title)
        return fitted(told(title, row.words, item, self.directory), width)

    def of_ref(self, ref: str, titles: Mapping[str, str | None]) -> str:
        """An item as records name it, with its version or without; all of that where ids are asked for.

        `titles` are those of the items at hand.
        """
        if not self.ids:
            for item in (ref, ref.rpartition("@")[0]):
                row = self.row(item, titles.get(item)) if item else None
                if row is not None and ((row.title or "").strip() or row.words):
                    return fitted(told(row.title, row.words, item, self.directory), REF)
        return preview(ref, LONGEST)

    def listed(self, rows: Sequence[Named], width: int | Sequence[int] = LONGEST) -> list[str]:
        """The items of one list."""
        return names(rows, width, self.directory)


NAMELESS: Final = ItemNames()
"""How items are called of which nothing but titles and ids is at hand."""


def parted_title(title: str) -> tuple[str, str]:
    """The tool with its colon, and what the call is about; titles of other items have no tool."""
    found = _TOOL.match(title)
    return (title[: found.end()], title[found.end() :]) if found is not None else ("", title)


def _below(path: str, root: str) -> str | None:
    """A path from a directory: `.` for the directory itself; None where it is not below it."""
    if path.rstrip("/\\") == root:
        return "."
    if path.startswith(root) and path[len(root)] in "/\\":
        return path[len(root) + 1 :].lstrip("/\\") or "."
    return None
