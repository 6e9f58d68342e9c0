"""What the lines of the assembled text say, as parts: (text, style name).  Plain Python."""

from __future__ import annotations

from typing import Final

from ctxctl.item_names import fitted_call
from ctxctl.model.vocab import MODEL, SEGMENTS
from ctxctl.text import cells, clip, pad
from ctxctl.tui.layout import Column, Parts, Piece, laid_out, one_line, spread
from ctxctl.tui.screens.assembled.values import Assembled, Block
from ctxctl.tui.screens.diff.lines import label
from ctxctl.tui.sizes import NOTHING_KNOWN, amount, is_unknown
from ctxctl.wording import NOT_KNOWN, brief_kind, number, plural, share, short

CACHED: Final = "█"
"""In the gutter: the block is part of the possible cache prefix."""
FRESH: Final = "░"
MARK: Final = "▌"


def head(shown: Assembled | None, width: int) -> list[Parts]:
    """Three lines: whose text this is, what of it a cache could give, and what keeps it from being exact."""
    if shown is None or shown.document is None:
        said = "one moment…" if shown is None else shown.error
        return [spread([Piece(said, "muted" if shown is None else "warning", 9)], [], width)]
    blocks = len(shown.document.blocks)
    left = [
        Piece(label(shown.trace, shown.address, width), "name", 10),
        Piece("" if shown.thread == "main" else shown.thread, "thread", 4),
        Piece(shown.model or "", "", 5),
        Piece(shown.layer, "muted", 4),
        Piece("nothing recorded" if shown.basis == "none" else f"from {shown.basis}", "muted", 2),
    ]
    right = [
        Piece(plural(blocks, "block"), "", 6),
        Piece(f"{number(shown.uncounted)} uncounted" if shown.uncounted else "", "warning", 7),
        Piece(_held(shown), "strong", 9),
    ]
    return [spread(left, right, width), _prefix(shown, width), _remarks(shown, width)]


def _held(shown: Assembled) -> str:
    """A phrase for how much of what was sent the blocks hold."""
    if is_unknown(shown.recorded, shown.uncounted, shown.method):
        return NOTHING_KNOWN
    if shown.method == "recorded":
        return f"{plural(shown.recorded, 'token')} recorded"
    return f"{number(shown.recorded)} of {amount(shown.sent, shown.method)} sent"


def _prefix(shown: Assembled, width: int) -> Parts:
    if shown.prefix is None:
        said = "no cache prefix is known"
        if shown.target != MODEL:
            said = "no prompt cache: that is of a model's requests"
        elif shown.first:
            said = "the first request of its thread: no cache prefix is possible"
        return spread([Piece(said, "muted", 9)], [], width)
    part = f"{share(shown.prefix, shown.recorded)} of the record" if shown.recorded else ""
    unknown = not shown.prefix and not shown.recorded and shown.uncounted
    size = "of unknown size" if unknown else number(shown.prefix)
    left = [
        Piece(f"{CACHED} possible cache prefix {size}", "cached", 10),
        Piece(part, "cached", 4),
        Piece(
            f"ended by {shown.broken}" if shown.broken else "all of the request before",
            "warning" if shown.broken else "muted",
            8,
        ),
        Piece(f"{number(shown.again)} unchanged behind it" if shown.again else "", "warning", 6),
        Piece(one_line(shown.missed), "warning", 6),
    ]
    reported = "cache reads not reported" if shown.reported is None else f"reported {number(shown.reported)}"
    return spread(left, [Piece(reported, "muted", 5)], width)


def _remarks(shown: Assembled, width: int) -> Parts:
    found = [f"! {text}" for text in shown.remarks]
    if not shown.joint_known:
        named = f" (“{one_line(shown.joint_name)}”)" if shown.joint_name else ""
        found.append(f"the text between blocks is not recorded{named}: shown as line breaks")
    return spread(
        [Piece(text, "warning" if text[0] == "!" else "muted", 9 - n) for n, text in enumerate(found)],
        [],
        width,
    )


def remarked(shown: Assembled | None) -> bool:
    """Whether there is anything to say in the third line."""
    return shown is not None and bool(shown.remarks or not shown.joint_known)


def segment_style(segment: str, kind: str = "segment") -> str:
    """The style of a segment's letter, or of its bar (`legend`)."""
    return f"{kind}-{segment if segment in SEGMENTS else 'other'}"


def gutter(block: Block, *, current: bool, heading: bool, prefix: bool) -> Parts:
    """Four cells in front of a row: the current block's mark, the prefix bar, the segment, a blank.

    `prefix`: there is a prefix to tell apart at all.
    """
    bar = " " if not prefix else CACHED if block.cached else FRESH
    letter = one_line(block.segment)[:1].upper() or "?" if heading else "▏"
    return [
        (MARK if current else " ", "mark"),
        (bar, "cached" if block.cached else "gutter"),
        (pad(letter, 1), segment_style(block.segment, "segment" if heading else "legend")),
        (" ", ""),
    ]


def heading(block: Block, width: int, *, current: bool) -> Parts:
    """The name of a block, its tokens, and what is special about it, in `width` cells."""
    tokens = plural(block.tokens, "token") if block.counted else "uncounted"
    notes = ", ".join(one_line(note) for note in block.notes)
    kind = block.kind if width >= 70 else brief_kind(block.kind)
    right = clip(f" {tokens}", max(width - 6, 0))
    room = max(width - cells(right) - 1, 0)
    name = clip(f"{one_line(kind)}  {one_line(block.title)}", room)
    room -= cells(name)
    said = clip(f"  {notes}", room) if notes and room > 6 else ""
    room -= cells(said)
    return [
        (name, "strong" if current else "block"),
        (said, "warning"),
        (" " + "─" * max(room, 0) if room > 0 else " ", "gutter"),
        (right, "strong" if current else "block"),
    ]


def break_line(block: Block, width: int) -> Parts:
    """Where the possible prefix ended, and why."""
    return [(pad(clip("✂ " + one_line(block.breaks), width), width), "warning")]


def outline_line(block: Block, width: int, *, prefix: bool) -> Parts:
    """The line of a block in the outline."""
    bar = " " if not prefix else CACHED if block.cached else FRESH
    letter = one_line(block.segment)[:1].upper() or "?"
    mark = "✂" if block.breaks else "!" if block.notes else " "
    amount = short(block.tokens) if block.counted else NOT_KNOWN
    kind = [Column(brief_kind(block.kind), "muted", 7)]
    return laid_out(
        [
            Column(bar, "cached" if block.cached else "gutter", 1),
            Column(letter, segment_style(block.segment), 1),
            Column(mark, "warning", 2),
            *kind,
            Column(block.title, fit=lambda room: fitted_call(one_line(block.title), room)),
            Column(amount, "" if block.tokens else "muted", 7, right=True),
        ],
        width,
    )
