"""What changed from one request to the next, by their raw blocks: DESIGN section 3 worked out the plain way.

A block is the same item as an earlier one where the provider names it (a tool by its name, a call and its
result by their id, a part of the system prompt by its place); any other is the same item where its role and
content are the same and the order is kept.  No token is counted here: sizes come from whoever counts.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from tools.independent.raw import Object
from tools.independent.wire import Block, canonical, dialect


class Change(NamedTuple):
    """One request held against the one before it."""

    status: list[str]
    """Of each block of this request: `added`, `updated` or `skipped`."""
    removed: list[int]
    """Positions of the blocks before that are the same item as none now."""
    new: list[int]
    """Positions of the blocks whose content did not stand in the request before."""
    freed: list[int]
    """Positions of the blocks before whose content does not stand in this one."""
    kept: int
    """How many blocks both begin with, cache or no cache."""
    cached: int
    """How many of these the provider can read from its cache, by its own rules."""
    why: str | None
    """What breaks it before its end: `model`, `tool_choice`, `thinking`, `images`, `content`."""


def change(before: list[Block], now: list[Block], old: Object, body: Object) -> Change:
    """What became of every block."""
    pairs = same(before, now)
    status = ["added"] * len(now)
    for one, other in pairs:
        status[other] = "skipped" if before[one].content == now[other].content else "updated"
    gone = sorted(set(range(len(before))) - {one for one, _ in pairs})
    kept = 0
    while kept < min(len(before), len(now)) and _equal(before[kept], now[kept]):
        kept += 1
    cached, why = reach(now, kept, old, body)
    if why is None and cached < len(before):
        why = "content"
    return Change(status, gone, _more(before, now), _more(now, before), kept, cached, why)


def _equal(one: Block, other: Block) -> bool:
    return (one.part, one.kind, one.ident, one.content) == (
        other.part,
        other.kind,
        other.ident,
        other.content,
    )


def _more(one: list[Block], other: list[Block]) -> list[int]:
    """Positions in `other` of what it holds more often than `one`; of equal blocks the last are the new."""
    left = Counter((b.part, b.kind, b.ident, b.content) for b in one)
    found = []
    for position, block in enumerate(other):
        key = (block.part, block.kind, block.ident, block.content)
        if left[key] > 0:
            left[key] -= 1
        else:
            found.append(position)
    return found


def same(before: list[Block], now: list[Block]) -> list[tuple[int, int]]:
    """Which block is which: by name, else by the longest common run of what stands verbatim in order."""
    named = {(b.part == "tools", b.ident): i for i, b in enumerate(before) if b.ident}
    pairs = []
    taken = set()
    for i, block in enumerate(now):
        key = (block.part == "tools", block.ident)
        if block.ident and key in named and named[key] not in taken:
            taken.add(named[key])
            pairs.append((named[key], i))
    old = [i for i, b in enumerate(before) if not b.ident]
    new = [i for i, b in enumerate(now) if not b.ident]
    keys = [(before[i].part, before[i].content) for i in old], [(now[i].part, now[i].content) for i in new]
    return sorted(pairs + [(old[a], new[b]) for a, b in longest(*keys)])


def longest(one: list[tuple[str, str]], other: list[tuple[str, str]]) -> list[tuple[int, int]]:
    """The pairs of a longest common subsequence."""
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    found = [(i, i) for i in range(start)]
    a, b = one[start:], other[start:]
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in range(len(a) - 1, -1, -1):
        for j in range(len(b) - 1, -1, -1):
            table[i][j] = table[i + 1][j + 1] + 1 if a[i] == b[j] else max(table[i + 1][j], table[i][j + 1])
    i = j = 0
    while i < len(a) and j < len(b):
        if a[i] == b[j]:
            found.append((start + i, start + j))
            i, j = i + 1, j + 1
        elif table[i + 1][j] >= table[i][j + 1]:
            i += 1
        else:
            j += 1
    return found


def reach(now: list[Block], kept: int, old: Object, body: Object) -> tuple[int, str | None]:
    """How far into what both begin with a cache is of use.

    Every provider keeps a cache by model.  Anthropic's page on prompt caching has a table of what invalidates
    what: `tool_choice`, the thinking settings, and images that come or go leave tools and system prompt and
    invalidate the messages.
    """
    if old.get("model") != body.get("model"):
        return 0, "model"
    if dialect(body) == "anthropic":
        front = sum(block.part in {"tools", "system"} for block in now)
        for name in ("tool_choice", "thinking"):
            if canonical(old.get(name)) != canonical(body.get(name)):
                return min(kept, front), name
        if images(old) != images(body):
            return min(kept, front), "images"
    return kept, None


def images(body: Object) -> int:
    """How many images a request has, at whatever depth."""

    def count(value: Any) -> int:
        if isinstance(value, dict):
            return (value.get("type") == "image") + sum(map(count, value.values()))
        return sum(map(count, value)) if isinstance(value, list) else 0

    return count(body.get("messages"))


def conversation(requests: list[list[Block]], dialects: list[str]) -> list[int | None]:
    """Of each request, the earlier one that it goes on with: the longest whose messages it begins with.

    Both speak the same dialect and have the same system prompt.  None where there is none: it starts a
    conversation, or goes on after a compaction or a cut, which the bodies alone do not tell apart.
    """
    found: list[int | None] = []
    heads = [[b.content for b in blocks if b.part == "system"] for blocks in requests]
    talks = [[b for b in blocks if b.part not in {"tools", "schema", "system"}] for blocks in requests]
    for position, talk in enumerate(talks):
        best, most = None, 0
        for earlier in range(position - 1, -1, -1):
            size = len(talks[earlier])
            if heads[earlier] != heads[position] or dialects[earlier] != dialects[position]:
                continue
            if most < size < len(talk) and all(map(_equal, talks[earlier], talk)):
                best, most = earlier, size
        found.append(best)
    return found
