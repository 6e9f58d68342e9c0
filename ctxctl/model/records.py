"""The records that events are about (Agent Context 0.1.1), reduced to what replay acts on.

Field names are the standard's.  All are built by `trace.codec`, which coerces or reports what does not fit,
so the types below can be relied on.  Unknown fields stay in the file; views read them from there.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ctxctl.model.content import Content
from ctxctl.model.terms import PLAIN, Stated, Terms


class Ref(msgspec.Struct, frozen=True, gc=False):
    """A reference to an item: `ID` or `ID@VERSION`, with what the referring record says about it."""

    ref: str
    reason: str | None = None
    """Why it was omitted or dropped, in the standard's words (`budget_limit`, `duplicate` ...)."""
    native_reason: str | None = None
    score: float | None = None
    rank: int | None = None


class Surface(msgspec.Struct, frozen=True, eq=False):
    """`context_surface`: what was available before selection."""

    surface_id: str | None = None
    surface_kind: str | None = None
    available_source_refs: tuple[str, ...] = ()
    available_item_refs: tuple[Ref, ...] = ()
    metadata: dict[str, Any] = {}


class Redaction(msgspec.Struct, frozen=True, eq=False):
    """What was done to an item's text before it was shown."""

    item_id: str
    redaction_state: str | None = None
    redaction_method: str | None = None
    policy_refs: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}
    reason: str | None = None
    fields: tuple[str, ...] = ()
    """Parts of the item that were redacted, where only some were."""
    actor: str | None = None
    """Who redacted it."""
    replacement: str | None = None
    """Ref of what stands in its place."""


class Item(msgspec.Struct, frozen=True, eq=False):
    """`context_item`.  `content` is None where the record has no text (opaque, or an unresolved ref)."""

    item_id: str
    """As written, `@SUFFIX` included; the engine strips it by the rule of DESIGN section 2."""
    context_kind: str = "custom"
    content_mode: str = ""
    title: str | None = None
    content: Content | None = None
    content_digest: str | None = None
    """SHA-256 hex of the content: computed, or named by a `sha256:` content_ref that is not in this file."""
    source: str | None = None
    """First source's id or URI."""
    source_digests: tuple[str, ...] = ()
    """Digests of all source refs, as written (`sha256-16:67ece8…`)."""
    token_estimate: int | None = None
    visibility: tuple[str, ...] = ()
    """Targets that can see it; empty: not said, which the engine reads as model."""
    priority: float | None = None
    redaction_state: str | None = None
    version: str | None = None
    """`metadata.version`, else None."""
    cause: str | None = None
    """`metadata.cause`: why an item was removed."""
    metadata: dict[str, Any] = {}
    redaction: Redaction | None = None
    """What the item itself says was done to its text; None where its state is `none` or not said."""


class Selection(msgspec.Struct, frozen=True, eq=False):
    """`context_selection`: what was kept and left out, and why."""

    selection_id: str | None = None
    surface_id: str | None = None
    query: str | None = None
    intent: str | None = None
    candidates: tuple[Ref, ...] = ()
    selected: tuple[Ref, ...] = ()
    omitted: tuple[Ref, ...] = ()
    scores: dict[str, float] = {}
    """Relevance by ref as written in `ranking_signals`."""
    rationale: str | None = None
    model: str | None = None
    metadata: dict[str, Any] = {}


class Truncation(msgspec.Struct, frozen=True, gc=False):
    """One entry of a budget's `truncation_records`."""

    ref: str
    dropped: bool
    """True: left out whole; False: cut to fit and still there."""
    reason: str | None = None
    tokens: int | None = None
    """What is left of a cut item, in the budget's own count."""


