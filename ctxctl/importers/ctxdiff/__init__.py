"""ctxdiff's traces: SQLite databases of runs, their calls, and the blocks that each call carried."""

from __future__ import annotations

from typing import Final

from ctxctl.ingest.about import About, HeldAgainst, absent, derived, native
from ctxctl.ingest.declaration import Format

_SQLITE: Final = b"SQLite format 3\0"
_TABLES: Final = (b"ctxdiff_version", b"call_block", b"content_hash", b"schema_version")
_SURE: Final = 96

ABOUT: Final = About(
    reads="The `.ctrace` files of ctxdiff, schema 1 and 2: every run of a project is a session.",
    places=("PROJECT.ctrace, where the traced program ran",),
    turns="One step is one call; a turn begins where the last block of a call is the user's own.",
    claims={
        "item_ids": native("of tools and tool calls; other blocks are aligned by content"),
        "system_prompt": native(),
        "tool_definitions": native("as JSON with sorted keys"),
        "messages": native(
            "parts that are no text as JSON with sorted keys; answers once they are sent back"
        ),
        "reasoning": native("where a client sends it back"),
        "order": native(
            "as ctxdiff lists the request: OpenAI's tools in front, Anthropic's behind the system prompt"
        ),
        "requests": native(),
        "turns": derived("from the last block of each call"),
        "threads": native("the agent that a call is attributed to"),
        "model": native(),
        "times": native("of a run's beginning; calls have none"),
        "input_tokens": native(
            "not of Anthropic and Bedrock where prompts are cached: the cached part is not there"
        ),
        "cached_tokens": absent("ctxdiff takes two counts of a bill"),
        "output_tokens": native(),
    },
    limits=(
        "An answer is there once the next request carries it; the last one is not recorded.",
        "An image is its size and a digest.",
        "What a redaction hook changed is shown as it was changed; the model saw the original.",
        "Stores in PostgreSQL and MySQL are not read.",
    ),
    held_against=HeldAgainst(client="ctxdiff", newest="0.5.1"),
    origin="ctxdiff 0.5.1 (PyPI): store/schema.py, capture/, images.py; traces written by it",
)


def detect(head: bytes) -> int:
    """How sure a database is one of ctxdiff's, by its tables."""
    return _SURE if head.startswith(_SQLITE) and all(mark in head for mark in _TABLES) else 0


FORMAT: Final = Format(
    name="ctxdiff",
    title="ctxdiff trace",
    detect=detect,
    reader="ctxctl.importers.ctxdiff.reader:events",
    about=ABOUT,
)
