"""Texts that Claude Code puts into a request by itself, as items: reminders, instructions, the environment.

Where a request's record holds a message whole (`api-request-blob`), each of its texts is looked for among
what the transcript's lines hold: what is found is that line's item, worded as it was sent, and what is not
is an item of its own.

Of `attachment` lines (versions 2.1 on), the wording in the request is recorded from about 2.1.270 on.  Where
it is not, an item carries the text that is (a file, a hook's output, a skill list); where nothing is, it is
opaque, and its tokens stay uncounted rather than guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from ctxctl.importers.claude_code import blocks
from ctxctl.importers.claude_code.blocks import Entry, block_id, blocks_of, native
from ctxctl.importers.claude_code.chain import Message
from ctxctl.ingest import build
from ctxctl.ingest.build import Block, Json
from ctxctl.ingest.parts import string

_OPEN: Final = "<system-reminder>\n"
_CLOSE: Final = "</system-reminder>"
_AWAITED: Final = 64
"""The most renderings that wait for the request that carries them."""
_LONGEST: Final = 1 << 20
"""The most characters of a text in which renderings are looked for."""
_LOOKED: Final = 4
"""The most places of a text that are tried in front of a rendering."""
_ENOUGH: Final = 12
"""The least characters of a rendering that is looked for in the middle of a text."""


class _Awaited(NamedTuple):
    """A rendering that no request is known to have carried yet."""

    entry: Entry
    forms: tuple[str, ...]
    """The forms in which it may have been sent, the longest first: with its tags, or without."""


class SentTexts:
    """Cuts the messages of one thread's requests."""

    def __init__(self, home: object, pending: list[Entry]) -> None:
        self._home = home
        self._pending = pending
        """The items that no step has announced yet; what is found new joins them."""
        self._known: dict[tuple[str, str], Entry] = {}
        """The last item of each sort (`_sort_of_text`) and version."""
        self._named: dict[str, Entry] = {}
        """Calls and results, by the id that the API gave them."""
        self._results: dict[str, str] = {}
        """The titles of calls, for their results."""
        self._awaited: list[_Awaited] = []

    def note(self, entry: Entry) -> None:
        """Note an item that a line of the thread holds."""
        if entry.version is not None:
            self._known[_sort_of_text(entry), entry.version] = entry
        if entry.tool is not None or entry.kind == "tool_call":
            self._named[entry.item] = entry
        if entry.kind == "tool_call" and entry.title is not None:
            self._results[entry.item] = entry.title
        text = entry.record.get("content") if entry.is_rendered and entry.record is not None else None
        if isinstance(text, str):
            self._awaited.append(_Awaited(entry, _forms(text)))
            del self._awaited[:-_AWAITED]

    def message(self, value: Json, name: str, line: int) -> Message:
        """Cut a message as it was sent; the ids of its new items begin with `name`."""
        role = string(value.get("role")) or "user"
        entries: list[Entry] = []
        placed: list[Block] = []
        ends: list[int] = []
        for index, block in enumerate(blocks.blocks_of(value.get("content"))):
            for entry, before in self._block(block, role, blocks.block_id(name, index), line):
                entries.append(entry)
                placed.append(_block(entry, role, before))
            ends.append(len(placed))
        return Message(role, entries, placed, ends)

    def add(self, entry: Entry) -> Entry:
        """Have the next step announce an item that no line holds."""
        if entry.home is None:
            entry.home = self._home
            self._pending.append(entry)
            if entry.version is not None:
                self._known[_sort_of_text(entry), entry.version] = entry
        return entry

    # -- blocks ----------------------------------------------------------------------------------------------

    def _block(self, block: Any, role: str, name: str, line: int) -> Iterator[tuple[Entry, str]]:
        kind = block.get("type") if isinstance(block, dict) else None
        text = block if isinstance(block, str) else block.get("text") if kind == "text" else None
        if role == "assistant":
            made = blocks.assistant_items([block], name, line)
        elif isinstance(text, str):
            yield from self._text(text, role, name, line)
            return
        elif kind == "tool_result":
            tool = block.get("tool_use_id")
            title = self._results.get(tool) if isinstance(tool, str) else None
            made = blocks.result_items(block, name, line, title)
        else:
            other = blocks.user_item(block, name, line, None)
            made = [other] if other is not None else []
        for entry in made:
            yield self._item_of_block(entry, keyed=kind in ("tool_result", "tool_use")), ""

    def _item_of_block(self, made: Entry, *, keyed: bool = False) -> Entry:
        """The transcript's item that a block repeats; the block's own where there is none."""
        known = self._known.get((_sort_of_text(made), made.version)) if made.version is not None else None
        if known is not None and known.kind == made.kind and (not keyed or known.item == made.item):
            return known
        before = self._named.get(made.item) if keyed else None
        if before is not None:
            # A result with a reminder behind it, or a blanked one, is the same item in other words.
            made.updates, made.run = True, before.run
        return self.add(made)

    # -- texts of the user's and the system's ---------------------------------------------------------------

    def _text(self, text: str, role: str, name: str, line: int) -> Iterator[tuple[Entry, str]]:
        if not text:
            return
        known = self._known.get(("", build.digest_of(text)[: build.VERSION_DIGITS]))
        if known is not None:
            self._awaited = [one for one in self._awaited if one.entry is not known]
            yield known, ""
            return
        pieces = list(self._pieces(text)) if len(text) <= _LONGEST else [(None, "", text)]
        for index, (awaited, before, piece) in enumerate(pieces):
            if awaited is not None:
                yield self._reworded(awaited, piece), before
                continue
            made = _new_item(piece, role, blocks.block_id(name, index) if index else name, line)
            yield self._item_of_block(made), before

    def _pieces(self, text: str) -> Iterator[tuple[_Awaited | None, str, str]]:
        """The text cut into pieces, with the blank lines in front of each; together they are the text."""
        at = looked = 0
        while at < len(text):
            start = _after_lines(text, at)
            if start == len(text):
                yield None, "", text[at:]
                return
            found = self._rendering_at(text, start)
            if found is None and looked < _LOOKED:
                looked += 1
                found = self._next_rendering(text, start)
            if found is None:
                yield None, text[at:start], text[start:]
                return
            begin, end, awaited = found
            if begin > start:
                behind = len(text[start:begin].rstrip("\n"))
                yield None, text[at:start], text[start : start + behind]
                at = start + behind
            if not text[end:].strip():
                end = len(text)
            self._awaited.remove(awaited)
            yield awaited, text[at:begin], text[begin:end]
            at = end

    def _rendering_at(self, text: str, start: int) -> tuple[int, int, _Awaited] | None:
        """The rendering that begins at a place."""
        for awaited in self._awaited:
            for form in awaited.forms:
                if _stands_at(text, start, form):
                    return start, start + len(form), awaited
        return None

    def _next_rendering(self, text: str, start: int) -> tuple[int, int, _Awaited] | None:
        """The first rendering behind a place."""
        best: tuple[int, int, _Awaited] | None = None
        for awaited in self._awaited:
            for form in awaited.forms:
                before = len(text) if best is None else best[0] + len(form)
                at = text.find(f"\n{form}", start, before) + 1 if len(form) >= _ENOUGH else 0
                if at and _stands_at(text, at, form) and (best is None or at < best[0]):
                    best = at, at + len(form), awaited
        return best

    def _reworded(self, awaited: _Awaited, text: str) -> Entry:
        """The item with the text as it was sent."""
        entry = awaited.entry
        if entry.digest == build.digest_of(text):
            return entry
        if entry.record is not None:
            entry.reword(text)
            assert entry.version is not None
            self._known[_sort_of_text(entry), entry.version] = entry
            return entry
        again = Entry(
            entry.item, entry.kind, entry.role,
            build.text_item(entry.item, entry.kind, text, title=entry.title), entry.line,
        )  # fmt: skip
        again.updates = True
        return self.add(again)


