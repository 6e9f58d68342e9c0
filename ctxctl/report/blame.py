"""The assembled text with a gutter that says whose each stretch of it is, and the sums below.

Behind the gutter a mark says what a row is: ``|`` a line of the text begins, ``+`` a block begins within a
line, ``:`` no line of its own (the gutter, or a long line on a terminal, goes on).  The sums are what the
blocks of the frame hold together, as parts of what was sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from heapq import nsmallest
from itertools import zip_longest
from typing import Any, Final, NamedTuple

import msgspec

from ctxctl.item_names import NAMELESS, ItemNames, Named
from ctxctl.model.addresses import prefix
from ctxctl.model.blame import Blame, Block, Moment, Total
from ctxctl.model.vocab import MODEL
from ctxctl.report import jsonout, sent
from ctxctl.report.changes import short_version
from ctxctl.report.frame import notes
from ctxctl.report.paint import Paint
from ctxctl.report.sent import lacking_text
from ctxctl.report.step import has_bill, heading, sent_text
from ctxctl.report.tables import Column, labelled, table
from ctxctl.text import cells, clip, pad, pasted, visible
from ctxctl.wording import NOT_KNOWN, given_share, number, plural, share

_WIDE: Final = 130
"""Cells of a line from which on the whole gutter stands in one row."""
_ITEM, _VERSION, _SOURCE, _NOTE = 26, 8, 18, 22
"""Cells of each column at the most."""
_LEAST_TEXT: Final = 20


def address(found: Blame) -> str:
    """``[SESSION/][THREAD:]TURN.STEP`` of the frame, raw."""
    step = found.step
    return f"{prefix(step.thread, step.session if found.several else None)}{step.turn}.{step.step}"


def head_lines(found: Blame, trace: str, under: str, width: int) -> Iterator[str]:
    """Which frame, and what keeps this text from being what the model is known to have got."""
    step = found.step
    yield from labelled("frame", f"{pasted(f'{trace}@{address(found)}')}, {heading(step)}", width)
    yield from labelled("under", under, width)
    yield from labelled("sent", sent_text(step.window, billed=has_bill(step)), width)
    if (rest := beside(found)) is not None:
        yield from labelled("besides", rest, width)
    remarks = list(_remarks(found))
    if remarks:
        yield from labelled("note", "; ".join(remarks), width)


def _remarks(found: Blame) -> Iterator[str]:
    step = found.step
    if step.basis == "policy" or "simulated" in step.flags:
        yield "simulated: this is not what was sent"
    elif step.layer != "injected":
        yield "not known to have been sent: no injection is recorded"
    if step.basis == "repeat":
        yield "nothing was recorded for this step: it repeats the previous frame"
    if step.target != MODEL:
        yield f"as {visible(step.target)} sees it"
    if not found.joint_known:
        called = f"only called {visible(found.joint_name)!r}" if found.joint_name else "not recorded"
        which = "what two steps appended" if step.mode == "append" and not found.joint else "the blocks"
        yield f"the text between {which} is {called}; it is shown as a line break"


# The text ---------------------------------------------------------------------------------------------------


def text_lines(
    found: Blame, blocks: Sequence[Block], width: int, paint: Paint, names: ItemNames = NAMELESS,
    *, wrapped: bool = False,
) -> Iterator[str]:  # fmt: skip
    """The text of some blocks with its gutter, a row for each line of it.

    Lines are as long as they are; with `wrapped`, longer ones than `width` go on in the next row.
    """
    gutter = _Gutter(found, blocks, width, names)
    room = max(width - gutter.width - 3, _LEAST_TEXT) if wrapped else None
    yield paint("dim", f"{gutter.title()} |").rstrip()
    last = -2
    for block in blocks:
        yield from _block_lines(found, block, gutter, paint, room, gap=block.position != last + 1)
        last = block.position


def _block_lines(
    found: Blame, block: Block, gutter: _Gutter, paint: Paint, room: int | None, *, gap: bool
) -> Iterator[str]:
    """The rows of one block, the joint behind it included; `gap`: the one before is not shown."""
    role = "dim" if block.placement.stale else "warn" if block.twin is not None else None
    end = found.blocks[block.position + 1].start if block.position + 1 < len(found.blocks) else block.end
    begins = gap or not block.start or found.text[block.start - 1] == "\n"
    lines = enumerate(_lines(found.text, block.start, end))
    rows = ((mark, part) for n, line in lines for mark, part in _parts(line, n, room, begins))
    blank = " " * gutter.width
    for left, row in zip_longest(gutter.rows(block), rows):
        mark, text = row or (":", "")
        line = f"{paint('hunk', left or blank)} {mark} {paint(role, text) if role else text}"
        yield line.rstrip(" ") if not text else line


_LINE_END: Final = re.compile("\n")


def _lines(text: str, start: int, end: int) -> Iterator[str]:
    """The lines of a part of a text, made visible one by one: the text may have millions."""
    at = start
    for found in _LINE_END.finditer(text, start, end):
        yield visible(text[at : found.start()], newline=True)
        at = found.end()
    if at < end or at == start:
        yield visible(text[at:end], newline=True)


def _parts(line: str, n: int, room: int | None, begins: bool) -> Iterator[tuple[str, str]]:
    mark = "|" if n or begins else "+"
    for part in _cut(line, room):
        yield mark, part
        mark = ":"


def _cut(line: str, room: int | None) -> Iterator[str]:
    """A line in parts of at most `room` cells, none of them looked at twice."""
    if room is None or len(line) <= room // 2:
        yield line
        return
    at = 0
    while True:
        part = line[at : at + room]
        while len(part) > 1 and cells(part) > room:
            part = part[:-1]
        yield part
        at += len(part)
        if at >= len(line):
            return


class _Gutter:
    """The columns in front of the text, as wide as what stands in them, in one row or in several."""

    def __init__(self, found: Blame, blocks: Sequence[Block], width: int, names: ItemNames) -> None:
        steps = any(m.step != 1 for b in blocks for m in (b.since, b.entered) if m is not None)
        self._steps = steps or found.step.step != 1
        self._one = width >= _WIDE
        self._names = names
        # The words of what has no title stand beside it.
        named = [Named(b.placement.item, b.placement.title, beside=b.placement.kind) for b in blocks]
        called = names.listed(named, _ITEM)
        self._cells = [self._of(block, name) for block, name in zip(blocks, called, strict=True)]
        columns = list(zip(*self._cells, strict=True)) or [()] * len(_TITLES)
        most = (99, 99, 99, _ITEM, _VERSION, _SOURCE, _NOTE)
        self._wide = [
            min(max([cells(title), *map(cells, column)]), top)
            for title, column, top in zip(_TITLES, columns, most, strict=True)
        ]
        self._made = dict(zip((b.position for b in blocks), self._cells, strict=True))
        if not self._one:
            below = self._wide[0] + 1 + max(self._wide[4] + 1 + self._wide[5], self._wide[6])
            self._wide[3] += max(0, min(below - cells(self._row(_TITLES, 0, 4)), 8))
        self.width = cells(self._row(_TITLES, 0, len(_TITLES) if self._one else 4))

    def title(self) -> str:
        """What the columns of the first row hold."""
        return self._row(_TITLES, 0, len(_TITLES) if self._one else 4)

    def rows(self, block: Block) -> list[str]:
        """What stands in front of a block's first rows, each `width` cells wide."""
        found = self._made[block.position]
        if self._one:
            return [self._row(found, 0, len(found))]
        indent = " " * (self._wide[0] + 1)
        below = [" ".join(cell for cell in found[4:6] if cell), found[6]]
        rows = [self._row(found, 0, 4)]
        return rows + [pad(indent + text, self.width) for text in below if text]

    def _row(self, found: Sequence[str], first: int, last: int) -> str:
        return " ".join(pad(found[n], self._wide[n], right=n < _RIGHT) for n in range(first, last))

    def _of(self, block: Block, name: str) -> tuple[str, ...]:
        p = block.placement
        return (
            number(block.position + 1),
            self._when(block.since),
            "?" if p.method == "uncounted" else number(p.tokens),
            clip(visible(p.item), _ITEM) if self._names.ids else name,
            clip(short_version(p.version), _VERSION) if p.version is not None else "",
            self._names.of("", p.source, _SOURCE) if p.source and p.source != p.item else "",
            remarks_of(block),
        )

    def _when(self, since: Moment | None) -> str:
        if since is None:
            return "before"
        return f"{since.turn}.{since.step}" if self._steps else str(since.turn)


