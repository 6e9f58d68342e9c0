"""Addresses of frames: ``[SESSION/][THREAD:]TURN[.STEP]`` (DESIGN section 1)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ctxctl.errors import UsageError
from ctxctl.model.vocab import MAIN_THREAD
from ctxctl.trace.index import Span

_ADDRESS = re.compile(
    r"(?:(?P<session>.+)/)?(?:(?P<thread>[^/]+):)?(?P<turn>-?\d{1,18})(?:\.(?P<step>-?\d{1,18}))?",
    re.DOTALL | re.ASCII,
)
_HINT = (
    "an address is [SESSION/][THREAD:]TURN[.STEP], for example 3, 3.2, -1 or explorer:2, or ctx:CONTEXT_ID"
)
CONTEXT = "ctx:"


def named(address: str, spans: Sequence[Span]) -> str | None:
    """The id that an address goes by in place of numbers: `ctx:ID`, or an id alone; None for numbers.

    A thread that is called `ctx` is still found by its turns.
    """
    if address.startswith(CONTEXT) and len(address) > len(CONTEXT):
        match = _ADDRESS.fullmatch(address)
        if match is None or all(span.thread != "ctx" for span in spans):
            return address[len(CONTEXT) :]
    return None if _ADDRESS.fullmatch(address) else address


def resolve(address: str, spans: Sequence[Span]) -> int:
    """The ordinal of the step that an address names.

    Turns and steps count from 1, negative ones from the end; without a step it is the turn's last.  Raises
    UsageError: `bad-address`, `no-such-frame`, or `ambiguous-session` where the trace holds several.
    """
    match = _ADDRESS.fullmatch(address)
    if match is None:
        raise UsageError("bad-address", f"{address!r} is not an address of a frame", hint=_HINT)
    found = _thread(address, match["session"], match["thread"], spans)
    turns = list(dict.fromkeys(span.turn for _, span in found))
    turn = _counted(int(match["turn"]), turns, address, "turn")
    steps = {span.step: ordinal for ordinal, span in found if span.turn == turn}
    if match["step"] is None:
        return max(steps.values())
    return steps[_counted(int(match["step"]), list(steps), address, f"step in turn {turn}")]


def _thread(
    address: str, session: str | None, thread: str | None, spans: Sequence[Span]
) -> list[tuple[int, Span]]:
    """The steps, with their ordinals, of the one thread that an address speaks of."""
    sessions = list(dict.fromkeys(span.session for span in spans))
    if session is None and len(sessions) > 1:
        names = ", ".join(str(name) for name in sessions[:8])
        raise UsageError(
            "ambiguous-session", f"the trace holds {len(sessions)} sessions; {address!r} names none",
            hint=f"write SESSION/{address}; there are: {names}",
        )  # fmt: skip
    wanted = session if session is not None else sessions[0] if sessions else None
    mine = [(ordinal, span) for ordinal, span in enumerate(spans) if span.session == wanted]
    if not mine:
        names = ", ".join(str(name) for name in sessions[:8])
        raise UsageError("no-such-frame", f"no session is called {session!r}", hint=f"there are: {names}")
    threads = list(dict.fromkeys(span.thread for _, span in mine))
    name = thread
    if name is None:
        name = MAIN_THREAD if MAIN_THREAD in threads else threads[0]
    found = [(ordinal, span) for ordinal, span in mine if span.thread == name]
    if not found:
        names = ", ".join(threads[:8])
        raise UsageError("no-such-frame", f"no thread is called {name!r}", hint=f"there are: {names}")
    return found


def _counted(number: int, known: list[int], address: str, what: str) -> int:
    """A 1-based or negative number as one that exists."""
    if number < 0 and -number <= len(known):
        return known[number]
    if number in known:
        return number
    raise UsageError(
        "no-such-frame",
        f"{address!r}: no such {what}",
        hint=f"there are {len(known)}, from {known[0]} to {known[-1]}",
    )
