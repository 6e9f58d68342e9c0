"""LiteLLM: a callback records what goes to any of its providers.

    python docs/examples/litellm_callback.py && ctxctl replay run.jsonl

Needs OPENAI_API_KEY, or OPENAI_BASE_URL of a server that speaks the same.
"""

import litellm

from ctxctl.hooks.litellm import ContextLogger

litellm.callbacks = [ContextLogger("run.jsonl")]

messages = [{"role": "user", "content": "Why is the sky blue?"}]
answer = litellm.completion(model="openai/gpt-5", messages=messages, metadata={"session_id": "sky"})
print(answer.choices[0].message.content)
