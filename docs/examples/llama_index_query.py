"""LlamaIndex: a query over an index, recorded wherever it happens in the program.

Needs: ctxctl llama-index-core llama-index-llms-openai, and OPENAI_API_KEY.
"""

import os

from llama_index.core import Document, VectorStoreIndex
from llama_index.core.embeddings import MockEmbedding
from llama_index.llms.openai import OpenAI

from ctxctl import Recorder
from ctxctl.hooks.llama_index import record

recorder = Recorder("run.jsonl")
record(recorder)

pages = [Document(text="Air scatters blue light more than red.", metadata={"file_path": "sky.md"})]
index = VectorStoreIndex.from_documents(pages, embed_model=MockEmbedding(8))
llm = OpenAI(model="gpt-5", api_base=os.environ.get("OPENAI_BASE_URL"))
print(index.as_query_engine(llm=llm).query("Why is the sky blue?"))
recorder.close()
