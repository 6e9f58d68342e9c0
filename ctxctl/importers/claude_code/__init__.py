"""Claude Code session transcripts: ``~/.claude/projects/<slug>/<session>.jsonl``, versions 1.0 to 2.1.

One step is one API call; a turn is what one prompt sets off.  Transcripts of late 2026 hold each request's
own record (`requests`), and so the whole window.  Older ones hold messages and what the harness put between
them, but neither the system prompt nor the tool schemas: they are not invented, and show up as the difference
between what was counted and what was billed.

The types of lines that Claude Code writes, up to version 2.1.330, and what is done with each.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import orjson

from ctxctl.ingest.about import About, HeldAgainst, absent, derived, native
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.folder import Folder
from ctxctl.ingest.skim import first_lines, text_of_head

_READ: Final = (
    # Read as items, steps and bills.
    "user", "assistant", "system", "attachment",
    # Read only as links of the chain of parents.
    "progress",
    # Read as requests: the head, the messages, the parameters.
    "api-request-shape", "api-request-blob", "api-request",
)  # fmt: skip
_PASSED_OVER: Final = (
    # What the program shows: titles, tags, colours, links.
    "summary", "custom-title", "ai-title", "agent-name", "agent-color", "agent-setting", "tag", "pr-link",
    "frame-link", "host-row",
    # What it keeps to go on with a session: its modes, where it runs, what it owns, whom it belongs to.
    "mode", "permission-mode", "isolation-latch", "session-owner", "dev-mods", "memory-mode", "atis-latch",
    "worktree-state", "relocated", "bridge-session", "history-suppression", "continued-in", "derived-from",
    "resume-head-vouch", "observer-ref", "repl-mode", "hybrid-organization", "ended-by-model", "last-prompt",
    "queue-operation", "fork-context-ref",
    # Files before they were changed, and who wrote what of them.
    "file-history-snapshot", "file-history-delta", "attribution-snapshot",
    # Its own sums: their parts stand with the answers.
    "cost-state", "tools-used", "data-flow-records", "data-flow-incomplete",
    # That an answer was paused and resumed: the answer's own lines are there.
    "api-request-resumed",
    # Contents that were moved out of the file.
    "content-replacement", "artifact-comment-monitor", "artifact-autoreact-ledger",
    # A workflow's journal.
    "started", "result",
)  # fmt: skip
KNOWN: Final = frozenset((*_READ, *_PASSED_OVER))
"""All types of lines that the importer knows; a line of any other type is not understood."""


_MESSAGES = frozenset({"user", "assistant", "system", "attachment", "progress"})
_MESSAGE_KEYS = ("parentUuid", "sessionId", "isSidechain", "userType")
_OTHERS: Final[dict[str, tuple[str, ...]]] = {
    "summary": ("leafUuid",),
    "file-history-snapshot": (),
    "queue-operation": ("sessionId",),
    "last-prompt": ("sessionId", "lastPrompt"),
    "custom-title": ("sessionId", "customTitle"),
    "ai-title": ("sessionId", "aiTitle"),
    "agent-name": ("sessionId", "agentName"),
    "mode": ("sessionId", "mode"),
    "permission-mode": ("sessionId", "permissionMode"),
    "started": ("key", "agentId"),
    "result": ("key", "agentId"),
}
_FROM_HOOKS = ("attachment.stdout.systemMessage", "attachment.content.systemMessage")
"""What a hook printed for the person: a message of the program's, no system prompt."""
_FOREIGN_KEYS = ("event_type", "parent_tool_use_id", "payload", "kind", "systemPayload", "toolCallResult")
ABOUT: Final = About(
    reads=(
        "A session's transcript of versions 1.0 to 2.1, with the files of its sub-agents; one line is one"
        " message, or one block of it. Since about 2.1.300 a transcript also says what each request was made"
        " of, and then that is shown."
    ),
    places=(
        "~/.claude/projects/<project>/<session>.jsonl",
        "~/.claude/projects/<project>/<session>/subagents/agent-<id>.jsonl",
        "~/.claude/projects/<project>/ (all sessions of a project)",
    ),
    turns="A turn is what one prompt or command sets off; a step is one API call, known by its message id.",
    claims={
        "item_ids": native("uuid of the line, id of the tool call"),
        "messages": native("requests name them by digest or hold them; in older versions, by their lines"),
        "reasoning": native("sealed without its text in later versions"),
        "reminders": native("attachments; their wording is recorded from about 2.1.270 on"),
        "truncation": derived("tool results that a microcompaction blanked"),
        "compaction": native("compact_boundary; what left is derived from the chain of parents"),
        "summary": native(),
        "order": derived(
            "as the request's record says; without one, a walk over the parents from the answer to the root"
            " or the last compaction"
        ),
        "requests": native("message id; of those without an answer, their record"),
        "turns": derived("marks tell which user lines are prompts"),
        "threads": native("sub-agents; branches are derived from the parents"),
        "model": native(),
        "times": native(),
        "input_tokens": native(),
        "cached_tokens": native(),
        "output_tokens": native("for streamed answers, the largest of the counts recorded"),
        "system_prompt": native(
            "the shape of the request (2.1.300), or put together from `prompt_snapshot` (2.1.270); before,"
            " 14 to 25 thousand tokens show up as the difference from what was billed",
            _FROM_HOOKS,
        ),
        "tool_definitions": native("likewise; before that, only the names of deferred tools"),
        "limit": absent(),
    },
    limits=(
        "in a directory, calls that a resumed session copied from its parent are billed once; of a single"
        " file, the parent is not looked for",
        "files that tool results were moved to (`persisted-output`) are not opened",
        "tokens of images are not counted",
        "the block `x-anthropic-billing-header`, which is sent before the system prompt, is not recorded",
        "requests made for a compaction, for a title and the like are in no transcript",
        "a `prompt_snapshot` has the tools from the second request on, without placeholders",
    ),
    origin="transcripts of versions 1.0.0 to 2.1.330; those of 2.1.270 and 2.1.330 compared with what was"
    " sent",
    held_against=HeldAgainst("Claude Code", "2.1.330", "1.0.0", KNOWN),
)
_SURE = 95
_LIKELY = 80
_LINES = 20
_HEAD = 64 * 1024
_LOOKED = 3