def _sort_of_text(entry: Entry) -> str:
    """The sort of text that an item may stand for: an answer, a result, or any text of a prompt."""
    if entry.role == "assistant":
        return "assistant"
    return "result" if entry.tool is not None else ""


def _block(entry: Entry, role: str, before: str) -> Block:
    ref = entry.item if entry.version is None else f"{entry.item}@{entry.version}"
    return Block(ref, entry.item, role, before=before)


def _new_item(text: str, role: str, name: str, line: int) -> Entry:
    """Make an item of a text that no line holds."""
    if role != "system":
        made = blocks.user_item(text, name, line, None)
        if made is not None:
            return made
    meta = blocks.native("system")
    return Entry(name, "policy_note", role, build.text_item(name, "policy_note", text, metadata=meta), line)


def _forms(text: str) -> tuple[str, ...]:
    bare = without_tags(text).strip()
    return (f"{_OPEN}{bare}\n{_CLOSE}", bare) if bare else ()


def without_tags(text: str) -> str:
    """A rendering without its tags, as a system message has it."""
    whole = text.strip()
    if whole.startswith(_OPEN) and whole.endswith(_CLOSE):
        return whole[len(_OPEN) : -len(_CLOSE)].strip()
    return text


def _after_lines(text: str, at: int) -> int:
    while at < len(text) and text[at] == "\n":
        at += 1
    return at


