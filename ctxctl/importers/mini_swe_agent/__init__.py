"""mini-SWE-agent trajectories: `<instance>.traj.json`, formats 1 (commands in text) and 1.1 (tool calls).

The agent has no tools beside a shell and sends its messages as they are stored, so a file of format 1 holds
the whole window.  One step is one assistant message; its raw response holds the bill.
"""

from __future__ import annotations

from typing import Final

from ctxctl.ingest.about import About, HeldAgainst, absent, derived, native
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.skim import layout_of_head

_SURE = 96
_LIKELY = 80
ABOUT: Final = About(
    reads="A run's trajectory, format `mini-swe-agent-1`, `mini-swe-agent-1.1`, or without a name.",
    places=("<output>/<instance>/<instance>.traj.json", "last_mini_run.traj.json"),
    turns="A turn is the task, or what a person interjected; a step is one answer of the model.",
    claims={
        "item_ids": native("ids of tool calls; messages have none"),
        "system_prompt": native(),
        "tool_definitions": absent("format 1 has none; format 1.1 sends one, which is not stored"),
        "messages": native(),
        "reasoning": native("where it is part of the message that is sent back"),
        "order": derived("the messages before the answer: the agent sends all of them, unchanged"),
        "requests": derived("one for each answer"),
        "turns": derived(),
        "model": native(),
        "times": native("of the answers"),
        "input_tokens": native("`extra.response.usage`"),
        "cached_tokens": native("where the provider tells"),
        "output_tokens": native(),
        "compaction": absent("the agent has none"),
        "limit": absent(),
    },
    limits=(
        "Requests that failed and were asked again are not in the file.",
        "Of an answer that could not be used, the request and its bill are told; the answer is in no window.",
    ),
    origin="trajectories of versions 1.15 and 2.x; 2.4.6 checked against its requests",
    held_against=HeldAgainst(client="mini-SWE-agent", newest="2.4.6", oldest="1.15"),
)


def detect(head: bytes) -> int:
    """How sure the head names the format, or holds the agent's own run facts before its messages."""
    seen = layout_of_head(head)
    if seen.values.get("trajectory_format", "").startswith("mini-swe-agent"):
        return _SURE
    if seen.any("trajectory", "history", "steps"):
        return 0
    if seen.any("info.mini_version", "info.config.agent.action_observation_template"):
        return _SURE
    known = seen.has("info.model_stats.instance_cost", "info.model_stats.api_calls")
    if known or seen.has("info.exit_status", "info.submission"):
        return _LIKELY
    return 0


FORMAT: Final = Format(
    name="mini-swe-agent",
    title="mini-SWE-agent trajectory",
    detect=detect,
    reader="ctxctl.importers.mini_swe_agent.reader:Trajectory",
    about=ABOUT,
)