_TITLES: Final = ("#", "since", "tokens", "item", "version", "source", "")
_RIGHT: Final = 3
"""How many of the first columns are numbers, aligned to the right."""


def remarks_of(block: Block) -> str:
    """What there is to say of a block beside its columns."""
    said = ["stale"] if block.placement.stale else []
    if block.twin is not None:
        said.append(f"= #{block.twin.position + 1}" if block.twin.share == 100 else
                    f"~ #{block.twin.position + 1} {given_share(block.twin.share / 100)}")  # fmt: skip
    other = notes(block.placement)
    return ", ".join([*said, other] if other else said)


# JSON -------------------------------------------------------------------------------------------------------


def block_json(found: Blame, block: Block) -> dict[str, Any]:
    """One `block` line."""
    twin = block.twin
    return {
        "type": "block",
        **jsonout.placement(block.placement, block.position),
        "start": block.start,
        "body": block.body,
        "stop": block.stop,
        "end": block.end,
        "since": block.since,
        "entered": block.entered,
        "age": block.age,
        "server": block.server,
        "duplicate_of": None if twin is None else twin.position,
        "share": None if twin is None else twin.share,
        "repeated": block.repeated,
        "text": found.text[block.start : block.end],
    }


def to_json(found: Blame, blocks: Sequence[Block]) -> dict[str, Any]:
    """The `blame` line."""
    step = found.step
    return {
        "type": "blame",
        "session": step.session,
        "thread": step.thread,
        "turn": step.turn,
        "step": step.step,
        "layer": step.layer,
        "basis": step.basis,
        "used": step.window.used,
        "used_method": step.window.used_method,
        "used_error": step.window.used_error,
        "sent": step.window.used,
        "recorded": step.window.recorded,
        "unrecorded": step.window.unrecorded,
        "share": _share(found, step.window.recorded),
        "uncounted": step.window.uncounted,
        "reported_input": None if step.usage is None else step.usage.reported_input,
        "evidence": found.evidence,
        "blocks": len(found.blocks),
        "shown": len(blocks),
        "characters": len(found.text),
        "joint": found.joint,
        "joint_known": found.joint_known,
        "totals": _totals(found),
    }


