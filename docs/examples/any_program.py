"""A program that knows nothing of ctxctl, and talks to a model without any package.

    ctxctl record -o run.jsonl -- python any_program.py

Its second question repeats the first one and its answer, as every chat does: the trace shows what was added.
"""

import json
import os
import urllib.request

URL = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1") + "/chat/completions"
messages = [{"role": "system", "content": "You answer in one sentence."}]


def ask(question):
    """Print the answer while it comes."""
    messages.append({"role": "user", "content": question})
    body = {"model": "gpt-5", "stream": True, "stream_options": {"include_usage": True}, "messages": messages}
    fields = {
        "Content-Type": "application/json",
        "Authorization": f"Bearer {os.environ.get('OPENAI_API_KEY', '')}",
    }
    answer = ""
    with urllib.request.urlopen(urllib.request.Request(URL, json.dumps(body).encode(), fields)) as events:
        for line in events:
            if line.startswith(b"data: {"):
                for choice in json.loads(line[6:])["choices"]:
                    piece = choice["delta"].get("content") or ""
                    print(piece, end="", flush=True)
                    answer += piece
    print()
    messages.append({"role": "assistant", "content": answer})


ask("Why is the sky blue?")
ask("And at dusk?")
