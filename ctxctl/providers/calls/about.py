"""What captures of whole request bodies say of each fact, for the declarations of their formats."""

from __future__ import annotations

from typing import Final

from ctxctl.ingest.about import Claim, absent, derived, native

TURNS: Final = (
    "One step is one request; a turn begins where the last message of a request is a new prompt of the user."
)
BODIES: Final[dict[str, Claim]] = {
    "sources": native("files and servers that a body names"),
    "item_ids": native("of tools, tool calls and the provider's items; messages are aligned by content"),
    "candidates": absent(),
    "selected": absent(),
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
"""At best; a format's own declaration changes what differs."""
LIMITS: Final = (
    "what a provider keeps for a conversation by id is not in the request, and not in its window",
    "other HTTP calls (embeddings, files, sign-in, MCP, telemetry) are counted and left out",
    "headers are not read but for the answer's request id",
)
DIALECTS: Final = "Anthropic Messages, OpenAI Chat Completions and Responses, Gemini, and endpoints like them"