def _stands_at(text: str, at: int, form: str) -> bool:
    """Whether a rendering stands at a place and ends with its line."""
    end = at + len(form)
    return text.startswith(form, at) and (end == len(text) or text[end] == "\n")


_KINDS = {
    "file": "file_excerpt",
    "directory": "file_excerpt",
    "edited_text_file": "file_excerpt",
    "compact_file_reference": "file_excerpt",
    "pdf_reference": "file_excerpt",
    "selected_lines_in_ide": "file_excerpt",
    "opened_file_in_ide": "runtime_state",
    "nested_memory": "durable_memory",
    "relevant_memories": "durable_memory",
    "queued_command": "user_message",
    "agent_mention": "user_message",
    "mcp_resource": "external_resource",
    "task_reminder": "runtime_state",
    "todo_reminder": "runtime_state",
    "task_status": "runtime_state",
    "date_change": "runtime_state",
    "budget_usd": "runtime_state",
    "total_tokens_reminder": "runtime_state",
    "token_usage": "runtime_state",
    "read_truncation_notice": "runtime_state",
    "diagnostics": "runtime_state",
    "deferred_tools_delta": "runtime_state",
    "agent_listing_delta": "runtime_state",
    "teammate_mailbox": "peer_agent_message",
    "environment": "runtime_state",
    "model": "runtime_state",
    "session_context": "runtime_state",
    "date": "runtime_state",
    "instructions": "durable_memory",
}
_LOCAL = frozenset(
    {
        # Types that are shown to the person or used by the harness, and reach no request.
        "command_permissions",
        "hook_non_blocking_error",
        "hook_error_during_execution",
        "hook_cancelled",
        "hook_system_message",
        "hook_permission_decision",
        "already_read_file",
        "structured_output",
        # Types that are kept to resume a session: the system prompt in parts, tools that were loaded.
        "prompt_snapshot",
        "deferred_tools_record",
    }
)
_OF_THE_USER = frozenset(
    {"instructions", "session_context", "remote_session_change", "nested_memory", "file", "directory"}
)
"""Types of attachments that stand in user messages; the others stand in system messages.  Held against
requests of 2.1.270, which does not record it, and of 2.1.330, which does."""
_NEVER_WORDED = frozenset({"poll_events", "project_doc_reads", "message_pdf_reads"})
"""Types of attachments that the client words anew for each request and never records."""
_STDOUT_SENT = ("SessionStart", "UserPromptSubmit")


def _lines(value: Any) -> str | None:
    """The string, or the strings of a list joined by newlines."""
    if isinstance(value, str):
        return value or None
    if isinstance(value, list) and value and all(isinstance(v, str) for v in value):
        return "\n".join(value)
    return None


def _nested(attachment: Json) -> str | None:
    """The text of `content`, which newer versions nest by type (file, memory, text)."""
    content = attachment.get("content")
    plain = _lines(content)
    if plain is not None:
        return plain
    if isinstance(content, dict):
        inner = content.get("file")
        holder = inner if isinstance(inner, dict) else content
        return string(holder.get("content")) or string(holder.get("text"))
    if isinstance(content, list) and content:
        return build.canonical(content)
    return None


def _hook_success(attachment: Json) -> str | None:
    """By the hooks reference, the output of a hook that succeeded reaches the model for two events only.

    `stdout` is what the hook printed; `content` what is left of it for the model (nothing where it printed
    instructions for the harness).
    """
    return string(attachment.get("content")) if attachment.get("hookEvent") in _STDOUT_SENT else None


def _blocking(attachment: Json) -> str | None:
    error = attachment.get("blockingError")
    return string(error.get("blockingError")) if isinstance(error, dict) else _lines(error)


def _delta(attachment: Json) -> str | None:
    added = _lines(attachment.get("addedLines")) or _lines(attachment.get("addedBlocks"))
    return added or _lines(attachment.get("addedNames"))


def _queued(attachment: Json) -> str | None:
    prompt = attachment.get("prompt")
    if isinstance(prompt, list):
        texts = [b["text"] for b in prompt if isinstance(b, dict) and isinstance(b.get("text"), str)]
        return "\n".join(texts) or None
    return string(prompt)


