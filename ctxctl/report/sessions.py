"""Two sessions side by side: aligned turns, what one window had that the other lacked, and the sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from ctxctl.item_names import ItemNames
from ctxctl.model.sessions import ItemDiff, SessionDiff, SideTotal, ThreadPair, TurnPair, TurnSide
from ctxctl.model.vocab import MAIN_THREAD
from ctxctl.report.bill_notes import with_mark
from ctxctl.report.paint import Paint
from ctxctl.report.tables import Column, labelled, table
from ctxctl.text import cells, clip, pad, preview, visible
from ctxctl.wording import SIGNS, cost_text, dollars, number, plural, signed

_ITEMS: Final = 12
"""Items of a turn that are listed, unless all are asked for."""
_STATUS: Final = {"only_a": "removed", "only_b": "added", "differs": "updated"}
"""The status whose sign and colour stands for what only one side has, or for what differs."""
_COLUMNS: Final = (
    Column("a", right=True),
    Column("b", right=True),
    Column("prompt", least=16),
    Column("recorded", right=True),
    Column("only a", right=True),
    Column("only b", right=True),
    Column("billed", right=True),
    Column("US$", right=True),
)
CalledInPair = Callable[[TurnPair], tuple[ItemNames, ItemNames]]
"""How the items of two aligned turns are called, on either side."""
_NOTE: Final = {"prompt": "", "order": "by order: ", None: ""}


def head_lines(found: SessionDiff, names: Sequence[str], under: str, width: int) -> Iterator[str]:
    """Which sessions, and the sums."""
    yield from labelled("a", visible(names[0]), width)
    yield from labelled("b", visible(names[1]), width)
    yield from labelled("under", under, width)
    yield from labelled("turns", _aligned(found), width)
    if not found.minimal:
        yield from labelled("note", "bounded work: a better alignment of the turns may exist", width)
    a, b = found.total_a, found.total_b
    for label, text in (
        ("steps", _both(a.steps, b.steps)),
        ("entered", f"{_both(a.new, b.new)} tokens"),
        ("billed", _billed(a, b)),
        ("cost", _cost(a, b)),
    ):
        yield from labelled(label, text, width)


def _aligned(found: SessionDiff) -> str:
    parts = [f"{found.by_prompt:,} with the same prompt"]
    if found.by_order:
        parts.append(f"{found.by_order:,} paired by order")
    for alone, side in ((found.alone_a, "a"), (found.alone_b, "b")):
        if alone:
            parts.append(f"{alone:,} only in {side}")
    return f"{_both(found.total_a.turns, found.total_b.turns)}: {', '.join(parts)}"


def _both(a: int, b: int) -> str:
    return f"{a:,} and {b:,} ({signed(b - a)})"


def _billed(a: SideTotal, b: SideTotal) -> str:
    if a.billed is None or b.billed is None:
        which = "either" if a.billed is None and b.billed is None else "a" if a.billed is None else "b"
        return f"{number(a.billed)} and {number(b.billed)}: no bill was read of {which}"
    return f"{_both(a.billed, b.billed)} tokens of input"


def _cost(a: SideTotal, b: SideTotal) -> str:
    known = [side.unpriced < side.steps for side in (a, b)]
    said = " and ".join(
        cost_text(
            side.cost, counted=_is_counted(side), least=bool(side.unpriced or side.least)
        ) if is_known else "not known"
        for side, is_known in zip((a, b), known, strict=True)
    )  # fmt: skip
    if all(known):
        said += f" ({with_mark(dollars(b.cost - a.cost, signed=True), _is_counted(a) or _is_counted(b))})"
    if any(known) and (a.unpriced or b.unpriced):
        said += f"; not known for {a.unpriced:,} and {plural(b.unpriced, 'step')}"
    if a.expected or b.expected:
        said += f"; not billed, at their expected size: {a.expected:,} and {plural(b.expected, 'step')}"
    if a.partial_outputs or b.partial_outputs:
        said += f"; outputs as counted: {a.partial_outputs:,} and {plural(b.partial_outputs, 'step')}"
    return said


def _is_counted(side: TurnSide | SideTotal) -> bool:
    return bool(side.partial_outputs or side.expected)


# The turns --------------------------------------------------------------------------------------------------


def stat_lines(found: SessionDiff, width: int, paint: Paint) -> Iterator[str]:
    """One line for each pair of turns."""
    for thread in found.threads:
        yield ""
        yield paint("head", _thread(thread))
        made = table(_COLUMNS, [_row(pair) for pair in thread.turns], width - 2)
        for line in made.head:
            yield "  " + paint("dim", line)
        for pair, lines in zip(thread.turns, made.rows, strict=True):
            role = "removed" if pair.b is None else "added" if pair.a is None else None
            yield from ("  " + (paint(role, line) if role else line) for line in lines)


def _thread(thread: ThreadPair) -> str:
    names = ["(none)" if key is None else visible(key[1]) for key in (thread.a, thread.b)]
    return names[0] if names[0] == names[1] else f"{names[0]} and {names[1]}"


def _row(pair: TurnPair) -> tuple[str, ...]:
    a, b = pair.a, pair.b
    return (
        "-" if a is None else str(a.turn),
        "-" if b is None else str(b.turn),
        _NOTE[pair.by] + _title(pair),
        _change(a, b, "recorded"),
        number(pair.only_a) if pair.by else "",
        number(pair.only_b) if pair.by else "",
        _change(a, b, "billed"),
        _money(a, b),
    )


def _title(pair: TurnPair) -> str:
    side = pair.a if pair.a is not None else pair.b
    return preview(side.title, 60) if side is not None and side.title else "(no prompt is recorded)"


def _change(a: TurnSide | None, b: TurnSide | None, name: str) -> str:
    """By how much `b` has more; what one side alone has, where the other is missing."""
    ours, theirs = (None if side is None else getattr(side, name) for side in (a, b))
    if a is None or b is None:
        return number(ours if b is None else theirs)
    return "-" if ours is None or theirs is None else signed(theirs - ours)


def _money(a: TurnSide | None, b: TurnSide | None) -> str:
    if any(side is not None and side.unpriced for side in (a, b)):
        return "-"
    if a is None or b is None:
        side = a or b
        return "-" if side is None else with_mark(dollars(side.cost, bare=True), _is_counted(side))
    return with_mark(dollars(b.cost - a.cost, signed=True, bare=True), _is_counted(a) or _is_counted(b))


def turn_lines(
    found: SessionDiff, width: int, paint: Paint, called: CalledInPair, *, everything: bool = False
) -> Iterator[str]:
    """Each pair of turns at which something began to differ, and each turn without a partner."""
    for thread in found.threads:
        several = thread.a is not None and thread.a[1] != MAIN_THREAD
        for pair in thread.turns:
            if pair.items or pair.by is None:
                yield ""
                yield paint("head", clip(_heading(pair, _thread(thread) if several else ""), width))
                yield from labelled("", _facts(pair), width, tab=2)
                lines = item_lines(pair.items, width - 2, paint, called(pair), everything=everything)
                yield from ("  " + line for line in lines)


def _heading(pair: TurnPair, thread: str) -> str:
    where = f"{thread} " if thread else ""
    a, b = pair.a, pair.b
    if a is None or b is None:
        side, name = (a, "a") if a is not None else (b, "b")
        return f"{where}turn {side.turn if side is not None else ''} of {name} only: {_title(pair)}"
    turn = f"turn {a.turn}" if a.turn == b.turn else f"turn {a.turn} of a, {b.turn} of b"
    if pair.by == "order" and b.title != a.title:
        other = preview(b.title, 60) if b.title else "(no prompt is recorded)"
        return f"{where}{turn}, by order: {preview(a.title or '', 60)} | {other}"
    return f"{where}{turn}: {_title(pair)}"


def _facts(pair: TurnPair) -> str:
    a, b = pair.a, pair.b
    if a is None or b is None:
        side = a or b
        assert side is not None
        sent = f", {side.used:,} sent" if side.method != "recorded" else ""
        return f"{plural(side.steps, 'step')}, {side.recorded:,} tokens recorded{sent}"
    said = [
        f"steps {_both(a.steps, b.steps)}" if a.steps != b.steps else plural(a.steps, "step"),
        f"recorded {_both(a.recorded, b.recorded)}",
        f"{pair.same:,} in common, {pair.only_a:,} tokens only in a, {pair.only_b:,} only in b",
    ]
    if "recorded" not in (a.method, b.method):
        said.insert(1, f"sent {_both(a.used, b.used)}")
    if pair.standing:
        said.append(f"{pair.standing:,} differ since before")
    return "; ".join(said)


def item_lines(
    items: Sequence[ItemDiff],
    width: int,
    paint: Paint,
    called: tuple[ItemNames, ItemNames],
    *,
    everything: bool = False,
) -> Iterator[str]:
    """``-`` what only `a` has, ``+`` what only `b` has, ``~`` what says something else in each.

    `called`: how the items of either side are called.
    """
    listed = items if everything else items[:_ITEMS]
    for item in listed:
        role = _STATUS[item.what]
        tokens = f"{item.tokens_a:,} and {item.tokens_b:,}" if item.what == "differs" else _tokens(item)
        head = f"{SIGNS[role]} {pad(visible(item.kind), 18)} "
        names = called[item.what != "only_a"]
        name = names.of(item.item, item.title, max(width - cells(head) - cells(tokens) - 2, 12))
        text = f"{name}  {tokens}"
        yield paint(role, head) + clip(text, max(width - len(head), 12))
    if len(listed) < len(items):
        yield f"... {len(items) - len(listed):,} more (--all lists them)"


def _tokens(item: ItemDiff) -> str:
    copies = f" in {item.copies:,} copies" if item.copies > 1 else ""
    return f"{item.tokens_a + item.tokens_b:,}{copies}"


# JSON -------------------------------------------------------------------------------------------------------


def pair_json(pair: TurnPair, *, items: bool = True) -> dict[str, Any]:
    """One `turns` line."""
    return {
        "type": "turns",
        "aligned_by": pair.by,
        "a": None if pair.a is None else _side_json(pair.a),
        "b": None if pair.b is None else _side_json(pair.b),
        "same": pair.same,
        "standing": pair.standing,
        "only_a": pair.only_a,
        "only_b": pair.only_b,
        "items": pair.items if items else None,
    }


def _side_json(side: TurnSide) -> dict[str, Any]:
    return {
        "session": side.session,
        "thread": side.thread,
        "turn": side.turn,
        "step": side.step,
        "ordinal": side.ordinal,
        "steps": side.steps,
        "title": side.title,
        "used": side.used,
        "used_method": side.method,
        "recorded": side.recorded,
        "new": side.new,
        "freed": side.freed,
        "billed": side.billed,
        "cost": _known_cost(side),
        "unpriced": side.unpriced,
        "partial_outputs": side.partial_outputs,
        "expected": side.expected,
        "least": side.least,
    }


def to_json(found: SessionDiff, names: Sequence[str]) -> dict[str, Any]:
    """The `sessions` line."""
    return {
        "type": "sessions",
        "a": names[0],
        "b": names[1],
        "total_a": _total_json(found.total_a),
        "total_b": _total_json(found.total_b),
        "by_prompt": found.by_prompt,
        "by_order": found.by_order,
        "alone_a": found.alone_a,
        "alone_b": found.alone_b,
        "minimal": found.minimal,
        "differs": found.differs,
    }


def _total_json(total: SideTotal) -> dict[str, Any]:
    return {
        "turns": total.turns,
        "steps": total.steps,
        "new": total.new,
        "freed": total.freed,
        "billed": total.billed,
        "cost": _known_cost(total),
        "unpriced": total.unpriced,
        "partial_outputs": total.partial_outputs,
        "expected": total.expected,
        "least": total.least,
    }


def _known_cost(side: TurnSide | SideTotal) -> str | None:
    """Dollars as a decimal number in a string, without an exponent; None where none are known."""
    return None if side.steps and side.unpriced == side.steps else f"{side.cost:f}"
