"""Chat messages as requests: each answer was given to the messages before it.

Messages of ShareGPT (`from`, `value`) are read as those of Chat Completions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import orjson

from ctxctl.ingest.build import Json
from ctxctl.ingest.document import document
from ctxctl.ingest.lines import WHOLE_FILE, Line, Report, values
from ctxctl.ingest.parts import Part, moment, string
from ctxctl.ingest.run import Run
from ctxctl.ingest.skim import text_of_head
from ctxctl.providers.dialects import by_name
from ctxctl.providers.dialects.base import CallTitles, Dialect
from ctxctl.trace.source import Source

NAME: Final = "chat-messages"
_LISTS: Final = ("messages", "conversations", "conversation")
_IDS: Final = ("id", "conversation_id", "session_id", "conversation_hash", "uuid")
_TIMES: Final = ("timestamp", "ts", "time", "created_at", "createdAt")
_BEGUN: Final = (*_TIMES, "session_start")
_PROMPTS: Final = ("system", "system_prompt")
_READ: Final = frozenset(
    {*_LISTS, *_IDS, *_BEGUN, *_PROMPTS, "tools", "functions", "model", "parallel_tool_calls"}
)
_BLOCKS: Final = ("tool_use", "tool_result", "thinking", "redacted_thinking")
_SHOWN: Final = 6


class _ConversationReader:
    """The conversation that is being read."""

    def __init__(self, run: Run, session: str | None = None) -> None:
        self._run = run
        self._session = run.session = session
        self._window = run.thread(None)
        self._names = CallTitles()
        self._before: str | None = None
        self._prompts = 0
        self._position = 0
        self.model: str | None = None
        """The name of the model that answers, where it is known."""
        self.begun: Any = None
        """The conversation's start, if it is recorded: the time of messages that have none."""

    def begin(self, parts: list[Part]) -> None:
        """Take the parts that stand before the messages."""
        self._put(parts)
        self._position += bool(parts)

    def take(self, message: Json) -> None:
        """Take the next message; an answer in several messages is one request's."""
        run, window = self._run, self._window
        run.session = self._session
        role = string(message.get("role"))
        time = next((message[name] for name in _TIMES if message.get(name) is not None), self.begun)
        run.make.at(moment(time))
        line = run.line.number
        if role == "assistant" and self._before not in (None, "assistant"):
            model = string(message.get("model")) or self.model
            window.request(derived=True, line=line, model=model)
        elif role == "user" and not _is_result(message):
            self._prompts += 1
            window.turn = f"turn-{self._prompts}"
        self._put(_dialect(message).message(message, self._position, line, names=self._names))
        self._position += 1
        self._before = role

    def end(self) -> None:
        """End the list; one without an answer is one request."""
        self._run.session = self._session
        if not self._window.steps and len(self._window):
            self._window.request(derived=True, line=self._run.line.number, model=self.model)

    def _put(self, parts: list[Part]) -> None:
        for part in parts:
            # A list is no request body: places in one would be made up.
            part.wire = ""
            self._window.append(part)


def read(source: Source, report: Report) -> Iterator[Json]:
    """The messages' events; a conversation of a file of several is a session.

    Problems: `not-a-record`, `unread-fields`.
    """
    run = Run(NAME, report)
    unread: Counter[str] = Counter()
    readers: dict[str | None, _ConversationReader] = {}
    held: tuple[Line, Json] | None = None
    named: Counter[str] = Counter()
    number = 0
    for line, entry in _entries(source, run):
        run.line = line
        if not isinstance(entry, dict):
            run.problem("not-a-record", "not a message; skipped")
        elif any(isinstance(entry.get(name), list) for name in _LISTS):
            # The only conversation of a file needs no session's name.
            if held is not None:
                number += 1
                yield from _session(run, held, _name(held[1], number, named), unread)
            held = line, entry
        elif "role" in entry or "content" in entry:
            session = _of(entry)
            if session not in readers:
                readers[session] = _ConversationReader(run, session)
            readers[session].take(entry)
            yield from run.drain()
        else:
            run.problem("not-a-record", "neither a message nor a conversation; skipped")
    for reader in readers.values():
        reader.end()
    if held is not None:
        name = _name(held[1], number + 1, named) if number else None
        yield from _session(run, held, name, unread)
    _tell(run, unread)
    yield from run.finish()


def _entries(source: Source, run: Run) -> Iterator[tuple[Line, Any]]:
    head = text_of_head(source.read(0, 64))
    if not head.startswith(b"["):
        yield from values(source, run.report)
        return
    found = document(source, run.report)
    for entry in found if isinstance(found, list) else []:
        yield run.line, entry


