"""OpenHands event streams: trajectories of versions 0.x, evaluation outputs, and conversations of the V1 SDK.

A capture is an array of events, JSON lines of events, a directory of event files, or an evaluation's
`output.jsonl`, whose lines are sessions with a `history`.  Events that came from one response of the model
are one step.
"""

from __future__ import annotations

from typing import Final

from ctxctl.ingest.about import About, HeldAgainst, absent, derived, native
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.folder import Folder
from ctxctl.ingest.skim import Layout, layout_of_head

_SURE = 92
_LIKELY = 80
_HEAD = 16 * 1024
_KINDS: Final = frozenset(
    {
        "SystemPromptEvent", "MessageEvent", "ActionEvent", "ObservationEvent", "AgentErrorEvent",
        "UserRejectObservation", "Condensation", "CondensationRequest", "CondensationSummaryEvent",
        "ConversationStateUpdateEvent", "ConversationErrorEvent", "PauseEvent", "TokenEvent",
        "LLMCompletionLogEvent",
    }
)  # fmt: skip
"""The events of the SDK; those of 0.x are told by action and observation, which plug-ins add to."""
ABOUT: Final = About(
    reads="Event streams of versions 0.x (2024 to 2025) and of the V1 SDK; a conversation is a session.",
    places=(
        "~/.openhands/sessions/<id>/events/ (0.x)",
        "workspace/conversations/<id>/events/ (SDK)",
        "evaluation_outputs/…/output.jsonl",
        "a trajectory downloaded from the web interface",
    ),
    turns="A turn begins with a message of the user; a step is one response of the model.",
    claims={
        "item_ids": native("ids of events and of tool calls"),
        "system_prompt": native("since 0.31; older streams leave it out"),
        "tool_definitions": native("with the system prompt"),
        "messages": native("of agents without function calling derived from the action"),
        "reasoning": native(),
        "reminders": native("what microagents and the repository add; the wording around it is not recorded"),
        "sources": native("names of microagents"),
        "compaction": native("condensation actions"),
        "summary": native(),
        "truncation": absent("tool results over a limit are cut in the request, not in the stream"),
        "order": derived("events before the response, less those condensed"),
        "requests": native("id of the response; derived where the stream keeps none"),
        "turns": native("id of the user's message"),
        "threads": derived("delegated agents"),
        "model": native(),
        "times": native(),
        "input_tokens": native(
            "of the response; else the difference of accumulated counts, which is derived"
        ),
        "cached_tokens": native(),
        "output_tokens": native(),
        "limit": absent(),
    },
    limits=(
        "lines that the runtime adds around a command's output (exit code, directory) are not recorded",
        "screenshots of the browser are not counted",
        "requests of condensers are not in the stream",
    ),
    held_against=HeldAgainst("OpenHands SDK", records=_KINDS, key=""),
    origin="trajectories of versions 0.6 to 0.50; events of the V1 SDK",
)
_SDK: Final = (
    "MessageEvent", "ActionEvent", "ObservationEvent", "SystemPromptEvent", "AgentErrorEvent", "Condensation",
    "ConversationStateUpdateEvent", "UserRejectObservation", "CondensationRequest", "PauseEvent",
)  # fmt: skip


def detect(head: bytes) -> int:
    """How sure the head shows events with an action or an observation, or events of the SDK."""
    seen = layout_of_head(head)
    for top in ("", "[].", "history[].", "history[][].", "trajectory[].", "events[]."):
        score = _events(seen, top)
        if score:
            return score
    outputs = seen.has("instance_id", "metadata.agent_class") or seen.has("history", "metadata.agent_class")
    if outputs and seen.any("instruction", "test_result.git_patch", "metadata.max_iterations"):
        return _SURE
    return 0


def detect_folder(folder: Folder) -> int:
    """How sure the directory is one conversation: files of numbered events."""
    from ctxctl.importers.openhands.reader import numbered

    found = numbered(folder.files)
    looked = [detect(folder.head(name, _HEAD)) for name in found[:3]]
    return _SURE if looked and min(looked) >= _LIKELY else 0


def _events(seen: Layout, top: str) -> int:
    if not seen.has(f"{top}source"):
        return 0
    if seen.values.get(f"{top}kind") in _SDK:
        return _SURE
    if seen.any(f"{top}args", f"{top}extras") and seen.any(f"{top}action", f"{top}observation"):
        return _SURE if seen.any(f"{top}timestamp", f"{top}cause", f"{top}message") else _LIKELY
    return 0


FORMAT: Final = Format(
    name="openhands",
    title="OpenHands events",
    detect=detect,
    reader="ctxctl.importers.openhands.reader:Capture",
    about=ABOUT,
    detect_folder=detect_folder,
)
