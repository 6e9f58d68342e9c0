"""ATIF trajectories (Agent Trajectory Interchange Format, v1.0 to v1.7), of Harbor and other tools.

One step of source `agent` is one request.  A continuation (`….cont-1.json`) and the side trajectories of a
context summarisation belong to the trajectory that names them: opened as a directory they are one session.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ctxctl.formats.fidelity import About, HeldAgainst, absent, derived, native
from ctxctl.formats.kit.folder import Folder
from ctxctl.formats.kit.skim import skim
from ctxctl.formats.lines import Report
from ctxctl.trace.source import Source

NAME: Final = "atif"
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
        "input_tokens": native("not where one step stands for several calls", ("final_metrics",)),
        "cached_tokens": native("", ("final_metrics",)),
        "output_tokens": native("", ("final_metrics",)),
        "limit": absent(),
    },
    limits=(
        "after a summarisation without a continuation, what stays beside the system prompt and the first"
        " message is not recorded",
        "images are files beside the trajectory; they are not opened",
    ),
    held_against=HeldAgainst("ATIF", "1.7", "1.5"),
    origin="ATIF v1.5 and v1.7 trajectories of terminus-2, OpenHands and Hermes",
)


class Atif:
    """The importer for ATIF trajectories."""

    name: str = NAME
    title: str = "ATIF trajectory"
    default_policy: str = "recorded"
    about: About = ABOUT

    def detect(self, head: bytes) -> int:
        """How sure the head names the format's version, or shows its steps."""
        seen = skim(head)
        if seen.values.get("schema_version", "").upper().startswith("ATIF"):
            return _SURE
        steps = seen.has("steps[].step_id", "steps[].source", "steps[].message")
        return _LIKELY if steps and seen.any("agent.name", "session_id") else 0

    def events(self, source: Source, report: Report) -> Iterator[dict[str, Any]]:
        """One step for each of the agent's; the document is held in memory."""
        from ctxctl.formats.atif.capture import Capture

        return Capture(NAME, report).events(source)

    def detect_folder(self, folder: Folder) -> int:
        """How sure the directory holds a trajectory that goes on in other files."""
        linked = [name for name in folder.files if name.endswith(".json") and _is_side(name)]
        if not linked:
            return 0
        looked = [self.detect(folder.head(name, _HEAD)) for name in linked[:_LOOKED]]
        return _SURE if min(looked) >= _LIKELY else 0

    def folder_events(self, folder: Folder, report: Report) -> Iterator[dict[str, Any]]:
        """Each trajectory with what it names: continuations in its thread, others as threads."""
        from ctxctl.formats.atif.capture import Capture

        return Capture(NAME, report).folder_events(folder)


def _is_side(name: str) -> bool:
    base = name.rpartition("/")[2]
    return ".cont-" in base or "summarization-" in base
