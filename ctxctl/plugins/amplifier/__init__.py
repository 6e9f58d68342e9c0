"""Microsoft Amplifier: event logs, transcripts, and the session directories that hold both.

``events.jsonl`` is written by hooks-logging, by hook-context-intelligence in another envelope, or by both;
with ``raw: true`` in the provider's configuration each ``llm:request`` holds the body.
"""

from __future__ import annotations

from typing import Final

from ctxctl.ingest.about import About, HeldAgainst, absent, native
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.folder import Folder
from ctxctl.plugins.amplifier import detection

_ABOUT: Final = About(
    reads="Amplifier's events.jsonl (schema amplifier.log 1.0.0, the envelope of context-intelligence, and "
    "one with `type`), transcript.jsonl, context-messages.jsonl, and session directories of these.",
    places=(
        "~/.amplifier/projects/SLUG/sessions/ID/events.jsonl",
        "~/.amplifier/projects/SLUG/sessions/ID/context-intelligence/events.jsonl",
        "~/.amplifier/projects/SLUG/sessions/ID/{transcript,context-messages}.jsonl",
        "~/.amplifier-agent/state/workspaces/WORKSPACE/sessions/ID/",
    ),
    turns="A turn begins with `prompt:submit`; a step is one `llm:request`, or where a log has none, an "
    "answer. In a transcript a turn begins with a message that no hook wrote; each answer had a request.",
    claims={
        "sources": native("files of the system prompt from `mentions:resolved`; hooks name their reminders"),
        "item_ids": native(
            "tool calls, files and named reminders; other messages are told apart by their text"
        ),
        "limit": native("`context:budget`, which the default configuration does not log"),
        "reserved": native("`context:budget`"),
        "truncation": native("tool results and stubs in a request's body"),
        "system_prompt": native("in a request's body (raw: true), or in context-messages.jsonl"),
        "tool_definitions": native("in a request's body (raw: true)"),
        "messages": native("in a request's body, else from events or the transcript"),
        "reasoning": native("as far as the provider shows it"),
        "reminders": native("in a request's body; no event tells of them"),
        "compaction": native("counts; what left can be told where bodies are logged"),
        "summary": absent("context-simple removes and cuts, and does not summarise"),
        "order": native("derived without bodies"),
        "wrapper": native("in a request's body"),
        "requests": native("derived from a transcript"),
        "turns": native("there are no ids; numbered in order"),
        "threads": native("a sub-agent is a session that names its parent"),
        "model": native(),
        "times": native("may be masked by hooks-redaction"),
        "input_tokens": native(),
        "cached_tokens": native(),
        "output_tokens": native(),
    },
    limits=(
        "Without bodies, one item stands for all that a compaction leaves: which messages is not logged.",
        "A compaction that no request follows is left out: no model saw its view.",
        "What hooks-redaction masked is shown masked; the model saw the original.",
        "Streamed deltas are not read; the finished blocks are.",
    ),
    held_against=HeldAgainst("amplifier.log", "1.0.0", "1.0.0", detection.KNOWN, key=""),
    origin="amplifier-core 2.0.2 and its modules context-simple, hooks-logging, loop-streaming, loop-basic, "
    "provider-anthropic and provider-openai of 2026; captures of them.",
)


def detect(head: bytes) -> int:
    """How sure the first lines are events or messages of Amplifier."""
    return max(detection.log_score(head), detection.transcript_score(head), detection.metadata_score(head))


def detect_folder(folder: Folder) -> int:
    """How sure the directory holds Amplifier's sessions and nothing else."""
    from ctxctl.plugins.amplifier import folder as folders

    return folders.detect(folder)


FORMAT: Final = Format(
    name="amplifier",
    title="Amplifier session",
    detect=detect,
    reader="ctxctl.plugins.amplifier.reader:read",
    about=_ABOUT,
    detect_folder=detect_folder,
    folder_reader="ctxctl.plugins.amplifier.folder:events",
)
