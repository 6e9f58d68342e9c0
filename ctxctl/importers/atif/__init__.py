"""ATIF trajectories (Agent Trajectory Interchange Format, v1.0 to v1.7), of Harbor and other tools.

One step of source `agent` is one request.  A continuation (`….cont-1.json`) and the side trajectories of a
context summarisation belong to the trajectory that names them: opened as a directory they are one session.
"""

from __future__ import annotations

from typing import Final

from ctxctl.ingest.about import About, HeldAgainst, absent, derived, native
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.folder import Folder
from ctxctl.ingest.skim import layout_of_head

_SURE = 97
_LIKELY = 85
_LOOKED = 8
_HEAD = 32 * 1024
ABOUT: Final = About(
    reads="A trajectory of ATIF v1.0 to v1.7, alone or with its continuations and sub-trajectories.",
    places=("jobs/<job>/<trial>/agent/trajectory.json (Harbor)",),
    turns="A turn begins with a step of the user; a step is one step of the agent.",
    claims={
        "item_ids": native("step numbers, ids of tool calls"),
        "system_prompt": native("where the agent has a step for it"),
        "tool_definitions": native("since v1.5, where the agent tells them"),
        "messages": native(),
        "reasoning": native(),
        "reminders": native("later steps of the system"),
        "compaction": native("context summarisation; what left is derived"),
        "summary": native("in the continuation, or in the side trajectory"),
        "order": derived("the steps before; native where a step keeps the request"),
        "requests": native(),
        "turns": derived(),
        "threads": native("sub-agents, and the agents that summarise"),
        "model": native(),
        "times": native(),
        "input_tokens": native("only for the trajectory where one step is several calls"),
        "cached_tokens": native(),
        "output_tokens": native(),
        "limit": absent(),
    },
    limits=(
        "after a summarisation without a continuation, what stays beside the system prompt and the first"
        " message is not recorded",
        "images are files next to the trajectory; they are not opened",
    ),
    held_against=HeldAgainst("ATIF", "1.7", "1.5"),
    origin="ATIF v1.5 and v1.7 trajectories of terminus-2, OpenHands and Hermes",
)


def detect(head: bytes) -> int:
    """How sure the head names the format's version, or shows its steps."""
    seen = layout_of_head(head)
    if seen.values.get("schema_version", "").upper().startswith("ATIF"):
        return _SURE
    steps = seen.has("steps[].step_id", "steps[].source", "steps[].message")
    return _LIKELY if steps and seen.any("agent.name", "session_id") else 0


def detect_folder(folder: Folder) -> int:
    """How sure the directory holds a trajectory that goes on in other files."""
    # Files of a folder below are a capture there, and say nothing of what else lies in this one.
    linked = [name for name in folder.files if "/" not in name and name.endswith(".json") and _is_side(name)]
    if not linked:
        return 0
    looked = [detect(folder.head(name, _HEAD)) for name in linked[:_LOOKED]]
    return _SURE if min(looked) >= _LIKELY else 0


def _is_side(name: str) -> bool:
    base = name.rpartition("/")[2]
    return ".cont-" in base or "summarization-" in base


FORMAT: Final = Format(
    name="atif",
    title="ATIF trajectory",
    detect=detect,
    reader="ctxctl.importers.atif.reader:Capture",
    about=ABOUT,
    detect_folder=detect_folder,
)
