"""From the items of the Responses API, as rollouts hold them, to parts of a request.

Rollouts hold a tool's output as it came; Codex cuts long ones in the middle before the model gets them, and
so does `cut_output`.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from ctxctl.importers.codex import texts
from ctxctl.ingest.build import VERSION_DIGITS, Json, canonical, digest_of
from ctxctl.ingest.parts import Part, call_title, count, nth, parsed, string, unused

_CALLS: Final = frozenset({"function_call", "custom_tool_call", "tool_search_call", "mcp_call", "tool_call"})
_HOSTED: Final = frozenset(
    {"web_search_call", "image_generation_call", "local_shell_call", "code_interpreter_call"}
)
_OUTPUTS: Final = frozenset(
    {
        "function_call_output",
        "custom_tool_call_output",
        "local_shell_call_output",
        "mcp_tool_call_output",
        "tool_result",
    }
)
_SUMMARIES: Final = frozenset({"compaction", "context_compaction", "compaction_summary"})
_UNSENT: Final = frozenset({"ghost_snapshot", "compaction_trigger"})
"""Types of items that rollouts hold and requests do not."""
_UNANSWERED: Final = {
    "function_call": "aborted",
    "custom_tool_call": "aborted",
    "local_shell_call": "aborted",
    "tool_search_call": "[]",
}
"""By type of call, the output that Codex puts behind a call without one."""
_TEXTS: Final = frozenset({"input_text", "output_text", "text", "summary_text", "reasoning_text"})
_DATA: Final = "data:"


class ReadItem(NamedTuple):
    """One item of the rollout as parts."""

    parts: list[Part]
    answer: bool
    """Whether the model made it; otherwise it is input of the next request."""
    prompt: bool = False
    """Whether it sets off a turn: a person wrote it, or another agent to this one."""
    holds: str = ""
    """Which part of the request's head it is, `tools` or `instructions`; empty for other items."""


class ToolCall(NamedTuple):
    """A call of the model."""

    key: str
    title: str
    output: str | None
    """What Codex sends where the call never got an output; None where it sends none."""


_NOTHING: Final = ReadItem([], False)


