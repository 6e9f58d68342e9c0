"""What replay says about steps and turns: plain values that every view and report reads.

Names, order and meaning are those of the ``--json`` contract (``docs/json.md``).  Token numbers are
integers; None means that the trace does not say.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ctxctl.model.annotations import Annotations
from ctxctl.model.content import Content
from ctxctl.model.records import Fidelity
from ctxctl.model.terms import PLAIN, Stated, Terms
from ctxctl.model.vocab import (
    Basis,
    Layer,
    LimitSource,
    MissCause,
    Mode,
    PrefixBasis,
    Provenance,
    Status,
    UsedMethod,
    Verdict,
)


class Placement(msgspec.Struct, eq=False, gc=False):
    """One copy of an item in a frame.  Equal placements of one thread are one object (compare with `is`)."""

    item: str
    """The item's id without a version suffix."""
    version: str | None
    kind: str
    title: str | None
    source: str | None
    segment: str
    tokens: int
    """In the model's own tokens; 0 where uncounted."""
    method: str
    """`counted`, `calibrated` (counted, then by the model's calibration), `estimated` (counted by a bounded
    rule), `declared`, `uncounted`."""
    content: Content | None
    """The rendered text, wrapper included; None where the trace has no text."""
    digest: str | None
    """Digest of the rendered text, or the recorded hash where there is no text."""
    key: int
    """Equal for equal (item, version, rendering): what the ledger and the possible prefix compare.  The
    rendering is the text and, where the request's body is known, `form`."""
    line: int
    """Line of the item record it came from; 0 for an unknown ref."""
    role: str | None = None
    rank: int = 2
    """Where providers put it: 0 tools, 1 system, 2 the rest, which is also what a body has among its messages
    in the system's name; what it is for is told by `rank_of(segment)`."""
    stale: bool = False
    derived: bool = False
    """The item's identity was derived, not given by the runtime."""
    simulated: bool = False
    truncated: bool = False
    opens: str = ""
    """Text in front of it that is not its own: an overhead, shown in the assembled text and not counted."""
    closes: str = ""
    separator: str | None = None
    """In `append` mode: the separator (a text or a name) that its own assembly records, where it follows
    another block of that.  None: not recorded, or it is the first that a step appended."""
    carried: bool = False
    """Carried in from before the trace: current, never seen, uncounted."""
    redaction: str | None = None
    """What was done to its text (`masked`, `removed` …), by its block, its item or a redaction."""
    own: bool = False
    """Its text is its block's, not the item's."""
    counted: int = 0
    """Tokens as they were counted or declared, before any calibration."""
    form: str = ""
    """What its own JSON says in the request's body beside its text (a signature, `is_error`); empty: nothing,
    or not known."""
    instead_of: int | None = None
    """Tokens of the recorded text in whose place a what-if set another one; None: it is the recorded one."""


class Change(msgspec.Struct, frozen=True, gc=False):
    """One item's change between two frames."""

    status: Status
    item: str
    kind: str
    title: str | None
    version: str | None
    previous_version: str | None
    tokens: int
    """Size of the item's version spoken of (the new one; of a removed item the one that left)."""
    in_window: int
    """What all its copies hold in this frame, stale ones included."""
    new: int
    freed: int
    cause: str | None
    reason: str | None
    into: str | None
    """The summary that a compacted item went into."""
    flags: tuple[str, ...]
    source: str | None
    provenance: Provenance
    line: int = 0
    """Line of the item record, 0 where there is none (not part of the JSON contract)."""
    unsized: bool = False
    """The version spoken of has neither text nor count: its 0 tokens are unknown (not part of it either)."""

    @property
    def size(self) -> int | None:
        """`tokens`; None where nobody knows them."""
        return None if self.unsized and not self.tokens else self.tokens


