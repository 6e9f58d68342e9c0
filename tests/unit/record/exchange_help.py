"""Exchanges with a model API made by hand, and what became of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ctxctl import Recorder
from ctxctl.record.exchange import Exchange, Exchanges
from ctxctl.session import Inspector
from tests.unit.providers.wire_rebuild import check

Json = dict[str, Any]
CHAT = "https://api.example/v1/chat/completions"
MESSAGES = "https://api.example/v1/messages"
RESPONSES = "https://api.example/v1/responses"
GEMINI = "https://api.example/v1beta/models/gemini-3:streamGenerateContent?alt=sse"
DIALECTS = {
    CHAT: "openai-chat", MESSAGES: "anthropic", RESPONSES: "openai-responses", GEMINI: "gemini",
}  # fmt: skip
JSON = [("Content-Type", "application/json")]
SSE = [("content-type", "text/event-stream; charset=utf-8")]
TOOLS = [
    {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
]
BILL = {"prompt_tokens": 50, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 10}}


class Wire:
    """A recorder that is told of exchanges, and the bodies that it was told."""

    def __init__(self, path: Path, **options: Any) -> None:
        self.path = path
        self.recorder = Recorder(path, strict=True, **options)
        self.exchanges = Exchanges(self.recorder)
        self.bodies: list[tuple[str, Json]] = []

    def send(self, body: Json, url: str = CHAT, headers: Any = JSON, *, again: bool = False) -> Exchange:
        if not again:
            self.bodies.append((DIALECTS[url], body))
        exchange = self.exchanges.begin("POST", url, headers, json.dumps(body).encode())
        assert exchange is not None
        return exchange

    def ask(self, body: Json, response: Any, url: str = CHAT, headers: Any = JSON) -> None:
        answer(self.send(body, url, headers), response)

    def close(self) -> None:
        """Every frame must be the body that was sent, and nothing may be lost."""
        self.recorder.close()
        assert (self.recorder.dropped, self.recorder._core.journal.errors) == (0, {})
        if not self.bodies:
            return
        with Inspector.open(str(self.path)) as inspector:
            list(inspector.replay())
            assert check(inspector, self.bodies) == len(self.bodies)


def carried(path: Path) -> list[int]:
    """How many items each request carried."""
    with Inspector.open(str(path)) as inspector:
        list(inspector.replay())
        steps = inspector.summary.steps if inspector.summary else 0
        return [len(inspector.frame(at).placements) for at in range(steps)]


def answer(exchange: Exchange, response: Any, status: int = 200, how: str = "complete") -> None:
    exchange.head(status, JSON)
    exchange.data(json.dumps(response).encode())
    exchange.end(how)


def chat(content: str | None = None, **message: Any) -> Json:
    said = {"role": "assistant", "content": content, **message}
    choice = {"index": 0, "message": said, "finish_reason": "stop"}
    return {"id": "r", "object": "chat.completion", "model": "m-1", "choices": [choice], "usage": BILL}


def call(number: int, arguments: str = "{}") -> Json:
    return {"id": f"c{number}", "type": "function", "function": {"name": "look", "arguments": arguments}}


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def said(text: str) -> Json:
    return {"role": "assistant", "content": text}


def body(*messages: Json, system: str = "Be brief.", **more: Any) -> Json:
    return {"model": "m-1", "messages": [{"role": "system", "content": system}, *messages], **more}
