"""A step's annotations beside its frame, and the texts that a redaction hides.

An annotation belongs to the step in which it is recorded, before or after its seal: a gap, an envelope or a
redaction changes no frame by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from ctxctl.engine.replay.frames import FrameDelta
from ctxctl.engine.replay.item_table import ItemTable, ItemVersion
from ctxctl.listdiff import same_end, same_start
from ctxctl.model.annotations import (
    UNREDACTED,
    Annotations,
    Bound,
    Compacted,
    Ids,
    MissingContext,
    Origin,
    Redacted,
    SummaryRequest,
)
from ctxctl.model.billed import dollars
from ctxctl.model.event import Event
from ctxctl.model.numbers import count
from ctxctl.model.records import Assembly, Compaction, Envelope, Missing, Redaction
from ctxctl.model.results import Placement

_MAX_GAPS = 1000
"""Most unresolved gaps that are remembered."""
OVER = frozenset({"resolved", "declined", "expired"})
RedactedCopy = Callable[[Placement, str, str | None], Placement]
"""Redacts a copy, given the redaction state and the ref of its replacement item."""


class AnnotationState:
    """Annotations of a thread's open step so far, and the state that later steps need."""

    def __init__(self) -> None:
        self.ids = Ids()
        self.missing: dict[str, Missing] = {}
        self.redactions: list[Redaction] = []
        self.envelopes: dict[str | None, Envelope] = {}
        """Envelopes by the snapshot that they bind."""
        self._lacking: dict[str, Missing] = {}
        self._raw: set[tuple[str, str | None]] = set()
        """Versions of redacted items that held the redacted text."""
        self._upto: dict[str, ItemVersion] = {}
        """The last version checked for redacted text, by redacted item."""
        self._shown: tuple[list[Placement], list[Placement]] = ([], [])
        """The last frame to be redacted, and its redacted form; empty if it must be redone."""
        self._same: tuple[list[Placement], list[Placement], int, int] = ([], [], 0, 0)
        """The last two redacted frames, and the lengths of their common head and tail."""
        self._withheld: frozenset[str] | None = frozenset()
        """Items in `_raw`; None if it must be recomputed."""
        self._digests: dict[str, str] = {}
        """Digests of redacted texts, each with its redaction state."""
        self._instead: dict[str, str] = {}
        """Refs of the items that replaced redacted ones."""

    def copy(self) -> AnnotationState:
        """Return an independent copy, for a snapshot of a replay."""
        twin = AnnotationState()
        twin.ids = self.ids
        twin.missing = dict(self.missing)
        twin.redactions, twin.envelopes = list(self.redactions), dict(self.envelopes)
        twin._lacking = dict(self._lacking)
        twin._raw, twin._digests = set(self._raw), dict(self._digests)
        twin._upto, twin._withheld, twin._shown = dict(self._upto), self._withheld, self._shown
        twin._same = self._same
        twin._instead = dict(self._instead)
        return twin

    def weight(self) -> int:
        """Return about how much a copy holds, in units of 32 bytes."""
        named = len(self._digests) + len(self._upto) + len(self._instead) + len(self._lacking)
        return 4 * len(self._raw) + 3 * named

    def opens(self) -> None:
        """Begin a new step."""
        self.ids = Ids()
        if self.missing:
            self.missing = {}
        if self.redactions:
            self.redactions = []
        if self.envelopes:
            self.envelopes = {}

    def named(self, event: Event) -> None:
        """Note an event's ids. The first context id counts, and the last of each other id."""
        now = self.ids
        self.ids = Ids(
            now.context_id or event.context_id,
            event.task_id or now.task_id,
            event.run_id or now.run_id,
            event.attempt_id or now.attempt_id,
        )

    def lacks(self, record: Missing) -> None:
        """Note missing context. Earlier details of the same gap are kept."""
        name = record.missing_id or f"?{len(self.missing)}"
        before = self.missing.get(name) or self._lacking.get(name)
        if before is not None:
            kept = {
                field: value
                for field in Missing.__struct_fields__
                if getattr(record, field) in (None, (), {}) and (value := getattr(before, field))
            }
            record = msgspec.structs.replace(record, **kept)
        self.missing[name] = record
        self._lacking.pop(name, None)
        if record.status not in OVER and record.missing_id is not None:
            self._lacking[name] = record
            if len(self._lacking) > _MAX_GAPS:
                del self._lacking[next(iter(self._lacking))]

    def redacted(self, record: Redaction, book: ItemTable) -> None:
        """Apply a redaction: hide the versions of the item that hold the full text."""
        self.redactions.append(record)
        state = record.redaction_state or "unknown"
        if state in UNREDACTED:
            return
        item = book.item_of(record.item_id)
        if record.replacement is not None and book.item_of(record.replacement) != item:
            self._instead[item] = record.replacement
        upto = self._upto.get(item)
        for version in book.history(item):
            if version is upto:
                break
            if _says_all(version) and (item, version.version) not in self._raw:
                self._raw.add((item, version.version))
                self._withheld = None
                self._shown = ([], [])
                if version.content is not None:
                    self._digests[version.content.digest] = state
        if (newest := book.newest.get(item)) is not None:
            self._upto[item] = newest

    def bound(self, record: Envelope) -> None:
        """Note an envelope. It replaces earlier revisions of its snapshot."""
        self.envelopes.pop(record.context_id, None)
        self.envelopes[record.context_id] = record
        if record.context_id is not None and self.ids.context_id is None:
            self.ids = msgspec.structs.replace(self.ids, context_id=record.context_id)

    @property
    def withheld(self) -> frozenset[str]:
        """Items of which some version is hidden."""
        if self._withheld is None:
            self._withheld = frozenset(item for item, _ in self._raw)
        return self._withheld

    def hide_redacted(
        self,
        frame: list[Placement],
        redacted: RedactedCopy,
        difference: Callable[[list[Placement], list[Placement]], FrameDelta | None] = lambda _, __: None,
    ) -> list[Placement] | None:
        """Return the frame without hidden texts; None if it shows none.

        The part in common with the last frame is processed again only after a redaction, or if a replacement
        item may have a new text. `difference` returns how two frames differ, if known.
        """
        if not self._raw:
            return None
        before, shown = self._shown
        head = tail = 0
        if shown and not self._instead:
            known = difference(before, frame)
            if known is not None:
                head, tail = known.prefix, known.suffix
            else:
                head = same_start(before, frame)
                tail = same_end(before, frame, min(len(before), len(frame)) - head)
        made = shown[:head]
        made += [self._hidden_copy(p, redacted) for p in frame[head : len(frame) - tail]]
        if tail:
            made += shown[-tail:]
        self._shown, self._same = (frame, made), (shown, made, head, tail)
        return made if made != frame else None  # return the same object: placements are compared by identity

    def same_ends(self, before: list[Placement], after: list[Placement]) -> tuple[int, int]:
        """Return the lengths of the common head and tail of the last two redacted frames; 0 for others."""
        first, second, head, tail = self._same
        return (head, tail) if first is before and second is after else (0, 0)

    def _hidden_copy(self, p: Placement, redacted: RedactedCopy) -> Placement:
        if p.content is None:
            return p
        state = self._digests.get(p.content.digest)
        if state is None and not p.own and (p.item, p.version) in self._raw:
            state = "unknown"  # a wrapper surrounds the text
        return p if state is None else redacted(p, state, self._instead.get(p.item))

    def of_step(
        self, compactions: Sequence[Compaction], book: ItemTable, assembly: Assembly | None
    ) -> Annotations:
        """Return the step's annotations as a value for views."""
        origin = None if assembly is None else _origin(assembly)
        if not (compactions or self.missing or self.redactions or self.envelopes or self._raw):
            return Annotations(ids=self.ids, origin=origin)
        return Annotations(
            ids=self.ids,
            missing=tuple(_missing(m) for m in self.missing.values()),
            compactions=tuple(_compacted(c) for c in compactions),
            redactions=tuple(_redactions(self.redactions, book)),
            envelopes=tuple(
                Bound(e.context_id, e.scope, e.lifecycle, e.refs) for e in self.envelopes.values()
            ),
            withheld=self.withheld if self._raw else frozenset(),
            origin=origin,
        )


