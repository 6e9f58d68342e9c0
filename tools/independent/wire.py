"""Requests as they went over the wire, out of what wraps them: pairs, cassettes, archives, logs of proxies.

Each reader yields a capture's requests to a model in the order of the file, with the bill of their answers.
What a body holds is read by the providers' own API references: Anthropic Messages, OpenAI Chat Completions
and Responses, Gemini generateContent.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from tools.independent import left_out
from tools.independent.bills import PI, Bill, apart, of_anthropic, of_gemini, of_openai
from tools.independent.raw import Object, at, events, lines, objects, values
from tools.independent.samples import resolved, samples


class Request(NamedTuple):
    """One request to a model."""

    body: Object
    bill: Bill | None
    said: Any = None
    """Its answer, as recorded."""

    @property
    def model(self) -> str:
        return str(self.body.get("model") or "")

    @property
    def read(self) -> Object:
        """Its body as the model read it."""
        if dialect(self.body) != "anthropic" or "messages" not in self.body:
            return self.body
        passes = at(usage(self.said), "iterations")
        return left_out.read(self.body, self.said, passes if isinstance(passes, list) else [])


class Block(NamedTuple):
    """A piece of a request that the provider reads as one: a tool, a part of a message."""

    part: str
    """`tools`, `system`, or the role of its message."""
    kind: str
    ident: str | None
    """What names it across requests: the name of a tool, the id of a call and which end of it."""
    content: str
    """Canonical JSON of the part, less what is no content (`cache_control`)."""
    text: str | None
    """Its text, where it is text and nothing else."""


def requests(path: Path) -> list[Request]:
    """The requests that a capture holds, in its order; none of a file that holds no wire bodies."""
    if path.is_dir():
        return list(_folder(path))
    if path.suffix in {".yaml", ".yml"}:
        return list(_cassette(path))
    found: list[Request] = []
    waiting: list[Object] = []
    if path.suffix == ".eval" or any(isinstance(at(one, "samples"), list) for one in _first(path)):
        return [request for sample in samples(path) for request in _sample(sample)]
    for one in objects(path) if path.suffix != ".jsonl" else lines(path):
        found += _of(one, waiting)
    return found


def _first(path: Path) -> list[Any]:
    return objects(path)[:1] if path.suffix == ".json" else []


def _sample(sample: Any) -> Iterator[Request]:
    """The requests of a sample of Inspect, as its log has the provider's own call."""
    for event in at(sample, "events") or at(sample, "transcript", "events") or ():
        call = at(event, "call")
        if at(event, "event") == "model" and isinstance(at(call, "request"), dict):
            yield from _request(resolved(call["request"], sample), at(call, "response"), None)


def _of(one: Any, waiting: list[Object]) -> Iterator[Request]:
    """The requests of one object of a file."""
    if isinstance(at(one, "log", "entries"), list):  # HAR
        for entry in one["log"]["entries"]:
            body = _body(at(entry, "request", "postData", "text"))
            text = at(entry, "response", "content", "text")
            if at(entry, "response", "content", "encoding") == "base64" and isinstance(text, str):
                text = base64.b64decode(text).decode("utf-8", "replace")
            yield from _request(body, text, at(entry, "request", "url"))
    elif isinstance(at(one, "request", "body"), dict):  # claude-trace
        answer = at(one, "response", "body_raw") or at(one, "response", "body")
        if events_ := at(one, "response", "ws_events"):
            answer = "\n".join(json.dumps(event) for event in events_)
        yield from _request(one["request"]["body"], answer, at(one, "request", "url"))
    elif isinstance(at(one, "request"), dict) and isinstance(at(one, "response"), dict):  # a pair
        yield from _request(one["request"], one["response"], None)
    elif at(one, "type") == "request" and isinstance(at(one, "messages"), list):  # SWE-agent, late in 2025
        waiting.append(one)
    elif isinstance(at(one, "request_params", "messages"), list):  # SWE-agent: the answer is another line
        waiting.append(one["request_params"])
    elif at(one, "type") == "response" and waiting:
        yield from _request(waiting.pop(0), at(one, "response") or {"usage": one}, None)
    elif (
        isinstance(one, list) and "before_provider_request" in one
    ):  # pi's extension: `[…, event, payload, …]`
        waiting.append(at(one[one.index("before_provider_request") + 1], "payload"))
    elif isinstance(one, list) and "message_end" in one and waiting:
        message = at(one[one.index("message_end") + 1], "message")
        if at(message, "role") == "assistant":
            yield Request(waiting.pop(0), apart(at(message, "usage"), *PI, None), message)
    elif isinstance(at(one, "messages"), list) and isinstance(at(one, "response"), dict):  # litellm's log
        tools = at(one, "kwargs", "tools") or at(one, "tools")
        body = {"model": at(one, "response", "model"), "messages": one["messages"]}
        yield from _request({**body, "tools": tools} if tools else body, one["response"], None)
    elif isinstance(at(one, "body"), dict) and "url" in one:  # a request by itself
        yield from _request(one["body"], None, one["url"])
    elif isinstance(at(one, "input", "messages"), list) and isinstance(at(one, "output"), dict):  # goose
        usage = at(one, "output", "usage", "usage")
        body = {"model": at(one, "output", "usage", "model"), **one["input"]}
        yield Request(body, of_openai(usage) or of_anthropic(usage), one["output"])
    elif at(one, "event") == "llm:request" and isinstance(at(one, "data", "raw"), dict):  # Amplifier
        waiting.append(one["data"]["raw"])
    elif at(one, "event") == "llm:response" and waiting:
        yield Request(waiting.pop(0), of_anthropic(at(one, "data", "raw", "usage")), at(one, "data", "raw"))
    elif isinstance(one, dict) and one and all(isinstance(held, dict) for held in one.values()):
        inner = [held for value in one.values() for held in _of(value, waiting)]
        yield from sorted(inner, key=_created)  # goose names its recordings by digest


