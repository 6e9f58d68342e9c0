"""What captures of one kind say of each fact, told once for the declarations of all their formats.

`BODY_…` holds for captures of whole request bodies, `SPAN_…` for those of observability tools.
"""

from __future__ import annotations

from typing import Final

from ctxctl.ingest.about import Claim, absent, derived, native

BODY_TURNS: Final = (
    "One step is one request; a turn begins where the last message of a request is a new prompt of the user."
)
BODY_CLAIMS: Final[dict[str, Claim]] = {
    "sources": native("files and servers that a body names"),
    "item_ids": native("of tools, tool calls and the provider's items; messages are aligned by content"),
    "candidates": native("only tools, where a request defers some of them"),
    "selected": native("likewise"),
    "omitted": native("likewise"),
    "limit": absent(),
    "truncation": absent(),
    "system_prompt": native(),
    "tool_definitions": native(),
    "messages": native(),
    "reasoning": native("as far as the provider shows it; sealed reasoning is opaque"),
    "reminders": native("as marked inside messages"),
    "compaction": derived("where a request or an answer of the provider is one"),
    "summary": native("in the messages that carry it"),
    "order": native(),
    "requests": native(),
    "turns": derived("from the prompts in the bodies"),
    "threads": derived("requests are grouped by what they share"),
    "model": native(),
    "times": native(),
    "input_tokens": native(),
    "cached_tokens": native(),
    "output_tokens": native(),
}
"""What such captures tell at best; a format's own declaration changes what differs."""
BODY_LIMITS: Final = (
    "what a provider keeps for a conversation by id is not in the request, and not in its window",
    "other HTTP calls (embeddings, files, sign-in, MCP, telemetry) are counted and left out",
    "headers are not read but for the answer's request id",
)
BODY_DIALECTS: Final = (
    "Anthropic Messages, OpenAI Chat Completions and Responses, Gemini, and endpoints like them"
)

SPAN_CLAIMS: Final[dict[str, Claim]] = {
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
SPAN_LIMITS: Final = (
    "embeddings, tool runs and retrievals are not read; what they gave is seen where a request carries it",
    "messages are shown as the instrumentation wrote them down, which may not be as they were sent",
    "a call that names no session, nor does a span around it, is of the only session that its trace names;"
    " where its trace names none or several, it is in no named session",
)
