"""Taking ``TRACE@ADDRESS`` apart: file names may hold an `@`, and so may sessions and threads."""

from __future__ import annotations

import os
from typing import Final, NamedTuple

from ctxctl.errors import UsageError

_LONGEST: Final = 1000
_HINT: Final = "an address is [SESSION/][THREAD:]TURN[.STEP]"


class NamedPlace(NamedTuple):
    """A trace and, if one was named, a frame in it."""

    trace: str
    address: str | None


def split_name(argument: str, *, same: str | None = None) -> NamedPlace:
    """The trace and the address in one argument.

    A file of that very name wins; else the longest beginning before an `@` that is a file (or `-`); else the
    last `@` divides.  A bare ``@…`` means the trace `same`.
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
            f"nothing after the @ in {argument!r}",
            hint=_HINT,
        )
    if len(address) > _LONGEST:
        raise UsageError("bad-address", f"an address of {len(address):,} characters", hint=_HINT)
    return address