class ItemReader:
    """Reads items in order, and remembers which ids were used and which calls wait for their output."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}
        self._open: dict[str, ToolCall] = {}
        """The calls without an output so far, by call id."""
        self._left: set[str] = set()
        """The calls without an output whose turn is over."""
        self._begun: dict[str, None] = {}
        """The calls of the present turn, in order."""
        self._untold: dict[str, None] = {}
        """Those whose turn is over, and that no request was told of."""
        self._told_once: dict[str, None] = {}
        """Those that the last request was told of."""
        self.policy: Any = None
        """The policy by which Codex cuts tool outputs, where a turn tells it."""

    def read(self, item: Json, line: int, *, again: bool = False) -> ReadItem:
        """The parts of one item, with the runtime's ids as keys.

        Args:
            item: As the rollout holds it; untyped `{role, content}` is a message.
            line: Line of the file.
            again: The item stands in a history that replaces the present one: its ids may have been used.
        """
        kind = item.get("type")
        if kind == "message" or (kind is None and "role" in item):
            return self._message(item, line, again)
        if not isinstance(kind, str) or kind in _UNSENT:
            return _NOTHING
        if kind in _CALLS:
            return ReadItem([self._call(item, kind, line, again)], True)
        if kind in _OUTPUTS:
            return ReadItem(self._output(item, line, again), False)
        if kind == "reasoning":
            return ReadItem(self._reasoning(item, line, again), True)
        if kind in _HOSTED:
            return ReadItem(self._hosted(item, kind, line, again), True)
        if kind == "tool_search_output":
            return ReadItem(self._found_tools(item, line, again), False)
        if kind == "additional_tools":
            return ReadItem(self._given_tools(item, line, again), False, holds="tools")
        if kind in _SUMMARIES:
            return ReadItem([self._summary(item, line, again)], False)
        if kind == "agent_message":
            return ReadItem(self._from_agent(item, line, again), False, True)
        text = canonical({name: value for name, value in item.items() if name != "id"})
        part = Part("custom", text, "user", key=self._key(item, again), native={"type": kind}, line=line)
        return ReadItem([part], False)

    # -- messages -------------------------------------------------------------------------------------------

    def _message(self, item: Json, line: int, again: bool) -> ReadItem:
        role = string(item.get("role")) or "user"
        mail = _mail(item) if role == "assistant" else None
        if mail is not None:
            return self.mail(mail, line, again=again)
        base = self._key(item, again)
        made: list[Part] = []
        prompt, holds = False, ""
        for index, block in enumerate(_blocks(item.get("content"))):
            key = nth(base, index)
            if _is_media(block):
                made.append(_media(block, key, "assistant" if role == "assistant" else "user", line))
                continue
            text = _text_of(block)
            if not text:
                continue
            told = _told_kind(item, index)
            part = _said(role, text, key, line, told)
            if told == texts.INSTRUCTIONS:
                holds = "instructions"
            phase = string(item.get("phase"))
            if phase is not None:
                part.native = {"phase": phase}
            made.append(part)
            prompt = prompt or part.kind == "user_message"
        return ReadItem(made, role == "assistant", prompt, holds)

    def mail(self, mail: Json, line: int, *, again: bool = False) -> ReadItem:
        """Read what another agent said to this one: it is input, though older versions log it as the
        model's."""
        sealed = string(mail.get("encrypted_content"))
        content = {"text": mail.get("content")} if sealed is None else {"encrypted_content": sealed}
        made = self._from_agent({**mail, "content": [content]}, line, again)
        return ReadItem(made, False, mail.get("trigger_turn") is not False)

    def _from_agent(self, item: Json, line: int, again: bool) -> list[Part]:
        base = self._key(item, again)
        author = string(item.get("author"))
        title = f"from {author}" if author is not None else None
        made: list[Part] = []
        for index, block in enumerate(_blocks(item.get("content"))):
            sealed = block.get("encrypted_content")
            text = None if isinstance(sealed, str) else _text_of(block)
            version = _version(sealed) if text is None else None
            key = nth(base, index)
            made.append(
                Part("peer_agent_message", text, "user", key=key, title=title, line=line, version=version)
            )
        return made

    def _reasoning(self, item: Json, line: int, again: bool) -> list[Part]:
        """The summary of the reasoning, and the sealed reasoning: the request holds both."""
        said = [_text_of(block) for block in _blocks(item.get("content"))]
        summaries = [_text_of(block) for block in _blocks(item.get("summary"))]
        text = "\n\n".join(t for t in (said if any(said) else summaries) if t) or None
        sealed = item.get("encrypted_content")
        key = self._key(item, again)
        if text is None:
            native: Json = (
                {"encrypted_bytes": len(sealed)} if isinstance(sealed, str) else {"text": "not recorded"}
            )
            version = _version(sealed) if isinstance(sealed, str) else None
            return [Part("reasoning", None, "assistant", key=key, native=native, line=line, version=version)]
        native = {} if any(said) else {"text": "summary"}
        made = [Part("reasoning", text, "assistant", key=key, native=native, line=line)]
        if isinstance(sealed, str) and sealed:
            native = {"encrypted_bytes": len(sealed)}
            made.append(
                Part("reasoning", None, "assistant", key=f"{key}/sealed" if key is not None else None,
                     native=native, line=line, version=_version(sealed))
            )  # fmt: skip
        return made

    def _summary(self, item: Json, line: int, again: bool) -> Part:
        text = string(item.get("summary")) or string(item.get("text"))
        sealed = item.get("encrypted_content")
        version = _version(sealed) if text is None else None
        native = {"encrypted_bytes": len(sealed)} if isinstance(sealed, str) else None
        return Part(
            "thread_summary", text, "user", key=self._key(item, again), title="compaction summary",
            native=native, line=line, version=version,
        )  # fmt: skip

    # -- tools ----------------------------------------------------------------------------------------------

    def _call(self, item: Json, kind: str, line: int, again: bool) -> Part:
        function = item.get("function")
        name = string(item.get("name")) or (
            string(function.get("name")) if isinstance(function, dict) else None
        )
        name = name or ("tool_search" if kind == "tool_search_call" else "tool")
        space = string(item.get("namespace"))
        if space is not None:
            name = f"{space}.{name}" if not space.endswith(("_", ".")) else f"{space}{name}"
        arguments = item.get("input") if kind == "custom_tool_call" else item.get("arguments")
        text, title = _called(name, arguments, free=kind == "custom_tool_call")
        call = string(item.get("call_id"))
        key = self._unique(call, again) if call is not None else self._key(item, again)
        if call is not None and key is not None:
            self._opened(call, ToolCall(key, title, _UNANSWERED.get(kind)))
        return Part("tool_call", text, "assistant", key=key, title=title, line=line)

    def _hosted(self, item: Json, kind: str, line: int, again: bool) -> list[Part]:
        name = kind.removesuffix("_call")
        call = string(item.get("call_id"))
        key = self._unique(call, again) if call is not None else self._key(item, again)
        arguments = item.get("action", item.get("revised_prompt"))
        text, title = _called(name, arguments, free=isinstance(arguments, str))
        if call is not None and key is not None:
            self._opened(call, ToolCall(key, title, _UNANSWERED.get(kind)))
        made = [Part("tool_call", text, "assistant", key=key, title=title, line=line)]
        result = item.get("result")
        if kind == "image_generation_call" and isinstance(result, str) and result:
            made.append(_image(f"{_DATA}image/png;base64,{result}", nth(key, 1), "assistant", line, title))
        return made

    def _output(self, item: Json, line: int, again: bool) -> list[Part]:
        call = string(item.get("call_id"))
        open_key, title = self._closed(call)
        title = title or string(item.get("name"))
        if open_key is not None:
            base: str | None = f"{open_key}/result"
        elif call is not None:
            base = self._unique(f"{call}/result", again)
        else:
            base = self._key(item, again)
        output = item.get("output", item.get("result"))
        if isinstance(output, str):
            sent = None if again else cut_output(output, self.policy)
            text = output if sent is None else sent
            part = Part("tool_result", text, "tool", key=base, title=title, line=line)
            part.truncated = part.derived = sent is not None
            return [part]
        made: list[Part] = []
        for index, block in enumerate(_outputs(output)):
            key = nth(base, index)
            if _is_media(block):
                made.append(_media(block, key, "tool", line, title))
            else:
                said = _text_of(block)
                said = canonical(block) if said is None else said
                made.append(Part("tool_result", said, "tool", key=key, title=title, line=line))
        return made or [Part("tool_result", "", "tool", key=base, title=title, line=line)]

    def _found_tools(self, item: Json, line: int, again: bool) -> list[Part]:
        call = string(item.get("call_id"))
        open_key, title = self._closed(call)
        base = f"{open_key or self._unique(call, again) or 'tool_search'}/result"
        made = tools(item.get("tools"), line, prefix=f"{base}/", role="tool")
        if not made:
            made = [Part("tool_result", "[]", "tool", key=base, title=title, line=line)]
        return made

    def _given_tools(self, item: Json, line: int, again: bool) -> list[Part]:
        """Read the tools of the requests to come, where they are an item of the input."""
        made = tools(item.get("tools") or [], line)
        for part in made:
            part.item = self._unique(part.item, again) or part.item
        return made

    def leave(self) -> None:
        """Begin a turn: calls without an output by now get none."""
        left = [name for name in self._begun if name in self._open]
        self._left.update(left)
        self._untold.update(dict.fromkeys(left))
        self._begun.clear()

    def unanswered(self) -> list[tuple[str, Part]]:
        """The key of each call whose turn is over without its output, and the output that Codex sends.

        Two requests are told of each: a call that begins an answer is in the window but behind its request.
        The rule is that of Codex' history: a request holds an output for every call of a client's tool.
        """
        told = {**self._told_once, **self._untold}
        self._told_once, self._untold = self._untold, {}
        left = [self._open[name] for name in told if name in self._left and name in self._open]
        return [
            (call.key, Part("tool_result", call.output, "tool", key=f"{call.key}/result", title=call.title,
                            derived=True))
            for call in left
            if call.output is not None
        ]  # fmt: skip

    def _opened(self, call: str, made: ToolCall) -> None:
        self._open[call] = made
        (self._untold if call in self._left else self._begun)[call] = None

    def _closed(self, call: str | None) -> tuple[str | None, str | None]:
        """Take the call whose output has come; return its key and title."""
        found = self._open.pop(call, None) if call is not None else None
        self._left.discard(call or "")
        return (found.key, found.title) if found is not None else (None, None)

    # -- ids ------------------------------------------------------------------------------------------------

    def _key(self, item: Json, again: bool) -> str | None:
        return self._unique(string(item.get("id")), again)

    def _unique(self, name: str | None, again: bool) -> str | None:
        """The id, with a number if it was used before: local models number calls anew each turn."""
        if name is None or again:
            return name
        count = self._used.get(name, 0) + 1
        self._used[name] = count
        return name if count == 1 else f"{name}~{count}"


