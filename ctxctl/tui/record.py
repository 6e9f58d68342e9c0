"""An item's record: where it comes from, then every field as it was recorded.  Plain Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from ctxctl.model.told import UNREDACTED
from ctxctl.text import visible
from ctxctl.tui.document import Document
from ctxctl.tui.jsontext import dumped, laid_out
from ctxctl.tui.spans import Spans

_LONG: Final = 4000
"""Characters of a string from which only the beginning is shown: the text itself has a tab of its own."""
_KEPT: Final = 400
_DEEP: Final = 200
_FOLDED: Final = 12
"""Lines from which something in the record's data begins folded."""
_OPEN: Final = frozenset(
    {"schema_version", "item_id", "context_kind", "content_mode", "visibility", "priority", "created_at",
     "updated_at", "byte_size", "token_estimate", "mime_type", "redaction_state", "redaction_method",
     "redaction_actor", "policy_refs", "event_type", "event_id", "event_class", "time", "session_id",
     "thread_id", "turn_id", "step_id", "context_id", "run_id", "task_id", "runtime_id", "data"}
)  # fmt: skip
"""Fields that say nothing of what an item said."""
_WITHHELD: Final = "withheld: redacted later"


def document(
    facts: Sequence[tuple[str, str]],
    event: dict[str, Any] | None,
    *,
    withheld: bool = False,
    check: Callable[[], None] | None = None,
) -> Document:
    """(label, value) facts, then the event with every field.

    `withheld`: the item has been redacted, and of a record that is not itself a redacted one nothing is shown
    that could hold its text.
    """
    wide = max((len(label) for label, _ in facts), default=0)
    head = "".join(f"{label:<{wide}}  {visible(value)}\n" for label, value in facts)
    spans = Spans()
    at = 0
    for line in head.splitlines():
        spans.add(at, at + wide, "muted")
        at += len(line) + 1
    if event is None:
        return Document(head + "\nNo line of the trace is about it.", spans=spans)
    if withheld and not _is_redacted(event):
        event = _open_only(event)
    event, clipped = _clipped(event, 0)
    text = dumped(event)
    laid = laid_out(text, check=check, before=head + "\n", spans=spans)
    remark = "long texts cut" if clipped else ""
    if laid is None:
        return Document(head + "\n" + text, spans=spans, remark="too large to lay out")
    return Document(
        laid.text, spans=laid.spans, folds=laid.folds, folded=laid.folds.deeper(2, _FOLDED), remark=remark
    )


def brief(version: str | None) -> str:
    """A version by its beginning."""
    shown = visible(version or "unknown")
    return shown if len(shown) <= 12 else f"{shown[:8]}…"


def _is_redacted(event: dict[str, Any]) -> bool:
    """Whether a record holds the item's text as it is after the redaction."""
    data = event.get("data")
    state = data.get("redaction_state") if isinstance(data, dict) else None
    return isinstance(state, str) and state not in UNREDACTED


def _open_only(fields: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, value in fields.items():
        if name == "data" and isinstance(value, dict):
            made[name] = _open_only(value)
        else:
            made[name] = value if name in _OPEN and not isinstance(value, dict) else _WITHHELD
    return made


def _clipped(value: Any, depth: int) -> tuple[Any, bool]:
    """The same with long strings cut, and whether any was."""
    if isinstance(value, str):
        if len(value) <= _LONG:
            return value, False
        return f"{value[:_KEPT]}… ({len(value):,} characters in all)", True
    if depth > _DEEP:
        return value, False
    if isinstance(value, dict):
        pairs = {key: _clipped(one, depth + 1) for key, one in value.items()}
        return {key: one for key, (one, _) in pairs.items()}, any(cut for _, cut in pairs.values())
    if isinstance(value, list):
        found = [_clipped(one, depth + 1) for one in value]
        return [one for one, _ in found], any(cut for _, cut in found)
    return value, False