class Budget(msgspec.Struct, frozen=True, eq=False):
    """`context_budget`: limits, and what was done to keep them."""

    budget_id: str | None = None
    target: str = "model"
    max_tokens: int | None = None
    reserved_tokens: int | None = None
    max_input: int | None = None
    """`metadata.ctxctl.max_input`: the provider's own limit on input, beside the window."""
    max_bytes: int | None = None
    max_items: int | None = None
    actual_tokens: int | None = None
    actual_bytes: int | None = None
    actual_items: int | None = None
    overflow_strategy: str | None = None
    truncations: tuple[Truncation, ...] = ()
    segments: dict[str, str] = {}
    """Segment name by item ref, from `window_segments`."""
    metadata: dict[str, Any] = {}
    max_time_ms: int | None = None
    """Milliseconds that gathering the context may take; the draft has time budgets, but no field for them."""
    actual_time_ms: int | None = None
    compacts_at: int | None = None
    """`metadata.ctxctl.compacts_at`: tokens of a request from which on the runtime compacts by itself."""
    compacts_by: str | None = None
    """`metadata.ctxctl.compacts_by`: the rule that says so, in words; from a trace, so untrusted."""
    max_chars: int | None = None
    """`metadata.ctxctl.max_chars`: a limit that the runtime keeps in characters, whatever it calls them."""
    actual_chars: int | None = None
    """Used of them, as the runtime counts."""
    chars_by: str | None = None
    """`metadata.ctxctl.chars_by`: how the runtime says it (`300 tokens, 4 characters each`); untrusted."""


class Block(msgspec.Struct, frozen=True, gc=False):
    """One block of an assembly."""

    block_id: str | None = None
    refs: tuple[str, ...] = ()
    position: float | None = None
    content: Content | None = None
    """The block's own text, where it has one (a rendering other than the item's content)."""
    before: str = ""
    """Recorded wrapper text in front of the content."""
    after: str = ""
    token_estimate: int | None = None
    digest: str | None = None
    """`hash` as written; used as rendering digest only where the text is not known."""
    segment: str | None = None
    role: str | None = None
    truncated: bool = False
    redaction_state: str | None = None
    """None where it is `none`."""
    form: str = ""
    """What its own JSON says in the request's body beside its text (`trace.items`); empty: nothing, or not
    known."""
    field: str | None = None
    """The field of the request's body that it stands in; None: not known."""


class Splice(msgspec.Struct, frozen=True, gc=False):
    """Replace `removed` blocks at index `at` of the base assembly by the next `inserted` new blocks."""

    at: int
    removed: int
    inserted: int


class Assembly(msgspec.Struct, frozen=True, eq=False):
    """`context_assembly`; with `base`, `blocks` are only the new ones and `splices` say where they go.

    `Splice.at` counts in the base's own block list; splices ascend and do not overlap.
    """

    assembly_id: str | None = None
    target: str = "model"
    blocks: tuple[Block, ...] = ()
    base: str | None = None
    splices: tuple[Splice, ...] = ()
    mode: str | None = None
    """`metadata.ctxctl.mode`: the declared mode of the thread."""
    root: str | None = None
    """`metadata.ctxctl.root`: identity of the conversation's root; a change of it is a branch."""
    cause: str | None = None
    """`metadata.ctxctl.cause`: why what is gone since the last assembly is gone (`branched`, `cleared`)."""
    model: str | None = None
    """`metadata.ctxctl.model` or `metadata.model`."""
    client: str | None = None
    """`metadata.ctxctl.client_version`: of the client that sent it; None: as the assembly before."""
    separator: str | None = None
    digest: str | None = None
    metadata: dict[str, Any] = {}
    redaction_state: str | None = None
    request: dict[str, Any] | None = None
    """`metadata.ctxctl.request`: the API and those parameters of the request that a prompt cache hangs on, as
    they stood in its body; None: as with the assembly before, or not known."""


class Injection(msgspec.Struct, frozen=True, eq=False):
    """`context_injection`: where an assembly became visible."""

    injection_id: str | None = None
    assembly_id: str | None = None
    target: str = "model"
    injection_point: str | None = None
    native_id: str | None = None
    digest: str | None = None
    model: str | None = None
    metadata: dict[str, Any] = {}

    @property
    def awaits_answer(self) -> bool:
        """Whether only the answer says what the model read of the request; then this does not seal the
        step."""
        marks = self.metadata.get("ctxctl")
        return isinstance(marks, dict) and marks.get("awaits_answer") is True


