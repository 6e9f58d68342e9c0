"""The parts of Cursor's messages, in the spellings of its transcripts, hooks and databases.

What the editor puts around a person's words is a part of its own, and so is redacted reasoning in an answer.
"""

from __future__ import annotations

import re
from typing import Any, Final

from ctxctl.ingest import build
from ctxctl.ingest.build import Json
from ctxctl.ingest.chat import blob
from ctxctl.ingest.parts import Part, call_title, parsed, string

_REDACTED: Final = "[REDACTED]"
_OPEN: Final = re.compile(r"<([a-z_-]{2,40})>")
_CLOSE: Final = re.compile(r"</([a-z_-]{2,40})>")
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_TYPED: Final = re.compile(r"^<user_query>", re.MULTILINE)
_FILES: Final = ("image_files", "attached_files", "open_and_recently_viewed_files", "uploaded_documents")


def user_parts(text: str, line: int = 0) -> list[Part]:
    """The parts of a user message: the blocks in front of what the person typed are parts of their own.

    Where `<user_query>` says what was typed, lines between those blocks (`[Image]`, which stands for an
    attached image) are the editor's as well; without it the first line that is no block is the person's.
    """
    parts: list[Part] = []
    typed = _TYPED.search(text)
    closed: dict[str, int] | None = None
    at = 0
    while at < len(text):
        opened = _OPEN.match(text, at)
        if opened is not None and closed is None:
            closed = {found.group(1): found.start() for found in _CLOSE.finditer(text, at)}
        end = _block_end(text, opened, closed or {}) if opened is not None else None
        if opened is not None and end is not None:
            tag = opened.group(1)
            kind = "external_resource" if tag in _FILES else "runtime_state"
            parts.append(Part(kind, text[at:end], "user", source=tag, title=tag, line=line))
        elif typed is not None and at < typed.start():
            end = text.index("\n", at) + 1
            parts.append(Part("custom", text[at:end], "user", title=text[at:end].strip(), line=line))
        else:
            parts.append(Part("user_message", text[at:], "user", line=line))
            break
        at = end
    return parts


def _block_end(text: str, opened: re.Match[str], closed: dict[str, int]) -> int | None:
    """Where the editor's block ends that a tag opens, with the space behind it; None if it opens none.

    `closed`: by tag, where it is closed for the last time.
    """
    tag = opened.group(1)
    if tag == "user_query" or closed.get(tag, -1) < opened.end():
        return None
    closing = f"</{tag}>"
    end = text.index(closing, opened.end()) + len(closing)
    space = _SPACE.match(text, end)
    return space.end() if space is not None else end


def answer_parts(text: str, line: int = 0) -> list[Part]:
    """An answer's text; reasoning that was redacted shows as a part without text."""
    own = text.removesuffix(_REDACTED)
    parts = [Part("assistant_message", own, "assistant", line=line)] if own.strip() else []
    if own != text:
        parts.append(Part("reasoning", None, "assistant", line=line))
    return parts


def call(block: Json, line: int = 0) -> Part:
    """A tool call, in the spellings of transcripts, hooks and databases."""
    name = string(block.get("name")) or string(block.get("toolName")) or "tool"
    spelled = ("input", "args", "rawArgs", "params")
    given: Any = next((block[name] for name in spelled if block.get(name) is not None), {})
    arguments = parsed(given)
    native = string(block.get("id")) or string(block.get("toolCallId"))
    text = f"{name} {build.canonical(arguments)}"
    key = native.split("\n")[0] if native is not None else None
    return Part("tool_call", text, "assistant", key=key, title=call_title(name, arguments), line=line)


def content(role: str, value: Any, line: int = 0) -> list[Part]:
    """The parts of a message: text, or a list of blocks."""
    blocks = value if isinstance(value, list) else [{"type": "text", "text": value}]
    made: list[Part] = []
    for block in blocks:
        if isinstance(block, str):
            block = {"type": "text", "text": block}
        if isinstance(block, dict):
            made += _block(role, block, line)
    return made


def _block(role: str, block: Json, line: int) -> list[Part]:
    kind, text = str(block.get("type")), block.get("text")
    if kind in ("tool_use", "tool-call"):
        return [call(block, line)]
    if kind in ("tool_result", "tool-result"):
        return [_result(block, line)]
    if kind in ("reasoning", "thinking"):
        shown = string(text) or string(block.get("thinking"))
        return [Part("reasoning", shown, "assistant", line=line)]
    if kind == "redacted-reasoning":
        return [Part("reasoning", None, "assistant", line=line)]
    if kind in ("image", "file"):
        return [blob(block, kind, role, {"line": line})]
    if not isinstance(text, str):
        return [Part("custom", build.canonical(block), role, line=line)] if "text" not in block else []
    if role == "assistant":
        return answer_parts(text, line)
    if role == "system":
        return [Part("system_prompt", text, "system", line=line)]
    return user_parts(text, line)


def _result(block: Json, line: int) -> Part:
    native = string(block.get("toolCallId")) or string(block.get("tool_use_id"))
    value = block.get("result", block.get("content"))
    text = value if isinstance(value, str) else build.canonical(value)
    key = f"{native.split(chr(10))[0]}/result" if native is not None else None
    return Part("tool_result", text, "tool", key=key, title=string(block.get("toolName")), line=line)
