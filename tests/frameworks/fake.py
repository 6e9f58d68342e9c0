"""A loopback server that speaks like the APIs of OpenAI, Anthropic and Gemini, and keeps what it received.

What it answers is told by the last message: `tool NAME` asks for that tool, the result of a tool is repeated,
`fail STATUS` fails (`fail STATUS once`: only the first time), `cut` breaks a stream off in the middle.
Anything else is answered with `You said: …`.  Every answer bills 100 tokens of input, 40 of them cached, and
7 of output.
"""

from __future__ import annotations

import gzip
import json
import re
import socket
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self

Json = dict[str, Any]
INPUT, CACHED, OUTPUT = 100, 40, 7
ARGUMENTS = {"city": "Rome", "days": [1, 2]}
TOOL = re.compile(r"tool (\w+)")
FAIL = re.compile(r"fail (\d+)( once)?")
_DIALECTS = (
    ("/chat/completions", "openai-chat"), ("/responses", "openai-responses"), ("/messages", "anthropic"),
    ("generateContent", "gemini"),
)  # fmt: skip


class Received(NamedTuple):
    """One request."""

    path: str
    dialect: str
    body: Json
    headers: dict[str, str]
    status: int
    """That it was answered with."""


class Fake:
    """The server; `with Fake() as fake:`."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.failed: Counter[str] = Counter()
        self.lock = threading.Lock()
        self.number = 0
        fake = self

        class Handler(_Handler):
            server_of = fake

        self._server = _Server(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        """Its address, without a path."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def v1(self) -> str:
        """The base URL of OpenAI's clients."""
        return f"{self.url}/v1"

    def reset(self) -> None:
        """Forget what it received."""
        with self.lock:
            self.received.clear()
            self.failed.clear()

    @property
    def answered(self) -> list[Received]:
        """The requests that got an answer of a model."""
        return [one for one in self.received if one.status < 400]

    def next(self, what: str) -> str:
        """A new id."""
        with self.lock:
            self.number += 1
            return f"{what}_{self.number:06d}"


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that is gone is nothing to speak of."""


class Answer(NamedTuple):
    """What a model says: a text, or a call of a tool."""

    text: str
    tool: str | None = None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_of: Fake

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.headers.get("content-encoding") == "gzip":
            data = gzip.decompress(data)
        body = json.loads(data)
        dialect = next((name for part, name in _DIALECTS if part in self.path), "")
        if not dialect or "count_tokens" in self.path:
            self._reply(200, {"input_tokens": 1})
            return
        last = last_text(dialect, body)
        status = self._failing(last)
        with self.server_of.lock:
            self.server_of.received.append(Received(self.path, dialect, body, dict(self.headers), status))
        if status >= 400:
            self._reply(status, failure(dialect, status))
            return
        model = body.get("model") or self.path.rpartition("/")[2].partition(":")[0]
        tools = tool_names(body)
        wanted = TOOL.search(last)
        called = wanted.group(1) if wanted and wanted.group(1) in tools else None
        made = whole(dialect, Answer(f"You said: {last}", called), model, self.server_of.next)
        if body.get("stream") or "streamGenerateContent" in self.path:
            usage = bool((body.get("stream_options") or {}).get("include_usage"))
            self._stream(pieces(dialect, made, usage=usage), cut=last.startswith("cut"))
        else:
            self._reply(200, made)

    def _failing(self, last: str) -> int:
        found = FAIL.search(last)
        if found is None:
            return 200
        with self.server_of.lock:
            self.server_of.failed[last] += 1
            again = self.server_of.failed[last] > 1
        return 200 if found.group(2) and again else int(found.group(1))

    def _reply(self, status: int, value: Json) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("x-request-id", self.server_of.next("req"))
        if status >= 400:
            self.send_header("retry-after-ms", "1")
        if status < 400 and "gzip" in self.headers.get("accept-encoding", ""):
            data = gzip.compress(data)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, events: list[Any], *, cut: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for at, event in enumerate(events):
            if cut and at == len(events) // 2:
                self.wfile.flush()
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
                return
            name = f"event: {event['type']}\n" if isinstance(event, dict) and "type" in event else ""
            text = event if isinstance(event, str) else json.dumps(event)
            data = f"{name}data: {text}\n\n".encode()
            # In pieces that end anywhere, as a network delivers them.
            for part in (data[:9], data[9:]):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
                self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")


# -- what was asked -----------------------------------------------------------------------------------------


def last_text(dialect: str, body: Json) -> str:
    """The text of the last message."""
    field = {"openai-responses": "input", "gemini": "contents"}.get(dialect, "messages")
    given = body.get(field) or ""
    return texts(given[-1]) if isinstance(given, list) and given else texts(given)


def texts(value: Any) -> str:
    """All the text of a message, whatever its shape."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return " ".join(filter(None, map(texts, value)))
    if isinstance(value, dict):
        for field in ("text", "content", "output", "parts", "functionResponse", "response", "result"):
            if value.get(field):
                return texts(value[field])
    return ""


