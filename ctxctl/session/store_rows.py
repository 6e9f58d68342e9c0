"""The rows of a trace's replay: from its session store, or from one replay in memory."""

from __future__ import annotations

import sqlite3
from collections import deque
from typing import TYPE_CHECKING

from ctxctl.engine.replay.walked import walked_by
from ctxctl.store.lives import Lives, OpenRows
from ctxctl.store.reader import PlacementRows
from ctxctl.store.writer import RowWriter

if TYPE_CHECKING:
    from ctxctl.session.facade import Inspector, Progress


def rows_of(inspector: Inspector, progress: Progress | None = None) -> OpenRows:
    """Return the current rows of a trace. The first call may replay it. `Inspector.close` closes them."""
    size = inspector.trace.source.size
    if inspector.store_rows is None or inspector.store_rows[0] != size:
        if inspector.keeps_replay():
            deque(inspector.walk(progress, settle=True), 0)
        store = inspector.kept_replay()
        if store is None:
            found = _replayed(inspector, progress)
        else:
            inspector.take_over(store)
            db = store.connected()
            found = OpenRows(db, PlacementRows(db, inspector.trace.contents).text, Lives(db))
        inspector.store_rows = size, found
    return inspector.store_rows[1]


def lives_of(inspector: Inspector, progress: Progress | None = None) -> Lives:
    """Return the lives of all items of a trace; see `rows_of`."""
    return rows_of(inspector, progress).lives


def _replayed(inspector: Inspector, progress: Progress | None) -> OpenRows:
    db = sqlite3.connect(":memory:", check_same_thread=False)
    rows, last = RowWriter.new(db, None), None
    for at, engine in inspector.walk(progress, settle=True):
        rows.add(walked_by(engine, at))
        last = engine
    if last is not None:
        rows.finish(last)
    return OpenRows(db, rows.texts.__getitem__, Lives(db))