def _totals(found: Blame) -> dict[str, Any]:
    sums = found.totals
    return {
        "kind": [_total(found, total) for total in sums.kinds],
        "source": [_total(found, total) for total in sums.sources],
        "server": [_total(found, total) for total in sums.servers],
        "age": [_total(found, total) for total in sums.ages],
        "stale": _total(found, sums.stale),
        "duplicate": _total(found, sums.duplicate),
    }


def _total(found: Blame, total: Total) -> dict[str, Any]:
    return {**msgspec.structs.asdict(total), "share": _share(found, total.tokens)}


def _share(found: Blame, tokens: int) -> float | None:
    """A part of what was sent in per cent."""
    share = found.share(tokens)
    return None if share is None else round(100 * share, 2)


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
    """Whether the sum is of all blocks."""


def sum_lines(
    found: Blame, blocks: Sequence[Block], width: int, paint: Paint, names: ItemNames = NAMELESS,
    *, everything: bool = False,
) -> Iterator[str]:  # fmt: skip
    """What the blocks hold together; always of all blocks, whichever are shown."""
    sums = found.totals
    yield from labelled("window", _window(found), width)
    yield from labelled("evidence", _evidence(found), width)
    if len(blocks) < len(found.blocks):
        tokens = sum(block.placement.tokens for block in blocks)
        yield from labelled(
            "shown", f"{plural(len(blocks), 'block')}, {tokens:,} tokens; the sums are of all blocks", width
        )
    yield from _largest(found, width, paint, names)
    groups = (
        _Group("kind", sums.kinds, "?"),
        _Group("source", sums.sources, "(none recorded)"),
        _Group("tool server", sums.servers, "?", whole=False),
        _Group("in the window since", sums.ages, "?"),
    )
    for group in groups:
        if any(total.name is not None for total in group.sums):
            yield ""
            yield from _sum_table(found, group, width, paint, names, everything=everything)