def tool_names(body: Json) -> set[str]:
    """The tools that a model may call."""
    found = set()
    for tool in body.get("tools") or ():
        inner = tool.get("function", tool)
        declared = tool.get("functionDeclarations") or [inner]
        found.update(one.get("name") for one in declared)
    return found


def failure(dialect: str, status: int) -> Json:
    """The body of an error."""
    kind = {429: "rate_limit_error", 401: "authentication_error"}.get(status, "api_error")
    error = {"type": kind, "message": "The fake server fails as it was asked to."}
    if dialect == "gemini":
        return {"error": {"code": status, "status": "UNAVAILABLE", "message": error["message"]}}
    return {"type": "error", "error": error} if dialect == "anthropic" else {"error": error}


# -- what is said -------------------------------------------------------------------------------------------


def whole(dialect: str, answer: Answer, model: str, new: Any) -> Json:
    """The body of an answer."""
    if dialect == "openai-chat":
        return _chat(answer, model, new)
    if dialect == "openai-responses":
        return _response(answer, model, new)
    if dialect == "anthropic":
        return _message(answer, model, new)
    part: Json = (
        {"functionCall": {"name": answer.tool, "args": ARGUMENTS}} if answer.tool else {"text": answer.text}
    )
    bill = {"promptTokenCount": INPUT, "cachedContentTokenCount": CACHED, "candidatesTokenCount": OUTPUT,
            "totalTokenCount": INPUT + OUTPUT}  # fmt: skip
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    return {"candidates": [candidate], "usageMetadata": bill, "modelVersion": model}


def _chat(answer: Answer, model: str, new: Any) -> Json:
    message: Json = {"role": "assistant", "content": answer.text}
    if answer.tool:
        function = {"name": answer.tool, "arguments": json.dumps(ARGUMENTS)}
        message = {"role": "assistant", "content": None,
                   "tool_calls": [{"id": new("call"), "type": "function", "function": function}]}  # fmt: skip
    return {
        "id": new("chatcmpl"), "object": "chat.completion", "created": 1_700_000_000, "model": model,
        "choices": [{"index": 0, "message": message, "logprobs": None,
                     "finish_reason": "tool_calls" if answer.tool else "stop"}],
        "usage": {"prompt_tokens": INPUT, "completion_tokens": OUTPUT, "total_tokens": INPUT + OUTPUT,
                  "prompt_tokens_details": {"cached_tokens": CACHED}},
    }  # fmt: skip


def _response(answer: Answer, model: str, new: Any) -> Json:
    item: Json = {"id": new("msg"), "type": "message", "role": "assistant", "status": "completed",
                  "content": [{"type": "output_text", "text": answer.text, "annotations": []}]}  # fmt: skip
    if answer.tool:
        item = {"id": new("fc"), "type": "function_call", "call_id": new("call"), "name": answer.tool,
                "arguments": json.dumps(ARGUMENTS), "status": "completed"}  # fmt: skip
    return {
        "id": new("resp"), "object": "response", "created_at": 1_700_000_000, "status": "completed",
        "model": model, "output": [item], "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
        "error": None, "incomplete_details": None, "instructions": None, "metadata": {},
        "usage": {"input_tokens": INPUT, "input_tokens_details": {"cached_tokens": CACHED},
                  "output_tokens": OUTPUT, "output_tokens_details": {"reasoning_tokens": 0},
                  "total_tokens": INPUT + OUTPUT},
    }  # fmt: skip


