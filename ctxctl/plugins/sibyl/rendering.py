"""A pack's markdown taken apart: the second selection, which the pack itself does not tell of.

Joined by line ends, the blocks are the markdown again, byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from ctxctl.plugins.sibyl.pack import Pack
from ctxctl.plugins.sibyl.records import TITLE

_ITEM: Final = re.compile(r"- \*\*.*`([^`]+)`(?: _.*_)?\Z", re.DOTALL)
_NAME: Final = re.compile(r"- \*\*(.*?)\*\*", re.DOTALL)
_FENCE: Final = re.compile(r"(`{3,})markdown\Z")
_TRIMMED: Final = re.compile(r"_Trimmed to ~(-?\d{1,12}) tokens;")
_ENDS: Final = ("_Trimmed to ~", "_Hint: ", "_Procedures omitted by ")
_MEMORY: Final = "  - Memory: "
TRAILER: Final = "pack/trailer"
_WHOLE: Final = "  - Memory:"
"""Before a procedure that stands whole, between fences."""
_CUT: Final = "..."


class Piece(NamedTuple):
    """A run of lines of the markdown: one item's, or what stands between items."""

    name: str
    """An item's name in the pack, or `pack/header`, `pack/section/FACET`, `pack/trailer`."""
    item: bool
    text: str
    facet: str | None
    title: str | None = None
    """The item's name in bold."""

    @property
    def memory(self) -> str | None:
        """The rendered content where it stands on one line."""
        for line in self.text.split("\n"):
            if line.startswith(_MEMORY):
                return line.removeprefix(_MEMORY)
            if line == _WHOLE:
                return None
        return None

    def cuts(self, content: str | None) -> bool:
        """Whether the rendering shortens the content."""
        if _CUT not in self.text:
            return False
        memory = self.memory
        if content is None or memory is None or not memory.endswith(_CUT):
            return False
        whole = " ".join(content.split())
        return memory != whole and whole.startswith(memory.removesuffix(_CUT).rstrip())


class Rendering(NamedTuple):
    """A rendered pack's markdown in pieces."""

    pieces: tuple[Piece, ...]
    trimmed: int | None
    """The token budget that the markdown says it was trimmed to."""

    @property
    def counted(self) -> int:
        """Characters as the tool counts them against its budget: with line ends, without what ends it."""
        return sum(len(piece.text) + 1 for piece in self.pieces if piece.name != TRAILER)

    @property
    def items(self) -> dict[str, Piece]:
        """The rendered items by name, in the markdown's order."""
        return {piece.name: piece for piece in self.pieces if piece.item}


class _Cutter:
    """Cuts one markdown; lines collect in `open` until the next piece begins."""

    def __init__(self, pack: Pack) -> None:
        self.pieces: list[Piece] = []
        self.names: dict[str, list[str]] = {}
        for item in pack.items:
            self.names.setdefault(item.native_id, []).append(item.name)
        self.long = [item for item in pack.items if "\n" in (item.title or "")]
        """Items whose name has several lines, as they are written."""
        self.facets = {item.name: item.facet for item in pack.items}
        self.titles = pack.titles
        self.free = not pack.items
        """The pack's items are not known: every line that looks like an item is one."""
        self.open: list[str] = []
        self.head = Piece("pack/header", False, "", None)
        self.facet: str | None = None

    def begin(self, piece: Piece, *lines: str) -> None:
        """Close the open piece and begin another."""
        self.close()
        self.head = piece
        self.open = list(lines)

    def close(self) -> None:
        """Put the open piece with the others."""
        if self.open:
            self.pieces.append(self.head._replace(text="\n".join(self.open)))
        self.open = []

    def blank(self) -> list[str]:
        """The empty line before a heading or a trailer, which belongs to it."""
        return [self.open.pop()] if len(self.open) > 1 and not self.open[-1] else []

    def item(self, lines: Sequence[str], at: int) -> int:
        """Begin an item if a line is one's first; how many lines its name takes, 0 where it begins none."""
        named = next((n for item in self.long if (n := _lines(f"- **{item.title}**", lines, at))), 1)
        line = "\n".join(lines[at : at + named])
        match = _ITEM.match(line)
        if match is None:
            return 0
        waiting = self.names.get(match[1])
        if waiting:
            name = waiting.pop(0)
        elif self.free and match[1] not in self.names:
            name = match[1]
            self.names[name] = []
        else:
            return 0
        bold = _NAME.match(line)
        facet = self.facets.get(name, self.facet)
        self.begin(Piece(name, True, "", facet, bold[1] if bold is not None else None), line)
        return named

    def section(self, line: str) -> None:
        """Begin a heading."""
        title = line.removeprefix("## ")
        self.facet = self.titles.get(title, title.lower().replace(" ", "_") or "custom")
        before = self.blank()
        self.begin(Piece(f"pack/section/{self.facet}", False, "", self.facet), *before, line)


