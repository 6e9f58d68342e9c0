"""What the blocks of a frame hold together, as parts of what was sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import nsmallest
from typing import Final, NamedTuple

from ctxctl.labels import NOT_KNOWN, number, plural, share
from ctxctl.model.blame import Blame, Block, Total
from ctxctl.report import sent
from ctxctl.report.paint import Paint
from ctxctl.report.tables import Column, labelled, table
from ctxctl.report.unrecorded import lacking
from ctxctl.text import cells, clip, preview, visible

_NAME: Final = 48
_LARGEST: Final = 5
"""Blocks that are listed by size."""
LISTED: Final = 20
"""Names of one kind of sum that are listed; the others are one row, unless all are asked for."""
_REST: Final = "(not recorded)"

_SUM_COLUMNS: Final = (
    Column("", least=10),
    Column("blocks", right=True),
    Column("tokens", right=True),
    Column("share", right=True),
    Column("uncounted", right=True),
)


class _Group(NamedTuple):
    name: str
    sums: tuple[Total, ...]
    none: str
    """What stands for a name that the trace does not give."""
    whole: bool = True
    """It is of all blocks."""


def sum_lines(
    found: Blame, blocks: Sequence[Block], width: int, paint: Paint, *, everything: bool = False
) -> Iterator[str]:
    """What the blocks hold together; always of all blocks, whichever are shown."""
    sums = found.totals
    yield from labelled("window", _window(found), width)
    yield from labelled("evidence", _evidence(found), width)
    if len(blocks) < len(found.blocks):
        tokens = sum(block.placement.tokens for block in blocks)
        yield from labelled(
            "shown", f"{plural(len(blocks), 'block')}, {tokens:,} tokens; the sums are of all blocks", width
        )
    yield from _largest(found, width, paint)
    groups = (
        _Group("kind", sums.kinds, "?"),
        _Group("source", sums.sources, "(none recorded)"),
        _Group("tool server", sums.servers, "?", whole=False),
        _Group("in the window since", sums.ages, "?"),
    )
    for group in groups:
        if any(total.name is not None for total in group.sums):
            yield ""
            yield from _sum_table(found, group, width, paint, everything=everything)


def _largest(found: Blame, width: int, paint: Paint) -> Iterator[str]:
    """The blocks that fill the window most, where there are more than fit a glance."""
    if len(found.blocks) <= 2 * _LARGEST or found.step.window.used <= 0:
        return
    most = nsmallest(_LARGEST, found.blocks, key=lambda block: (-block.placement.tokens, block.position))
    columns = (
        Column("largest blocks", least=20), Column("#", right=True), Column("kind"),
        Column("tokens", right=True), Column("share", right=True),
    )  # fmt: skip
    room = max(20, min(_NAME, width - 46))
    rows = [
        (
            _name(p.title or p.item, room), number(block.position + 1), visible(p.kind),
            number(p.tokens), _share(found, p.tokens),
        )
        for block in most
        for p in (block.placement,)
    ]  # fmt: skip
    made = table(columns, rows, width - 2)
    yield ""
    yield from ("  " + paint("dim", line) for line in made.head)
    yield from ("  " + line for lines in made.rows for line in lines)


def _window(found: Blame) -> str:
    sums, window = found.totals, found.step.window
    part = "" if not window.unrecorded else f" ({_share(found, window.recorded)} of what was sent)"
    said = f"{window.recorded:,} tokens{part} in {plural(len(found.blocks), 'block')}"
    if window.uncounted:
        said += f", {window.uncounted:,} of them uncounted"
    for total, what in ((sums.stale, "stale"), (sums.duplicate, "repeat others")):
        if total.blocks:
            said += f"; {what}: {plural(total.blocks, 'block')}, {total.tokens:,} tokens"
    return said


def _evidence(found: Blame) -> str:
    """What was billed beside what the blocks hold: separators, overhead, what the provider adds."""
    usage, extra = found.step.usage, found.evidence
    if usage is None or usage.reported_input is None:
        if found.step.window.unrecorded is None:
            return "no bill was read: what was sent beside the blocks is not known"
        return "no bill was read for this step: what was sent beside the blocks is as the last bill has it"
    if extra is None:
        return f"billed {usage.reported_input:,} tokens for another frame than this one"
    if extra < 0:
        return f"billed {usage.reported_input:,} tokens: {-extra:,} fewer than were counted"
    return f"billed {usage.reported_input:,} tokens: {extra:,} beside those of the blocks"


def _name(name: str, width: int) -> str:
    """A name in at most `width` cells: a call is told by its tool and by the end of its path."""
    tool, colon, rest = preview(name, 4000).partition(": ")
    if not colon or cells(tool) > width // 2:
        return clip(preview(name, 4000), width)
    return f"{tool}: {ending(rest, width - cells(tool) - 2)}"


def ending(name: str, width: int) -> str:
    """A name in at most `width` cells: of a long one, such as a path, its end tells the most."""
    shown = preview(name, 4000)
    if cells(shown) <= width:
        return shown
    end = shown[-(width - 1) :]
    while cells(end) > width - 1:
        end = end[1:]
    return "\u2026" + end


def _share(found: Blame, tokens: int) -> str:
    """Tokens as a part of what was sent."""
    part = found.share(tokens)
    return NOT_KNOWN if part is None else share(part, fine=True)


def beside(found: Blame) -> str | None:
    """What was sent and is in no block; None where that is not known, or nothing."""
    window = found.step.window
    if not window.unrecorded:
        return None
    if window.unrecorded < 0:
        return sent.beside(window)
    named = lacking(found.fidelity)
    about = "about " if window.used_method != "reported" else ""
    said = f"{about}{window.unrecorded:,} tokens ({_share(found, window.unrecorded)}) not recorded"
    return f"{said}: {named}" if named else said


def _sum_table(found: Blame, group: _Group, width: int, paint: Paint, *, everything: bool) -> Iterator[str]:
    """A kind of sum, with what is not recorded as its first row: so its shares are all that was sent."""
    sums = list(group.sums)
    if len(sums) > LISTED and not everything:
        more = sums[LISTED - 1 :]
        sums = sums[: LISTED - 1]
        sums.append(
            Total(
                f"({len(more):,} more)",
                sum(t.blocks for t in more),
                sum(t.tokens for t in more),
                sum(t.uncounted for t in more),
            )
        )
    rows = [
        (
            ending(total.name, _NAME) if total.name is not None else group.none,
            number(total.blocks),
            number(total.tokens),
            _share(found, total.tokens),
            number(total.uncounted) if total.uncounted else "",
        )
        for total in sums
    ]
    rest = found.step.window.unrecorded
    if rest and group.whole:
        rows.insert(0, (_REST, "", number(rest), _share(found, rest), ""))
    columns = (_SUM_COLUMNS[0]._replace(title=group.name), *_SUM_COLUMNS[1:])
    made = table(columns, rows, width - 2)
    for line in made.head:
        yield "  " + paint("dim", line)
    for lines in made.rows:
        yield from ("  " + line for line in lines)
