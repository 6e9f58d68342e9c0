"""OpenHands' logs of completions (`log_completions`): one file for each call."""

from __future__ import annotations

import re
from typing import Final

from ctxctl.importers.shared_claims import BODY_CLAIMS, BODY_LIMITS, BODY_TURNS
from ctxctl.ingest.about import About, native
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.folder import Folder
from ctxctl.ingest.skim import objects_of_head, text_of_head

_HEAD: Final = 64 * 1024
_STARTS: Final = re.compile(rb'\A\{\s*"(?:messages|llm_path)"\s*:\s*')
_CONTENT_FIRST: Final = re.compile(rb'\A\{\s*"messages"\s*:\s*\[\s*\{\s*"content"\s*:')
_MARKS: Final = (b'"latency_sec"', b'"raw_response"', b'"fncall_messages"', b'"context_window"', b'"cost"')
_SURE: Final = 93
_LIKELY: Final = 86
_PERHAPS: Final = 58
_TRIED: Final = 5
_TOOLS: Final = native("without function calling they stand in the prompt only", ("tools",))


ABOUT: Final = About(
    reads=(
        "One JSON file a call, as OpenHands (0.x) and its agent SDK (1.x) log them; a directory is a "
        "session. Without function calling the prompt is the one that was sent, tools written into it."
    ),
    places=("logs/completions/*.json", "the log_completions_folder of an LLM"),
    turns=BODY_TURNS,
    claims={
        **BODY_CLAIMS,
        "tool_definitions": _TOOLS,
        "limit": native("the model's window as the agent knew it (SDK)"),
    },
    limits=(*BODY_LIMITS, "one file by itself is one step"),
    origin="All-Hands-AI/OpenHands openhands/llm/llm.py; software-agent-sdk telemetry.py",
)


def detect(head: bytes) -> int:
    """How sure the head looks like a log's; one longer than the head shows its messages only."""
    start = text_of_head(head)
    if not _STARTS.match(start):
        return 0
    for value in objects_of_head(head)[:1]:
        if "response" not in value:
            return 0
        return _SURE if "kwargs" in value or "latency_sec" in value else 0
    if sum(mark in start for mark in _MARKS) >= 2 and b'"kwargs"' in start:
        return _SURE
    if _CONTENT_FIRST.match(start):
        return _LIKELY if b"OpenHands" in start[:4096] else _PERHAPS
    return 0


def detect_folder(folder: Folder) -> int:
    """How sure the directory holds such logs: looks at a few of its JSON files."""
    names = logs_of(folder)
    if len(names) < 2:
        return 0
    step = max(1, len(names) // _TRIED)
    scores = [detect(folder.head(name, _HEAD)) for name in names[::step][:_TRIED]]
    return min(scores) if len(names) == len(folder.files) else 0


def logs_of(folder: Folder) -> list[str]:
    """The files of a directory that may be logs of calls."""
    return [name for name in folder.files if name.endswith(".json")]


FORMAT: Final = Format(
    name="openhands-completions",
    title="OpenHands completion log",
    detect=detect,
    reader="ctxctl.importers.openhands_completions.reader:read",
    about=ABOUT,
    detect_folder=detect_folder,
    folder_reader="ctxctl.importers.openhands_completions.reader:read_folder",
)
