"""What the command line supposes: limits in tokens, items that are dropped, texts that are set."""

from __future__ import annotations

import os
import sys
from typing import Final

from ctxctl.errors import UsageError
from ctxctl.model.whatif import Limits, Replacement, parse_tokens

MOST_BYTES: Final = 16 << 20
"""Size at most of a text that is set; no model has a window for more."""


def limits(window: str | None, reserve: str | None, max_input: str | None) -> Limits:
    """Limits to suppose, as they were typed; raises UsageError("bad-limit")."""

    def tokens(option: str, typed: str | None, least: int) -> int | None:
        try:
            return None if typed is None else parse_tokens(typed, least=least)
        except ValueError as error:
            shown = (typed or "")[:80]
            raise UsageError("bad-limit", f"{option} must be {error}, not {shown!r}") from None

    return Limits(
        tokens("--window", window, 1), tokens("--reserve", reserve, 0), tokens("--max-input", max_input, 1)
    )


def replacements(typed: list[str] | None, trace: str) -> tuple[Replacement, ...]:
    """Texts to set, read from their files; raises UsageError("bad-set")."""
    found = []
    stdin = trace == "-"
    for one in typed or ():
        item, equals, path = one.rpartition("=")
        if not (equals and item and path):
            raise UsageError(
                "bad-set",
                f"--set {one[:80]!r} does not name an item and a file",
                hint="write ITEM=FILE; the last = separates them",
            )
        if path == "-":
            if stdin:
                whose = "the trace" if trace == "-" else "another --set"
                raise UsageError("bad-set", f"--set {one[:80]!r}: {whose} already reads standard input")
            stdin = True
        found.append(Replacement(item, _text(path), os.path.basename(path) or path))
    return tuple(found)


def _text(path: str) -> str:
    """A file's text, byte for byte."""
    try:
        if path == "-":
            data = sys.stdin.buffer.read(MOST_BYTES + 1)
        else:
            with open(path, "rb") as file:
                data = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        why = (getattr(error, "strerror", None) or str(error)).lower()
        raise UsageError("bad-set", f"--set cannot read {path[:200]!r}: {why}") from None
    if len(data) > MOST_BYTES:
        raise UsageError("bad-set", f"--set {path[:200]!r} is larger than {MOST_BYTES >> 20} MiB")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise UsageError(
            "bad-set", f"--set {path[:200]!r} is not UTF-8: byte {error.start} cannot be read"
        ) from None
