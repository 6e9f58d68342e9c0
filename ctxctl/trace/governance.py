"""Find context records that declare what only a runtime may: that a turn is over, a step approved, ….

This is the draft's case ACTX-AR-GOV-001. Only the fields by which a record itself declares something are
checked, not texts or an importer's copy of a runtime's record (`metadata.native`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from ctxctl.model import vocab

_WHOSE: Final = "turn|task|run|step|attempt|tool|tool_call|action|approval|permission|runtime|execution"
_STATUS = re.compile(rf"(?:{_WHOSE})_(?:status|state|outcome|result|decision)")
_DONE = re.compile(
    rf"(?:(?:{_WHOSE})_(?:completed?|succeeded|success|failed|finished|done|approved|granted|denied))"
    r"|approved|approval_granted|permission_granted|(?:is_)?final_answer"
)
_PLAIN: Final = frozenset({"status", "outcome", "lifecycle", "decision", "state"})
"""Names that declare it of the record itself."""
_OUTCOMES: Final = frozenset(
    {
        "complete", "completed", "done", "finished", "succeeded", "success", "successful", "failed",
        "failure", "approved", "approve", "granted", "given", "allowed", "denied", "refused", "rejected",
        "final_answer",
    }
)  # fmt: skip
_LEAVE: Final = frozenset({"approval", "permission", "authorization", "authorisation", "consent"})
"""Names of what others permit or refuse, anywhere in a record."""
_EVENT = re.compile(
    rf"context\.(?:{_WHOSE})\.(?:completed|failed|succeeded|finished|approved|granted|denied|rejected)"
)
_ANSWERS: Final = ("replacement_policy", "summary_kind", "method", "context_kind", "treat_as")
"""Fields where a summary would pass for an answer."""
_UNREAD: Final = frozenset({"content", "text", "native", "ctxctl", "ranking_signals", "coverage"})
_NESTED: Final = frozenset({dict, list})
_MAX_DEPTH: Final = 6
_MAX_WORD: Final = 64
"""Most characters of a name that can declare something."""
_MAX_LISTED: Final = 5
"""Most declarations that are listed of one event."""


def declarations(event: dict[str, Any]) -> list[str]:
    """Return what a context event declares without authority, one phrase each; at most a few."""
    kind = event.get("event_type")
    if not isinstance(kind, str) or not kind.startswith("context."):
        return []
    found = [f"its event type is {kind}"] if _EVENT.fullmatch(kind) else []
    data = event.get("data")
    if isinstance(data, dict):
        found += _declared(data, "data", 0)
        if kind in (vocab.COMPACTION_COMPLETED, vocab.SUMMARY_CREATED):
            found += _as_answer(data)
    found += _declared(event, "", 0, without="data")
    return found[:_MAX_LISTED]


def _declared(value: dict[str, Any], where: str, depth: int, without: str = "") -> list[str]:
    """Return what the fields of an object declare, except for the field `without`."""
    found: list[str] = []
    for name, inner in value.items():
        if type(inner) in _NESTED:
            if not inner or depth >= _MAX_DEPTH or name in _UNREAD or name == without:
                continue
            found += _inside(name, inner, f"{where}.{name}" if where else name, depth)
        elif len(name) <= _MAX_WORD and _can_say(name) and _says(name, inner, where):
            found.append(f"{where}.{name} is {inner!r:.40}" if where else f"{name} is {inner!r:.40}")
    return found


def _inside(name: str, value: Any, place: str, depth: int) -> list[str]:
    if isinstance(value, dict):
        if name in _LEAVE:
            value = {f"approval_{key}": one for key, one in value.items()}
            place += "[0]"
        return _declared(value, place, depth + 1)
    found: list[str] = []
    for n, one in enumerate(value):
        if isinstance(one, dict):
            found += _declared(one, f"{place}[{n}]", depth + 1)
    return found


@lru_cache(maxsize=1024)
def _can_say(name: str) -> bool:
    """Return whether a field of this name can declare anything. Records reuse few names."""
    if name in _UNREAD:
        return False
    return name in _LEAVE or name in _PLAIN or bool(_DONE.fullmatch(name) or _STATUS.fullmatch(name))


def _says(name: str, value: Any, where: str) -> bool:
    if _DONE.fullmatch(name):
        return value is True or (isinstance(value, str) and value.lower() not in ("", "false", "no"))
    outcome = isinstance(value, str) and value.lower() in _OUTCOMES
    if name in _LEAVE:
        return outcome or value is True
    if _STATUS.fullmatch(name):
        return outcome
    own = where in ("", "data") or ".runtime_refs" in where
    return own and name in _PLAIN and outcome


def _as_answer(data: dict[str, Any]) -> list[str]:
    """Return a phrase if a compaction or summary passes its text off as an answer."""
    values = ((name, data.get(name)) for name in _ANSWERS)
    return [
        f"data.{name} is {value!r:.40}"
        for name, value in values
        if isinstance(value, str) and ("final_answer" in value or value == "assistant_message")
    ]
