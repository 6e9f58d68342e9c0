"""The types of lines that Claude Code writes, up to version 2.1.330, and what is done with each."""

from __future__ import annotations

from typing import Final

_READ: Final = (
    # Told as items, steps and bills.
    "user", "assistant", "system", "attachment",
    # Only as links of the chain of parents.
    "progress",
    # A request: its head, its messages, its parameters.
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
    # That an answer was paused and gone on with: the answer's lines are there.
    "api-request-resumed",
    # Contents that were moved out of the file.
    "content-replacement", "artifact-comment-monitor", "artifact-autoreact-ledger",
    # A workflow's journal.
    "started", "result",
)  # fmt: skip
KNOWN: Final = frozenset((*_READ, *_PASSED_OVER))
"""All of them; a line of any other type is one that this importer does not understand."""