def _message(answer: Answer, model: str, new: Any) -> Json:
    block: Json = {"type": "text", "text": answer.text}
    if answer.tool:
        block = {"type": "tool_use", "id": new("toolu"), "name": answer.tool, "input": ARGUMENTS}
    return {
        "id": new("msg"), "type": "message", "role": "assistant", "model": model, "content": [block],
        "stop_reason": "tool_use" if answer.tool else "end_turn", "stop_sequence": None,
        "usage": {"input_tokens": INPUT - CACHED, "cache_read_input_tokens": CACHED,
                  "cache_creation_input_tokens": 0, "output_tokens": OUTPUT},
    }  # fmt: skip


def pieces(dialect: str, made: Json, *, usage: bool) -> list[Any]:
    """The same answer as the events of a stream."""
    if dialect == "openai-chat":
        return _chat_pieces(made, usage=usage)
    if dialect == "openai-responses":
        return _response_pieces(made)
    return _message_pieces(made) if dialect == "anthropic" else [made]


def _halves(text: str) -> list[str]:
    middle = len(text) // 2
    return [text[:middle], text[middle:]]


def _chat_pieces(made: Json, *, usage: bool) -> list[Any]:
    head = {
        "id": made["id"],
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": made["model"],
    }
    message, reason = made["choices"][0]["message"], made["choices"][0]["finish_reason"]
    deltas: list[Json] = [{"role": "assistant", "content": None if message.get("tool_calls") else ""}]
    if message.get("tool_calls"):
        call = message["tool_calls"][0]
        function = {"name": call["function"]["name"], "arguments": ""}
        deltas.append(
            {"tool_calls": [{"index": 0, "id": call["id"], "type": "function", "function": function}]}
        )
        deltas += [
            {"tool_calls": [{"index": 0, "function": {"arguments": part}}]}
            for part in _halves(call["function"]["arguments"])
        ]
    else:
        deltas += [{"content": part} for part in _halves(message["content"])]
    found: list[Any] = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas
    ]
    found.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    if usage:
        found.append({**head, "choices": [], "usage": made["usage"]})
    return [*found, "[DONE]"]


def _response_pieces(made: Json) -> list[Any]:
    item = made["output"][0]
    start = {**made, "status": "in_progress", "output": [], "usage": None}
    found: list[Json] = [{"type": "response.created", "response": start}]
    place = {"output_index": 0, "item_id": item["id"]}
    if item["type"] == "message":
        empty = {**item, "status": "in_progress", "content": []}
        part = item["content"][0]
        text = {**place, "content_index": 0}
        found += [
            {"type": "response.output_item.added", "output_index": 0, "item": empty},
            {"type": "response.content_part.added", **text, "part": {**part, "text": ""}},
            *(
                {"type": "response.output_text.delta", **text, "delta": half, "logprobs": []}
                for half in _halves(part["text"])
            ),
            {"type": "response.output_text.done", **text, "text": part["text"], "logprobs": []},
            {"type": "response.content_part.done", **text, "part": part},
        ]
    else:
        empty = {**item, "status": "in_progress", "arguments": ""}
        found += [
            {"type": "response.output_item.added", "output_index": 0, "item": empty},
            *(
                {"type": "response.function_call_arguments.delta", **place, "delta": half}
                for half in _halves(item["arguments"])
            ),
            {"type": "response.function_call_arguments.done", **place, "arguments": item["arguments"],
             "name": item["name"]},
        ]  # fmt: skip
    found.append({"type": "response.output_item.done", "output_index": 0, "item": item})
    found.append({"type": "response.completed", "response": made})
    return [{**event, "sequence_number": at} for at, event in enumerate(found)]


def _message_pieces(made: Json) -> list[Any]:
    block = made["content"][0]
    bill = {**made["usage"], "output_tokens": 1}
    start = {**made, "content": [], "stop_reason": None, "usage": bill}
    if block["type"] == "text":
        empty: Json = {"type": "text", "text": ""}
        deltas = [{"type": "text_delta", "text": half} for half in _halves(block["text"])]
    else:
        empty = {**block, "input": {}}
        halves = _halves(json.dumps(block["input"]))
        deltas = [{"type": "input_json_delta", "partial_json": half} for half in ["", *halves]]
    return [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": empty},
        {"type": "ping"},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": made["stop_reason"], "stop_sequence": None},
         "usage": {"output_tokens": OUTPUT}},
        {"type": "message_stop"},
    ]  # fmt: skip
