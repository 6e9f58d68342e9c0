"""Parse frames as named on a command line, ``TRACE@ADDRESS``, and find the frame that is meant.

Names of files, sessions and threads may contain an `@`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, NamedTuple

from ctxctl.errors import UsageError
from ctxctl.model.addresses import escaped
from ctxctl.session.addresses import default_thread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctxctl.session.facade import Inspector
    from ctxctl.trace.index import Span

_LONGEST: Final = 1000
_HINT: Final = "an address is [SESSION/][THREAD:]TURN[.STEP]"


class NamedPlace(NamedTuple):
    """A trace and, if one was named, a frame in it."""

    trace: str
    address: str | None


def split_name(argument: str, *, same: str | None = None) -> NamedPlace:
    """Return the trace and the address in one argument.

    A file of exactly that name takes precedence; else the longest beginning before an `@` that is a file (or
    `-`); else the last `@` divides. A bare ``@…`` means the trace `same`.
    """
    if same is not None and argument.startswith("@") and not os.path.exists(argument):
        return NamedPlace(same, _address(argument, argument[1:]))
    if "@" not in argument or os.path.exists(argument):
        return NamedPlace(argument, None)
    at = argument.rfind("@")
    last = at
    while at > 0:
        if argument[:at] == "-" or os.path.exists(argument[:at]):
            return NamedPlace(argument[:at], _address(argument, argument[at + 1 :]))
        at = argument.rfind("@", 0, at)
    if last == 0:
        raise UsageError(
            "no-trace",
            f"{argument!r} names a frame but no trace",
            hint="write TRACE@3, for example run.jsonl@3",
        )
    return NamedPlace(argument[:last], _address(argument, argument[last + 1 :]))


def _address(argument: str, address: str) -> str:
    if not address:
        raise UsageError(
            "bad-address",
            f"{argument!r} has nothing after the @",
            hint=_HINT,
        )
    if len(address) > _LONGEST:
        raise UsageError(
            "bad-address", f"the address has {len(address):,} characters, which is too many", hint=_HINT
        )
    return address


def _last_of_main(spans: Sequence[Span]) -> int:
    """Return the ordinal of the main thread's last frame, in the session of the last frame. Without a main
    thread, the session's first thread is used."""
    session = spans[-1].session
    mine = [(ordinal, span.thread) for ordinal, span in enumerate(spans) if span.session == session]
    main = default_thread([thread for _, thread in mine])
    return max(ordinal for ordinal, thread in mine if thread == main)


def locate(inspector: Inspector, address: str | None, turn: str | None, thread: str | None) -> int:
    """Return the ordinal of the frame of an address, or of ``--turn`` and ``--thread``.

    By default it is the last frame of the thread, or of the main thread of the trace's last session, not of a
    sub-agent that ended later. Raises UsageError: `bad-address` if both name a turn, `no-such-frame`, and
    what `Inspector.resolve` raises.
    """
    if address is not None:
        if turn is not None:
            raise UsageError(
                "bad-address",
                f"the address (@{address}) and --turn {turn} cannot be combined",
                hint="give one of them",
            )
        return inspector.resolve(
            f"{escaped(thread)}:{address}" if thread is not None and ":" not in address else address
        )
    if turn is None and thread is None:
        rows = inspector.places().spans
        if not rows:
            raise UsageError("no-such-frame", "the trace has no steps", hint="`ctxctl validate` checks it")
        return _last_of_main(rows)
    return inspector.resolve(f"{escaped(thread)}:{turn or -1}" if thread is not None else str(turn))
