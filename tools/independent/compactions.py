"""Compactions whose request a log does not bill, and tool results that a transcript says were cleared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tools.independent.left_out import applied
from tools.independent.raw import at, lines


def claude_code(path: Path) -> int:
    """Claude Code: boundaries; some versions keep the request as a helper's file, which has its bill."""
    billed = len([*(path.with_suffix("") / "subagents").glob("agent-acompact-*.jsonl")])
    own = (line for line in lines(path) if not at(line, "isSidechain"))
    return sum(at(line, "subtype") == "compact_boundary" for line in own) - billed


def codex(path: Path) -> int:
    """Codex: a compacted history; since 0.154 its request is in the log, as every other."""
    found = [line for line in lines(path) if at(line, "type") in {"compacted", "token_usage_record"}]
    billed = any(at(line, "type") == "token_usage_record" for line in found)
    return 0 if billed else len(found)


def stream_json(path: Path) -> int:
    """Claude Code's printed stream: the boundary alone."""
    return sum("compact_boundary" in (at(o, "subtype"), at(o, "message", "subtype")) for o in lines(path))


def pi(path: Path) -> int:
    """pi: an entry with the summary; one that an extension wrote may have taken no request."""
    return sum(at(o, "type") == "compaction" and not at(o, "fromHook") for o in lines(path))


UNBILLED: dict[str, Callable[[Path], int]] = {
    "claude-code": claude_code, "claude-stream-json": stream_json, "codex": codex, "pi": pi,
}  # fmt: skip
"""By the name that ctxctl gives the format."""


def cleared(path: Path) -> dict[str, set[str]]:
    """By the message of a transcript that says so: the uses whose results its model did not read."""
    found: dict[str, set[str]] = {}
    used: list[str] = []
    for line in lines(path):
        message = at(line, "message")
        for edit in applied(message):
            ident = str(at(message, "id"))
            found[ident] = {*used[: at(edit, "cleared_tool_uses") or 0]} | found.get(ident, set())
        blocks = at(message, "content")
        for block in blocks if isinstance(blocks, list) else ():
            ident = at(block, "tool_use_id")
            used += [ident] if ident is not None and ident not in used else []
    return found