class Window(msgspec.Struct, frozen=True, gc=False):
    """A step's window in the model's own tokens (DESIGN section 3, the true window).

    `used` is what the provider got; what is `free`, `over` and any share are about it.  `limit` and what
    hangs on it are None when unknown.
    """

    limit: int | None
    reserved: int | None
    cap: int | None
    used: int
    """What was sent: see `used_method`."""
    free: int | None
    over: int | None
    uncounted: int
    """Placements that add 0 because there is neither text nor count."""
    by_method: dict[str, int]
    """Tokens of `recorded` by counting method, for example {"exact:o200k_base": 812, "declared": 40}."""
    recorded: int = 0
    """The content of the frame, in the model's own tokens: the ledger's `window_after`."""
    unrecorded: int | None = None
    """`used` less `recorded`: what the capture does not hold, and the error of the rest; may be negative.
    None: nothing was billed from which it could be known."""
    used_method: UsedMethod = "recorded"
    used_error: int | None = None
    """Of `expected`: nine of ten are off by no more than this many tokens.  None: not known, or a bill."""
    counted: int | None = None
    """The frame's tokens as they were counted, before any calibration."""
    limit_source: LimitSource | None = None
    """Who says the limit; None: nobody."""
    limit_note: str | None = None
    """One sentence of how a `catalogue` limit was found, with its date; or why there is none."""
    threshold: int | None = None
    """Where the runtime compacts by itself, in tokens of `used`; None: not known."""
    threshold_source: str | None = None
    """Which rule of which runtime says so."""


