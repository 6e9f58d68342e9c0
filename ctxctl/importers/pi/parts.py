"""The messages of pi and OpenClaw as parts: what pi's `convertToLlm` sends of each."""

from __future__ import annotations

from typing import Any, Final

from ctxctl.ingest.build import VERSION_DIGITS, Json, canonical, digest_of
from ctxctl.ingest.parts import Part, call_title, count, first_line, nth, string, unused
from ctxctl.providers.usage import usage_record

_BEGIN: Final = "<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>"
_END: Final = "<<<END_OPENCLAW_INTERNAL_CONTEXT>>>"
"""The marks around what OpenClaw itself puts into a user message: reports of sub-agents, runtime state."""
_BOOKKEEPING: Final = frozenset({"delivery-mirror", "gateway-injected", "acp-runtime", "automation-result"})
ROLES: Final = frozenset(
    ("user", "assistant", "toolResult", "bashExecution", "custom", "hookMessage", "branchSummary",
     "compactionSummary", "system")
)  # fmt: skip
"""The roles of messages that are known."""
_UNFINISHED: Final = ("error", "aborted")


def is_bookkeeping(message: Json) -> bool:
    """Whether OpenClaw itself wrote an assistant's message, which no model said and none gets."""
    if message.get("api") == "openclaw-transcript":
        return True
    model = message.get("model")
    return message.get("provider") == "openclaw" and isinstance(model, str) and model in _BOOKKEEPING


def is_unfinished(message: Json) -> bool:
    """Whether an answer failed or was broken off: pi leaves it out of the requests that follow."""
    return message.get("stopReason") in _UNFINISHED


def model_of(message: Json) -> str | None:
    """The model that an assistant's message came from."""
    return string(message.get("responseModel")) or string(message.get("model"))


def usage_of(message: Json) -> Json | None:
    """What a message's request was billed; None for one that failed before it was."""
    usage = message.get("usage")
    if not isinstance(usage, dict):
        return None
    names = ("input", "output", "cacheRead", "cacheWrite")
    if not any(count(usage.get(name)) for name in names):
        return None
    return usage_record(
        input_tokens=usage.get("input"),
        output_tokens=usage.get("output"),
        cached=usage.get("cacheRead"),
        cache_write=usage.get("cacheWrite"),
        cache_write_1h=usage.get("cacheWrite1h"),
        reasoning=usage.get("reasoning"),
        excludes_cache=True,
        provider=string(message.get("provider")),
        model=model_of(message),
        native=usage,
    )


class PartCutter:
    """Cuts messages into parts; results get the titles of their calls."""

    def __init__(self) -> None:
        self._calls: dict[str, tuple[str, str]] = {}
        """The key and the title of the last call with an id."""
        self._taken: dict[str, int] = {}

    def cut(self, message: Json, key: str | None, line: int) -> list[Part]:
        """The parts of one message, in order; `key` is the entry's id, if it has one."""
        role = string(message.get("role")) or ""
        if role == "user":
            parts = self._user(message, key)
        elif role == "assistant":
            parts = [] if is_bookkeeping(message) or is_unfinished(message) else self._assistant(message, key)
        elif role == "toolResult":
            parts = self._result(message, key)
        elif role == "bashExecution":
            parts = [] if message.get("excludeFromContext") is True else [command_part(message, key)]
        elif role in ("custom", "hookMessage"):
            parts = extension_parts(message, key)
        elif role in ("branchSummary", "compactionSummary"):
            parts = [Part("thread_summary", str(message.get("summary") or ""), "user", key=key)]
        else:
            parts = [Part("custom", canonical(message), "user", key=key, native={"role": role})]
        for part in parts:
            part.line = line
        return parts

    def _user(self, message: Json, key: str | None) -> list[Part]:
        parts: list[Part] = []
        for part in contents(message.get("content"), "user_message", "user", key):
            parts += _internal(part) if part.text is not None else [part]
        return parts

    def _assistant(self, message: Json, key: str | None) -> list[Part]:
        content = message.get("content")
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        parts: list[Part] = []
        for block in blocks:
            if not isinstance(block, dict):
                continue
            own = nth(key, len(parts))
            kind = block.get("type")
            if kind == "text":
                text = string(block.get("text"))
                parts += [Part("assistant_message", text, "assistant", key=own)] if text is not None else []
            elif kind == "thinking":
                parts.append(_thought(block, own))
            elif kind == "toolCall":
                parts.append(self._call(block, own))
            else:
                parts.append(_other(block, "assistant", own))
        return parts

    def _call(self, block: Json, key: str | None) -> Part:
        name = string(block.get("name")) or "tool"
        arguments = block.get("arguments")
        title = call_title(name, arguments)
        native = string(block.get("id"))
        if native is not None:
            key = unused(native, self._taken)
            self._calls[native] = key, title
        text = f"{name} {canonical(arguments if arguments is not None else {})}"
        return Part("tool_call", text, "assistant", key=key, title=title)

    def _result(self, message: Json, key: str | None) -> list[Part]:
        call = string(message.get("toolCallId"))
        base, title = key, string(message.get("toolName"))
        if call is not None:
            known, title = self._calls.get(call, (call, title))
            base = unused(f"{known}/result", self._taken)
        native = {"is_error": True} if message.get("isError") is True else None
        parts = contents(message.get("content"), "tool_result", "tool", base)
        if not parts:
            parts = [Part("tool_result", "", "tool", key=base)]
        for part in parts:
            part.title = title
            part.native = part.native or native
        return parts


