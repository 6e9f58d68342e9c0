"""Arguments that look like options: ``-@3``, a frame of standard input, and ``-has:x``, a predicate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctxctl.session.naming import NamedPlace

_SHIELD = "\0"
"""In front of ``-@3``, which the parser would take for an option; no argument of a process can hold it."""
_TAKE_FRAMES = ("show", "diff", "blame", "why")


_TAKE_PREDICATES = ("find", "bisect")


def shielded(arguments: Sequence[str]) -> list[str]:
    """The arguments of a command line with frames of standard input, and predicates that begin with a minus,
    made recognisable as arguments.
    """
    if arguments and arguments[0] in _TAKE_PREDICATES:
        return [_SHIELD + argument if _negates(argument) else argument for argument in arguments]
    if not arguments or arguments[0] not in _TAKE_FRAMES:
        return list(arguments)
    return [_SHIELD + argument if argument.startswith("-@") else argument for argument in arguments]


def _negates(argument: str) -> bool:
    """Whether it is a predicate such as ``-has:x``, and no option: those have two dashes, but for ``-h``."""
    return len(argument) > 2 and argument[0] == "-" and argument[1] != "-"


def plain(argument: str) -> str:
    """An argument as it was before `shielded`."""
    return argument.removeprefix(_SHIELD)


def split(argument: str, *, same: str | None = None) -> NamedPlace:
    """As `naming.split`, of an argument as `shielded` left it."""
    from ctxctl.session import naming

    return naming.split_name(argument.removeprefix(_SHIELD), same=same)