def _skills(attachment: Json) -> str | None:
    skills = attachment.get("skills")
    if not isinstance(skills, list):
        return None
    texts = [s["content"] for s in skills if isinstance(s, dict) and isinstance(s.get("content"), str)]
    return "\n".join(texts) or None


_TEXT: dict[str, Callable[[Json], str | None]] = {
    "hook_success": _hook_success,
    "hook_blocking_error": _blocking,
    "deferred_tools_delta": _delta,
    "agent_listing_delta": _delta,
    "mcp_instructions_delta": _delta,
    "queued_command": _queued,
    "invoked_skills": _skills,
    "edited_text_file": lambda a: string(a.get("snippet")),
    "read_truncation_notice": lambda a: string(a.get("banner")),
    "date_change": lambda a: string(a.get("newDate")),
}
_EMPTY_IS_SILENT = frozenset(
    {"hook_success", "deferred_tools_delta", "agent_listing_delta", "mcp_instructions_delta"}
)


def attachment(record: Json, uuid: str, line: int, *, is_worded: bool = False) -> list[Entry]:
    """The items of an attachment line; none where the model is not shown it.

    Later versions (2.1.270 on) record what they made of it (`rendered`), then also the role of its message.
    `is_worded`: the client records both, so that an attachment with neither was not sent.
    """
    value = record.get("attachment")
    if not isinstance(value, dict):
        return []
    kind = string(value.get("type")) or "attachment"
    if kind in _LOCAL:
        return []
    texts = _rendered(record.get("rendered"))
    if texts:
        role = record.get("renderedRole")
        if role not in ("system", "user"):
            role = "user" if kind in _OF_THE_USER else "system"
        return [_reworded(value, kind, role, text, block_id(uuid, at), line) for at, text in enumerate(texts)]
    if is_worded and "renderedRole" not in record and kind not in _NEVER_WORDED:
        return []
    entry = _unworded(value, kind, uuid, line)
    return [entry] if entry is not None else []


def _rendered(value: Any) -> list[str]:
    """The texts of `rendered`: each message's content, or each text block of it."""
    found: list[str] = []
    for message in value if isinstance(value, list) else ():
        for block in blocks_of(message.get("content") if isinstance(message, dict) else None):
            text = block.get("text") if isinstance(block, dict) else block
            if isinstance(text, str) and text:
                found.append(text)
    return found


def _reworded(value: Json, kind: str, role: str, text: str, item: str, line: int) -> Entry:
    context_kind = _KINDS.get(kind, "policy_note")
    meta = native(kind, hook=string(value.get("hookName")))
    if role == "system":
        # Older models get it tagged, in a user message: the request's record says so.
        text = without_tags(text)
    record = build.text_item(item, context_kind, text, title=_title(kind, value), metadata=meta)
    entry = Entry(item, context_kind, role, record, line)
    entry.native = item.partition("/")[0]
    entry.is_rendered = True
    return entry


def _unworded(value: Json, kind: str, uuid: str, line: int) -> Entry | None:
    """The item of an attachment whose wording in the request is not recorded."""
    find = _TEXT.get(kind)
    text = find(value) if find is not None else (_nested(value) or string(value.get("text")))
    if text is None and kind in _EMPTY_IS_SILENT:
        return None
    context_kind = _KINDS.get(kind, "policy_note")
    meta = native(kind, hook=string(value.get("hookName")))
    meta["ctxctl"] = {"wording": "not recorded"}
    fields: Json = {"title": _title(kind, value), "metadata": meta}
    if text is not None:
        record = build.text_item(uuid, context_kind, text, **fields)
    else:
        version = build.digest_of(build.canonical(value))[: build.VERSION_DIGITS]
        record = build.opaque_item(uuid, context_kind, version, **fields)
    entry = Entry(uuid, context_kind, "user", record, line)
    entry.native = uuid
    return entry


def _title(kind: str, value: Json) -> str:
    for key in ("displayPath", "filename", "path", "hookName"):
        name = string(value.get(key))
        if name is not None:
            return f"{kind}: {name}"
    files = value.get("files")
    if isinstance(files, list) and files and isinstance(files[0], dict):
        name = string(files[0].get("path"))
        if name is not None:
            return f"{kind}: {name}" + (f" and {len(files) - 1} more" if len(files) > 1 else "")
    return kind