def detect(head: bytes) -> int:
    """How sure the first lines look like a transcript's; 0 for other JSON lines."""
    best = 0
    body = text_of_head(head)
    if body.startswith((b"{\n", b"{\r\n")):
        return _document(body)
    for line, value in first_lines(head, _LINES):
        if value is None:
            best = max(best, _by_text(line))
        elif isinstance(value, dict):
            best = max(best, _by_keys(value))
    return best


def detect_folder(folder: Folder) -> int:
    """How sure a directory holds transcripts: a project's sessions, or one session's sub-agents."""
    mains = main_transcripts(folder.files)
    looked = [detect(folder.head(name, _HEAD)) for name in mains[:_LOOKED]]
    return max(looked, default=0) if looked and min(looked) >= _LIKELY else 0


def main_transcripts(files: Iterable[str]) -> list[str]:
    """The transcripts that are read by themselves; sub-agents' only where there is nothing else."""
    lines = [name for name in files if name.endswith(".jsonl")]
    mains = [name for name in lines if "subagents/" not in name and not _base(name).startswith("agent-")]
    return mains or lines


def _base(name: str) -> str:
    return name.rpartition("/")[2]


def _by_keys(value: dict[str, Any]) -> int:
    kind = value.get("type")
    if not isinstance(kind, str) or any(key in value for key in _FOREIGN_KEYS):
        return 0
    if kind in _MESSAGES:
        message = value.get("message")
        if isinstance(message, dict) and "parts" in message:
            return 0  # Gemini's, as Qwen Code has it
        return _SURE if "uuid" in value and any(key in value for key in _MESSAGE_KEYS) else 0
    wanted = _OTHERS.get(kind)
    return _LIKELY if wanted is not None and all(key in value for key in wanted) else 0


def _document(head: bytes) -> int:
    try:
        value = orjson.loads(head)
    except orjson.JSONDecodeError:
        return _by_text(head)
    return _by_keys(value) if isinstance(value, dict) else 0


def _by_text(head: bytes) -> int:
    """The score of a line that is longer than the head, damaged, or pretty-printed."""
    marks = (b'"parentUuid"', b'"isSidechain"', b'"sessionId"', b'"userType"')
    return _SURE if sum(mark in head for mark in marks) >= 2 and b'"event_type"' not in head else 0


FORMAT: Final = Format(
    name="claude-code",
    title="Claude Code transcript",
    detect=detect,
    reader="ctxctl.importers.claude_code.reader:read",
    about=ABOUT,
    detect_folder=detect_folder,
    folder_reader="ctxctl.importers.claude_code.reader:read_folder",
    beside="ctxctl.importers.claude_code.reader:readers_beside",
    going_on="ctxctl.importers.claude_code.going_on:GOING_ON",
)
