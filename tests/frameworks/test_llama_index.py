"""LlamaIndex: models, agents and retrievers, recorded wherever they are in the program."""

from collections.abc import Iterator
from typing import Any

import openai
import pytest
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.llms import ChatMessage, MockLLM
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.workflow import Context
from llama_index.llms.openai import OpenAI, OpenAIResponses

import ctxctl
from ctxctl import Recorder
from ctxctl.hooks.llama_index import Recording as Hook
from ctxctl.hooks.llama_index import record
from tests.frameworks import examples
from tests.frameworks.fake import Fake
from tests.frameworks.session import SECRET, Recording

ENVIRONMENTS = ("httpx",)
KINDS = ("chat", "responses")


@pytest.fixture
def recorder(recording: Recording) -> Recorder:
    return Recorder(recording.path)


@pytest.fixture
def hook(recorder: Recorder) -> Iterator[Hook]:
    made = record(recorder)
    yield made
    made.stop()
    assert made._calls == {}
    assert made._spans == {}
    assert made._runs == {}


def model(kind: str, fake: Fake) -> Any:
    given: dict[str, Any] = {"api_base": fake.v1, "api_key": SECRET, "max_retries": 0, "model": "gpt-5"}
    if kind == "responses":
        return OpenAIResponses(**given)
    return OpenAI(
        **given, additional_kwargs={"stream_options": {"include_usage": True}} if kind == "stream" else {}
    )


def weather(city: str, days: list[int]) -> str:
    """Weather of a city. ünïcödé"""
    return f"sunny in {city}"


def sent(recording: Recording) -> list[tuple[str | None, str | None]]:
    return [(row.thread, row.turn) for row in recording.rows("context.injection.applied")]


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize("kind", KINDS)
async def test_an_agent_with_tools_a_stream_and_an_error(
    kind: str, watched: bool, fake: Fake, recording: Recording, recorder: Recorder, hook: Hook
) -> None:
    capture = ctxctl.capture(recorder) if watched else None
    llm = model(kind, fake)
    for streaming in (False, True):
        agent = FunctionAgent(
            name="boss", tools=[weather], llm=llm, system_prompt="Be brief. ünïcödé", streaming=streaming
        )
        assert "sunny" in str(await agent.run(user_msg="tool weather please"))
    with pytest.raises(openai.InternalServerError):
        await llm.achat([ChatMessage("fail 500")])
    if capture is not None:
        capture.close()
    recorder.close()
    # A stream of the chat interface tells no bill unless it is asked to.
    recording.check(billed=2 if kind == "chat" else 4)
    # A call by itself is in no turn: the wire alone says which conversation it belongs to.
    assert [turn for _, turn in sent(recording)][:4] == ["turn-1", "turn-1", "turn-2", "turn-2"]
    assert recording.errors() == ["HTTP 500: api_error" if watched else "openai.InternalServerError"]


def test_calls_by_themselves(fake: Fake, recording: Recording, recorder: Recorder, hook: Hook) -> None:
    llm = model("chat", fake)
    llm.chat([ChatMessage("You are brief.", role="system"), ChatMessage("hello")])
    for _ in llm.stream_chat([ChatMessage("hello again")]):
        pass
    llm.complete("and a prompt")
    with pytest.raises(Exception, match="closed"):
        for _ in llm.stream_chat([ChatMessage("cut here please")]):
            pass
    recorder.close()
    recording.check(billed=2)
    assert recording.errors() == ["httpx.RemoteProtocolError"]
    assert [turn for _, turn in sent(recording)] == ["turn-1", "turn-2", "turn-3", "turn-4"]


async def test_agents_of_a_workflow_are_threads(
    fake: Fake, recording: Recording, recorder: Recorder, hook: Hook
) -> None:
    llm = model("chat", fake)

    async def pass_on(ctx: Context, city: str, days: list[int]) -> str:
        """To the poet."""
        await ctx.store.set("next_agent", "poet")
        return "the poet will answer"

    boss = FunctionAgent(name="boss", description="Leads.", tools=[pass_on], llm=llm, system_prompt="Lead.")
    poet = FunctionAgent(name="poet", description="Rhymes.", tools=[weather], llm=llm, system_prompt="Rhyme.")
    await AgentWorkflow(agents=[boss, poet], root_agent="boss").run(user_msg="tool pass_on please")
    recorder.close()
    recording.check(billed=0)
    assert sent(recording) == [("main", "turn-1"), ("poet", "turn-1")]


def test_what_a_retriever_gives_is_a_selection(
    fake: Fake, recording: Recording, recorder: Recorder, hook: Hook
) -> None:
    pages = [
        Document(text="Blue light scatters.", metadata={"file_path": "sky.md"}, doc_id="sky"),
        Document(text="Grass."),
    ]
    index = VectorStoreIndex.from_documents(pages, embed_model=MockEmbedding(4))
    index.as_query_engine(llm=model("chat", fake)).query("Why is the sky blue?")
    recorder.close()
    recording.check()
    (chosen,) = recording.rows("context.selection.completed")
    assert chosen.data["query"] == "Why is the sky blue?"
    assert len(chosen.data["selected_item_refs"]) == len(chosen.data["ranking_signals"]) == 2
    assert set(recording.said("retrieval_result")) == {"Blue light scatters.", "Grass."}
    sources = [row.data.get("source_refs") for row in recording.rows("context.item.added")]
    assert any(one and one[0]["source_id"] == "sky.md" for one in sources)
    assert chosen.turn == sent(recording)[0][1] == "turn-1"


def test_what_a_reranker_leaves_out(recording: Recording, recorder: Recorder, hook: Hook) -> None:
    nodes = [NodeWithScore(node=TextNode(text=text, id_=text), score=0.5) for text in ("one", "two")]
    dispatcher = get_dispatcher(__name__)

    class Ranker:
        @dispatcher.span
        def rank(self) -> None:
            dispatcher.event(ReRankStartEvent(query="which?", nodes=nodes, top_n=1, model_name="ranker"))
            dispatcher.event(ReRankEndEvent(nodes=nodes[1:]))

    Ranker().rank()
    recorder.close()
    (chosen,) = recording.rows("context.selection.completed")
    assert [ref.partition("@")[0] for ref in chosen.data["selected_item_refs"]] == ["two"]
    (left,) = chosen.data["omitted_item_refs"]
    assert (left["item_ref"].partition("@")[0], left["reason"]) == ("one", "low_relevance")


def test_a_model_that_is_not_known_is_recorded_by_what_it_says(
    recording: Recording, recorder: Recorder, hook: Hook
) -> None:
    MockLLM(max_tokens=2).complete("a b c")
    recorder.close()
    assert recording.said("user_message") == ["a b c"]
    assert recorder.dropped == 0


def test_a_recorder_that_cannot_write_is_not_noticed(fake: Fake, recording: Recording) -> None:
    recording.path.mkdir()
    recorder = Recorder(recording.path)
    made = record(recorder)
    try:
        answer = model("chat", fake).chat([ChatMessage("hello")])
    finally:
        made.stop()
    assert answer.message.content == "You said: hello"
    assert recorder.dropped > 0


def test_the_example_runs(fake: Fake, recording: Recording) -> None:
    assert "You said: " in examples.run("llama_index_query.py", fake, recording.path.parent)
    recording.check()
    assert len(recording.rows("context.selection.completed")) == 1
