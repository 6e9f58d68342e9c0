"""What Claude Code puts into a request by itself: `attachment` lines (versions 2.1 on).

Their wording in the request is recorded from about 2.1.270 on.  Where it is not, an item carries the text
that is (a file, a hook's output, a skill list); where nothing is, it is opaque, and its tokens stay uncounted
rather than guessed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ctxctl.formats import build
from ctxctl.formats.claude_code.blocks import Entry, blocks_of, native, part, string
from ctxctl.formats.claude_code.sent import untagged
from ctxctl.formats.lines import Json

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
        # Shown to the person or used by the harness; they reach no request.
        "command_permissions",
        "hook_non_blocking_error",
        "hook_error_during_execution",
        "hook_cancelled",
        "hook_system_message",
        "hook_permission_decision",
        "already_read_file",
        "structured_output",
        # Kept so that a session can be resumed: the system prompt in parts, tools that were loaded.
        "prompt_snapshot",
        "deferred_tools_record",
    }
)
_OF_THE_USER = frozenset(
    {"instructions", "session_context", "remote_session_change", "nested_memory", "file", "directory"}
)
"""What stands in the user's messages; the rest is in the system's.  Held against requests of 2.1.270, which
does not record it, and of 2.1.330, which does."""
_NEVER_WORDED = frozenset({"poll_events", "project_doc_reads", "message_pdf_reads"})
"""What the client words anew for each request and never records."""
_STDOUT_SENT = frozenset({"SessionStart", "UserPromptSubmit"})


def _lines(value: Any) -> str | None:
    """A string, or a list of strings joined by newlines."""
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
    `is_worded`: the client does both, so that what has neither was not sent.
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
        return [_worded(value, kind, role, text, part(uuid, at), line) for at, text in enumerate(texts)]
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


def _worded(value: Json, kind: str, role: str, text: str, item: str, line: int) -> Entry:
    context_kind = _KINDS.get(kind, "policy_note")
    meta = native(kind, hook=string(value.get("hookName")))
    if role == "system":
        # Older models get it tagged, in a message of the user's: the request's record says so.
        text = untagged(text)
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
