"""What captures of observability tools say of each fact, for the declarations of their formats."""

from __future__ import annotations

from typing import Final

from ctxctl.ingest.about import Claim, absent, derived, native

CLAIMS: Final[dict[str, Claim]] = {
    "candidates": absent(),
    "sources": native("servers that the names of tools tell"),
    "item_ids": native("of tools, tool calls and items; messages are aligned by content"),
    "selected": absent(),
    "limit": absent(),
    "truncation": derived("where an attribute was cut off"),
    "system_prompt": native("if the instrumentation records content"),
    "tool_definitions": native("if the instrumentation records them; often only their names are"),
    "messages": native("if the instrumentation records content"),
    "reasoning": native("where the instrumentation records it"),
    "reminders": native("as marked inside messages"),
    "compaction": derived("where a request begins with a summary of the history before"),
    "summary": native("in the messages that carry it"),
    "order": native("of messages; where tools and instructions stood is not recorded"),
    "requests": native("one span each"),
    "turns": native("the trace"),
    "threads": derived("by agent, else requests are grouped by what they share"),
    "model": native(),
    "times": native(),
    "input_tokens": native(),
    "cached_tokens": native("where the instrumentation reports it"),
    "output_tokens": native(),
}
LIMITS: Final = (
    "embeddings, tool runs and retrievals are not read; what they gave is seen where a request carries it",
    "messages are shown as the instrumentation wrote them down, which may not be as they were sent",
)