def cut_markdown(markdown: str, pack: Pack) -> Rendering:
    """The pieces of a pack's markdown; lines that begin nothing belong to the piece before."""
    cutter = _Cutter(pack)
    fence: str | None = None
    trimmed: int | None = None
    lines = markdown.split("\n")
    behind = _header_lines(pack, lines)
    cutter.open += lines[:behind]
    for at, line in enumerate(lines):
        if at < behind:
            continue
        if fence is not None:
            cutter.open.append(line)
            fence = None if line == fence else fence
            continue
        opens = _FENCE.match(line)
        if opens is not None:
            fence = opens[1]
        elif line.startswith("## "):
            cutter.section(line)
            continue
        elif line.startswith("- **") and (named := cutter.item(lines, at)):
            behind = at + named
            continue
        elif line.startswith(_ENDS) and cutter.open and not cutter.open[-1]:
            said = _TRIMMED.match(line)
            trimmed = int(said[1]) if said is not None else trimmed
            before = cutter.blank()
            cutter.begin(Piece(TRAILER, False, "", None), *before, line)
            continue
        cutter.open.append(line)
    cutter.close()
    return Rendering(_told_apart(cutter.pieces), trimmed)


def _header_lines(pack: Pack, lines: Sequence[str]) -> int:
    """Lines that the goal and the query take: they may look like anything."""
    at = _lines(f"{TITLE}{pack.text('goal') or ''}", lines, 0)
    for name in ("intent", "layer", "query"):
        taken = _lines(f"{name.title()}: {pack.text(name) or ''}", lines, at) if at else 0
        if not taken:
            return at
        at += taken
    return at


def _lines(wanted: str, lines: Sequence[str], at: int) -> int:
    """How many lines a text takes that stands at a place, the last one whole or in part.  0: it does not."""
    many = wanted.count("\n") + 1
    return many if "\n".join(lines[at : at + many]).startswith(wanted) else 0


def _told_apart(pieces: list[Piece]) -> tuple[Piece, ...]:
    """Pieces between items with a name each, also where a heading stands twice."""
    seen: dict[str, int] = {}
    made: list[Piece] = []
    for piece in pieces:
        if not piece.item:
            again = seen[piece.name] = seen.get(piece.name, 0) + 1
            if again > 1:
                piece = piece._replace(name=f"{piece.name}~{again}")
        made.append(piece)
    return tuple(made)


class Disposition(NamedTuple):
    """What a render receipt says of one item (Sibyl 1.4)."""

    state: str
    """`emitted`, `trimmed` or `omitted`."""
    reason: str | None


def dispositions(pack: Pack) -> dict[str, Disposition]:
    """The receipt of a pack, by item; empty without one."""
    receipt = pack.record.get("render_receipt")
    rows = receipt.get("dispositions") if isinstance(receipt, dict) else None
    places = {item.at: item.name for item in pack.items}
    by_id = {item.native_id: item.name for item in reversed(pack.items)}
    found: dict[str, Disposition] = {}
    for row in rows if isinstance(rows, list) else ():
        if not isinstance(row, dict) or not isinstance(row.get("state"), str):
            continue
        at, native, reason = (
            row.get("item_index"),
            row.get("record_id", row.get("item_id")),
            row.get("reason"),
        )
        name = places.get(at) if isinstance(at, int) else None
        if name is None:
            name = by_id.get(native) if isinstance(native, str) else None
        if name is not None:
            found.setdefault(name, Disposition(row["state"], reason if isinstance(reason, str) else None))
    return found
