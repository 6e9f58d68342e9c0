"""The envelope that every line of a trace carries, as the engine sees it."""

from __future__ import annotations

import msgspec

from ctxctl.model.records import Record


class Event(msgspec.Struct, gc=False, eq=False):
    """One `context_event`: where it is in the file, which step it belongs to, and its typed record.

    Only what replay needs is held; every other field of the line is read again from `offset` when a view
    wants to show it (`Inspector.native`).  Ids are None where the line has none.
    """

    event_type: str = ""
    event_id: str | None = None
    source: str | None = None
    time: str | None = None
    context_id: str | None = None
    session_id: str | None = None
    thread_id: str | None = None
    turn_id: str | None = None
    step_id: str | None = None
    record: Record | None = None
    """The typed `data`; None for event types the engine does not act on."""
    line: int = 0
    """1-based line number."""
    offset: int = 0
    """Byte offset of the line in the (decompressed) trace."""
    length: int = 0
    """Bytes of the line without its line end."""
    task_id: str | None = None
    run_id: str | None = None
    attempt_id: str | None = None

    def may_be_of(self, session: str | None) -> bool:
        """Whether it names a session (None: the unnamed one), or none and so may be of any."""
        return self.session_id is None or (self.session_id or None) == session
