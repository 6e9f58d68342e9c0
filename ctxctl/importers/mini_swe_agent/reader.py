"""Makes the windows of requests from a run's messages: each request carried all messages before its
answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from ctxctl.ingest.build import Json
from ctxctl.ingest.chat import Chat
from ctxctl.ingest.conversation import Conversation
from ctxctl.ingest.document import document
from ctxctl.ingest.parts import Part, first_line, mapping, string
from ctxctl.ingest.run import Run
from ctxctl.providers.usage import chat_usage, clock, stated_total
from ctxctl.trace.source import Source

_OPENING: Final = re.compile(r"```(?:mswea_bash_command|bash)[ \t]*\n")
_END: Final = "\n```"


class Trajectory(Run):
    """One import of a `.traj.json` file."""

    def events(self, source: Source) -> Iterator[Json]:
        """The run's steps."""
        value = document(source, self.report)
        if not isinstance(value, dict):
            if value is not None:
                self.problem("not-a-record", "the document is not an object; not read")
            return
        messages = value.get("messages")
        self.session = string(value.get("instance_id"))
        info = value.get("info")
        self.make.by(info.get("mini_version") if isinstance(info, dict) else None)
        thread = self.thread()
        model = _model(value.get("info"))
        chat = Chat()
        turns = answered = 0
        command: str | None = None
        for at, message in enumerate(messages if isinstance(messages, list) else []):
            if not isinstance(message, dict) or message.get("role") == "exit":
                continue
            extra = mapping(message.get("extra"))
            answer = message.get("role") == "assistant" or message.get("object") == "response"
            refused = _refused(message, extra)
            if answer or refused:
                self._ask(thread, message, extra, model)
                answered += 1
                yield from self.drain()
            asked = message.get("role") == "user" and not refused and (not answered or _interjected(extra))
            if asked:
                turns += 1
                thread.turn = f"turn-{turns}"
            parts = (
                chat.cut(message, kind="policy_note")
                if refused
                else _cut(chat, message, asked=asked, command=command)
            )
            thread.append(*_placed(parts, at))
            command = _command(message, extra) if answer else command
        stats = mapping(mapping(info).get("model_stats"))
        total = stated_total(
            "session", usd=stats.get("instance_cost"), requests=stats.get("api_calls"), model=model
        )
        thread.stated(total)
        yield from self.finish()

    def _ask(self, thread: Conversation, message: Json, extra: Json, model: str | None) -> None:
        """Seal the step of an answer, whose raw response holds the bill."""
        response = extra.get("response")
        response = response if isinstance(response, dict) else message if "usage" in message else {}
        self.make.at(clock(response.get("created")) or clock(extra.get("timestamp")))
        answered = string(response.get("model")) or model
        thread.request(model=answered, native_id=string(response.get("id")), derived=True)
        provider = string(response.get("provider"))
        thread.usage(chat_usage(response.get("usage"), provider=provider, model=answered))


def _command(message: Json, extra: Json) -> str | None:
    """The command of a textual answer, which names its output."""
    actions = extra.get("actions")
    if isinstance(actions, list) and len(actions) == 1 and isinstance(actions[0], dict):
        return first_line(actions[0].get("command"))
    content = message.get("content")
    blocks = list(islice(_blocks(content), 2)) if isinstance(content, str) else []
    return first_line(blocks[0]) if len(blocks) == 1 else None


def _blocks(text: str) -> Iterator[str]:
    """The commands in a text; where one does not end, none that begins behind it does."""
    opening = _OPENING.search(text)
    while opening is not None:
        end = text.find(_END, opening.end())
        if end < 0:
            return
        yield text[opening.end() : end]
        opening = _OPENING.search(text, end + len(_END))


def _cut(chat: Chat, message: Json, *, asked: bool, command: str | None) -> list[Part]:
    output = message.get("output")
    if message.get("type") == "function_call_output":
        return chat.result(string(message.get("call_id")), output)
    if message.get("object") == "response" and isinstance(output, list):
        return [part for item in output if isinstance(item, dict) for part in chat.item(item)]
    # Without tool calls, what a command printed comes back as a user's message.
    if message.get("role") == "user" and not asked:
        return chat.cut(message, kind="tool_result", title=command)
    return chat.cut(message)


def _placed(parts: list[Part], at: int) -> list[Part]:
    for index, part in enumerate(parts):
        part.place = f"message-{at}" if index == 0 else f"message-{at}/{index}"
    return parts


def _refused(message: Json, extra: Json) -> bool:
    """Whether a message tells the model that its answer could not be used.

    The answer itself stays out of the history; its request was made, and billed.
    """
    return (
        message.get("role") != "assistant"
        and extra.get("interrupt_type") == "FormatError"
        and isinstance(extra.get("response"), dict)
    )


def _interjected(extra: Json) -> bool:
    return (string(extra.get("interrupt_type")) or "").startswith("User")


def _model(info: Any) -> str | None:
    for name in ("config", "model", "model_name"):
        info = info.get(name) if isinstance(info, dict) else None
    return string(info)
