"""How a command declares its parameters and how it ends, without the parser that reads them.

A parameter is `Annotated` with an `Option` or an `Argument`; `ordinary` reads most command lines by these,
and `app` hands them to Typer, which is slow to import.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Completion = Callable[[str], list[str]]


class Done(Exception):  # noqa: N818 - it is no error
    """A command is done; its exit code (`errors.Exit`)."""

    def __init__(self, code: int = 0) -> None:
        self.code = code


class Argument:
    """A parameter by its place."""

    def __init__(
        self, *, metavar: str | None = None, help: str | None = None, show_default: bool = True,  # noqa: A002
        autocompletion: Completion | None = None,
    ) -> None:  # fmt: skip
        self.help = help
        self.said: dict[str, Any] = {
            "metavar": metavar, "help": help, "show_default": show_default, "autocompletion": autocompletion,
        }  # fmt: skip
        """All of it, by Typer's names."""


class Option:
    """A parameter by its flags; of a number, with the least and the greatest it may be.

    A hidden one is an old spelling: understood, and in no help.
    """

    def __init__(
        self, *flags: str, metavar: str | None = None, help: str | None = None, show_default: bool = True,  # noqa: A002
        autocompletion: Completion | None = None, min: float | None = None, max: float | None = None,  # noqa: A002
        hidden: bool = False,
    ) -> None:  # fmt: skip
        self.flags = flags
        self.help = help
        self.said: dict[str, Any] = {
            "metavar": metavar, "help": help, "show_default": show_default, "autocompletion": autocompletion,
            "min": min, "max": max, "hidden": hidden,
        }  # fmt: skip
        """All but the flags, by Typer's names."""
