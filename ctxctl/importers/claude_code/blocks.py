"""From the content blocks of a message to items, each with one identity and one place in a message."""

from __future__ import annotations

from typing import Any, Final

from ctxctl.importers.claude_code import texts
from ctxctl.ingest import build
from ctxctl.ingest.build import Json
from ctxctl.ingest.parts import call_title, mapping, string
from ctxctl.model import vocab


class Entry:
    """One item as it stands in a request.  Each native block has one object, and objects compare by
    identity."""

    __slots__ = (
        "digest",
        "home",
        "is_rendered",
        "item",
        "kind",
        "line",
        "native",
        "record",
        "retracted",
        "role",
        "run",
        "time",
        "title",
        "tool",
        "updates",
        "version",
    )

    def __init__(self, item: str, kind: str, role: str, record: Json, line: int) -> None:
        self.item = item
        self.kind = kind
        self.role = role
        self.line = line
        self.record: Json | None = record
        """The `context_item`; dropped once it was emitted, so that no text is held."""
        self.title: str | None = record.get("title")
        self.digest: str | None = None
        self.version: str | None = None
        self.native: str = ""
        """The uuid of the line that it came from."""
        self.tool: str | None = None
        """The tool use id, of a tool result."""
        self.time: str | None = None
        """The time of its line."""
        self.retracted = False
        self.home: object = None
        """The thread in which it was recorded."""
        self.run: Any = None
        """The transcript's message that it is part of (`requests.MessageLines`), where requests name
        messages."""
        self.is_rendered = False
        """Whether the client put it in, and its line tells the wording."""
        self.updates = False
        """Whether it is another version of an item that was there before."""
        text = record.get("content")
        if isinstance(text, str):
            self.digest = digest = build.digest_of(text)
            self.version = digest[: build.VERSION_DIGITS]
        if self.digest is None or "metadata" in record:
            self.version = record.get("metadata", {}).get("version", self.version)

    def reword(self, text: str) -> None:
        """Give an item that was not emitted yet the text that it was sent with."""
        assert self.record is not None
        self.record["content"] = text
        self.digest = digest = build.digest_of(text)
        self.version = digest[: build.VERSION_DIGITS]

    def block(self, blanked: frozenset[str] | set[str]) -> build.Block:
        """Its placement in a window; a tool result that a microcompaction blanked has its blank version
        there."""
        if self.tool is not None and self.tool in blanked:
            return build.Block(f"{self.item}@{BLANK_VERSION}", self.item, self.role, True)
        item = self.item
        ref = item if self.version is None else f"{item}@{self.version}"
        return build.block((ref, item, self.role, False, "", "", "", ""))

    def again(self) -> Json:
        """The item's record for another thread: its text is named by digest, as it was inline before."""
        fields: Json = {"title": self.title} if self.title is not None else {}
        if self.digest is None:
            return build.opaque_item(self.item, self.kind, self.version, **fields)
        made = build.opaque_item(self.item, self.kind, None, **fields)
        made["content_mode"] = "ref"
        made["content_ref"] = f"sha256:{self.digest}"
        return made


BLANK: Final = "[Tool result cleared by microcompact]"
"""The version of a blanked tool result.  It is ours: what Claude Code sends in its stead is not recorded."""
BLANK_VERSION: Final = build.digest_of(BLANK)[: build.VERSION_DIGITS]


def microcompacted(entry: Entry) -> Json:
    """The record of a tool result as a microcompaction left it."""
    meta: Json = {"ctxctl": {"truncated": True, "derived": True}, "native": {"type": "microcompact"}}
    return build.text_item(entry.item, entry.kind, BLANK, title=entry.title, metadata=meta)


def native(kind: str, **fields: Any) -> Json:
    """Item metadata that keeps the runtime's own name for what the item is."""
    return {"native": {"type": kind, **{k: v for k, v in fields.items() if v is not None}}}


def block_id(base: str, index: int) -> str:
    """Identity of the `index`-th block of a line or result: the first has the native id itself."""
    return base if index == 0 else f"{base}/{index}"


