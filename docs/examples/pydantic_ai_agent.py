"""Pydantic AI: an agent with a tool, recorded by a capability.

Needs: ctxctl pydantic-ai-slim[openai], and OPENAI_API_KEY.
"""

from pydantic_ai import Agent

from ctxctl import Recorder
from ctxctl.hooks.pydantic_ai import RecordContext

recorder = Recorder("run.jsonl")
agent = Agent("openai:gpt-5", instructions="Be brief.", capabilities=[RecordContext(recorder)])


@agent.tool_plain
def weather(city: str) -> str:
    """Weather of a city."""
    return f"sunny in {city}"


first = agent.run_sync("How is the weather in Rome?")
print(agent.run_sync("And in Oslo?", message_history=first.all_messages()).output)
recorder.close()
