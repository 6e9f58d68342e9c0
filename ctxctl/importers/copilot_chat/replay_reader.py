"""Reads `.chatreplay.json` files: every request of a VS Code chat with its whole body."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ctxctl.importers.copilot_chat import reader
from ctxctl.ingest.build import VERSION_DIGITS, Json, canonical, digest_of
from ctxctl.ingest.conversation import Conversation
from ctxctl.ingest.document import document
from ctxctl.ingest.lines import Report
from ctxctl.ingest.parts import Part, call_title, count, mapping, parsed, string
from ctxctl.ingest.run import Run
from ctxctl.model import vocab
from ctxctl.providers.usage import usage_record
from ctxctl.trace.source import Source

NAME: Final = "copilot-chatreplay"
_ROLES: Final = {0: "system", 1: "user", 2: "assistant", 3: "tool"}
_TEXT, _IMAGE = 1, 2


class Replay(Run):
    """One exported log: prompts, and under each the requests that it set off."""

    def __init__(self, name: str, report: Report) -> None:
        super().__init__(name, report)
        self._main: str | None = None
        """The name that the requests of the main thread have."""
        self._turn = 0
        self._titles: dict[str, str] = {}

    def events(self, source: Source) -> Iterator[Json]:
        """The log's events; the file is one document and is held whole."""
        value = document(source, self.report)
        for prompt in _prompts(value):
            if self._turn == 0 or prompt.get("hasSeen") is not True:
                self._turn += 1
            logs = prompt.get("logs")
            for entry in logs if isinstance(logs, list) else []:
                if isinstance(entry, dict) and entry.get("kind") == "request":
                    self._request(entry, prompt)
                    yield from self.drain()
        yield from self.finish()

    def _request(self, entry: Json, prompt: Json) -> None:
        metadata = mapping(entry.get("metadata"))
        self.make.at(metadata.get("startTime"))
        body = entry.get("requestMessages")
        messages = body.get("messages") if isinstance(body, dict) else None
        if not isinstance(messages, list):
            self.problem("unknown-record", "a request without its messages; skipped")
            return
        conversation = self._conversation(string(entry.get("name")))
        conversation.turn = string(prompt.get("promptId")) or f"prompt-{self._turn}"
        conversation.replace([*_tools(metadata.get("tools")), *self._cut(messages)])
        limit = count(metadata.get("maxPromptTokens"))
        if limit:
            budget = {"budget_id": "maxPromptTokens", "target": vocab.MODEL, "max_tokens": limit}
            conversation.tell(vocab.BUDGET_APPLIED, budget)
        model = string(metadata.get("model"))
        conversation.request(
            string(entry.get("id")), model=model, native_id=string(metadata.get("requestId"))
        )
        conversation.usage(_usage(metadata.get("usage"), model))
        self.make.at(metadata.get("endTime"))
        conversation.append(*_answer(entry.get("response")))

    def _conversation(self, name: str | None) -> Conversation:
        """The thread of the requests of a name: the first name is the chat's; titles and summaries stand
        beside it."""
        if not self.threads:
            self._main = name
        return self.thread(None if name == self._main else name)

    def _cut(self, messages: list[Any]) -> list[Part]:
        made: list[Part] = []
        systems = 0
        for message in messages:
            if not isinstance(message, dict):
                continue
            given = message.get("role")
            role = _ROLES.get(given, "user") if isinstance(given, int) else string(given) or "user"
            blocks = _blocks(message.get("content"))
            if role == "system":
                for text in blocks:
                    key = "system" if systems == 0 else f"system/{systems + 1}"
                    systems += 1
                    made.append(
                        text if isinstance(text, Part) else Part("system_prompt", text, "system", key=key)
                    )
            elif role == "assistant":
                made += [_said(text, "assistant_message", "assistant") for text in blocks if text]
                made += self._calls(message.get("toolCalls"))
            elif role == "tool":
                made += self._result(message, blocks)
            else:
                made += _asked(blocks)
        return made

    def _calls(self, calls: Any) -> list[Part]:
        made: list[Part] = []
        for call in calls if isinstance(calls, list) else []:
            function = call.get("function") if isinstance(call, dict) else None
            if not isinstance(function, dict):
                continue
            name = string(function.get("name")) or "tool"
            arguments = parsed(function.get("arguments"))
            text = f"{name} {arguments if isinstance(arguments, str) else canonical(arguments or {})}"
            title = call_title(name, arguments)
            key = string(call.get("id"))
            if key is not None:
                self._titles[key] = title
            made.append(Part("tool_call", text, "assistant", key=key, title=title))
        return made

    def _result(self, message: Json, blocks: list[str | Part]) -> list[Part]:
        call = string(message.get("toolCallId"))
        title = self._titles.get(call) if call is not None else None
        made: list[Part] = []
        for index, text in enumerate(blocks or [""]):
            key = None if call is None else f"{call}/result" if index == 0 else f"{call}/result/{index}"
            if isinstance(text, Part):
                text.item, text.role = key or "", "tool"
                made.append(text)
            else:
                made.append(Part("tool_result", text, "tool", key=key, title=title))
        return made