def spoken_reasoning(parts: list[Part]) -> dict[str, Part | None]:
    """By item, what another model gets of an answer's reasoning: the text as if it were the answer, or
    nothing."""
    found: dict[str, Part | None] = {}
    for part in parts:
        if part.kind == "reasoning" and part.item:
            text = part.text if part.text is not None and part.text.strip() else None
            found[part.item] = (
                Part("assistant_message", text, "assistant", key=f"{part.item}/text", line=part.line)
                if text is not None
                else None
            )
    return found


def contents(content: Any, kind: str, role: str, key: str | None) -> list[Part]:
    """The parts of a content, which is a text or a list of texts and images."""
    if isinstance(content, str):
        return [Part(kind, content, role, key=key)] if content else []
    parts: list[Part] = []
    for block in content if isinstance(content, list) else []:
        if isinstance(block, str):
            block = {"type": "text", "text": block}
        if not isinstance(block, dict):
            continue
        own = nth(key, len(parts))
        text = block.get("text")
        if block.get("type") == "text" and isinstance(text, str):
            parts += [Part(kind, text, role, key=own)] if text else []
        elif block.get("type") == "image":
            parts.append(_image(block, role, own))
        else:
            parts.append(_other(block, role, own))
    return parts


def extension_parts(message: Json, key: str | None) -> list[Part]:
    """The parts that an extension had sent as a user's message."""
    parts = contents(message.get("content"), "policy_note", "user", key)
    name = string(message.get("customType"))
    for part in parts:
        part.title = name
        part.native = {"customType": name} if name is not None else None
    return parts


def command_part(message: Json, key: str | None) -> Part:
    """The part for a command that the person ran (`!command`), worded as pi tells the model of it."""
    command, output = str(message.get("command") or ""), message.get("output")
    text = f"Ran `{command}`\n"
    text += f"```\n{output}\n```" if isinstance(output, str) and output else "(no output)"
    status = message.get("exitCode")
    if message.get("cancelled") is True:
        text += "\n\n(command cancelled)"
    elif isinstance(status, int) and status != 0:
        text += f"\n\nCommand exited with code {status}"
    path = string(message.get("fullOutputPath"))
    if message.get("truncated") is True and path is not None:
        text += f"\n\n[Output truncated. Full output: {path}]"
    title = f"! {first_line(command) or ''}".rstrip()
    return Part("runtime_state", text, "user", key=key, title=title, derived=True)


def _internal(part: Part) -> list[Part]:
    """The parts of a user's text; what OpenClaw put into it is a part of its own."""
    text, key = part.text or "", part.item or None
    if _BEGIN not in text:
        return [part]
    made: list[Part] = []
    at = 0
    while (start := text.find(_BEGIN, at)) >= 0 and (end := text.find(_END, start)) >= 0:
        made += _piece("user_message", text[at:start], key, made)
        at = end + len(_END)
        made += _piece("runtime_state", text[start:at], key, made)
    return made + _piece("user_message", text[at:], key, made)


def _piece(kind: str, text: str, key: str | None, before: list[Part]) -> list[Part]:
    if not text.strip():
        return []
    own = key if key is None or not before else f"{key}/part-{len(before) + 1}"
    return [Part(kind, text, "user", key=own)]


def _thought(block: Json, key: str | None) -> Part:
    text = string(block.get("thinking"))
    if text is not None and block.get("redacted") is not True:
        return Part("reasoning", text, "assistant", key=key)
    sealed = block.get("thinkingSignature") or block.get("data") or text or ""
    return Part("reasoning", None, "assistant", key=key, version=digest_of(str(sealed))[:VERSION_DIGITS])


def _image(block: Json, role: str, key: str | None) -> Part:
    data = string(block.get("data")) or ""
    version = digest_of(data)[:VERSION_DIGITS]
    size = len(data) * 3 // 4
    return Part(
        "image", None, role, key=key, version=version, byte_size=size, mime_type=string(block.get("mimeType"))
    )


def _other(block: Json, role: str, key: str | None) -> Part:
    return Part("custom", canonical(block), role, key=key, native={"type": str(block.get("type"))})
