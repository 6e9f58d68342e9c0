"""LangGraph: an agent with a tool, over two turns of one conversation.

Needs: ctxctl langchain langchain-openai, and OPENAI_API_KEY.
"""

from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver

from ctxctl import Recorder
from ctxctl.hooks.langchain import ContextHandler


def weather(city: str) -> str:
    """Weather of a city."""
    return f"sunny in {city}"


agent = create_agent("openai:gpt-5", [weather], system_prompt="Be brief.", checkpointer=InMemorySaver())
with Recorder("run.jsonl") as recorder:
    config = {"callbacks": [ContextHandler(recorder)], "configurable": {"thread_id": "talk-1"}}
    for question in ("How is the weather in Rome?", "And in Oslo?"):
        state = agent.invoke({"messages": [("user", question)]}, config=config)
        print(state["messages"][-1].content)
