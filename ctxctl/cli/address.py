"""Frames of standard input on a command line: ``-@3`` looks like an option."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctxctl.inspector.naming import Place

_SHIELD = "\0"
"""In front of ``-@3``, which the parser would take for an option; no argument of a process can hold it."""
_TAKE_FRAMES = ("show", "diff")


def shielded(arguments: Sequence[str]) -> list[str]:
    """The arguments of a command line with frames of standard input made recognisable as arguments."""
    if not arguments or arguments[0] not in _TAKE_FRAMES:
        return list(arguments)
    return [_SHIELD + argument if argument.startswith("-@") else argument for argument in arguments]


def split(argument: str, *, same: str | None = None) -> Place:
    """As `naming.split`, of an argument as `shielded` left it."""
    from ctxctl.inspector import naming

    return naming.split(argument.removeprefix(_SHIELD), same=same)