def blocks_of(content: Any) -> list[Any]:
    """The content of a message as a list of blocks; a plain string is one text block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else []


def _text(item: str, kind: str, text: str, title: str | None = None, metadata: Json | None = None) -> Json:
    """The same as `build.text_item`, which takes any field and is slower for it."""
    made: Json = {
        "schema_version": vocab.SCHEMA_VERSION,
        "item_id": item,
        "context_kind": kind,
        "content_mode": "inline",
        "content": text,
        "visibility": [vocab.MODEL],
    }
    if title is not None:
        made["title"] = title
    if metadata is not None:
        made["metadata"] = metadata
    return made


def assistant_items(content: Any, uuid: str, line: int) -> list[Entry]:
    """The items of an assistant line: text, reasoning and tool calls."""
    made: list[Entry] = []
    for index, block in enumerate(content if isinstance(content, list) else blocks_of(content)):
        if isinstance(block, str):
            block = {"type": "text", "text": block}
        if isinstance(block, dict):
            entry = _assistant(block, uuid if index == 0 else block_id(uuid, index), line)
            if entry is not None:
                entry.native = uuid
                made.append(entry)
    return made


def _assistant(block: Json, item: str, line: int) -> Entry | None:
    kind = block.get("type")
    if kind == "text":
        text = block.get("text")
        if not isinstance(text, str) or not text:
            return None
        record = _text(item, "assistant_message", text)
        return Entry(item, "assistant_message", "assistant", record, line)
    if kind in ("thinking", "redacted_thinking"):
        return _reasoning(block, item, line)
    if isinstance(kind, str) and kind.endswith("tool_use"):
        return _call(block, item, line)
    if kind == "fallback":
        return None
    return _other(block, item, "assistant", line)


def _reasoning(block: Json, item: str, line: int) -> Entry:
    text = block.get("thinking")
    if isinstance(text, str) and text:
        return Entry(item, "reasoning", "assistant", _text(item, "reasoning", text), line)
    sealed = block.get("signature") or block.get("data") or ""
    version = build.digest_of(str(sealed))[: build.VERSION_DIGITS]
    record = build.opaque_item(item, "reasoning", version, metadata=native("sealed"))
    return Entry(item, "reasoning", "assistant", record, line)


def _call(block: Json, item: str, line: int) -> Entry:
    name = string(block.get("name")) or "tool"
    arguments = block.get("input")
    item = string(block.get("id")) or item
    text = f"{name} {build.canonical(arguments if arguments is not None else {})}"
    record = _text(item, "tool_call", text, call_title(name, arguments))
    return Entry(item, "tool_call", "assistant", record, line)


def _other(block: Json, item: str, role: str, line: int) -> Entry:
    """The item of a block of an unknown type: its JSON is what went over the wire."""
    kind = string(block.get("type")) or "block"
    context_kind = "tool_result" if kind.endswith("tool_result") else "custom"
    record = build.text_item(item, context_kind, build.canonical(block), metadata=native(kind))
    return Entry(item, context_kind, role, record, line)


def _media(block: Json, item: str, line: int) -> Entry:
    source = mapping(block.get("source"))
    data = source.get("data") or source.get("url") or source.get("file_id") or ""
    digest = build.digest_of(data if isinstance(data, str) else build.canonical(data))
    version = digest[: build.VERSION_DIGITS]
    kind = "image" if block.get("type") == "image" else "external_resource"
    fields: Json = {"mime_type": string(source.get("media_type"))}
    if isinstance(data, str):
        fields["byte_size"] = len(data) * 3 // 4 if source.get("type") == "base64" else None
    if kind != "image":
        fields["metadata"] = native(str(block.get("type")))
    return Entry(item, kind, "user", build.opaque_item(item, kind, version, **fields), line)


def user_item(block: Any, item: str, line: int, reading: texts.TextReading | None) -> Entry | None:
    """The item of one block of a user line that is not a tool result; `reading` overrides the text's own."""
    if isinstance(block, str):
        block = {"type": "text", "text": block}
    if not isinstance(block, dict):
        return None
    kind = block.get("type")
    if kind in ("image", "document"):
        return _media(block, item, line)
    if kind != "text":
        return _other(block, item, "user", line)
    text = block.get("text")
    if not isinstance(text, str) or not text:
        return None
    found = reading or texts.reading_of(text)
    meta = None if found.native == "prompt" else native(found.native)
    return Entry(item, found.kind, "user", _text(item, found.kind, text, None, meta), line)


def result_items(block: Json, uuid: str, line: int, title: str | None) -> list[Entry]:
    """The items of a tool result: its text, and one more for each further text or image in it."""
    tool = string(block.get("tool_use_id"))
    base = f"{tool}/result" if tool is not None else uuid
    content = block.get("content")
    made: list[Entry] = []
    error = True if block.get("is_error") is True else None
    for index, inner in enumerate(blocks_of(content) or [{"type": "text", "text": ""}]):
        item = block_id(base, index)
        if isinstance(inner, str):
            inner = {"type": "text", "text": inner}
        if not isinstance(inner, dict):
            continue
        kind = inner.get("type")
        if kind in ("image", "document"):
            entry = _media(inner, item, line)
        else:
            text = inner.get("text")
            if kind != "text" or not isinstance(text, str):
                text = build.canonical(inner)
            meta = native("tool_result", is_error=error) if error else None
            record = _text(item, "tool_result", text, title, meta)
            entry = Entry(item, "tool_result", "user", record, line)
        entry.tool = tool
        entry.native = uuid
        made.append(entry)
    return made
