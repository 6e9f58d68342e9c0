"""LangChain: a chain with a retriever, recorded by a callback handler.

Needs: ctxctl langchain-openai, and OPENAI_API_KEY.
"""

from langchain_core.documents import Document
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough
from langchain_openai import ChatOpenAI

from ctxctl import Recorder
from ctxctl.hooks.langchain import ContextHandler

NOTES = [
    Document("Air scatters blue light more than red.", id="sky-1", metadata={"source": "sky.md"}),
    Document("Grass is green.", id="grass-1", metadata={"source": "grass.md"}),
]


class Notes(BaseRetriever):
    """Finds the notes that share a word with the question."""

    def _get_relevant_documents(self, query, *, run_manager):
        words = set(query.lower().split())
        return [note for note in NOTES if words & set(note.page_content.lower().split())]


prompt = ChatPromptTemplate.from_messages([("system", "Use these notes: {notes}"), ("user", "{question}")])
chain = {"notes": Notes(), "question": RunnablePassthrough()} | prompt | ChatOpenAI(model="gpt-5")

with Recorder("run.jsonl") as recorder:
    answer = chain.invoke("Why is the sky blue?", config={"callbacks": [ContextHandler(recorder)]})
    print(answer.content)
