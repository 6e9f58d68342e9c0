"""OpenAI's Agents SDK: two agents, one of which hands over to the other, recorded by run hooks.

Needs: ctxctl openai-agents, and OPENAI_API_KEY.
"""

import asyncio

from agents import Agent, Runner, function_tool

from ctxctl import Recorder
from ctxctl.hooks.openai_agents import ContextHooks


@function_tool
def weather(city: str) -> str:
    """Weather of a city."""
    return f"sunny in {city}"


forecaster = Agent(name="forecaster", instructions="You know the weather.", tools=[weather], model="gpt-5")
desk = Agent(name="desk", instructions="Pass on what you do not know.", handoffs=[forecaster], model="gpt-5")


async def main() -> None:
    """One run."""
    with Recorder("run.jsonl") as recorder:
        result = await Runner.run(desk, "How is the weather in Rome?", hooks=ContextHooks(recorder))
        print(result.final_output)


asyncio.run(main())
