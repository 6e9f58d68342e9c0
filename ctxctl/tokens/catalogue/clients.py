"""Windows that a client opens by its own rule, smaller than its provider's; read in the client's source.

`docs/limits.md` says which versions were read.  Between two that were read a rule holds where both have it.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ctxctl.tokens.catalogue.names import large_window, spellings

_NUMBERS: Final = re.compile(r"v?(\d{1,6})\.(\d{1,6})\.(\d{1,6})(?:$|[-+. ])")
_USUAL: Final = 200_000
CLAUDE_CODE: Final = frozenset(("claude-code", "claude-stream-json", "claude-sdk-log"))
"""Formats that Claude Code writes."""
SERVED_BY: Final = {
    "copilot-chat": "github-copilot",
    "copilot-chatreplay": "github-copilot",
    "copilot-cli": "github-copilot",
    "copilot-snapshots": "github-copilot",
}
"""By format, who serves its models where the capture names nobody: with other windows than their makers."""
_ALL_BEFORE: Final = (2, 1, 80)
"""Claude Code 2.0.30 to 2.1.74 open 200,000 for every model, unless its name asks for a million."""
_FIRST_READ: Final = (2, 0, 30)
SMALL: Final = frozenset(
    (
        "claude-sonnet-4",
        "claude-sonnet-4-0",
        "claude-sonnet-4-5",
        "claude-sonnet-4-6",
        "claude-opus-4-0",
        "claude-opus-4-1",
        "claude-opus-4-5",
        "claude-opus-4-6",
        "claude-haiku-4-5",
        "claude-3-5-haiku",
    )
)
"""Models that 2.1.330 opens with 200,000 too, unless their names ask for a million."""
LARGE: Final = frozenset(
    (
        "claude-fable-5",
        "claude-fable-5-1",
        "claude-fable-5-2",
        "claude-haiku-5-5",
        "claude-mythos-5",
        "claude-mythos-5-1",
        "claude-mythos-5-2",
        "claude-opus-4-7",
        "claude-opus-4-8",
        "claude-opus-5",
        "claude-opus-5-5",
        "claude-sonnet-5",
        "claude-sonnet-5-5",
    )
)
"""Models that 2.1.330 opens with a million without being asked for it."""
_LARGE_SINCE: Final = (2, 1, 330)
_MILLION: Final = 1_000_000


class ClientWindow(NamedTuple):
    """A window in tokens and one sentence of who opens it."""

    window: int
    note: str


def numbers(version: str | None) -> tuple[int, int, int] | None:
    """The three numbers of a version; None where it is not one."""
    found = _NUMBERS.match(version.strip()) if version is not None else None
    return (int(found[1]), int(found[2]), int(found[3])) if found is not None else None


def client_window(runtime: str | None, version: str | None, model: str) -> ClientWindow | None:
    """The window that a client opens for a model; None: none is known but the provider's."""
    release = numbers(version)
    if runtime not in CLAUDE_CODE or release is None or release < _FIRST_READ or large_window(model):
        return None
    names = [spelling.name for spelling in spellings(model)]
    if not any(name.startswith("claude") for name in names):
        return None
    shown = f"Claude Code {'.'.join(map(str, release))}"
    if release >= _LARGE_SINCE and not LARGE.isdisjoint(names):
        note = (
            f"{_MILLION:,} by {shown}, which opens that for this model unless account or settings forbid it."
        )
        return ClientWindow(_MILLION, note)
    if release >= _ALL_BEFORE and SMALL.isdisjoint(names):
        return None
    return ClientWindow(
        _USUAL,
        f"{_USUAL:,} by {shown}, which opens that for this model unless a million is asked for ([1m]); its "
        "log does not say whether it was.",
    )
