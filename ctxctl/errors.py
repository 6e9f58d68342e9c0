"""Everything ctxctl raises on purpose, and the exit codes that go with it.

An error carries a `slug` (the heading of its entry in ``docs/messages.md``), a `hint` that says what to do
next, and the process exit code it maps to.  Anything else that escapes is a bug.
"""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Process exit codes; they are an interface (``docs/cli.md``)."""

    OK = 0
    FINDINGS = 1
    USAGE = 2
    UNREADABLE = 3
    UNAVAILABLE = 4
    INTERRUPTED = 130


class CtxctlError(Exception):
    """A failure with a message for the user; `str(error)` is one line without the hint."""

    exit_code: Exit = Exit.UNREADABLE

    def __init__(self, slug: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.slug = slug
        self.message = message
        self.hint = hint


class UsageError(CtxctlError):
    """The command line or a setting asks for something that does not exist."""

    exit_code = Exit.USAGE


class UnreadableError(CtxctlError):
    """The input cannot be read at all, or holds no readable event."""

    exit_code = Exit.UNREADABLE


class UnavailableError(CtxctlError):
    """What was asked needs an optional package or data that is not here."""

    exit_code = Exit.UNAVAILABLE


class PluginError(CtxctlError):
    """Code of a plug-in raised where it should not; the error that it raised is the cause."""

    exit_code = Exit.UNAVAILABLE
