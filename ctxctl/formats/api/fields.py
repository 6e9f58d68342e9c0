"""Names of the fields that bodies have, for telling a body from another document with messages in it."""

from __future__ import annotations

from typing import Final

_REQUEST: Final = (
    "model", "messages", "max_tokens", "system", "tools", "tool_choice", "temperature", "top_p",
    "top_k", "stop", "stop_sequences", "stream", "metadata", "thinking", "betas", "anthropic_version",
    "anthropic_beta", "container", "mcp_servers", "context_management", "service_tier", "output_config",
    "output_format", "inference_geo", "cache_control", "speed", "functions", "function_call",
    "frequency_penalty", "presence_penalty", "logit_bias", "logprobs", "top_logprobs", "n", "seed",
    "user", "response_format", "stream_options", "max_completion_tokens", "parallel_tool_calls",
    "reasoning_effort", "store", "modalities", "audio", "prediction", "verbosity", "web_search_options",
    "prompt_cache_key", "prompt_cache_retention", "safety_identifier", "reasoning", "provider",
    "transforms", "models", "route", "plugins", "usage", "options", "format", "keep_alive", "input",
    "instructions", "max_output_tokens", "max_tool_calls", "text", "truncation", "include",
    "previous_response_id", "conversation", "background", "prompt", "client_metadata",
    "thinking_budget", "enable_thinking", "extra_body", "contents", "systemInstruction",
    "system_instruction", "generationConfig", "generation_config", "safetySettings", "safety_settings",
    "toolConfig", "tool_config", "cachedContent", "cached_content", "labels",
)  # fmt: skip
_RESPONSE: Final = (
    "id", "type", "role", "content", "model", "stop_reason", "stop_sequence", "stop_details", "usage",
    "container", "context_management", "object", "created", "choices", "system_fingerprint",
    "service_tier", "provider", "x_groq", "timings", "citations", "created_at", "status", "error",
    "incomplete_details", "output", "output_text", "completed_at", "billing", "candidates",
    "usageMetadata", "usage_metadata", "modelVersion", "model_version", "responseId", "response_id",
    "promptFeedback", "prompt_feedback", "createTime", "create_time",
)  # fmt: skip
REQUEST: Final = frozenset(_REQUEST)
"""Of requests, in all dialects."""
RESPONSE: Final = frozenset(_RESPONSE)
"""Of answers, in all dialects."""
ASKS: Final = REQUEST - {
    "model", "messages", "metadata", "input", "text", "user", "usage", "prompt", "format", "provider",
    "labels",
    "options",
}  # fmt: skip
"""Of requests, that a transcript has no use for."""
