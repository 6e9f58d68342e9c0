"""iFlow CLI transcripts: ``~/.iflow/projects/<project>/session-<id>.jsonl``.

The lines look like Claude Code's, but the parents are none: every line of an answer names the prompt.  What
follows what is told by the order of the file.
"""

from __future__ import annotations

from typing import Any, Final

from ctxctl.ingest.about import About, HeldAgainst, absent, derived, native
from ctxctl.ingest.build import Json
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.folder import Folder
from ctxctl.ingest.skim import first_lines

ABOUT: Final = About(
    reads="A session of iFlow CLI: one line is a prompt, a tool's result, or a stretch of an answer.",
    places=(
        "~/.iflow/projects/<project>/session-<id>.jsonl",
        "~/.iflow/projects/<project>/ (all sessions of a project)",
    ),
    turns="A turn is what one prompt sets off; a step is one answer: the lines between two of the user's.",
    claims={
        "item_ids": native("uuid of the line, id of the tool call"),
        "messages": native("lines of an answer overlap: a call that was there before is the same"),
        "reasoning": absent(),
        "reminders": native("those in tool results"),
        "order": derived("the order of the file; all parents point at the prompt"),
        "requests": derived("an answer ends where the user's next line begins"),
        "turns": derived("a prompt is a user line with text and without results"),
        "model": native(),
        "times": native(),
        "input_tokens": native("of many models 0, which is none"),
        "output_tokens": native("of many models 0, which is none"),
        "cached_tokens": absent(),
        "system_prompt": absent(),
        "tool_definitions": absent(),
        "compaction": absent("how a compacted history is marked is not known"),
        "limit": absent(),
    },
    limits=("sub-agents (`task`) write no lines of their own: their result is all that is there",),
    origin="the shape of transcripts of version 1.0.0",
    held_against=HeldAgainst("iFlow CLI", "1.0.0", records=frozenset({"user", "assistant"})),
)
_LINES: Final = 20
_HEAD: Final = 64 * 1024
_LOOKED: Final = 3
_SURE: Final = 98
"""A higher score than Claude Code's own importer gives such lines."""
_PREFIX: Final = "session-"
_KEYS: Final = ("uuid", "parentUuid", "userType")


def detect(head: bytes) -> int:
    """How sure the first lines look like such a transcript's; 0 for Claude Code's own."""
    scores = (
        _by_text(line) if value is None else _by_keys(value) for line, value in first_lines(head, _LINES)
    )
    return max(scores, default=0)


def detect_folder(folder: Folder) -> int:
    """How sure a directory holds such transcripts and nothing else of the kind."""
    names = transcripts(folder)
    looked = [detect(folder.head(name, _HEAD)) for name in names[:_LOOKED]]
    return min(looked, default=0)


def transcripts(folder: Folder) -> list[str]:
    """The files of a directory that may be transcripts."""
    return [name for name in folder.files if name.endswith(".jsonl")]


def _by_keys(value: Any) -> int:
    if not isinstance(value, dict) or value.get("type") not in ("user", "assistant"):
        return 0
    session = value.get("sessionId")
    if not (isinstance(session, str) and session.startswith(_PREFIX)):
        return _SURE if _is_result(value) and all(key in value for key in _KEYS) else 0
    return _SURE if all(key in value for key in _KEYS) else 0


def _is_result(value: Json) -> bool:
    """Whether a line holds a tool's result in Gemini's own wrapper, as no line of Claude Code does."""
    message = value.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    for block in content if isinstance(content, list) else ():
        inner = block.get("content") if isinstance(block, dict) else None
        if isinstance(inner, dict) and ("functionResponse" in inner or "responseParts" in inner):
            return True
    return False


def _by_text(head: bytes) -> int:
    """The score of a line that is longer than the head, or damaged."""
    marks = b'"parentUuid"' in head and b'"userType"' in head
    return _SURE - 1 if marks and b'"sessionId":"session-' in head.replace(b'": "', b'":"') else 0


FORMAT: Final = Format(
    name="iflow",
    title="iFlow CLI transcript",
    detect=detect,
    reader="ctxctl.importers.iflow.reader:read",
    about=ABOUT,
    detect_folder=detect_folder,
    folder_reader="ctxctl.importers.iflow.reader:read_folder",
)
