"""OpenAI's SDK: one line records everything that the program sends.

    python docs/examples/openai_sdk.py && ctxctl replay run.jsonl

Needs OPENAI_API_KEY, or OPENAI_BASE_URL of a server that speaks the same.
"""

from openai import OpenAI

import ctxctl

ctxctl.capture("run.jsonl")

client = OpenAI()
messages = [
    {"role": "system", "content": "You answer in one sentence."},
    {"role": "user", "content": "Why is the sky blue?"},
]
answer = client.chat.completions.create(model="gpt-5", messages=messages)
print(answer.choices[0].message.content)

messages.append({"role": "assistant", "content": answer.choices[0].message.content})
messages.append({"role": "user", "content": "And at sunset?"})
stream = client.chat.completions.create(
    model="gpt-5", messages=messages, stream=True, stream_options={"include_usage": True}
)
for chunk in stream:
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="")
print()
