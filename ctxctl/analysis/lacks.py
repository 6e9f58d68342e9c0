"""What a converted capture is known to hold nothing of, without a replay of all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxctl.analysis.frame_pair import several_sessions
from ctxctl.model.records import Fidelity

if TYPE_CHECKING:
    from ctxctl.session.facade import Inspector


def fidelity_of(inspector: Inspector) -> tuple[Fidelity, ...]:
    """What the imports of a trace measured: from its replay where that is over, else by its last lines.

    An import ends with its measure, so the lines of the last step hold that of a trace of one session.  Empty
    where nothing was measured or, of several sessions, where the trace has not been replayed yet.
    """
    if inspector.summary is not None:
        return inspector.summary.fidelity
    spans = inspector.places().spans
    if not spans or several_sessions(inspector):
        return ()
    last = max(spans, key=lambda span: span.start)
    events = inspector.trace.events(last.start, last.line, None)
    return tuple(event.record for event in events if isinstance(event.record, Fidelity))