class Compaction(msgspec.Struct, frozen=True, eq=False):
    """`context_compaction`: sources replaced by a shorter summary."""

    compaction_id: str | None = None
    sources: tuple[str, ...] = ()
    summary: str | None = None
    method: str | None = None
    trigger: str | None = None
    coverage: dict[str, Any] = {}
    loss_notes: tuple[str, ...] = ()
    replacement_policy: str | None = None
    metadata: dict[str, Any] = {}
    scope: str | None = None
    validation: str | None = None
    """Whether anybody has looked the summary over, as recorded."""


class Missing(msgspec.Struct, frozen=True, eq=False):
    """`missing_context`: an input that was known to be lacking."""

    missing_id: str | None = None
    question: str | None = None
    severity: str | None = None
    status: str | None = None
    needed_for: str | None = None
    requested_from: str | None = None
    blocked_actions: tuple[str, ...] = ()
    resolution_refs: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}
    scope: str | None = None
    candidate_sources: tuple[str, ...] = ()
    """Where it may be had, one phrase each."""
    requested_action: str | None = None
    """What whoever is asked is to do."""
    summary: str | None = None
    """Words for the user that give nothing away."""


class Usage(msgspec.Struct, frozen=True, eq=False):
    """`ctxctl.usage.reported`: what the provider billed for one request.

    `input_tokens` is the whole context billed, cache reads and writes included; the two cache counts are
    parts of it, and `cache_write_1h_tokens` is the part of the writes that is kept for an hour.  None: not
    reported.
    """

    model: str | None = None
    provider: str | None = None
    input_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    metadata: dict[str, Any] = {}
    cache_write_1h_tokens: int | None = None
    cache_miss_cause: str | None = None
    """Why the cache was not read, in the words of the provider or the client: untrusted."""
    terms: Terms = PLAIN
    output_is_partial: bool = False
    """The client logged the output before the answer's end, so it may be a placeholder."""


class Totals(msgspec.Struct, frozen=True, eq=False):
    """`ctxctl.total.stated`: totals that the runtime states for several requests."""

    totals: tuple[Stated, ...] = ()


class Failure(msgspec.Struct, frozen=True, eq=False):
    """`ctxctl.step.failed`: there was no answer to the step's request, or not all of it."""

    error: str | None = None
    """Its kind; never what the provider wrote."""
    status: int | None = None
    """Of HTTP."""


class Answered(msgspec.Struct, frozen=True, eq=False):
    """`ctxctl.step.answered`: the step's request was sent again after it had failed, and answered."""

    attempts: int | None = None
    """How often it was sent."""


class Ended(msgspec.Struct, frozen=True, eq=False):
    """`ctxctl.session.ended`: a session or a thread is over."""

    final: bool = False
    """No later event belongs to it, so that it can be forgotten."""


class Dropped(msgspec.Struct, frozen=True, eq=False):
    """`ctxctl.record.dropped`: events that a recorder could not write."""

    count: int | None = None
    reasons: dict[str, Any] = {}
    """How many for which reason."""


class Fidelity(msgspec.Struct, frozen=True, eq=False):
    """`ctxctl.fidelity.measured`: how much of each fact one imported capture held."""

    format: str | None = None
    requests: int | None = None
    """Model requests in the capture."""
    facts: dict[str, dict[str, int]] = {}
    """By fact: how often `native`, `derived`, `simulated`, `not recorded` and `not understood`."""
    understood: dict[str, Any] = {}
    """What of the file was not understood, and where (`formats.kit.measure`); empty in older traces."""


class Envelope(msgspec.Struct, frozen=True, eq=False):
    """`context_envelope` of a `context.exported` event."""

    context_id: str | None = None
    scope: str | None = None
    lifecycle: str | None = None
    metadata: dict[str, Any] = {}
    refs: dict[str, tuple[str, ...]] = {}
    """Ids of the records that it binds together, by field (`surface_refs`, `budget_ref` ...)."""


Record = (
    Surface
    | Item
    | Selection
    | Budget
    | Assembly
    | Injection
    | Compaction
    | Missing
    | Redaction
    | Usage
    | Totals
    | Failure
    | Answered
    | Ended
    | Dropped
    | Envelope
    | Fidelity
)
