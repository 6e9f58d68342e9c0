"""Agent runs of LiveMCPBench: an array of tasks, each with the messages of its run; a task is a session."""

from __future__ import annotations

from typing import Final

from ctxctl.ingest.about import About, absent, derived, native
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.skim import layout_of_head

_SURE = 93
_LIKELY = 75
ABOUT: Final = About(
    reads="An array of tasks, each with a question and the messages of the agent's run over MCP servers.",
    places=("evaluator/output/<judge>/<model>_<embedding>.json", "baseline/output/<model>.json"),
    turns="A turn is one message of the user, the task's question; a step is one answer of the model.",
    claims={
        "item_ids": native("ids of tool calls; messages have none"),
        "system_prompt": native(),
        "tool_definitions": absent("sent with each request, not stored"),
        "messages": native(),
        "reasoning": native("where the messages hold it"),
        "order": derived("the messages before the answer"),
        "requests": derived("one for each answer"),
        "turns": derived(),
        "model": absent("in the file's name only"),
        "times": absent(),
        "input_tokens": absent(),
        "cached_tokens": absent(),
        "output_tokens": absent(),
        "limit": absent(),
    },
    origin="runs published with LiveMCPBench",
)


def detect(head: bytes) -> int:
    """How sure the head is an array of tasks with questions and messages."""
    seen = layout_of_head(head)
    if not seen.any("[].task_id", "[].question", "[].Question"):
        return 0
    if seen.has("[].messages", "[].messages[].role") and not seen.any("[].session_id", "[].events"):
        return _SURE if seen.any("[].question", "[].Question") else 0
    known = seen.has("[].task_id", "[].question", "[].judge", "[].category")
    return _LIKELY if known else 0


FORMAT: Final = Format(
    name="live-mcp-bench",
    title="LiveMCPBench agent runs",
    detect=detect,
    reader="ctxctl.importers.tau_bench.reader:Results",
    about=ABOUT,
)