def tools(definitions: Any, line: int, *, prefix: str = "tool:", role: str = "system") -> list[Part]:
    """The tool definitions, those of a namespace one by one; each text is canonical JSON."""
    made: list[Part] = []
    taken: dict[str, int] = {}
    for tool in definitions if isinstance(definitions, list) else [definitions]:
        if not isinstance(tool, dict):
            continue
        inner = tool.get("tools")
        space = string(tool.get("name")) if isinstance(inner, list) else string(tool.get("namespace"))
        for one in inner if isinstance(inner, list) else [tool]:
            if not isinstance(one, dict):
                continue
            name = string(one.get("name")) or string(one.get("type")) or "tool"
            name = name if space is None else f"{space}{'' if space.endswith('_') else '.'}{name}"
            key = unused(f"{prefix}{name}", taken)
            native = {"namespace": space, "description": string(tool.get("description"))} if inner else None
            made.append(
                Part(
                    "tool_definition", canonical(one), role, key=key, title=name, line=line,
                    native={k: v for k, v in (native or {}).items() if v is not None},
                )
            )  # fmt: skip
    return made


# -- pieces -------------------------------------------------------------------------------------------------


def _mail(item: Json) -> Json | None:
    """The message of another agent that a model's message holds as JSON; None where it holds none."""
    blocks = _blocks(item.get("content"))
    text = _text_of(blocks[0]) if len(blocks) == 1 else None
    if text is None or not text.startswith('{"author":'):
        return None
    value = parsed(text)
    whole = isinstance(value, dict) and isinstance(value.get("content"), str)
    return value if whole and "recipient" in value and "trigger_turn" in value else None


