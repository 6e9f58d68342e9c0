"""Holds what is read from a session store against the replay that was written into it."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from ctxctl.engine.replay.walked import Walked, walked_by
from ctxctl.errors import CtxctlError
from ctxctl.model.results import Placement
from ctxctl.session import Inspector
from ctxctl.store.reader import PlacementRows, step_at, thread_deltas, walk
from ctxctl.store.writer import RowWriter

EVERY = 37
"""Of a long trace, of how many steps one is also asked for by itself."""


def differences(path: Path, **more: Any) -> list[str]:
    """Where the rows of a capture's replay say something else than the replay; none of what does not open."""
    try:
        return _differences(path, **more)
    except CtxctlError:
        return []


def _differences(path: Path, **more: Any) -> list[str]:
    db = sqlite3.connect(":memory:")
    wrong: list[str] = []
    with Inspector.open(path, **more) as inspector:
        rows = RowWriter.new(db, inspector.trace.contents)
        steps: list[Walked] = []
        engine = None
        for at, engine in inspector.walk():
            steps.append(walked_by(engine, at))
            try:
                rows.add(steps[-1])
            except ValueError:  # a text that a damaged line has is in no file: no store is kept
                return []
        if engine is None:
            return []
        rows.finish(engine)
        again = list(walk(db, inspector.trace.contents))
        if len(again) != len(steps):
            wrong.append(f"{len(again)} steps instead of {len(steps)}")
        for ordinal, (one, (at, delta, omitted)) in enumerate(zip(steps, again, strict=False)):
            if (one.at.step, one.at.turn) != (at.step, at.turn):
                wrong.append(f"step {ordinal}")
            if told(one.at.placements) != told(at.placements):
                wrong.append(f"frame of step {ordinal}")
            if (one.delta.reordered, *map(told, one.delta[2:4])) != (delta.reordered, *map(told, delta[2:4])):
                wrong.append(f"changes of the frame of step {ordinal}")
            if one.delta[:2] != delta[:2]:
                wrong.append(f"what the frame of step {ordinal} begins and ends with")
            if {name: content.digest for name, content in one.omitted.items()} != {
                name: content.digest for name, content in omitted.items()
            }:
                wrong.append(f"what step {ordinal} omitted")
        placements = PlacementRows(db, inspector.trace.contents)
        for ordinal in {0, len(steps) - 1, *range(0, len(steps), EVERY)}:
            at = step_at(placements, ordinal)
            if (at.step, told(at.placements)) != (steps[ordinal].at.step, told(steps[ordinal].at.placements)):
                wrong.append(f"step {ordinal} by itself")
        mine = [n for n, one in enumerate(steps) if one.key == steps[0].key]
        for ordinal, delta in thread_deltas(db, inspector.trace.contents, mine):
            if len(delta.after) != len(steps[ordinal].at.placements):
                wrong.append(f"frame of step {ordinal} in its thread")
    return wrong


def told(placements: list[Placement]) -> list[list[Any]]:
    """All fields of placements, and the digests of their texts."""
    return [
        [
            value.digest if name == "content" and value is not None else value
            for name, value in zip(one.__struct_fields__, fields_of(one), strict=True)
        ]
        for one in placements
    ]


def fields_of(placement: Placement) -> list[Any]:
    return [getattr(placement, name) for name in placement.__struct_fields__]
