"""What an agent of OpenAI's Agents SDK asks, as the JSON of an API of OpenAI's.

The SDK's own items are those of the Responses API.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from agents import FunctionTool, Handoff, ItemHelpers, handoff
from agents.mcp import MCPUtil
from agents.models.chatcmpl_converter import Converter as ChatConverter
from agents.models.openai_chatcompletions import OpenAIChatCompletionsModel
from agents.models.openai_responses import Converter

if TYPE_CHECKING:
    from agents import Agent, ModelResponse
    from agents.usage import Usage

Json = dict[str, Any]


class Body(NamedTuple):
    """A request as it would go out."""

    body: Json
    dialect: str
    by: str
    """What converted it."""


def body_of(
    agent: Agent[Any],
    prompt: str | None,
    items: list[Any],
    model: str | None,
    tools: list[str] | None,
    handoffs: list[str] | None,
) -> Body:
    """The request of an agent.

    Args:
        agent: Whose it is.
        prompt: Its instructions, as they are sent.
        items: The conversation, as it is sent.
        model: The model's name, if it is known.
        tools: Names of the tools that are enabled; None: not known, all are.
        handoffs: Names of the agents that may be handed to; None: not known, all are.
    """
    named = {"model": model} if model is not None else {}
    chosen = [one for one in _tools(agent) if tools is None or _is_named(one, tools)]
    given = [one if isinstance(one, Handoff) else handoff(one) for one in agent.handoffs]
    given = [one for one in given if handoffs is None or one.agent_name in handoffs]
    if isinstance(agent.model, OpenAIChatCompletionsModel):
        messages = ChatConverter.items_to_messages(items, model=agent.model.model)
        if prompt:
            messages.insert(0, {"role": "system", "content": prompt})
        made = [ChatConverter.tool_to_openai(one) for one in chosen]
        made += [ChatConverter.convert_handoff_tool(one) for one in given]
        body = {**named, "messages": messages, **({"tools": made} if made else {})}
        return Body(body, "openai-chat", "agents.models.chatcmpl_converter.Converter")
    body = {**named, "input": ItemHelpers.input_to_new_input_list(items)}
    if prompt is not None:
        body["instructions"] = prompt
    body["tools"] = list(Converter.convert_tools(chosen, given, allow_opaque_tool_search_surface=True).tools)
    return Body(body, "openai-responses", "agents.models.openai_responses.Converter")


def _tools(agent: Agent[Any]) -> list[Any]:
    """The agent's tools; those of MCP servers as they were listed last: nothing is asked of a server."""
    found: list[Any] = list(agent.tools)
    found = [one for one in found if not (isinstance(one, FunctionTool) and one.is_enabled is False)]
    strict = bool(agent.mcp_config.get("convert_schemas_to_strict", False))
    listed: list[Any] = []
    for server in agent.mcp_servers:
        listed += [MCPUtil.to_function_tool(one, server, strict) for one in server.cached_tools or ()]
    return listed + found


def _is_named(tool: Any, names: list[str]) -> bool:
    """Hosted tools are named otherwise in traces: of those all are taken."""
    return not isinstance(tool, FunctionTool) or any(
        n == tool.name or n.endswith(f".{tool.name}") for n in names
    )


def answer_of(response: ModelResponse) -> Json:
    """An answer in the Responses API's shape, without its bill."""
    return {
        "object": "response",
        "output": [one if isinstance(one, dict) else _dumped(one) for one in response.output],
    }


def _dumped(item: Any) -> Any:
    return item.model_dump(mode="json", exclude_unset=True)


def counts_of(usage: Usage) -> Json:
    """What was billed; empty where the provider said nothing."""
    if not usage.total_tokens and not usage.input_tokens:
        return {}
    inputs, outputs = usage.input_tokens_details, usage.output_tokens_details
    return {
        "input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens,
        "cached_tokens": getattr(inputs, "cached_tokens", None),
        "cache_write_tokens": getattr(inputs, "cache_write_tokens", None),
        "reasoning_tokens": getattr(outputs, "reasoning_tokens", None),
    }  # fmt: skip