def _said(role: str, text: str, key: str | None, line: int, told: str | None) -> Part:
    if role == "assistant":
        return Part("assistant_message", text, "assistant", key=key, line=line)
    if role == "developer":
        found = texts.of_developer(text, told)
        return Part(found.kind, text, "developer", key=key, title=found.title, line=line)
    if role == "system":
        return Part("system_prompt", text, "system", key=key, line=line)
    found = texts.of_user(text, told)
    return Part(found.kind, text, "user", key=key, title=found.title, line=line)


def _told_kind(item: Json, index: int) -> str | None:
    """What Codex itself calls the `index`-th block of a message, from about 0.15; None where it does not."""
    told = item.get("internal_chat_message_metadata_passthrough")
    kinds = told.get("content_item_kinds") if isinstance(told, dict) else None
    content = item.get("content")
    if not isinstance(kinds, list) or not isinstance(content, list) or len(kinds) != len(content):
        return None
    return string(kinds[index])


def _called(name: str, arguments: Any, *, free: bool) -> tuple[str, str]:
    """The text and the title of a call; JSON in a string is made canonical, free text stays as it is."""
    if not free:
        arguments = parsed(arguments)
    if isinstance(arguments, str):
        return f"{name} {arguments}", call_title(name, arguments)
    if arguments is None:
        arguments = {}
    return f"{name} {canonical(arguments)}", call_title(name, arguments)


