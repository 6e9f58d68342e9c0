"""The reference, part 5: how large a step is, as recorded and as sent (DESIGN section 3, the true window).

For raw counts: nothing is calibrated, so nothing is expected either, and a step that was not billed is as
large as what is recorded of it.
"""

from __future__ import annotations

from typing import Any

from tests.oracle.ref_frames import Placed, Thread

SEGMENT_OF = {
    "tool_definition": "tools",
    "system_prompt": "system",
    "thread_summary": "history",
    "user_message": "user",
}
"""Of the kinds that the oracle's traces have; everything else is `context`."""
ORDER = ("unrecorded", "tools", "system", "history", "context", "user")


def sound(bill: int | None, recorded: int, thread: Thread) -> int | None:
    """The bill of the model's request.  A bill of 0 is a client's way to say that it has none."""
    if thread.target != "model" and not thread.rules.bill_for_every_target:
        return None  # providers bill what the model got
    if thread.rules.bill_below_content_is_doubted and bill is not None and 5 * bill < 2 * recorded:
        return None
    return bill or None


def sizes(thread: Thread, frame: list[Placed], usage: dict[str, Any] | None) -> dict[str, Any]:
    """The three sizes of a step: what was sent, what of it is recorded, and the rest."""
    recorded = sum(p.tokens for p in frame)
    bill = sound(usage.get("input_tokens") if usage else None, recorded, thread)
    if thread.rules.content_is_used:
        bill = None
    unrecorded = None if bill is None else bill - recorded
    if thread.rules.unrecorded_never_null and unrecorded is None:
        unrecorded = 0
    if thread.rules.unrecorded_never_negative and unrecorded is not None:
        unrecorded = max(0, unrecorded)
    return {
        "used": recorded if bill is None else bill,
        "used_method": "recorded" if bill is None else "reported",
        "used_error": None,
        "recorded": recorded,
        "unrecorded": unrecorded,
        "counted": recorded,
    }


def limits(thread: Thread, data: dict[str, Any] | None, size: dict[str, Any]) -> dict[str, Any]:
    """What a budget record leaves free of what was sent; `data`: the last one that names a limit."""
    limit = data["max_tokens"] if data else None
    reserved = data.get("reserved_tokens") if data else None
    cap = None if limit is None else limit - (reserved or 0)
    most = data.get("metadata", {}).get("ctxctl", {}).get("max_input") if data else None
    if cap is not None and most is not None:
        cap = min(cap, most)
    held = size["recorded" if thread.rules.free_of_the_content else "used"]
    return {
        "limit": limit,
        "limit_source": None if cap is None else "recorded",
        "reserved": reserved,
        "cap": cap,
        "free": None if cap is None else max(cap - held, 0),
        "over": None if cap is None else max(held - cap, 0),
    }


def segments(thread: Thread, frame: list[Placed], size: dict[str, Any]) -> dict[str, int]:
    """Tokens by segment, in the provider's order; together they are what was sent."""
    found = dict.fromkeys(ORDER, 0)
    found["unrecorded"] = size["unrecorded"] or 0
    for p in frame:
        found[SEGMENT_OF.get(p.kind, "context")] += p.tokens
    if thread.rules.unrecorded_last:
        found["unrecorded"] = found.pop("unrecorded")
    return {name: tokens for name, tokens in found.items() if tokens}
