"""Which client, and which version of it, wrote a log."""

from __future__ import annotations

import re
from typing import Final

from ctxctl.formats.kit.folder import Folder
from ctxctl.trace.source import Source

_HEAD: Final = 1 << 20
_SAID: Final[dict[str, tuple[re.Pattern[bytes], ...]]] = {
    "claude-code": (re.compile(rb'"version"\s*:\s*"(\d+\.\d+[0-9A-Za-z.+-]*)"'),),
    "codex": (re.compile(rb'"cli_version"\s*:\s*"(\d+\.\d+[0-9A-Za-z.+-]*)"'),),
    "copilot-cli": (re.compile(rb'"copilotVersion"\s*:\s*"(\d+\.\d+[0-9A-Za-z.+-]*)"'),),
    "opencode": (re.compile(rb'"version"\s*:\s*"(\d+\.\d+[0-9A-Za-z.+-]*)"'),),
    "gemini-cli": (re.compile(rb'"cliVersion"\s*:\s*"(\d+\.\d+[0-9A-Za-z.+-]*)"'),),
    "pi": (),
}
"""By client (the name of the log's format): where its logs say its version."""
CLIENTS: Final = tuple(_SAID)
"""Clients whose logs are completed."""


def version_of(client: str, source: Source | Folder) -> str | None:
    """The version that the first megabyte of a log names; None where it says none, or its files differ."""
    if isinstance(source, Folder):
        told = set()
        for name in source.files:
            told.add(_in(client, source.head(name, _HEAD)))
        told.discard(None)
        return told.pop() if len(told) == 1 else None
    head = source.read(0, _HEAD)
    if head.startswith(b"SQLite format 3\0"):
        return _of_database(source) if client == "opencode" else None
    return _in(client, head)


def _in(client: str, head: bytes) -> str | None:
    for pattern in _SAID[client]:
        found = pattern.search(head)
        if found is not None:
            return found[1].decode("ascii", "replace")
    return None


def _of_database(source: Source) -> str | None:
    """The version of opencode's sessions, if it is one."""
    from ctxctl.formats.kit import database  # slow to import

    found = database.rows(source, "SELECT DISTINCT version FROM session", 2)
    return found[0][0] if len(found) == 1 and isinstance(found[0][0], str) else None