def _blocks(content: Any) -> list[Json]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if isinstance(content, dict):
        return [content]
    if not isinstance(content, list):
        return []
    return [
        {"type": "text", "text": b} if isinstance(b, str) else b for b in content if isinstance(b, str | dict)
    ]


def _outputs(output: Any) -> list[Json]:
    if isinstance(output, dict):
        inner = output.get("content")
        if isinstance(inner, str | list):
            return _blocks(inner)
        return [output]
    return _blocks(output)


def _text_of(block: Json) -> str | None:
    """The text of a content block; None where it has none, its JSON for a block of a type unknown here."""
    text = block.get("text")
    if isinstance(text, str):
        return text
    kind = block.get("type")
    if kind is None or kind in (*_TEXTS, "encrypted_content"):
        return None
    return canonical(block)


def _is_media(block: Json) -> bool:
    kind = block.get("type")
    return isinstance(kind, str) and kind in (
        "input_image",
        "image",
        "output_image",
        "input_file",
        "input_audio",
    )


def _media(block: Json, key: str | None, role: str, line: int, title: str | None = None) -> Part:
    for name in ("image_url", "file_data", "data", "audio_url", "file_url", "file_id"):
        found = block.get(name)
        if isinstance(found, dict):
            found = found.get("url")
        if isinstance(found, str) and found:
            kind = "image" if "image" in str(block.get("type")) else "external_resource"
            return _image(found, key, role, line, title, kind)
    kind = "image" if "image" in str(block.get("type")) else "external_resource"
    return Part(kind, None, role, key=key, title=title, line=line, version=_version(canonical(block)))


def _image(url: str, key: str | None, role: str, line: int, title: str | None, kind: str = "image") -> Part:
    """An opaque part for a data URL, or for an address whose content the rollout does not hold."""
    data: Json = {}
    native: Json | None = None
    if url.startswith(_DATA):
        head, _, body = url.partition(",")
        data = {"mime_type": head[len(_DATA) :].split(";")[0] or None, "byte_size": len(body) * 3 // 4}
    else:
        native = {"url": url[:300]}
    return Part(
        kind, None, role, key=key, title=title, line=line, version=_version(url), native=native, **data
    )


def _version(sealed: Any) -> str:
    return digest_of(sealed if isinstance(sealed, str) else canonical(sealed))[:VERSION_DIGITS]


_ALLOWANCE: Final = 1.2
"""Codex lets an item be longer than the limit by this factor, for its JSON."""
_BYTES: Final = 4
"""The bytes of a token, by Codex' rule of thumb."""
_SHOWN: Final = ("tokens truncated…", "chars truncated…")


def cut_output(text: str, policy: Any) -> str | None:
    """The text as the model got it; None where it is short enough, or was cut before it was logged.

    Args:
        text: The output as the rollout holds it.
        policy: `truncation_policy` of the turn: `{"mode": "tokens" | "bytes", "limit": …}`.
    """
    mode = policy.get("mode") if isinstance(policy, dict) else None
    limit = count(policy.get("limit")) if mode in ("tokens", "bytes") else None
    if not limit:
        return None
    budget = _rounded_up(limit) * (_BYTES if mode == "tokens" else 1)
    if len(text) * 4 <= budget or any(mark in text for mark in _SHOWN):
        return None
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= budget:
        return None
    before = data[: budget // 2].decode("utf-8", "ignore")
    after = data[len(data) - (budget - budget // 2) :].decode("utf-8", "ignore")
    if mode == "tokens":
        return f"{before}…{(len(data) - budget + _BYTES - 1) // _BYTES} tokens truncated…{after}"
    return f"{before}…{len(text) - len(before) - len(after)} chars truncated…{after}"


def _rounded_up(limit: int) -> int:
    return -int(-limit * _ALLOWANCE // 1)
