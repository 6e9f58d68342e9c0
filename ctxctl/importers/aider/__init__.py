"""aider: chat histories (``.aider.chat.history.md``) and logs of requests (``--llm-history-file``)."""

from __future__ import annotations

import re
from typing import Final

from ctxctl.ingest.about import About, HeldAgainst, absent, derived, in_totals, native
from ctxctl.ingest.declaration import Format

_STARTED: Final = re.compile(rb"^# aider chat started at \d{4}-\d\d-\d\d", re.MULTILINE)
_TOKENS: Final = re.compile(rb"^> Tokens: [\d.,]+[kM]? sent, .*received", re.MULTILINE)
_VERSION: Final = re.compile(rb"^> Aider v\d", re.MULTILINE)
_TYPED: Final = re.compile(rb"^#### \S", re.MULTILINE)
_REQUEST: Final = re.compile(rb"^TO LLM \d{4}-\d\d-\d\dT[\d:]+\r?\n-------", re.MULTILINE)

ABOUT: Final = About(
    reads="A chat history in Markdown, or the log of what was sent to the model and what came back.",
    places=(".aider.chat.history.md", "aider --llm-history-file .aider.llm.history"),
    turns="A turn is what was typed (`#### `); a request is told by the prose that answers it, and in "
    "the log by `TO LLM`.",
    claims={
        "sources": native("files that were added to the chat"),
        "system_prompt": native("in the log of requests"),
        "messages": native(),
        "reminders": native("which files are in the chat; their text in the log of requests only"),
        "item_ids": derived(),
        "order": derived("the log of requests holds it natively"),
        "requests": derived("the log of requests holds them natively"),
        "turns": derived("counted"),
        "threads": derived("a session is what one start of the program set off"),
        "model": native("the one that the program started with"),
        "times": native("of the session's start, in local time"),
        "input_tokens": derived("as printed, maybe aider's own count; rounded ones are the turn's total"),
        "output_tokens": derived("so too"),
        "cached_tokens": in_totals("as printed"),
        "tool_definitions": absent(),
        "compaction": absent("older messages are summarised silently"),
        "summary": absent("only that a restored history was too long to be sent as it is"),
        "limit": absent(),
    },
    limits=(
        "A chat history lacks the system prompt, the repository map, the text of files, and what aider has "
        "the model answer to them.",
        "A history that was restored is in the window as aider reads it back; a long one as the summary "
        "that aider has written of it, whose text is not recorded.",
        "The requests that write commit messages and summaries are in neither.",
        "Commands that the program answers itself are left out.",
        "What the program asks of the model by itself (a linter's findings) shows only where it was typed.",
    ),
    origin="Aider-AI/aider 0.2x to 0.86: io.py, utils.py, coders/base_coder.py; 0.86.2 held "
    "against its requests",
    held_against=HeldAgainst(client="aider", newest="0.86.2"),
)


def detect(head: bytes) -> int:
    """How sure the beginning looks like a history; headings and quotes alone are no sign."""
    if is_log(head):
        return 95
    if _STARTED.search(head) is not None:
        return 95
    typed = _TYPED.search(head) is not None
    return 85 if typed and (_TOKENS.search(head) or _VERSION.search(head)) else 0


def is_log(head: bytes) -> bool:
    """Whether a file is the log of what went to the model."""
    return _REQUEST.search(head) is not None


FORMAT: Final = Format(
    name="aider",
    title="aider chat history",
    detect=detect,
    reader="ctxctl.importers.aider.reader:read",
    about=ABOUT,
)
