"""What the records of a step tell beside its frame: plain values for every view.

Names and order of the fields are those of the ``--json`` contract (``docs/json.md``); None means that the
trace does not say.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

UNREDACTED: Final = frozenset({"none", "raw", "not_redacted", "unredacted"})
"""Redaction states in which an item's text is what it always was."""


class Ids(msgspec.Struct, frozen=True, gc=False):
    """The runtime's own ids of what a step was for, beside its session, thread, turn and step."""

    context_id: str | None = None
    task_id: str | None = None
    run_id: str | None = None
    attempt_id: str | None = None


class MissingContext(msgspec.Struct, frozen=True):
    """An input known to be lacking, as of a step; what earlier records of it said is kept."""

    missing_id: str | None
    status: str | None
    severity: str | None
    question: str | None
    summary: str | None
    """Words for the user that give nothing away."""
    needed_for: str | None
    requested_from: str | None
    requested_action: str | None
    candidate_sources: tuple[str, ...]
    blocked_actions: tuple[str, ...]
    resolution_refs: tuple[str, ...]


class SummaryRequest(msgspec.Struct, frozen=True):
    """The request that wrote a compaction's summary, where it is no step of its own."""

    billed: bool
    """False: no log has its bill, and `input_tokens` is the least that was sent."""
    input_tokens: int = 0
    """Cache reads and writes included."""
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    stated_usd: str | None = None
    """Its cost in US dollars by the runtime's own account."""


class Compacted(msgspec.Struct, frozen=True):
    """A compaction: what was replaced, by what, and what that lost."""

    compaction_id: str | None
    scope: str | None
    method: str | None
    trigger: str | None
    summary: str | None
    """Ref of the summary."""
    source_item_refs: tuple[str, ...]
    coverage: dict[str, Any]
    loss_notes: tuple[str, ...]
    validation: str | None
    replacement_policy: str | None
    request: SummaryRequest | None = None


class Redacted(msgspec.Struct, frozen=True):
    """What was done to an item's text before it was shown, and by which policy."""

    item: str
    state: str | None
    method: str | None
    reason: str | None
    fields: tuple[str, ...]
    policy_refs: tuple[str, ...]
    actor: str | None
    replacement: str | None


class Bound(msgspec.Struct, frozen=True):
    """An envelope: a snapshot that binds the records of a turn, a task, a review … together."""

    context_id: str | None
    scope: str | None
    lifecycle: str | None
    refs: dict[str, tuple[str, ...]]
    """Ids of the records, by the envelope's field."""


class Origin(msgspec.Struct, frozen=True):
    """What set a thread off, as its importer knows it; told by the thread's first assembly."""

    parent_thread: str | None
    parent_tool_call: str | None
    agent_type: str | None


class Annotations(msgspec.Struct, frozen=True):
    """All of it for one step."""

    ids: Ids = Ids()
    missing: tuple[MissingContext, ...] = ()
    compactions: tuple[Compacted, ...] = ()
    redactions: tuple[Redacted, ...] = ()
    envelopes: tuple[Bound, ...] = ()
    withheld: frozenset[str] = frozenset()
    """Items redacted in the thread so far: no view shows what they said before."""
    origin: Origin | None = None
    """What set the thread off, on the step that tells it; not part of the JSON contract."""