def _session(run: Run, held: tuple[Line, Json], name: str | None, unread: Counter[str]) -> Iterator[Json]:
    """Yield a conversation; `name` is its session's, None if it is the only one."""
    line, entry = held
    present, run.line = run.line, line
    reader = _ConversationReader(run, name)
    reader.model = string(entry.get("model"))
    reader.begun = next((entry[name] for name in _BEGUN if entry.get(name) is not None), None)
    run.make.at(moment(reader.begun))
    unread.update(name for name in entry if name not in _READ)
    messages = next(entry[name] for name in _LISTS if isinstance(entry.get(name), list))
    reader.begin(_front(entry, messages, line.number))
    for message in messages:
        if isinstance(message, dict):
            reader.take(as_message(message))
        else:
            run.problem("not-a-record", "not a message; skipped")
        yield from run.drain()
    reader.end()
    if name is not None:
        yield from run.end_session()
        run.session = None
    run.line = present


def _front(entry: Json, messages: list[Any], line: int) -> list[Part]:
    """The tools and the system prompt that a conversation has beside its messages.

    Letta has the prompt there, and as the first message the text that it made of it and sent.
    """
    dialect = by_name("openai-chat")
    tools = entry.get("tools", entry.get("functions"))
    if isinstance(tools, str) and tools.lstrip().startswith("["):
        try:
            tools = orjson.loads(tools)
        except orjson.JSONDecodeError:
            tools = None
    parts = dialect.tools(tools, line) if isinstance(tools, list) else []
    system = next((entry[name] for name in _PROMPTS if entry.get(name)), None)
    beside: list[Part] = []
    if isinstance(system, str):
        beside = dialect.message({"role": "system", "content": system}, 0, line)
    elif isinstance(system, list):
        beside = by_name("anthropic").cut({"system": system}, line)
    first = as_message(messages[0]) if messages and isinstance(messages[0], dict) else {}
    if first.get("role") in ("system", "developer"):
        sent = "".join(part.text or "" for part in dialect.message(first, 0, line))
        beside = [part for part in beside if (part.text or "").strip() not in sent]
    return parts + beside


def _name(entry: Json, number: int, named: Counter[str]) -> str:
    """The session of one of several conversations: its id, with a number where another has the same."""
    found = f"conversation-{number}"
    for name in _IDS:
        value = entry.get(name)
        if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
            found = str(value)
            break
    named[found] += 1
    return found if named[found] == 1 else f"{found}~{named[found]}"


def _of(message: Json) -> str | None:
    """The id of the conversation that a message names."""
    return string(message.get("session_id")) or string(message.get("conversation_id"))


def _is_result(message: Json) -> bool:
    """Whether a message of the user only holds results of tools."""
    content = message.get("content")
    blocks = content if isinstance(content, list) and content else [None]
    return all(isinstance(block, dict) and block.get("type") == "tool_result" for block in blocks)


def _dialect(message: Json) -> Dialect:
    """The dialect: Anthropic's where a message has blocks that only its API has."""
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    kinds = {string(block.get("type")) for block in blocks if isinstance(block, dict)}
    return by_name("openai-chat" if kinds.isdisjoint(_BLOCKS) else "anthropic")


def _tell(run: Run, unread: Counter[str]) -> None:
    if unread:
        names = ", ".join(f"{name} ({count})" for name, count in unread.most_common(_SHOWN))
        run.problem("unread-fields", f"fields of conversations that are not read: {names}", WHOLE_FILE)


_ROLES: Final = {
    "human": "user", "user": "user", "prompter": "user", "gpt": "assistant", "assistant": "assistant",
    "chatgpt": "assistant", "bing": "assistant", "bard": "assistant", "model": "assistant",
    "bot": "assistant", "system": "system", "tool": "tool", "observation": "tool",
    "function_response": "tool", "tool_response": "tool",
}  # fmt: skip
_CALLS: Final = ("function_call", "tool_call")


def as_message(message: Json) -> Json:
    """The ShareGPT message as one with `role` and `content`; one that has these is returned as it is."""
    if "role" in message or "from" not in message:
        return message
    speaker, said = str(message["from"]), message.get("value")
    if speaker in _CALLS:
        return {"role": "assistant", **_called(said)}
    rest = {name: value for name, value in message.items() if name not in ("from", "value")}
    return {**rest, "role": _ROLES.get(speaker.lower(), "user"), "content": said}


def _called(said: object) -> Json:
    """A call that was written down as JSON; any other text stays as it is."""
    if isinstance(said, str) and said.lstrip().startswith("{"):
        try:
            value = orjson.loads(said)
        except orjson.JSONDecodeError:
            value = None
        if isinstance(value, dict) and isinstance(value.get("name"), str):
            return {"content": None, "function_call": value}
    return {"content": said}
