"""Anthropic's SDK, without touching any other client: the recorder stands in front of this one's transport.

    python docs/examples/anthropic_sdk.py && ctxctl replay run.jsonl

Needs ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL of a server that speaks the same.
"""

from anthropic import Anthropic, DefaultHttpxClient

import ctxctl

recorder = ctxctl.Recorder("run.jsonl", source="my-agent/1.0")
client = Anthropic(http_client=ctxctl.recorded(DefaultHttpxClient(), recorder))

# Not needed: without it, a prompt of the user begins a turn.
with recorder.turn("greeting"):
    prompt = {"role": "user", "content": "Say hello in French."}
    with client.messages.stream(model="claude-opus-5", max_tokens=200, messages=[prompt]) as stream:
        for text in stream.text_stream:
            print(text, end="")
    print()

recorder.close()
