"""A unified diff of two texts in bounded work (DESIGN section 9, last rows).

Common head and tail lines are trimmed; the rest goes to rapidfuzz's minimal alignment if its table is small
enough, else it is divided at lines that occur once in both, and what then is still too large becomes one
replaced block.  A diff that may not be minimal says so.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

_TABLE = 1 << 28
"""Cells of the alignment table that one call may fill (32 MB of bits)."""

Kind = Literal[" ", "+", "-", "@"]


class DiffLine(NamedTuple):
    """One line of a diff; `@` lines head a hunk and hold ``-a,b +c,d``."""

    kind: Kind
    text: str


class TextDiff(NamedTuple):
    """A unified diff."""

    lines: tuple[DiffLine, ...]
    degraded: bool
    """Not minimal: some common text may be shown as removed and added again."""
    added: int
    removed: int


class _Edit(NamedTuple):
    """Lines [a0, a1) of the old text become lines [b0, b1) of the new one."""

    a0: int
    a1: int
    b0: int
    b1: int


def unified(old: str, new: str, *, context: int = 3) -> TextDiff:
    """Compare two texts line by line, with `context` equal lines around each hunk."""
    a, b = old.split("\n"), new.split("\n")
    ids: dict[str, int] = {}
    edits: list[_Edit] = []
    flat = [[ids.setdefault(line, len(ids)) for line in lines] for lines in (a, b)]
    degraded = _align(flat[0], flat[1], 0, 0, edits)
    lines = tuple(_hunks(a, b, edits, context))
    added = sum(e.b1 - e.b0 for e in edits)
    removed = sum(e.a1 - e.a0 for e in edits)
    return TextDiff(lines, degraded, added, removed)


def _align(a: Sequence[int], b: Sequence[int], at_a: int, at_b: int, out: list[_Edit]) -> bool:
    """Append the edits that turn `a` into `b`; True if they may not be minimal."""
    head = 0
    limit = min(len(a), len(b))
    while head < limit and a[head] == b[head]:
        head += 1
    tail = 0
    while tail < limit - head and a[len(a) - tail - 1] == b[len(b) - tail - 1]:
        tail += 1
    a, b = a[head : len(a) - tail], b[head : len(b) - tail]
    at_a, at_b = at_a + head, at_b + head
    if not a or not b:
        if a or b:
            out.append(_Edit(at_a, at_a + len(a), at_b, at_b + len(b)))
        return False
    if len(a) * len(b) <= _TABLE:
        _minimal(a, b, at_a, at_b, out)
        return False
    return _divided(a, b, at_a, at_b, out)


def _minimal(a: Sequence[int], b: Sequence[int], at_a: int, at_b: int, out: list[_Edit]) -> None:
    from rapidfuzz.distance import Indel

    for op in Indel.opcodes(a, b):
        if op.tag == "equal":
            continue
        edit = _Edit(at_a + op.src_start, at_a + op.src_end, at_b + op.dest_start, at_b + op.dest_end)
        last = out[-1] if out else None
        if last is not None and last.a1 == edit.a0 and last.b1 == edit.b0:
            out[-1] = _Edit(last.a0, edit.a1, last.b0, edit.b1)
        else:
            out.append(edit)


def _divided(a: Sequence[int], b: Sequence[int], at_a: int, at_b: int, out: list[_Edit]) -> bool:
    """Divide at lines that occur once in both texts, in an order that both share."""
    anchors = _anchors(a, b)
    if not anchors:
        out.append(_Edit(at_a, at_a + len(a), at_b, at_b + len(b)))
        return True
    from_a = from_b = 0
    for in_a, in_b in [*anchors, (len(a), len(b))]:
        _align(a[from_a:in_a], b[from_b:in_b], at_a + from_a, at_b + from_b, out)
        from_a, from_b = in_a + 1, in_b + 1
    return True


def _anchors(a: Sequence[int], b: Sequence[int]) -> list[tuple[int, int]]:
    once_a = {line for line, n in Counter(a).items() if n == 1}
    once = {line for line, n in Counter(b).items() if n == 1 and line in once_a}
    place = {line: at for at, line in enumerate(b) if line in once}
    pairs = [(at, place[line]) for at, line in enumerate(a) if line in once]
    tails: list[int] = []
    ends: list[int] = []
    back: list[int] = []
    for index, (_, row) in enumerate(pairs):
        at = bisect_left(tails, row)
        back.append(ends[at - 1] if at else -1)
        tails[at : at + 1], ends[at : at + 1] = [row], [index]
    chain: list[tuple[int, int]] = []
    at = ends[-1] if ends else -1
    while at >= 0:
        chain.append(pairs[at])
        at = back[at]
    return chain[::-1]


def _hunks(a: list[str], b: list[str], edits: list[_Edit], context: int) -> Iterator[DiffLine]:
    for group in _groups(edits, context):
        a0 = max(0, group[0].a0 - context)
        b0 = max(0, group[0].b0 - context)
        a1 = min(len(a), group[-1].a1 + context)
        b1 = min(len(b), group[-1].b1 + context)
        yield DiffLine("@", f"-{_span(a0, a1)} +{_span(b0, b1)}")
        at = a0
        for edit in group:
            yield from (DiffLine(" ", line) for line in a[at : edit.a0])
            yield from (DiffLine("-", line) for line in a[edit.a0 : edit.a1])
            yield from (DiffLine("+", line) for line in b[edit.b0 : edit.b1])
            at = edit.a1
        yield from (DiffLine(" ", line) for line in a[at:a1])


def _groups(edits: list[_Edit], context: int) -> Iterator[list[_Edit]]:
    group: list[_Edit] = []
    for edit in edits:
        if group and edit.a0 - group[-1].a1 > 2 * context:
            yield group
            group = []
        group.append(edit)
    if group:
        yield group


def _span(start: int, stop: int) -> str:
    length = stop - start
    first = start + 1 if length else start
    return f"{first}" if length == 1 else f"{first},{length}"
