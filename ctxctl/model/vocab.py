"""The closed and open vocabularies of DESIGN sections 1 to 3.

Open vocabularies (context kinds, event types, reasons) keep values nobody here has heard of; the constants
below name the ones the engine acts on.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import Final, Literal

from ctxctl.kinds import usual_segment

SCHEMA_VERSION: Final = "0.1.1"
"""Agent Context draft that the writer follows."""

MAIN_THREAD: Final = "main"
UNNAMED_SESSION: Final = ""
"""The `session_id` of a line that is of no named session, where others are; without one it is of its
thread's."""
MODEL: Final = "model"
OPENAI_CHAT: Final = "openai-chat"
"""OpenAI's Chat Completions API: the size of a request follows from what is in it."""
TARGETS: Final = ("model", "tool", "runtime", "ui", "user", "reviewer", "peer_agent", "evidence_export")

# Event classes: the eighteen of Agent Context, then ours.
SURFACE_CREATED: Final = "context.surface.created"
SURFACE_UPDATED: Final = "context.surface.updated"
ITEM_ADDED: Final = "context.item.added"
ITEM_UPDATED: Final = "context.item.updated"
ITEM_REMOVED: Final = "context.item.removed"
SELECTION_STARTED: Final = "context.selection.started"
SELECTION_COMPLETED: Final = "context.selection.completed"
BUDGET_APPLIED: Final = "context.budget.applied"
ASSEMBLY_CREATED: Final = "context.assembly.created"
INJECTION_APPLIED: Final = "context.injection.applied"
COMPACTION_STARTED: Final = "context.compaction.started"
COMPACTION_COMPLETED: Final = "context.compaction.completed"
SUMMARY_CREATED: Final = "context.summary.created"
MISSING_DETECTED: Final = "context.missing.detected"
MISSING_REQUESTED: Final = "context.missing.requested"
MISSING_RESOLVED: Final = "context.missing.resolved"
REDACTION_APPLIED: Final = "context.redaction.applied"
EXPORTED: Final = "context.exported"
USAGE_REPORTED: Final = "ctxctl.usage.reported"
TOTAL_STATED: Final = "ctxctl.total.stated"
"""Totals (`totals`) that the runtime states for several requests, up to its step's."""
SOURCE_OPENED: Final = "ctxctl.source.opened"
"""The one event of a capture that holds nothing to replay."""
FIDELITY_MEASURED: Final = "ctxctl.fidelity.measured"
"""The last event of an import: how much of each fact the capture held (`formats.fidelity`)."""
SESSION_ENDED: Final = "ctxctl.session.ended"
"""The session, or the one thread that is named, is over: its open steps and turns are finished here."""
STEP_FAILED: Final = "ctxctl.step.failed"
"""There was no answer to the step's request, or not all of it: `error`, and `status` where HTTP gave one."""
STEP_ANSWERED: Final = "ctxctl.step.answered"
"""The step's request was sent again after it had failed, and answered: `attempts` says at which one."""
RECORD_DROPPED: Final = "ctxctl.record.dropped"
"""What a recorder could not write: `n` events, and `reasons` with a count for each."""
ABOUT_THE_TRACE: Final = frozenset({SOURCE_OPENED, FIDELITY_MEASURED, SESSION_ENDED, RECORD_DROPPED})
"""Events that belong to no step."""

STANDARD_EVENTS: Final = (
    SURFACE_CREATED,
    SURFACE_UPDATED,
    ITEM_ADDED,
    ITEM_UPDATED,
    ITEM_REMOVED,
    SELECTION_STARTED,
    SELECTION_COMPLETED,
    BUDGET_APPLIED,
    ASSEMBLY_CREATED,
    INJECTION_APPLIED,
    COMPACTION_STARTED,
    COMPACTION_COMPLETED,
    SUMMARY_CREATED,
    MISSING_DETECTED,
    MISSING_REQUESTED,
    MISSING_RESOLVED,
    REDACTION_APPLIED,
    EXPORTED,
)