def _created(request: Request) -> float:
    """When goose says that the answer came; of others the order of the file is kept."""
    return float(at(request.said, "message", "created") or 0)


def _folder(path: Path) -> Iterator[Request]:
    """Bodies that lie beside their answers, each in a file of its own."""
    for file in sorted(path.glob("*.request.json")):
        answer = file.with_name(file.name.replace(".request.json", ".response.txt"))
        text = answer.read_text(encoding="utf-8", errors="replace") if answer.exists() else None
        yield from _request(_body(file.read_text(encoding="utf-8", errors="replace")), text, None)


def _cassette(path: Path) -> Iterator[Request]:
    import yaml

    whole = yaml.load(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    for one in at(whole, "interactions") or ():
        asked, told = at(one, "request"), at(one, "response")
        body = at(asked, "parsed_body") or _body(at(asked, "body"))
        answer = at(told, "parsed_body") or _plain(at(told, "body"))
        yield from _request(body, answer, at(asked, "uri"))


def _plain(body: Any) -> Any:
    """The text of a recorded body, of whatever wrapping; an object stays one."""
    if isinstance(body, dict):
        body = next((body[name] for name in ("string", "base64_string", "content") if name in body), None)
    if isinstance(body, str) and re.fullmatch(r"[A-Za-z0-9+/=\s]{16,}", body):
        try:
            body = base64.b64decode(body, validate=False)
        except ValueError:
            return body
    if isinstance(body, bytes):
        body = gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body
        return body.decode("utf-8", "replace")
    return body


def _body(body: Any) -> Any:
    text = _plain(body)
    if isinstance(text, dict):
        return text
    return next(values(text), None) if isinstance(text, str) else None


def _request(body: Any, answer: Any, url: Any) -> Iterator[Request]:
    """A request, where the body asks a model for an answer (and not for a count, or for a file)."""
    if not isinstance(body, dict) or (
        isinstance(url, str) and re.search(r"count_?tokens|/embeddings", url, re.I)
    ):
        return
    if "model" not in body and isinstance(url, str) and (named := re.search(r"/models/([^:/?]+)", url)):
        body = {**body, "model": named.group(1)}
    asks = any(isinstance(body.get(name), (list, str)) for name in ("messages", "input", "contents"))
    if asks and ("messages" in body or "contents" in body or "model" in body):
        yield Request(body, bill(answer), answer)


def bill(answer: Any) -> Bill | None:
    """The bill of an answer: of its body, or of the events of its stream, the last word on each part."""
    if isinstance(answer, str):
        told = events(answer)
        if not told:
            told = [one for one in values(answer) if isinstance(one, dict)]
            if len(told) == 1:
                return bill(told[0])
        if streamed := usage(answer):
            idents = (at(event, "message", "id") for event in told)
            return of_anthropic(streamed, next((one for one in idents if one is not None), None))
        found: Bill | None = None
        for event in told:
            found = (
                _flat(event.get("response") if isinstance(event.get("response"), dict) else event) or found
            )
        return found
    return _flat(answer)


def usage(answer: Any) -> Object:
    """Anthropic's usage of an answer: of a stream the last word of its events on each part."""
    if not isinstance(answer, str):
        return at(answer, "usage") or {}
    found: Object = {}
    for event in events(answer) or [one for one in values(answer) if isinstance(one, dict)]:
        told = [at(event, "message", "usage"), event.get("type") == "message_delta" and event.get("usage")]
        for one in told:
            found |= {k: v for k, v in one.items() if v is not None} if isinstance(one, dict) else {}
    return found


def _flat(answer: Any) -> Bill | None:
    """The bill of one object."""
    if not isinstance(answer, dict):
        return None
    usage, ident = answer.get("usage"), answer.get("id")
    if isinstance(answer.get("usageMetadata"), dict):
        return of_gemini(answer["usageMetadata"], answer.get("responseId"))
    if not isinstance(usage, dict):
        return None
    if "prompt_tokens" in usage or "input_tokens_details" in usage or answer.get("object") == "response":
        return of_openai(usage, ident)
    return of_anthropic(usage, ident)


def dialect(body: Object) -> str:
    """Whose words a body speaks."""
    if "contents" in body:
        return "gemini"
    if any("created" in m and "metadata" in m for m in _list(body.get("messages")) if isinstance(m, dict)):
        return "goose"
    if "input" in body:
        return "responses"
    messages = [m for m in body.get("messages") or () if isinstance(m, dict)]
    kinds = {str(b.get("type")) for m in messages for b in _list(m.get("content")) if isinstance(b, dict)}
    if "system" in body or kinds & {"tool_use", "tool_result", "thinking"}:
        return "anthropic"
    tools = [t for t in body.get("tools") or () if isinstance(t, dict)]
    if any("input_schema" in t for t in tools):
        return "anthropic"
    if (
        str(body.get("model", "")).startswith("claude")
        and "max_tokens" in body
        and not any("function" in t for t in tools)
    ):
        return "anthropic"
    return "chat"


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def canonical(value: Any) -> str:
    """JSON that is equal for equal content; where the cache is to be marked is no content."""

    def bare(inner: Any) -> Any:
        if isinstance(inner, dict):
            return {key: bare(v) for key, v in inner.items() if key != "cache_control"}
        return [bare(v) for v in inner] if isinstance(inner, list) else inner

    return json.dumps(bare(value), ensure_ascii=False, sort_keys=True)


def blocks(body: Object) -> list[Block]:
    """The pieces of a request in the provider's order: tools, the schema of its answer, system, messages."""
    made = {
        "anthropic": _anthropic,
        "chat": _chat,
        "responses": _responses,
        "gemini": _gemini,
        "goose": _goose,
    }
    found = [one for block in made[dialect(body)](body) for one in _reminders(block)]
    tools = [b for b in found if b.part == "tools"]
    return [*tools, *_schema(body), *(b for b in found if b.part != "tools")]


_REMINDER = re.compile(r"(<system-reminder(?: [^>]*)?>.*?</system-reminder>)", re.S)
_SOURCE = re.compile(r'<system-reminder [^>]*?source="([^"]*)"')


def _reminders(block: Block) -> Iterator[Block]:
    """A runtime's reminders inside a text are pieces of their own: they come and go by themselves."""
    if block.text is None or block.part == "system" or "<system-reminder" not in block.text:
        yield block
        return
    for piece in _REMINDER.split(block.text):
        if piece.strip():
            yield _piece(block.part, piece)


def _piece(part: str, piece: str) -> Block:
    """A piece of a text; a reminder that names its source is the same one from request to request."""
    source = _SOURCE.match(piece)
    return _text(part, "text", piece, f"reminder {source[1]}" if source else None)


_SCHEMAS = (
    ("response_format",), ("text", "format"), ("generationConfig", "responseSchema"),
    ("generationConfig", "responseJsonSchema"), ("output_config", "format"), ("output_format",),
)  # fmt: skip


def _schema(body: Object) -> Iterator[Block]:
    """The schema that the answer has to follow: the model is given it."""
    for where in _SCHEMAS:
        held = at(body, *where)
        if isinstance(held, dict) and (where[0] == "generationConfig" or "schema" in str(held.get("type"))):
            yield Block("schema", "schema", "schema", canonical(held), None)


def chained(requests: list[Request]) -> list[list[Block]]:
    """The blocks of each request, with what the server kept of the one that it names as previous."""
    whole: dict[str, list[Block]] = {}
    found = []
    for request in requests:
        own = blocks(request.read)
        before = whole.get(str(request.body.get("previous_response_id")), [])
        front = list(takewhile(lambda b: b.part in {"tools", "schema"} or b.kind == "system", own))
        found.append([*front, *_after_compaction([*before, *own[len(front) :]])])
        said = answer(request.said)
        output = [item for item in _list(said.get("output")) if isinstance(item, dict)]
        if said.get("id"):
            kept = [*before, *own[len(front) :], *blocks({"input": output, "model": ""})]
            packed = [i for i, b in enumerate(kept) if b.kind.startswith("compaction")]
            whole[str(said["id"])] = kept[packed[-1] if packed else 0 :]
    return found


def _after_compaction(talk: list[Block]) -> list[Block]:
    """What of a conversation is read: nothing before a compaction, but what users said where that was kept.

    `/responses/compact` gives out what users said and its own item, and all of it is read; an answer before
    the item is of a history that the provider itself compacted.
    """
    marks = [place for place, block in enumerate(talk) if block.kind.startswith("compaction")]
    last = marks[-1] if marks else 0
    answers = [b for b in talk[:last] if b.part == "assistant" and not b.kind.startswith("compaction")]
    return talk[last:] if answers else talk


def _text(part: str, kind: str, text: str, ident: str | None = None) -> Block:
    return Block(part, kind, ident, canonical({"type": "text", "text": text}), text)


def _tools(found: Any) -> Iterator[Block]:
    for tool in [found] if isinstance(found, dict) else _list(found):
        held = at(tool, "function") if isinstance(at(tool, "function"), dict) else tool
        inner = at(tool, "functionDeclarations") or at(tool, "function_declarations")
        if isinstance(inner, list):
            yield from _tools(inner)
            continue
        name = at(held, "name") or at(held, "type") or at(held, "server_label")
        if name is None and isinstance(held, dict) and held:
            name = next(iter(held))
        yield Block("tools", "tool", f"tool {name}", canonical(tool), None)


def answer(said: Any) -> Object:
    """The body of an answer of the Responses interface, also of a streamed one: its last event has it."""
    if isinstance(said, str):
        told = events(said) or [one for one in values(said) if isinstance(one, dict)]
        said = next((e["response"] for e in reversed(told) if isinstance(e.get("response"), dict)), None)
    return said if isinstance(said, dict) else {}


def _anthropic(body: Object) -> Iterator[Block]:
    yield from _tools(body.get("tools"))
    system = body.get("system")
    for number, part in enumerate([system] if isinstance(system, str) else _list(system)):
        text = part if isinstance(part, str) else str(at(part, "text") or "")
        yield _text("system", "system", text, f"system {number}")
    for message in _list(body.get("messages")):
        role, content = str(at(message, "role")), at(message, "content")
        for part in [content] if isinstance(content, str) else _list(content):
            kind = "text" if isinstance(part, str) else str(at(part, "type"))
            if kind == "text":
                yield _text(role, "text", part if isinstance(part, str) else str(at(part, "text") or ""))
                continue
            if kind == left_out.FOUND:
                yield from (block._replace(part=role) for block in _tools([part["tool"]]))
                continue
            ident = at(part, "id") if kind.endswith("tool_use") else at(part, "tool_use_id")
            named = f"{'call' if kind.endswith('tool_use') else 'result'} {ident}" if ident else None
            yield from _result(Block(role, kind, named, canonical(part), None), part)


def _result(block: Block, part: Any) -> Iterator[Block]:
    """A result, and the reminders that a runtime put behind its text."""
    held = at(part, "content")
    if block.kind != "tool_result" or not isinstance(held, str) or "<system-reminder" not in held:
        yield block
        return
    own, *behind = _REMINDER.split(held)
    if own.strip():
        yield block._replace(content=canonical({**part, "content": own.rstrip()}))
    for piece in behind:
        if piece.strip():
            yield _piece(block.part, piece)


def _chat(body: Object) -> Iterator[Block]:
    yield from _tools(body.get("tools"))
    yield from _tools(body.get("functions"))
    for message in _list(body.get("messages")):
        role, content = str(at(message, "role")), at(message, "content")
        calls = _list(at(message, "tool_calls"))
        if role != "tool" and (content == "" or (content in (None, []) and not calls)):
            yield _text(role, "text", "")
        if role == "tool":
            ident = at(message, "tool_call_id")
            yield Block(role, "tool_result", f"result {ident}" if ident else None, canonical(content), None)
            continue
        if at(message, "reasoning_content"):
            yield _text(role, "reasoning", str(message["reasoning_content"]))
        for part in [content] if isinstance(content, str) else _list(content):
            if isinstance(part, str) or at(part, "type") in {"text", "input_text", "output_text"}:
                text = part if isinstance(part, str) else str(at(part, "text") or "")
                if text:
                    yield _text(role, "text", text)
            else:
                yield Block(role, str(at(part, "type")), None, canonical(part), None)
        for call in calls:
            yield Block(role, "tool_use", f"call {at(call, 'id')}", canonical(call), None)


def _responses(body: Object) -> Iterator[Block]:
    yield from _tools(body.get("tools"))
    if body.get("instructions"):
        yield _text("system", "system", str(body["instructions"]), "system 0")
    given = body.get("input")
    for item in [{"role": "user", "content": given}] if isinstance(given, str) else _list(given):
        kind = str(at(item, "type") or "message")
        if kind == "message":
            content = at(item, "content")
            for part in [content] if isinstance(content, str) else _list(content):
                if isinstance(part, str) or str(at(part, "type")).endswith("text"):
                    yield _text(
                        str(at(item, "role")),
                        "text",
                        part if isinstance(part, str) else str(at(part, "text") or ""),
                    )
                else:
                    yield Block(str(at(item, "role")), str(at(part, "type")), None, canonical(part), None)
            continue
        if kind == "reasoning" and (parts := [p for p in _list(at(item, "summary")) if at(p, "text")]):
            for number, part in enumerate(parts):
                yield _text(
                    "assistant", "reasoning", str(part["text"]), f"reasoning {at(item, 'id')} {number}"
                )
            if at(item, "encrypted_content"):
                yield Block(
                    "assistant",
                    "reasoning",
                    f"reasoning {at(item, 'id')}",
                    canonical(item["encrypted_content"]),
                    None,
                )
            continue
        ident, own = at(item, "call_id"), at(item, "id")
        named = (
            f"{'result' if kind.endswith('output') else 'call'} {ident}" if ident else own and f"{kind} {own}"
        )
        yield Block("assistant", kind, named, canonical(item), None)


def _gemini(body: Object) -> Iterator[Block]:
    yield from _tools(body.get("tools"))
    system = body.get("systemInstruction") or body.get("system_instruction")
    for number, part in enumerate(
        _list(at(system, "parts")) if isinstance(system, dict) else [system] if system else []
    ):
        yield _text(
            "system",
            "system",
            part if isinstance(part, str) else str(at(part, "text") or ""),
            f"system {number}",
        )
    for message in _list(body.get("contents")):
        role = str(at(message, "role") or "user")
        for part in _list(at(message, "parts")):
            if isinstance(at(part, "text"), str) and set(part) <= {"text"}:
                yield _text(role, "text", part["text"])
            else:
                yield Block(
                    role,
                    next(iter(part), "part") if isinstance(part, dict) else "part",
                    None,
                    canonical(part),
                    None,
                )


def _goose(body: Object) -> Iterator[Block]:
    """goose's own messages, of which it makes the provider's."""
    yield from _tools(body.get("tools"))
    if body.get("system"):
        yield _text("system", "system", str(body["system"]), "system 0")
    for message in _list(body.get("messages")):
        role = str(at(message, "role"))
        for part in _list(at(message, "content")):
            kind = str(at(part, "type"))
            if kind == "text":
                yield _text(role, kind, str(at(part, "text") or ""))
                continue
            end = {"toolRequest": "call", "toolResponse": "result"}.get(kind)
            yield Block(role, kind, f"{end} {at(part, 'id')}" if end else None, canonical(part), None)
