"""What a forked Codex rollout repeats of its parent: the requests that it begins with and did not make.

Codex counts on from its parent's running total, so no request of the fork's own has a total that the parent
has.  What the fork begins with is the parent's as long as the parent's file has these totals too.  Where that
file is gone, other forks of it stand in: what two of them begin with, neither made itself.  That is the least
that was copied; nothing in a file alone tells where its copy ends, and then nothing is taken for one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

Total = tuple[tuple[str, int], ...]
"""A running total: its counts by name, in the order of the names."""
Lines = Callable[[Path], Iterable[Any]]
"""How a file's lines are read: each of the readers here has its own way."""


def running(line: Any) -> Total | None:
    """The running total that a line tells; None: it tells none, or one of nothing."""
    payload = line.get("payload") if isinstance(line, dict) else None
    info = payload.get("info") if isinstance(payload, dict) else None
    told = info.get("total_token_usage") if isinstance(info, dict) else None
    counts = told.items() if isinstance(told, dict) else ()
    total = tuple(sorted((name, count) for name, count in counts if type(count) is int))
    return total if any(count for _, count in total) else None


def inherited(path: Path, lines: Lines) -> set[Total]:
    """The running totals of the parent's requests in a rollout; none where it is no fork or nobody tells."""
    parent = _ids(path, lines)[1]
    if parent is None:
        return set()
    parents, sisters = [], []
    for other in _home(path).rglob("*.jsonl"):
        if other == path:
            continue
        ident, origin = _ids(other, lines)
        if ident == parent:
            parents.append(other)
        elif origin == parent:
            sisters.append(other)
    known = {total for other in parents or sisters for total in _totals(other, lines)}
    return set(takewhile(known.__contains__, _totals(path, lines)))


def _totals(path: Path, lines: Lines) -> Iterator[Total]:
    return (total for line in lines(path) if (total := running(line)) is not None)


def _ids(path: Path, lines: Lines) -> tuple[str | None, str | None]:
    """A rollout's own session and the one that it was forked from.

    The first record of a session is the file's own.  It names its parent, or the parent's own record comes
    along with the copy, before anything that was billed.
    """
    own: str | None = None
    for line in lines(path):
        if running(line) is not None:
            break
        meta = line.get("payload") if isinstance(line, dict) and line.get("type") == "session_meta" else None
        ident = meta.get("id") if isinstance(meta, dict) else None
        if not isinstance(meta, dict) or not isinstance(ident, str):
            continue
        origin = meta.get("forked_from_id")
        if own is None and isinstance(origin, str):
            return ident, origin
        if own not in (None, ident):
            return own, ident
        own = ident
    return own, None


def _home(path: Path) -> Path:
    """The folder that a rollout's kin lie in or below: the Codex home, else where it lies itself."""
    kept = (up.parent for up in path.parents if up.name in {"sessions", "archived_sessions"})
    return next(kept, path.parent)
