"""What `ctxctl record` says of the program that it runs: what was set, and what to do if nothing comes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ctxctl.record.clients import Setup

SILENCE: Final = 10.0
"""Seconds without any request after which it is said that nothing came by."""
_PAGE: Final = "docs/recording.md"


def leading(setup: Setup) -> str:
    """What leads to the recorder, in words: the programs that are known, and the names."""
    names = ", ".join(way.variable for way in setup.ways)
    known = " and ".join(found.client.name for found in setup.found)
    return f"{known}: {names}" if known else names


def nothing(setup: Setup | None, *, so_far: bool = False) -> list[str]:
    """What to say where no request came: what was set, and what to do for this program.

    Args:
        setup: Of the program; None: programs were started elsewhere.
        so_far: It is still running.
    """
    when = f" in {SILENCE:.0f} seconds" if so_far else ""
    if setup is None:
        return [f"nothing came by: are the variables above set where the program is started? See {_PAGE}"]
    if setup.found:
        return [
            f"nothing came by{when} from {found.client.name}: {found.client.advice} (see {_PAGE})"
            for found in setup.found
        ]
    names = ", ".join(way.variable for way in setup.ways if way.exported)
    return [
        f"nothing came by{when}: {names} were set, and the program may read another setting",
        "if it reads another variable, give that as --upstream NAME=URL; if it reads a file or a flag, run "
        f"`ctxctl record --proxy` and write the address there (see {_PAGE})",
    ]


def on_terminal() -> bool:
    """Whether the program draws where we would write."""
    try:
        return os.isatty(2) and (os.isatty(1) or os.isatty(0))
    except OSError:
        return False