def _largest(found: Blame, width: int, paint: Paint, names: ItemNames) -> Iterator[str]:
    """The blocks that fill the window most, where there are more than fit a glance."""
    if len(found.blocks) <= 2 * _LARGEST or found.step.window.used <= 0:
        return
    most = nsmallest(_LARGEST, found.blocks, key=lambda block: (-block.placement.tokens, block.position))
    columns = (
        Column("largest blocks", least=20), Column("#", right=True), Column("kind"),
        Column("tokens", right=True), Column("share", right=True),
    )  # fmt: skip
    room = max(20, min(_NAME, width - 46))
    placed = [block.placement for block in most]
    called = names.listed([names.row(p.item, p.title, p.kind) for p in placed], room)
    rows = [
        (name, number(block.position + 1), visible(p.kind), number(p.tokens), _sum_share(found, p.tokens))
        for block, p, name in zip(most, placed, called, strict=True)
    ]
    made = table(columns, rows, width - 2)
    yield ""
    yield from ("  " + paint("dim", line) for line in made.head)
    yield from ("  " + line for lines in made.rows for line in lines)


def _window(found: Blame) -> str:
    sums, window = found.totals, found.step.window
    part = "" if not window.unrecorded else f" ({_sum_share(found, window.recorded)} of what was sent)"
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
    if usage is None or usage.sent is None:
        if found.step.window.unrecorded is None:
            return "no bill was read: what was sent besides the blocks is not known"
        return "no bill was read for this step: what was sent besides the blocks is taken from the last bill"
    if extra is None:
        return f"billed {usage.sent:,} tokens for another frame than this one"
    if extra < 0:
        return f"billed {usage.sent:,} tokens: {-extra:,} fewer than were counted"
    return f"billed {usage.sent:,} tokens: {extra:,} more than the blocks hold"


def _sum_share(found: Blame, tokens: int) -> str:
    """Tokens as a part of what was sent."""
    part = found.share(tokens)
    return NOT_KNOWN if part is None else share(part, fine=True)


def beside(found: Blame) -> str | None:
    """What was sent and is in no block; None where that is not known, or nothing."""
    window = found.step.window
    if not window.unrecorded:
        return None
    if window.unrecorded < 0:
        return sent.unrecorded_text(window)
    named = lacking_text(found.fidelity)
    about = "about " if window.used_method != "reported" else ""
    said = f"{about}{window.unrecorded:,} tokens ({_sum_share(found, window.unrecorded)}) not recorded"
    return f"{said}: {named}" if named else said


def _sum_table(
    found: Blame, group: _Group, width: int, paint: Paint, names: ItemNames, *, everything: bool
) -> Iterator[str]:
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
    called = names.listed([Named(t.name or "", t.name or group.none) for t in sums], _NAME)
    rows = [
        (
            name,
            number(total.blocks),
            number(total.tokens),
            _sum_share(found, total.tokens),
            number(total.uncounted) if total.uncounted else "",
        )
        for total, name in zip(sums, called, strict=True)
    ]
    rest = found.step.window.unrecorded
    if rest and group.whole:
        rows.insert(0, (_REST, "", number(rest), _sum_share(found, rest), ""))
    columns = (_SUM_COLUMNS[0]._replace(title=group.name), *_SUM_COLUMNS[1:])
    made = table(columns, rows, width - 2)
    for line in made.head:
        yield "  " + paint("dim", line)
    for lines in made.rows:
        yield from ("  " + line for line in lines)