def _origin(assembly: Assembly) -> Origin | None:
    """Return what started the thread, by the marks of importers on its first assembly."""
    marks = assembly.metadata.get("ctxctl")
    if not isinstance(marks, dict):
        return None
    if "parent_thread" not in marks and "parent_tool_call" not in marks:
        return None
    names = ("parent_thread", "parent_tool_call", "agent_type")
    texts = [value if isinstance(value := marks.get(name), str) else None for name in names]
    return Origin(*texts) if texts[0] is not None or texts[1] is not None else None


def is_open(missing: MissingContext) -> bool:
    """Return whether a recorded gap is unresolved."""
    return missing.status not in OVER


def _says_all(version: ItemVersion) -> bool:
    """Return whether a version has an unredacted text."""
    return version.content is not None and version.record.redaction is None


def _missing(record: Missing) -> MissingContext:
    return MissingContext(
        missing_id=record.missing_id, status=record.status, severity=record.severity,
        question=record.question, summary=record.summary, needed_for=record.needed_for,
        requested_from=record.requested_from, requested_action=record.requested_action,
        candidate_sources=record.candidate_sources, blocked_actions=record.blocked_actions,
        resolution_refs=record.resolution_refs,
    )  # fmt: skip


def _compacted(record: Compaction) -> Compacted:
    return Compacted(
        compaction_id=record.compaction_id, scope=record.scope, method=record.method,
        trigger=record.trigger, summary=record.summary, source_item_refs=record.sources,
        coverage=record.coverage, loss_notes=record.loss_notes, validation=record.validation,
        replacement_policy=record.replacement_policy, request=_summary_request(record),
    )  # fmt: skip


def _summary_request(record: Compaction) -> SummaryRequest | None:
    marks = record.metadata.get("ctxctl")
    told = marks.get("request") if isinstance(marks, dict) else None
    if not isinstance(told, dict):
        return None
    names = (name for name in SummaryRequest.__struct_fields__ if name.endswith("_tokens"))
    return SummaryRequest(
        told.get("billed") is not False,
        **{name: count(told.get(name)) or 0 for name in names},
        stated_usd=dollars(told.get("stated_usd")),
    )


def _redactions(records: list[Redaction], book: ItemTable) -> list[Redacted]:
    """Return one entry per item. The record and the item may both tell of one redaction."""
    found: dict[str, Redacted] = {}
    for record in records:
        item = book.item_of(record.item_id)
        before = found.get(item, Redacted(item, None, None, None, (), (), None, None))
        found[item] = Redacted(
            item=item,
            state=record.redaction_state or before.state,
            method=record.redaction_method or before.method,
            reason=record.reason or before.reason,
            fields=record.fields or before.fields,
            policy_refs=record.policy_refs or before.policy_refs,
            actor=record.actor or before.actor,
            replacement=record.replacement or before.replacement,
        )
    return list(found.values())
