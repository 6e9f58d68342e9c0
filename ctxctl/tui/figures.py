"""Numbers and names as the views show them.  Plain Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ctxctl.model.vocab import Status

MINUS: Final = "\u2212"

COMPACTION: Final = "◇"
BREAK: Final = "↯"
"""A request of which a prompt cache could reuse less than nine tenths of the one before."""
WRITTEN: Final = "…"
"""A step that is still being written."""

SIGNS: Final[dict[Status, str]] = {
    "added": "+",
    "updated": "~",
    "removed": MINUS,
    "skipped": "=",
    "omitted": "∅",
}
"""What a status looks like without colour."""

KINDS: Final = {
    "user_message": "user",
    "assistant_message": "asst",
    "system_prompt": "sys",
    "developer_instruction": "dev",
    "tool_definition": "tool",
    "tool_call": "call",
    "tool_result": "reply",
    "reasoning": "think",
    "retrieval_result": "found",
    "external_resource": "ext",
    "file_excerpt": "file",
    "durable_memory": "memo",
    "knowledge_pack_item": "know",
    "policy_note": "rule",
    "manual_note": "note",
    "runtime_state": "state",
    "thread_summary": "sum",
    "session_history": "hist",
    "peer_agent_message": "peer",
    "image": "image",
    "marker": "mark",
}
"""Context kinds in at most five letters, for lists without room; others show their first five."""

LEVELS: Final = "▁▂▃▄▅▆▇█"


def number(n: int) -> str:
    """With thousands separated: 41,204."""
    return f"{n:,}".replace("-", MINUS)


def short(n: int) -> str:
    """At most five characters up to a hundred million: 812, 41.2k, 1.3M."""
    size = abs(n)
    sign = MINUS if n < 0 else ""
    for unit, letter in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if size >= unit:
            scaled = size / unit
            digits = f"{int(scaled)}" if scaled >= 100 else f"{int(scaled * 10) / 10:.1f}"
            return f"{sign}{digits}{letter}"
    return f"{sign}{size}"


def signed(n: int, *, brief: bool = False) -> str:
    """With its sign, also a plus: +946; 0 is 0."""
    text = short(n) if brief else number(n)
    return f"+{text}" if n > 0 else text


def percent(part: int, whole: int) -> str:
    """A share as whole per cent: 33 %; small ones keep one digit."""
    share = 100 * part / whole if whole else 0.0
    return f"{share:.1f} %" if 0 < abs(share) < 10 else f"{share:.0f} %"


def level(part: int, whole: int) -> str:
    """One cell that shows how full something is."""
    if whole <= 0 or part <= 0:
        return " " if part <= 0 else LEVELS[-1]
    return LEVELS[min(part * len(LEVELS) // whole, len(LEVELS) - 1)]


def counted(n: int, noun: str) -> str:
    """A number of things: 1 step, 2 steps."""
    return f"{number(n)} {noun}" if n == 1 else f"{number(n)} {noun}s"


def methods(by_method: dict[str, int]) -> str:
    """The counting methods of a sum, the largest first: `exact:o200k_base + declared`."""
    found: Sequence[str] = sorted(by_method, key=lambda m: (-by_method[m], m))
    if len(found) > 2:
        return f"{found[0]} + {len(found) - 1} more"
    return " + ".join(found)
