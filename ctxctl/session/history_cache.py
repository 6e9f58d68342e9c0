"""The item history of a trace: from memory, from a file in the user's cache, or by one replay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxctl.session.cache_key import made_under
from ctxctl.session.history import ItemHistory
from ctxctl.session.history_file import load_history, save_history

if TYPE_CHECKING:
    from ctxctl.session.facade import Inspector, Progress


def item_history_of(inspector: Inspector, progress: Progress | None = None) -> ItemHistory:
    """What became of every item of a trace; the first call may replay the trace, and keeps the outline."""
    known, source = inspector.item_history, inspector.trace.source
    if known is None or known.covered != source.size:
        key = made_under(inspector.params, inspector.strategy, inspector.edits)
        known = load_history(source, key) if key is not None else None
        if known is None and key is not None and inspector.kept_replay() is not None:
            known = load_history(source, key)  # a replay that was gone on with has written it
        if known is None:
            inspector.outline(progress)
            known = inspector.item_history
            if known is None or known.covered != source.size:  # outlined in another way, or grown meanwhile
                known = _walked(inspector, progress)
            sound = inspector.problem_count == len(inspector.opened.problems)
            if key is not None and known.covered == source.size and sound:
                save_history(source, key, known)
        inspector.item_history = known
    return known


def _walked(inspector: Inspector, progress: Progress | None) -> ItemHistory:
    size = inspector.trace.source.size
    found = ItemHistory()
    for at, engine in inspector.walk(progress):
        for _ in found.noting((at.step,), engine):
            last = engine
    return found.finish(last, size) if len(found) else found
