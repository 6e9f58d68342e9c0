"""What context-simple tells the model of a compaction."""

from __future__ import annotations

from collections.abc import Mapping

_OPEN = '<system-reminder source="context-compaction">'
_CLOSE = "</system-reminder>"
BRIEF = (
    f"{_OPEN}\nContext has been compacted to fit within token budget. Some older messages and tool results"
    f" may be truncated.\n{_CLOSE}"
)
"""The notice in its least length."""


def notice(told: Mapping[str, int], *, recent: float, results: int, older: bool) -> str:
    """The notice in its normal length; the older version states sizes in tokens as well."""
    lines = [
        _OPEN,
        "Context has been compacted to fit within token budget.",
        "",
        "Compaction summary:",
        f"- Strategy level: {told['strategy_level']}/8",
        f"- Messages: {told['before_messages']} → {told['after_messages']}"
        f" ({told['messages_removed']} removed, {told['user_messages_stubbed']} stubbed)",
        f"- Tool results: {told['messages_truncated']} truncated",
    ]
    if older:
        sizes = f"{told['before_tokens']:,} → {told['after_tokens']:,} (target: {told['target_tokens']:,})"
        lines.append(f"- Tokens: {sizes}")
    lines += [
        "",
        "What was preserved:",
        "- All system messages (your instructions and identity)",
        "- Last user message (current task)",
        f"- Recent messages ({recent:.0%} of conversation)",
        f"- Last {results} tool results (full content)",
        "",
        "What may be affected:",
        *_affected(told["strategy_level"], results),
        "",
        "Note: This compaction is ephemeral (affects only this request)."
        " Full history is preserved in session transcript.",
        _CLOSE,
    ]
    return "\n".join(lines)


def _affected(level: int, results: int) -> list[str]:
    if level > 5:
        return [
            f"- Most tool results are truncated (except last {results})",
            "- Significant conversation history has been removed",
            '- Some user messages may be stubbed as "[User message compacted...]"',
            "- If context is critical, consider asking user to clarify their current goal",
        ]
    cut = '- Older tool results are truncated with "[truncated: ~N tokens]" prefix'
    if level > 2:
        removed = "- Older conversation messages have been removed"
        return [cut, removed, "- You can re-run tools if you need full output"]
    return [cut, "- You can re-run tools if you need the full output"]
