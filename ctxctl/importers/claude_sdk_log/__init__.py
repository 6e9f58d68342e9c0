"""Logs of the Claude agent SDK's control protocol: what it sent to Claude Code, and what came back."""

from __future__ import annotations

import re
from typing import Final

from ctxctl.importers.claude_stream import HELD
from ctxctl.ingest.about import About, absent, derived, native
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.skim import objects_of_head, text_of_head

_HEAD: Final = re.compile(
    rb'"messages"\s*:\s*\[\s*\{\s*"direction"\s*:\s*"(?:send|recv)"\s*,\s*"message"\s*:\s*\{'
)
_SURE: Final = 93


ABOUT: Final = About(
    reads=(
        "A JSON document (or JSON lines) of messages with their direction, as the SDK exchanges them "
        "with Claude Code: stream-json messages and control requests."
    ),
    places=("cassettes of tests that drive the Claude agent SDK",),
    turns="One step is one message id of the model; a turn is a prompt that was sent.",
    claims={
        "item_ids": native("of tool calls; texts have none"),
        "system_prompt": absent(),
        "tool_definitions": absent("only the tools' names"),
        "messages": native(),
        "reasoning": native(),
        "reminders": absent("what Claude Code adds to a request is not in its stream"),
        "compaction": native("compact_boundary; what left is derived"),
        "summary": native(),
        "order": derived("the messages in the order of the log"),
        "requests": derived("from the ids of the answers"),
        "turns": derived("from the prompts that were sent"),
        "threads": native("sub-agents by the call that began them"),
        "model": native(),
        "times": native("of some messages"),
        "input_tokens": native(),
        "cached_tokens": native(),
        "output_tokens": native(
            "where the answer's end was told; the stream repeats its beginning",
            tuple(
                f"{lead}message.{key}"
                for lead in ("", "messages.")
                for key in ("message.usage", "usage", "modelUsage")
            ),
        ),
        "limit": native("the model's context window, from the result at the end of the run"),
    },
    limits=("hook callbacks and permission requests are not the model's",),
    held_against=HELD,
    origin="pydantic/logfire, tests of claude-agent-sdk",
)


def detect(head: bytes) -> int:
    """How sure the head looks like such a log's."""
    start = text_of_head(head)
    if start[:1] != b"{":
        return 0
    if _HEAD.search(start[:8192]):
        return _SURE
    found = [v for v in objects_of_head(head)[:5] if v.get("direction") in ("send", "recv")]
    return _SURE if found and all(isinstance(v.get("message"), dict) for v in found) else 0


FORMAT: Final = Format(
    name="claude-sdk-log",
    title="Claude agent SDK protocol log",
    detect=detect,
    reader="ctxctl.importers.claude_sdk_log.reader:read",
    about=ABOUT,
)
