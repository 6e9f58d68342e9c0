"""The lives of a trace's items: from its session store, or by one replay."""

from __future__ import annotations

import sqlite3
from collections import deque
from typing import TYPE_CHECKING

from ctxctl.engine.replay.walked import walked_by
from ctxctl.store.lives import Lives
from ctxctl.store.writer import RowWriter

if TYPE_CHECKING:
    from ctxctl.session.facade import Inspector, Progress


def lives_of(inspector: Inspector, progress: Progress | None = None) -> Lives:
    """The lives of all items of a trace; the first call may replay the trace."""
    size = inspector.trace.source.size
    if inspector.lives is None or inspector.lives[0] != size:
        if inspector.keeps_replay():
            deque(inspector.walk(progress, settle=True), 0)
        store = inspector.kept_replay()
        if store is not None:
            inspector.take_over(store)
        inspector.lives = size, _replayed(inspector, progress) if store is None else store.lives()
    return inspector.lives[1]


def _replayed(inspector: Inspector, progress: Progress | None) -> Lives:
    db = sqlite3.connect(":memory:", check_same_thread=False)
    rows, last = RowWriter.new(db, None), None
    for at, engine in inspector.walk(progress, settle=True):
        rows.add(walked_by(engine, at))
        last = engine
    if last is not None:
        rows.finish(last)
    return Lives(db)
