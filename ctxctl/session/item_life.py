"""An item's life over a replay, and frames of different threads made comparable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from ctxctl.model.outline import Life
from ctxctl.model.results import Change, Placement, Step, Turn


def life_of(
    results: Iterable[Step | Turn], item: str, session: str | None, thread: str | None
) -> Iterator[Life]:
    """What happened to an item at each step at which it was in a frame, left one, or was omitted."""
    present: dict[tuple[str | None, str], Change] = {}
    ordinal = -1
    for step in results:
        if isinstance(step, Turn):
            continue
        ordinal += 1
        if (session is not None and step.session != session) or (
            thread is not None and step.thread != thread
        ):
            continue
        key = (step.session, step.thread)
        change = next((c for c in step.changes if c.item == item), None)
        if change is not None:
            yield _moment(ordinal, step, change, change.status)
            if change.status in ("added", "updated", "skipped"):
                present[key] = change
            elif change.status == "removed":
                present.pop(key, None)
        elif key in present:
            yield _moment(ordinal, step, present[key], "skipped")


def _moment(ordinal: int, step: Step, change: Change, status: str) -> Life:
    removed = status == "removed"
    return Life(
        ordinal=ordinal,
        session=step.session,
        thread=step.thread,
        turn=step.turn,
        step=step.step,
        status=status,
        version=change.previous_version if removed else change.version,
        tokens=change.tokens,
        cause=None if status == "skipped" else change.cause,
        reason=None if status == "skipped" else change.reason,
        into=None if status == "skipped" else change.into,
    )


def with_common_keys(
    a: Sequence[Placement], b: Sequence[Placement]
) -> tuple[list[Placement], list[Placement]]:
    """Two frames whose keys were given out separately, under keys of their own."""
    keys: dict[tuple[str, str | None, str | None, int], int] = {}
    made: dict[tuple[int, bool, str], Placement] = {}

    def again(p: Placement) -> Placement:
        textless = p.tokens if p.content is None else 0
        key = keys.setdefault((p.item, p.version, p.digest, textless), len(keys))
        found = made.get((key, p.stale, p.segment))
        if found is None:
            found = made[key, p.stale, p.segment] = msgspec.structs.replace(p, key=key)
        return found

    return [again(p) for p in a], [again(p) for p in b]
