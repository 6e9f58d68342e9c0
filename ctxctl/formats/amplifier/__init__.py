"""Microsoft Amplifier: event logs, transcripts, and the session directories that hold both.

``events.jsonl`` is written by hooks-logging, by hook-context-intelligence in another envelope, or by both;
with ``raw: true`` in the provider's configuration each ``llm:request`` holds the body.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ctxctl.formats.amplifier import detecting
from ctxctl.formats.fidelity import About, HeldAgainst, absent, native
from ctxctl.formats.kit.folder import Folder
from ctxctl.formats.lines import Report
from ctxctl.model.problem import Problem
from ctxctl.trace.source import Source

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
    held_against=HeldAgainst("amplifier.log", "1.0.0", "1.0.0", detecting.KNOWN, key=""),
    origin="amplifier-core 2.0.2 and its modules context-simple, hooks-logging, loop-streaming, loop-basic, "
    "provider-anthropic and provider-openai of 2026; captures of them.",
)


class Amplifier:
    """The importer for Amplifier's logs, transcripts and session directories."""

    name: str = "amplifier"
    title: str = "Amplifier session"
    default_policy: str = "recorded"
    about: About = _ABOUT

    def detect(self, head: bytes) -> int:
        """How sure the first lines are events or messages of Amplifier."""
        return max(detecting.log(head), detecting.transcript(head), detecting.card(head))

    def events(self, source: Source, report: Report) -> Iterator[dict[str, Any]]:
        """Each request with its window, usage, budget and compactions; streams."""
        head = source.read(0, 64 * 1024)
        if detecting.card(head):
            message = "the card of a session; what models saw is in the files beside it: open the directory"
            report(Problem(1, 0, "no-model-calls", message))
            return iter(())
        if detecting.log(head) < detecting.transcript(head):
            from ctxctl.formats.amplifier.transcript import Transcript

            return Transcript(report).events(source)
        # Slow to import, and needed only for such a file.
        from ctxctl.formats.amplifier.log import Log

        return Log(report).events(source)

    def detect_folder(self, folder: Folder) -> int:
        """How sure the directory holds Amplifier's sessions and nothing else."""
        from ctxctl.formats.amplifier import folder as folders

        return folders.detect(folder)

    def folder_events(self, folder: Folder, report: Report) -> Iterator[dict[str, Any]]:
        """The sessions of a directory: sub-agents are threads of the session that set them off."""
        from ctxctl.formats.amplifier import folder as folders

        return folders.events(folder, report)
