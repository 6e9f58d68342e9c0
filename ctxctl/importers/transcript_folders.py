"""Which files of a directory with transcripts of Claude Code are captures: those, and others between them.

Its directories hold many sessions, each in a file that is read with what lies beside it in a directory of
that name: transcripts of sub-agents, results of tools.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final, NamedTuple

from ctxctl.importers.claude_code import main_transcripts

if TYPE_CHECKING:
    from ctxctl.ingest.declaration import Format
    from ctxctl.ingest.folder import Folder

APART: Final = "claude-code"
"""The format of transcripts."""
_HEAD: Final = 16 << 10
"""Bytes of a transcript that tell that it is one."""


class KnownFile(NamedTuple):
    """A file that was found to be a capture before."""

    format: str
    unchanged: bool


def is_mixed(
    folder: Folder,
    whole: Format,
    format_in: Callable[[Folder, str], str | None],
    known: Callable[[str], KnownFile | None] = lambda _: None,
) -> bool:
    """Whether a directory that looks like one of transcripts holds something of another format too: a folder
    of formats looks like that of the first of them.

    Args:
        folder: The directory.
        whole: What it looks like.
        format_in: The format of one of its files (`registry.format_in`).
        known: What is known of a file: an unchanged one is not looked at.
    """
    if whole.name != APART:
        return False
    mains = set(main_transcripts(folder.files))
    for name in folder.files:
        if name not in mains and (is_beside(name, mains) or _is_sub_agent(name)):
            continue
        before = known(name)
        if before is not None and before.unchanged:
            if before.format != APART:
                return True
        elif name in mains:
            if whole.detect(folder.head(name, _HEAD)) == 0:
                return True
        elif format_in(folder, name) not in (None, APART):
            return True
    return False


def is_beside(name: str, mains: Collection[str]) -> bool:
    """Whether a file or directory lies in a transcript's own directory, or is it."""
    parts = name.split("/")
    return any("/".join(parts[:depth]) + ".jsonl" in mains for depth in range(1, len(parts) + 1))


def _is_sub_agent(name: str) -> bool:
    return "subagents/" in name and name.endswith(".jsonl")


def whole_sessions(found: Collection[tuple[str, str]]) -> set[str]:
    """Of files or directories, by name and format, those that are not a part of one of the transcripts."""
    mains = set(main_transcripts(name for name, kind in found if kind == APART))
    return {name for name, kind in found if (name in mains if kind == APART else not is_beside(name, mains))}
