"""A stand-in that speaks Responses over WebSocket, and the bodies that its requests stand for."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from websockets.sync.server import Server, ServerConnection, serve

Json = dict[str, Any]
USAGE = {"input_tokens": 90_000, "input_tokens_details": {"cached_tokens": 40}, "output_tokens": 70}


class Stand:
    """Answers each `response.create`; what an input's last text says decides how.

    `refuse`: an error before anything; `break`: an error in the middle; `hang`: half an answer, then the
    connection is closed; `wait`: half an answer until `go` is set; `call`: a call of a tool; `pieces`: events
    come in fragments.
    """

    def __init__(self) -> None:
        self.bodies: list[Json] = []
        """What each request stands for, whole, in the order in which they came."""
        self.go = threading.Event()
        self._numbers = itertools.count(1)
        self._held: dict[str, list[Json]] = {}
        self._lock = threading.Lock()

    def serve(self, socket: ServerConnection) -> None:
        for text in socket:
            message = json.loads(text)
            if message["type"] != "response.create":
                continue
            with self._lock:
                number = next(self._numbers)
                body = self._whole(message)
                self.bodies.append(body)
            for event in self._answer(number, body, warms=message.get("generate") is False):
                said = json.dumps(event)
                # Fragments, with a ping between two messages.
                socket.send([said[:7], said[7:40], said[40:]] if "pieces" in _asked(body) else said)
                if event["type"] == "response.output_item.added":
                    socket.ping()
                    if "wait" in _asked(body):
                        assert self.go.wait(20)
                    if "hang" in _asked(body):
                        return

    def _whole(self, message: Json) -> Json:
        body = {name: value for name, value in message.items() if name not in ("type", "generate")}
        held = self._held.get(str(body.pop("previous_response_id", None)), [])
        return {**body, "input": [*held, *body["input"]]}

    def _answer(self, number: int, body: Json, *, warms: bool) -> Iterator[Json]:
        name, asked = f"resp_{number}", _asked(body)
        if "refuse" in asked:
            error = {"type": "usage_limit_reached", "message": "sk-proj-0123456789abcdefghij is over"}
            yield {"type": "error", "status": 429, "error": error}
            return
        response: Json = {"id": name, "object": "response", "model": "gpt-5", "output": [], "usage": None}
        yield {"type": "codex.rate_limits", "plan": "x"}
        yield {"type": "response.created", "response": {**response, "status": "in_progress"}}
        item: Json = {"id": f"msg_{number}", "type": "message", "role": "assistant", "content": []}
        yield {"type": "response.output_item.added", "output_index": 0, "item": item}
        if "break" in asked:
            yield {"type": "error", "error": {"type": "server_error", "message": "gone"}}
            return
        text = f"Answer {number}."
        item = {**item, "content": [{"type": "output_text", "text": text, "annotations": []}]}
        if "call" in asked:
            item = {"id": f"fc_{number}", "type": "function_call", "call_id": f"call_{number}",
                    "name": "look", "arguments": "{}"}  # fmt: skip
        output = [] if warms else [item]
        for one in output:
            yield {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": text}
            yield {"type": "response.output_item.done", "output_index": 0, "item": one}
        self._held[name] = [*body["input"], *output]
        ended = {**response, "status": "completed", "output": output, "usage": USAGE}
        yield {"type": "response.completed", "response": ended}


def _asked(body: Json) -> str:
    last = body["input"][-1]
    content = last.get("content")
    return str(content[0]["text"] if isinstance(content, list) else content or last.get("output"))


def user(text: str) -> Json:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


TOOL = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}
_PROMPT = {"type": "input_text", "text": "You are careful, and look before you answer."}
SYSTEM = {"type": "message", "role": "developer", "content": [_PROMPT]}


def create(*given: Json, before: str | None = None, **more: Any) -> str:
    """A message as Codex sends it: tools and settings each time, the history by the id before."""
    named = {} if before is None else {"previous_response_id": before}
    return json.dumps({"type": "response.create", "model": "gpt-5", **named, "input": given, "tools": [TOOL],
                       "store": False, "stream": True, **more})  # fmt: skip


def answer(socket: Any) -> tuple[str | None, list[Json]]:
    """Read one answer: the response's id, and its events."""
    events: list[Json] = []
    while True:
        events.append(json.loads(socket.recv(timeout=20)))
        if events[-1]["type"] in ("response.completed", "error"):
            name = next((e["response"]["id"] for e in events if "response" in e), None)
            return name, events


@contextmanager
def running(stand: Stand, **options: Any) -> Iterator[int]:
    """The port of a server that is there while the block runs."""
    made: Server = serve(stand.serve, "127.0.0.1", 0, max_size=None, **options)
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    try:
        yield made.socket.getsockname()[1]
    finally:
        stand.go.set()
        made.shutdown()
        thread.join(20)