ANSWERS: Final = frozenset({"assistant_message", "reasoning", "tool_call"})
"""Kinds of what a model answers."""

Mode = Literal["window", "append"]
NO_TIME: Final = "1970-01-01T00:00:00Z"
"""The time of an event whose source records none: the schema demands one.  No view shows it as a date."""

Basis = Literal["assembly", "selection", "items", "repeat", "policy", "none"]
"""What a frame was taken from; `repeat` and `none`: nothing was recorded for it; `policy`: simulated."""

Layer = Literal["available", "view", "injected"]
Status = Literal["added", "updated", "removed", "skipped", "omitted"]
STATUSES: Final[tuple[Status, ...]] = ("added", "updated", "removed", "skipped", "omitted")

Provenance = Literal["native", "derived", "simulated"]

Stage = Literal["surface", "selection", "budget", "window", "assembly", "injection", "evidence"]
STAGES: Final[tuple[Stage, ...]] = (
    "surface",
    "selection",
    "budget",
    "window",
    "assembly",
    "injection",
    "evidence",
)
Verdict = Literal["recorded", "not_recorded", "matches", "differs", "cannot_tell"]

UsedMethod = Literal["reported", "expected", "recorded"]
"""How it is known what a step sent: the bill; the last bill and what changed since; only what is recorded."""
LimitSource = Literal["recorded", "runtime", "client", "catalogue", "supposed"]
"""The source of a limit: a budget record of the trace, the client in its capture, the client's own rule or
the
line at which it compacted, the model table, a what-if."""
PrefixBasis = Literal["wire", "content"]
"""What two requests were compared by: their bodies as they were sent, or what a client tells of them."""
MissCause = Literal["expired", "model", "unrecorded", "unexplained"]
"""Why a cache was not read, as far as facts go: idle for longer than the provider keeps it; another model;
the unrecorded part changed its size; nobody can tell."""

CAUSES: Final = (
    "detached",
    "omitted",
    "truncated",
    "compacted",
    "redacted",
    "expired",
    "branched",
    "cleared",
    "unrecorded",
)


WARNINGS: Final = frozenset(
    {"unrecorded_cut", "still_over_budget", "over_budget", "missing_context", "unknown_base", "failed"}
)
"""Flags of a step that warn; the others are facts of the recording.  `failed`: a request had no answer."""


def warns(flags: Collection[str], *, over: bool) -> bool:
    """Whether a step is marked `!`, in a list, on a page and by `is:warning`.

    Args:
        flags: Its flags.
        over: It sent more than its cap.
    """
    return over or not WARNINGS.isdisjoint(flags)


def mode_of(name: str | None) -> Mode | None:
    """A declared mode, or None for anything else."""
    if name == "window":
        return "window"
    return "append" if name == "append" else None


APPEND_POINTS: Final = frozenset({"user_message_appendix", "peer_agent_message"})
"""Injection points that mean "only differences are sent" (DESIGN section 3, Mode)."""

TOOL_ARGUMENT: Final = "tool_argument"
"""The injection point of what one call of a tool is given: it ends with the call."""

UNRECORDED: Final = "unrecorded"
"""The segment of what was sent and is not in the capture; first, where instructions and tools are."""
SEGMENTS: Final = (UNRECORDED, "tools", "system", "history", "context", "user")
"""Window segments in the order in which providers place them."""


class Level(StrEnum):
    """How a fact of a capture is known, best first."""

    NATIVE = "native"
    DERIVED = "derived"
    SIMULATED = "simulated"
    IN_TOTALS = "in totals"
    """It is recorded for several requests together, and for none alone."""
    NOT_RECORDED = "not recorded"
    NOT_UNDERSTOOD = "not understood"


def rank_of(segment: str) -> int:
    """Where providers put a segment: 0 tools, 1 system, 2 the rest."""
    if segment == "tools":
        return 0
    return 1 if segment == "system" else 2


def segment_of(kind: str) -> str:
    """The window segment that a context kind belongs to where the trace names none."""
    return usual_segment(kind)
