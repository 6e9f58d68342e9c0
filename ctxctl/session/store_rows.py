"""The rows of a trace's replay: from its session store, or from one replay in memory."""

from __future__ import annotations

import sqlite3
from collections import deque
from typing import TYPE_CHECKING

from ctxctl.engine.replay.walked import walked_by
from ctxctl.errors import UnreadableError
from ctxctl.store.lives import Lives, OpenRows
from ctxctl.store.reader import PlacementRows
from ctxctl.store.writer import RowWriter
from ctxctl.trace.cache_files import DamagedError

if TYPE_CHECKING:
    from ctxctl.model.content import Content
    from ctxctl.session.facade import Inspector, Progress


def rows_of(inspector: Inspector, progress: Progress | None = None) -> OpenRows:
    """The rows of a trace as it is now; the first call may replay it.  `Inspector.close` closes them.

    Raises UnreadableError("not-in-rows").
    """
    size = inspector.trace.source.size
    if inspector.store_rows is None or inspector.store_rows[0] != size:
        if inspector.keeps_replay():
            deque(inspector.walk(progress, settle=True), 0)
        found = _kept(inspector) or _replayed(inspector, progress)
        if inspector.store_rows is not None:
            inspector.store_rows[1].db.close()
        inspector.store_rows = size, found
    return inspector.store_rows[1]


def lives_of(inspector: Inspector, progress: Progress | None = None) -> Lives:
    """Return the lives of all items of a trace; see `rows_of`."""
    return rows_of(inspector, progress).lives


def _kept(inspector: Inspector) -> OpenRows | None:
    store = inspector.kept_replay()
    if store is None:
        return None
    try:
        db = store.connected()
    except DamagedError:
        inspector.forget_replay()
        return None
    inspector.take_over(store)
    return OpenRows(db, PlacementRows(db, inspector.trace.contents).text, Lives(db))


def _replayed(inspector: Inspector, progress: Progress | None) -> OpenRows:
    db = sqlite3.connect(":memory:", check_same_thread=False)
    texts: list[Content] = []
    rows, last = RowWriter.new(db, inspector.trace.contents, texts), None
    try:
        for at, engine in inspector.walk(progress, settle=True):
            rows.add(walked_by(engine, at))
            last = engine
        if last is not None:
            rows.finish(last)
    except (OverflowError, UnicodeEncodeError) as error:
        db.close()
        raise UnreadableError("not-in-rows", f"a step cannot be a row of SQLite: {error}") from None
    return OpenRows(db, texts.__getitem__, Lives(db))
