"""How places of a trace are written: ``[SESSION/][THREAD:]TURN[.STEP]``, `/` and `:` in names doubled."""

from __future__ import annotations

from ctxctl.model.vocab import MAIN_THREAD


def escaped(name: str) -> str:
    """A session's or thread's name as it stands in an address."""
    return name.replace("/", "//").replace(":", "::")


def prefix(thread: str, session: str | None = None) -> str:
    """What stands in front of a turn in an address; empty for the main thread where no session is needed.

    Raw, as it can be typed: what shows it on a terminal puts it through `text.visible`.  `session`: None
    where the trace holds one only.
    """
    named = "" if thread == MAIN_THREAD else f"{escaped(thread)}:"
    return named if session is None else f"{escaped(session)}/{named}"
