"""tau-bench results (an array of tasks) and tau2-bench results (`simulations`): each task is a session.

A turn is one message of the simulated user, a step one answer of the agent.  Tool definitions are in neither
file; tau2 holds the policy that the agent's system prompt is made of.
"""

from __future__ import annotations

from typing import Final

from ctxctl.ingest.about import About, absent, derived, native
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.skim import layout_of_head

_SURE = 95
_LIKELY = 80
ABOUT: Final = About(
    reads="Results of tau-bench (all tasks, or one) and of tau2-bench; each trial of a task is a session.",
    places=("results/<agent>-<model>-….json", "data/simulations/<run>.json (tau2)"),
    turns="A turn is one message of the simulated user; a step is one answer of the agent.",
    claims={
        "item_ids": native("ids of tool calls; messages have none"),
        "system_prompt": native("tau2: derived, the policy without the instructions around it"),
        "tool_definitions": absent("sent with each request, in neither file"),
        "messages": native(),
        "reasoning": native("where an agent keeps it with its messages"),
        "order": derived("the messages before the answer"),
        "requests": derived("one for each answer"),
        "turns": derived(),
        "threads": absent("one conversation a task"),
        "model": native("tau2 only"),
        "times": native("tau2 only"),
        "input_tokens": native("tau2, where the run kept usage; tau-bench stores none"),
        "output_tokens": native("as input"),
        "cached_tokens": absent(),
        "limit": absent(),
    },
    limits=("the simulated user's own requests and tools are not read",),
    origin="historical trajectories of tau-bench; the data model of tau2-bench",
)


def detect(head: bytes) -> int:
    """How sure the head is an array of tasks with a `traj`, one task, or results with `simulations`."""
    seen = layout_of_head(head)
    if seen.has("[].task_id", "[].reward"):
        if seen.any("[].traj", "[].traj[].role"):
            return _SURE
        return _LIKELY if seen.any("[].info.task", "[].info.reward_info") else 0
    if seen.has("task_id", "reward") and seen.any("traj", "traj[].role"):
        return _SURE
    if seen.any("info.environment_info.policy", "info.user_info.global_simulation_guidelines"):
        return _SURE
    if seen.has("simulations[].task_id", "simulations[].messages"):
        return _SURE
    return 0


FORMAT: Final = Format(
    name="tau-bench",
    title="tau-bench results",
    detect=detect,
    reader="ctxctl.importers.tau_bench.reader:Results",
    about=ABOUT,
)
