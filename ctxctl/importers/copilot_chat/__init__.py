"""GitHub Copilot Chat in VS Code: exported chats, and chat replay logs with every request's whole body."""

from __future__ import annotations

import re
from typing import Final

from ctxctl.ingest.about import About, HeldAgainst, absent, derived, native
from ctxctl.ingest.declaration import Format
from ctxctl.ingest.skim import text_of_head

_SURE: Final = 95
_LIKELY: Final = 80
_ENTRY: Final = re.compile(rb'\{\s*"kind"\s*:\s*(?:0\s*,\s*"v"|[123]\s*,\s*"k")\s*:')
_REQUESTS: Final = re.compile(rb'"k"\s*:\s*\[\s*"requests"')

_EXPORT: Final = About(
    reads="A chat that VS Code exported as JSON, or keeps in its workspace storage, as one document or as a "
    "log of changes: `requests[]` with messages, answers and rounds of tool calls.",
    places=(
        "Command palette: Chat: Export Chat…",
        "~/.config/Code/User/workspaceStorage/*/chatSessions/*.json, *.jsonl",
        "~/.config/Code/User/globalStorage/emptyWindowChatSessions/*.json, *.jsonl",
    ),
    turns="A turn is one entry of `requests[]`; a step is each round of tool calls, and the answer.",
    claims={
        "item_ids": native("rounds and calls; pieces of prompts are numbered"),
        "messages": native(
            "as rendered for the model; tool results are rendered anew from their trees, derived"
        ),
        "reasoning": native("where a round keeps it"),
        "reminders": native(),
        "compaction": derived(),
        "summary": native(),
        "order": derived(),
        "requests": derived("one a round"),
        "turns": native(),
        "threads": native(),
        "model": native(),
        "times": native("of prompts"),
        "system_prompt": absent(),
        "tool_definitions": absent(),
        "input_tokens": absent(),
        "cached_tokens": absent(),
        "output_tokens": absent(),
    },
    limits=(
        "Neither the system prompt nor the tool definitions are exported, and no usage.",
        "The extension may cut tool results to fit; the export keeps them whole.",
    ),
    held_against=HeldAgainst("chat session version", "3", "3"),
    origin="microsoft/vscode-copilot-chat; microsoft/vscode: chatSessionStore.ts, objectMutationLog.ts",
)
_REPLAY: Final = About(
    reads="A chat replay log (`.chatreplay.json`): prompts, and each request's messages, tools and usage.",
    places=("Copilot Chat: Export All as JSON… in the chat debug view",),
    turns="A turn is a prompt; entries of a prompt that was seen before go on with it. A step is a request.",
    claims={
        "item_ids": native("calls and tools; messages are aligned by digest"),
        "limit": native("`maxPromptTokens`"),
        "system_prompt": native(),
        "tool_definitions": native(),
        "messages": native(),
        "reminders": native(),
        "order": native(),
        "requests": native(),
        "turns": native(),
        "threads": derived("by the name of the request"),
        "model": native(),
        "times": native(),
        "input_tokens": native(),
        "cached_tokens": native(),
        "output_tokens": native(),
        "summary": native(),
        "reasoning": absent(),
    },
    limits=("Elements with their token counts are not read: the requests hold what they gave.",),
    origin="microsoft/vscode-copilot-chat",
)


def detect_copilot_chat(head: bytes) -> int:
    """How sure the beginning looks like a chat's."""
    body = text_of_head(head)
    if _changes_requests(body):
        return _LIKELY
    marks = sum(mark in body for mark in (b'"requesterUsername"', b'"responderUsername"'))
    if not body.startswith(b"{") or not marks or b'"event_type"' in body[:2000]:
        return 0
    return _SURE if marks == 2 and b'"requests"' in body else _LIKELY


def detect_copilot_chatreplay(head: bytes) -> int:
    """How sure the beginning looks like a replay log's."""
    body = text_of_head(head)
    if not body.startswith(b"{") or b'"logs"' not in body:
        return 0
    if b'"totalLogEntries"' in body and b'"prompts"' in body:
        return _SURE
    return _LIKELY if b'"logCount"' in body and b'"hasSeen"' in body else 0


def is_log(body: bytes) -> bool:
    """Whether a file begins like a stored chat, a log of changes."""
    return _ENTRY.match(body) is not None


def _changes_requests(body: bytes) -> bool:
    """Whether a store's first line changes the requests: its snapshot is lost."""
    return is_log(body) and _REQUESTS.search(body[:200]) is not None


COPILOT_CHAT: Final = Format(
    name="copilot-chat",
    title="VS Code chat export",
    detect=detect_copilot_chat,
    reader="ctxctl.importers.copilot_chat.reader:Export",
    about=_EXPORT,
)

COPILOT_CHATREPLAY: Final = Format(
    name="copilot-chatreplay",
    title="Copilot chat replay",
    detect=detect_copilot_chatreplay,
    reader="ctxctl.importers.copilot_chat.replay_reader:Replay",
    about=_REPLAY,
)
