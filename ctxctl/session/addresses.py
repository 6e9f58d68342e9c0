"""Addresses of frames: ``[SESSION/][THREAD:]TURN[.STEP]`` (DESIGN section 1).

`/` and `:` inside of a name are doubled.  An address means the place whose own address is spelled so; it
may also be typed plainly (`main/views:3`) as long as it is no other place's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from ctxctl.errors import UsageError
from ctxctl.model.addresses import escaped
from ctxctl.model.vocab import MAIN_THREAD
from ctxctl.trace.index import Span

_ADDRESS = re.compile(
    r"(?P<place>(?:.*[:/])?)(?P<turn>-?\d{1,18})(?:\.(?P<step>-?\d{1,18}))?", re.DOTALL | re.ASCII
)
_HINT = (
    "an address is [SESSION/][THREAD:]TURN[.STEP], for example 3, 3.2, -1 or explorer:2, or ctx:CONTEXT_ID;"
    " a / or : inside of a name is doubled"
)
CONTEXT = "ctx:"


def address_id(address: str, spans: Sequence[Span]) -> str | None:
    """Return the id that an address is, instead of numbers: `ctx:ID`, or an id alone; None for numbers.

    A thread named `ctx` can still be addressed by its turns.
    """
    if address.startswith(CONTEXT) and len(address) > len(CONTEXT):
        match = _ADDRESS.fullmatch(address)
        if match is None or all(span.thread != "ctx" for span in spans):
            return address[len(CONTEXT) :]
    return None if _ADDRESS.fullmatch(address) else address


def names_step(address: str) -> bool:
    """Return whether an address names one step of a turn, and not only the turn."""
    match = _ADDRESS.fullmatch(address)
    return match is not None and match["step"] is not None


def step_ordinal(address: str, spans: Sequence[Span]) -> int:
    """Return the ordinal of the step that an address names.

    Turns and steps count from 1, negative ones from the end; without a step it is the turn's last.  Raises
    UsageError: `bad-address`, `no-such-frame`, or `ambiguous-session` where the trace holds several.
    """
    match = _ADDRESS.fullmatch(address)
    if match is None:
        raise UsageError("bad-address", f"{address!r} is not an address of a frame", hint=_HINT)
    found = _thread(address, match["place"], spans)
    turns = list(dict.fromkeys(span.turn for _, span in found))
    turn = _counted(int(match["turn"]), turns, address, "turn")
    steps = {span.step: ordinal for ordinal, span in found if span.turn == turn}
    if match["step"] is None:
        return max(steps.values())
    return steps[_counted(int(match["step"]), list(steps), address, f"step in turn {turn}")]


def _thread(address: str, place: str, spans: Sequence[Span]) -> list[tuple[int, Span]]:
    """Return the steps, with their ordinals, of the thread that an address names."""
    threads = list(dict.fromkeys((span.session, span.thread) for span in spans))
    meant = [key for spelled in _SPELLINGS for key in _meant(place, threads, spelled)]
    if not meant:
        raise _no_such(address, place, threads)
    return [(ordinal, span) for ordinal, span in enumerate(spans) if (span.session, span.thread) == meant[0]]


_Key = tuple[str | None, str]


def _as_typed(name: str) -> str:
    return name


_SPELLINGS: Final = (escaped, _as_typed)
"""Spellings of names, the unambiguous one first."""


def _meant(place: str, threads: Sequence[_Key], spelled: Callable[[str], str]) -> Iterator[_Key]:
    """Yield the threads whose name has this spelling, first those whose session the address names."""
    sessions: dict[str | None, list[str]] = {}
    for session, thread in threads:
        sessions.setdefault(session, []).append(thread)
    for session, mine in sessions.items():
        if session is None:
            continue
        before = f"{spelled(session)}/"
        if place == before:
            yield session, default_thread(mine)
        yield from ((session, thread) for thread in mine if place == f"{before}{spelled(thread)}:")
    if len(sessions) == 1:
        (only,) = sessions
        names = [thread for _, thread in threads]
        if not place:
            yield only, default_thread(names)
        yield from ((only, thread) for thread in names if place == f"{spelled(thread)}:")


def default_thread(threads: Sequence[str]) -> str:
    """Return the default thread: the main one, else the first."""
    return MAIN_THREAD if MAIN_THREAD in threads else threads[0]


def _no_such(address: str, place: str, threads: Sequence[_Key]) -> UsageError:
    """Return the error for an address that no step has."""
    sessions = list(dict.fromkeys(session for session, _ in threads))
    names = ", ".join(escaped(str(name)) for name in sessions[:8])
    given = next(
        (
            s
            for s in sessions
            if s is not None
            for spelled in _SPELLINGS
            if place.startswith(f"{spelled(s)}/")
        ),
        None,
    )
    if given is None and len(sessions) > 1 and "/" not in place.replace("//", ""):
        return UsageError(
            "ambiguous-session", f"the trace holds {len(sessions)} sessions; {address!r} names none",
            hint=f"write SESSION/{address}; there are: {names}",
        )  # fmt: skip
    if given is None and "/" in place.replace("//", ""):
        session = place.rpartition("/")[0]
        return UsageError("no-such-frame", f"no session is called {session!r}", hint=f"there are: {names}")
    mine = [thread for session, thread in threads if given is None or session == given]
    names = ", ".join(map(escaped, mine[:8]))
    thread = place.rpartition("/")[2].removesuffix(":") if given is not None else place.removesuffix(":")
    if not mine:
        hint = "`ctxctl validate` checks it"
        return UsageError("no-such-frame", "the trace has no steps", hint=hint)
    return UsageError("no-such-frame", f"no thread is called {thread!r}", hint=f"there are: {names}")


def _counted(number: int, known: list[int], address: str, what: str) -> int:
    """Return a 1-based or negative number as one of the known numbers; raises UsageError("no-such-frame")."""
    if number < 0 and -number <= len(known):
        return known[number]
    if number in known:
        return number
    raise UsageError(
        "no-such-frame",
        f"{address!r}: there is no such {what}",
        hint=f"there are {len(known)}, from {known[0]} to {known[-1]}",
    )