class Ledger(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Tokens that entered and left: window_after = window_before + reweighed + new - freed, always."""

    window_before: int
    new: int
    freed: int
    window_after: int
    saved: int | None
    stale: int
    uncounted: int
    reweighed: int = 0
    """What the window before has more in the encoding of this step's model, where the last one's was another;
    `new` and `freed` are in this step's."""


class Counts(msgspec.Struct, frozen=True, gc=False):
    """Items by status."""

    added: int = 0
    updated: int = 0
    removed: int = 0
    skipped: int = 0
    omitted: int = 0


class StageView(msgspec.Struct, frozen=True):
    """One stage of one step: the verdict and the facts that are known of it."""

    verdict: Verdict
    facts: dict[str, Any] = {}
    """JSON values; under a recomputing policy also `expected` and `recorded` where they differ."""


class BrokenBy(msgspec.Struct, frozen=True, gc=False):
    """What ended the possible prefix: the change of a placement (one of the previous request that left, moved
    or changed, or a new one that came before the rest), or of a parameter of the request."""

    item: str | None
    """None: it was a parameter."""
    version: str | None
    position: int
    """Where the run ended: 0-based, in the provider's order (tools, system, then the rest)."""
    status: str
    """What happened to it: `added`, `updated`, `removed` or `moved`."""
    cause: str | None
    setting: str | None = None
    """The parameter: `model`, `tool_choice`, `thinking`, `effort`, `speed`, `images`, `citations`."""
    level: str | None = None
    """Where a parameter's change breaks: at `tools` (all), `system` or `messages`."""
    change: str | None = None
    """What is different where the version is the same: `signature`, `key order in input_schema` ..."""

    @property
    def name(self) -> str:
        """The item's id, or the parameter's name."""
        return self.item if self.item is not None else self.setting or ""


class Miss(msgspec.Struct, frozen=True, gc=False):
    """Tokens that a provider could have read from its cache and did not, where no recorded change explains it
    (DESIGN section 3, cache misses)."""

    expected: int
    """What could be read again: the smaller of what was sent before and now, less what recorded changes
    behind the first break make new."""
    read: int
    """What the provider reports as read."""
    tokens: int
    """What was paid for again: `expected` - `read`, bounded by what the bill has beside the cache."""
    cause: MissCause
    recorded_cause: str | None = None
    """What the client itself wrote of it: untrusted text."""
    idle: float | None = None
    """Seconds since the request before; None: a time is not recorded."""
    lifetime: int | None = None
    """Seconds that the provider documents for what was written before; None: none is documented."""


class Cache(msgspec.Struct, frozen=True, gc=False):
    """What a prompt cache could reuse of the previous request, beside what the provider reported."""

    possible_prefix: int | None
    """None in a thread's first request, and of every target but the model: only its requests have a cache."""
    broken_by: BrokenBy | None
    reported_cached: int | None
    reported_cache_write: int | None
    reported_cache_write_1h: int | None = None
    """The part of the cache writes that is kept for an hour; None: the bill does not tell them apart."""
    miss: Miss | None = None
    """A miss that nothing recorded explains; None: none, or the bill has no cache figures to tell by."""
    compared: PrefixBasis | None = None
    """What the possible prefix was held against: `wire`, the requests' own bodies, or `content`, the texts as
    a client wrote them down; None without a prefix."""


class Cut(msgspec.Struct, frozen=True, gc=False):
    """Content that left the window with no record of it, as the provider's bill shows."""

    unsent: int
    """Tokens of the recorded content that were not sent, at least; 0: only the bill's fall shows the cut."""
    billed: int | None
    """The request's whole input; None: nobody billed it, and what was not sent exceeds the model's window."""
    before: int | None
    """The same of the thread's last billed request; None: this is the first."""
    is_unread_compaction: bool
    """The bill fell to less than half while the recorded content grew."""
    lines: tuple[int, int]
    """First lines, in the trace, of the last billed request and of this one: the cause is between them."""
    offsets: tuple[int, int] = (0, 0)
    """Bytes at which these lines begin."""


class UsageView(msgspec.Struct, frozen=True, gc=False):
    """The provider's bill beside our count."""

    reported_input: int | None
    reported_cached: int | None
    reported_output: int | None
    counted_input: int
    difference: int | None
    """counted - reported."""
    provenance: Provenance = "native"
    """`derived`: not billed for this request by itself, but worked out from a running total, for example."""
    provider: str | None = None
    """Who billed it, as the trace calls them."""
    believed_output: int | None = None
    """The answer's counted tokens, where the client logged a placeholder as its output; None: it did not."""
    counted_output: int | None = None
    """Tokens of the answer as far as the trace holds it, in the model's own; None: not known."""
    reported_reasoning: int | None = None
    """Of the output."""
    terms: Terms = PLAIN
    """How the request was served, and what is billed apart."""

    @property
    def sent(self) -> int | None:
        """The request's size by its bill: the input of its last pass; None: the bill has no input."""
        return self.terms.sent(self.reported_input)


class Step(msgspec.Struct, frozen=True):
    """One model request: the frame it carried, measured and compared with the frame before."""

    session: str | None
    thread: str
    turn: int
    """1-based in its session and thread."""
    step: int
    """1-based in its turn."""
    turn_id: str | None
    step_id: str | None
    time: str | None
    target: str
    model: str | None
    mode: Mode
    mode_declared: bool
    basis: Basis
    layer: Layer
    window: Window
    ledger: Ledger
    counts: Counts
    changes: tuple[Change, ...]
    stages: dict[str, StageView]
    cache: Cache
    usage: UsageView | None
    flags: tuple[str, ...] = ()
    """`unrecorded_cut`, `still_over_budget`, `injection_not_recorded`, `simulated` ..."""
    segments: dict[str, int] = {}
    """Tokens by window segment; their sum is `window.used`."""
    first_line: int = 0
    first_byte: int = 0
    """Where the step's first event stands in the trace."""
    annotations: Annotations = Annotations()
    """What its records tell beside the frame."""
    scores: dict[str, float] = {}
    """By item, what the step's selection scored it; what two frames of two traces are compared by."""
    cut: Cut | None = None
    """The cut without a record that the bill shows; None: it shows none."""
    stated: tuple[Stated, ...] = ()
    """Totals that the runtime states for the requests up to this one: never the bill of one."""

    @property
    def has_partial_output(self) -> bool:
        """Whether the client logged the output before the answer's end, so that it is priced as counted."""
        return self.usage is not None and self.usage.believed_output is not None


class Turn(msgspec.Struct, frozen=True):
    """A turn: the sum of its steps' ledgers, and the changes between the last frames of two turns."""

    session: str | None
    thread: str
    turn: int
    turn_id: str | None
    target: str
    steps: int
    ledger: Ledger
    counts: Counts
    changes: tuple[Change, ...]
    flags: tuple[str, ...] = ()
    title: str | None = None
    """First words of the prompt that set the turn off, where the trace has them."""


class Frame(msgspec.Struct, frozen=True, eq=False):
    """What one target sees at one step: the placements in order."""

    step: Step
    placements: tuple[Placement, ...]


class Summary(msgspec.Struct, frozen=True):
    """Totals of one replay."""

    sessions: int
    threads: int
    turns: int
    steps: int
    events: int
    problems: int
    new: int
    freed: int
    counts: Counts
    unique_contents: int
    by_method: dict[str, int]
    """Tokens of the last windows of all threads, by counting method."""
    fidelity: tuple[Fidelity, ...] = ()
    """What each import of the trace measured; empty for one that was recorded as it is."""
    reweighed: int = 0
    """Of all steps, as in their ledgers: with `new` and `freed` it comes to the last windows."""
