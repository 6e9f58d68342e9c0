"""What each line of the diff screen says, as parts: (text, style name).  Plain Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from ctxctl.model.vocab import SEGMENTS, UNRECORDED
from ctxctl.report.sent import NOT_RECORDED
from ctxctl.text import pad
from ctxctl.tui.layout import Column, Parts, Piece, laid_out, spread
from ctxctl.tui.screens.diff.state import DiffState
from ctxctl.tui.screens.diff.values import COLUMNS, Entry, FrameDiff, ItemDiff, Listing, SideHead
from ctxctl.tui.screens.turns.budget_bar import UNKNOWN, ordered
from ctxctl.tui.sizes import NOTHING_KNOWN, amount
from ctxctl.tui.versions import change_of
from ctxctl.wording import MINUS, NOT_KNOWN, SIGNS, brief_kind, number, plural, short, signed

_BASIS: Final = {"none": "nothing recorded", "repeat": "nothing recorded: as before", "policy": "simulated"}


# The head ---------------------------------------------------------------------------------------------------


def head(state: DiffState, width: int) -> list[Parts]:
    """The lines of the head: both sides, the arithmetic between them, and the segments."""
    diff = state.listing.diff
    if diff is None:
        said = Piece(state.error or "comparing…", "warning" if state.error else "muted", 9)
        return [spread([said], [], width)]
    swapped = Piece("swapped" if state.swapped else "", "warning", 7)
    return [
        _end("from", _side(diff.a, diff.b, width), [swapped, *_window(diff.a)], width),
        _end("to", _side(diff.b, diff.a, width), _window(diff.b), width),
        _sums(diff, width),
        segments(diff, width),
    ]


def _end(label: str, left: list[Piece], right: list[Piece], width: int) -> Parts:
    """One side's line, under the other's."""
    room = min(len("from") + 1, width)
    return [(pad(f" {label}", room), "muted"), *spread(left, right, width - room)]


def _side(side: SideHead, other: SideHead, width: int) -> list[Piece]:
    """What one side is; in what it is unlike the other stands out and stays longest."""

    def piece(text: str, unlike: bool, rank: int) -> Piece:
        return Piece(text, "warning" if unlike else "muted", rank + 3 * unlike)

    pieces = [
        Piece(label(side.trace, side.address, width), "name", 10),
        piece(side.layer, side.layer != other.layer, 6),
        piece(_BASIS.get(side.basis, f"from {side.basis}"), side.basis != other.basis, 3),
        piece(side.model or "", side.model != other.model, 4),
    ]
    if side.target != "model" or other.target != "model":
        pieces.append(piece(f"for {side.target}", side.target != other.target, 6))
    if side.policy != "recorded" or other.policy != "recorded":
        pieces.append(piece(f"policy {side.policy}", side.policy != other.policy, 6))
    return pieces


def label(trace: str, address: str, width: int) -> str:
    """A frame as an address; in `width` cells, of a long name of the trace only the ends."""
    room = max(width // 3 - len(address), 12)
    if len(trace) > room:
        trace = f"{trace[: room - 9]}…{trace[-8:]}"
    return f"{trace}@{address}"


def _window(side: SideHead) -> list[Piece]:
    if side.unknown:
        return [Piece(NOTHING_KNOWN, "warning", 5)]
    full = side.limit if side.cap is None else side.cap
    of = "" if full is None else f" of {number(full)}"
    how = "recorded" if side.method == "recorded" else "sent"
    error = f" ±{number(side.error)}" if side.method == "expected" and side.error is not None else ""
    size = amount(side.used, side.method, content=False)
    pieces = [Piece(f"{size}{error}{of} {how}", "", 5)]
    if full is None:
        pieces.append(Piece("limit unknown", "muted", 2))
    if side.uncounted:
        pieces.insert(0, Piece(f"{number(side.uncounted)} uncounted", "warning", 5))
    return pieces


def _sums(diff: FrameDiff, width: int) -> Parts:
    """What was sent, explained; of frames of which one was never billed, what is recorded."""
    a, b = diff.a, diff.b
    right = [
        Piece(f"{SIGNS[status]}{number(count)}", f"sign-{status}" if count else "muted", 8 if count else 2)
        for status, count in diff.counts.items()
    ]
    if a.unknown and b.unknown:
        return spread([Piece("no size of what came or left is known", "muted", 10)], right, width)
    was, now = (a.used, b.used) if diff.sized else (a.recorded, b.recorded)
    how = (a.method, b.method) if diff.sized else ("reported", "reported")
    one, two = amount(was, how[0], content=False), amount(now, how[1], content=False)
    what = "recorded: " if "recorded" in (a.method, b.method) else ""
    left = [
        Piece(f"{what}{one} before", "strong", 10),
        Piece(f"{signed(diff.new) if diff.new else '+0'} new", "new" if diff.new else "muted", 10),
        Piece(f"{MINUS}{number(diff.freed)} freed", "freed" if diff.freed else "muted", 10),
    ]
    if diff.sized and (more := b.unrecorded - a.unrecorded):
        left.append(Piece(f"{signed(more)} {NOT_RECORDED}", "legend-unrecorded", 10))
    off = a.recorded + diff.new - diff.freed - b.recorded
    if off:
        left.append(Piece(f"{signed(-off)} counted differently", "warning", 9))
    left.append(Piece(f"= {two} after", "strong", 10))
    left.append(Piece(f"({signed(now - was)})", "muted", 4))
    return spread(left, right, width)


def segments(diff: FrameDiff, width: int) -> Parts:
    """Tokens by segment after the change, and by how much each grew or shrank."""
    names = ordered({name: max(diff.a.segments.get(name, 0), diff.b.segments.get(name, 0)) for name in
                     {**diff.a.segments, **diff.b.segments}})  # fmt: skip
    show = number if width >= 110 else short
    pieces = []
    for name, _ in names:
        if name == UNRECORDED and not diff.sized:
            continue
        was, now = diff.a.segments.get(name, 0), diff.b.segments.get(name, 0)
        change = f" ({signed(now - was, brief=width < 110)})" if now != was else ""
        style = f"legend-{name if name in SEGMENTS else 'other'}"
        said = f"{UNKNOWN} {NOT_RECORDED}" if name == UNRECORDED else f"■ {name}"
        rank = 8 if change and name == UNRECORDED else 7 if change else 5
        pieces.append(Piece(f"{said} {show(now)}{change}", style, rank))
    return spread(pieces, [], width)


def remarks(state: DiffState) -> list[str]:
    """What a reader should know before the items."""
    diff = state.listing.diff
    if diff is None:
        return []
    late = [] if diff.complete else ["looking up why items left…"]
    return [*diff.remarks, *late]


def remark_line(state: DiffState, width: int) -> Parts:
    """The remarks on one line."""
    return spread([Piece(f"! {text}", "warning", 9 - n) for n, text in enumerate(remarks(state))], [], width)


# The table --------------------------------------------------------------------------------------------------


class _Widths(NamedTuple):
    kind: int
    amount: int
    both: bool
    """Whether tokens before and after have columns, besides new and freed."""
    why: int
    brief: bool


def _widths(width: int, columns: frozenset[str]) -> _Widths:
    widths = _widest(width)
    return widths if "why" in columns else widths._replace(why=0)


def _widest(width: int) -> _Widths:
    if width >= 120:
        return _Widths(18, 10, True, 30, False)
    if width >= 92:
        return _Widths(7, 8, True, 24, False)
    if width >= 64:
        return _Widths(7, 7, True, 14, True)
    if width >= 46:
        return _Widths(7, 7, False, 10, True)
    return _Widths(0, 6, False, 0, True)


def table_heading(listing: Listing, width: int) -> Parts:
    """The names of the columns; one in which nothing would stand is left out."""
    first = [Column("", "", 3)]
    *amounts, reason = COLUMNS
    return _row(
        first, "kind", lambda _room: "item", amounts, reason, width, listing.columns, muted=True,
    )  # fmt: skip


def table_line(listing: Listing, diff: FrameDiff, entry: Entry, width: int) -> Parts:
    """The line of an item in the table, of `listing.diff`."""
    widths = _widths(width, listing.columns)
    mark = {"native": " ", "derived": "d", "simulated": "s"}[entry.provenance]
    show = short if widths.brief else number
    first = [Column(SIGNS[entry.status], f"sign-{entry.status}", 1), Column(mark, "muted", 2)]
    kind = entry.kind if widths.kind > 8 else brief_kind(entry.kind)
    amounts = (
        show(entry.before) if entry.before else NOT_KNOWN if entry.uncounted[0] else "·",
        show(entry.after) if entry.after else NOT_KNOWN if entry.uncounted[1] else "·",
        signed(entry.new, brief=widths.brief) if entry.new else "·",
        show(-entry.freed) if entry.freed else "·",
    )
    into = diff.names.at_ref(entry.into) if entry.into else ""
    return _row(
        first, kind, lambda room: diff.name(entry, room), amounts, why(entry, into, brief=widths.brief),
        width, listing.columns, quiet=not entry.changed,
    )  # fmt: skip


def _row(
    first: list[Column],
    kind: str,
    item: Callable[[int], str],
    amounts: Sequence[str],
    reason: str,
    width: int,
    shown: frozenset[str],
    *,
    muted: bool = False,
    quiet: bool = False,
) -> Parts:
    widths = _widths(width, shown)
    columns = list(first)
    if widths.kind:
        columns.append(Column(kind, "muted", widths.kind))
    columns.append(Column("", "muted" if muted else "skipped" if quiet else "", fit=item))
    styles = ("", "", "new", "freed")
    named = list(zip(COLUMNS, amounts, styles, strict=False))
    for name, text, style in named[0 if widths.both else 2 :]:
        if name in shown:
            told = "muted" if muted or text in ("·", NOT_KNOWN) else style
            columns.append(Column(text, told, widths.amount, right=True))
    if widths.why:
        columns += [Column("", "", 1), Column(reason, "muted", widths.why - 1)]
    return laid_out(columns, width)


def why(entry: Entry, into: str = "", *, brief: bool = False) -> str:
    """Why the item left, or what else happened to it."""
    words = [entry.cause, entry.reason]
    phrase = ": ".join(dict.fromkeys(word for word in words if word))
    if brief and entry.cause == "omitted" and entry.reason:
        phrase = entry.reason
    if entry.into and not brief:
        phrase += f" into {into or entry.into}"
    flags = []
    for flag in entry.flags:
        at, to = entry.places
        moved = flag == "moved" and at is not None and to is not None
        flags.append(f"moved {number(at or 0)}→{number(to or 0)}" if moved else flag)
    if phrase and brief:
        return phrase
    return ", ".join(word for word in (phrase, *flags) if word)


# The text ---------------------------------------------------------------------------------------------------


def text_title(state: DiffState) -> str:
    """The title of the text."""
    if state.together:
        return "all changed items"
    entry, diff = state.entry, state.listing.diff
    if entry is None or diff is None:
        return "text"
    return f"{SIGNS[entry.status]} {entry.kind}  {diff.name(entry)}"


def text_head(state: DiffState, shown: ItemDiff | None, where: str, width: int) -> Parts:
    """One line above the text: its way of showing, versions, changed lines, and which change is in front."""
    if shown is None:
        return spread([Piece("one moment…" if state.wanted else "", "muted")], [], width)
    layout = "side by side" if state.split else "unified"
    if state.one_sided:
        layout = "in one frame only"
    elif not state.split and not state.unified:
        layout = "unified: too narrow for two"
    entry = None if state.together else state.entry
    left = [
        Piece(f"+{number(shown.added)}", "new" if shown.added else "muted", 9),
        Piece(f"{MINUS}{number(shown.removed)}", "freed" if shown.removed else "muted", 9),
        Piece("lines", "muted", 8),
        Piece("" if entry is None else tokens(entry), "", 7),
        *(Piece(fact, "muted", 5) for fact in shown.facts),
        Piece("" if entry is None else change_of(*entry.versions), "muted", 3),
    ]
    right = [
        Piece("all lines" if state.whole else "", "muted", 6),
        Piece(layout, "muted", 4 if state.split or state.unified else 7),
        Piece(where, "strong", 8),
    ]
    return spread(left, right, width)


def tokens(entry: Entry) -> str:
    """The tokens of all copies, before and after."""
    if any(entry.uncounted) and not entry.before and not entry.after:
        return "size not known"
    if entry.before == entry.after:
        return plural(entry.after, "token")
    return f"{number(entry.before)} → {plural(entry.after, 'token')}"