def _prompts(value: Any) -> list[Json]:
    """The prompts of an export: of a whole log, or of one prompt."""
    if not isinstance(value, dict):
        return []
    found = value.get("prompts")
    if isinstance(found, list):
        return [prompt for prompt in found if isinstance(prompt, dict)]
    return [value] if isinstance(value.get("logs"), list) else []


def _tools(definitions: Any) -> list[Part]:
    made: list[Part] = []
    for tool in definitions if isinstance(definitions, list) else []:
        if isinstance(tool, dict):
            function = tool.get("function")
            name = string((function if isinstance(function, dict) else tool).get("name")) or "tool"
            made.append(Part("tool_definition", canonical(tool), "system", key=f"tool:{name}", title=name))
    return made


def _blocks(content: Any) -> list[str | Part]:
    """The texts and images of a message; cache marks are no content."""
    if isinstance(content, str):
        return [content]
    made: list[str | Part] = []
    for block in content if isinstance(content, list) else []:
        if isinstance(block, str):
            made.append(block)
        elif isinstance(block, dict):
            text = block.get("text")
            if isinstance(text, str):
                made.append(text)
            elif block.get("type") == _IMAGE or "imageUrl" in block:
                made.append(_image(block))
    return made


def _image(block: Json) -> Part:
    url = block.get("imageUrl")
    found = url.get("url") if isinstance(url, dict) else url
    data = found if isinstance(found, str) else canonical(block)
    mime = data[5:].split(";")[0] if data.startswith("data:") else None
    size = len(data.partition(",")[2]) * 3 // 4 if mime is not None else None
    return Part(
        "image", None, "user", version=digest_of(data)[:VERSION_DIGITS], mime_type=mime, byte_size=size
    )


def _said(text: str | Part, kind: str, role: str) -> Part:
    return text if isinstance(text, Part) else Part(kind, text, role)


def _asked(blocks: list[str | Part]) -> list[Part]:
    made: list[Part] = []
    for text in blocks:
        if isinstance(text, Part):
            made.append(text)
        else:
            made += [Part(p.kind, p.text, "user", title=p.tag) for p in reader.pieces(text)]
    return made


def _answer(response: Any) -> list[Part]:
    """The text that the model answered; its calls stand in the next request."""
    given = response.get("message") if isinstance(response, dict) else None
    texts = [given] if isinstance(given, str) else given if isinstance(given, list) else []
    return [Part("assistant_message", text, "assistant") for text in texts if isinstance(text, str) and text]


def _usage(usage: Any, model: str | None) -> Json | None:
    if not isinstance(usage, dict):
        return None
    prompt, completion = usage.get("prompt_tokens_details"), usage.get("completion_tokens_details")
    return usage_record(
        input_tokens=usage.get("prompt_tokens"),
        output_tokens=usage.get("completion_tokens"),
        cached=prompt.get("cached_tokens") if isinstance(prompt, dict) else None,
        reasoning=completion.get("reasoning_tokens") if isinstance(completion, dict) else None,
        model=model,
        bill=usage,
    )
