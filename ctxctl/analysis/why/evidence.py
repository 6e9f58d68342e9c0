"""Sentences on what one step's records say about an item. Each names its event."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeVar

from ctxctl.analysis.why.reading import StepReader
from ctxctl.engine.replay.item_table import version_of
from ctxctl.engine.replay.step_facts import UNCHANGED
from ctxctl.model import vocab
from ctxctl.model.event import Event
from ctxctl.model.records import (
    Assembly,
    Budget,
    Compaction,
    Injection,
    Item,
    Redaction,
    Ref,
    Selection,
    Surface,
)
from ctxctl.model.why import Link, Moment
from ctxctl.session.resolver import ItemRefs
from ctxctl.text import preview
from ctxctl.wording import plural

R = TypeVar("R")

_MAX_QUOTE: Final = 160
"""Most characters of a recorded text that a sentence quotes."""
_MAX_TITLE_CELLS: Final = 60
"""Most cells of another item's title."""


class Called:
    """How sentences name what the records refer to.

    Args:
        title: Returns an item's title by its id; None if it has none.
        ids: Whether records and items are named by id.
    """

    def __init__(self, title: Callable[[str], str | None], *, ids: bool) -> None:
        self._title = title
        self._ids = ids

    def came(self, record: Item) -> str:
        """Say that an item became available, with what its record says."""
        return came_text(record, version=self._ids)

    def carried(self, record: Assembly) -> str:
        """Say that an item is in a window because it was in the one that the window is based on."""
        if not self._ids:
            return "was carried over from another request"
        name = self.record("assembly", record.assembly_id)
        return f"was carried over by {name} from {self.base(record.base)}: no splice removes it"

    def assembled(self, record: Assembly, block: int) -> str:
        """Say that an item was assembled, as the block with this number, from 1."""
        if record.base is None:
            name = self.record("assembly", record.assembly_id) if self._ids else "the request"
            return f"is block {block} of {len(record.blocks)} of {name}"
        if not self._ids:
            return "was added to the request"
        name = self.record("assembly", record.assembly_id)
        return f"entered with {name}, a splice onto {self.base(record.base)}"

    def sent(self, record: Injection) -> str:
        """Say that an item was sent."""
        if not self._ids:
            return "was sent"
        point = record.injection_point or "a place that is not recorded"
        return f"was sent with {self.record('injection', record.injection_id)} at {point}"

    def record(self, kind: str, name: str | None) -> str:
        """Name a record of one of the stages."""
        if not self._ids:
            return f"the {kind}"
        return f"{kind} {name or 'without a name'}"

    def base(self, name: str | None) -> str:
        """Name the assembly that this one is based on, whether or not the trace has it."""
        return (name or "one without a name") if self._ids else "another one"

    def by(self, name: str | None) -> str:
        """Name the compaction that caused it, if its id says more than the event's."""
        return f" by {name or 'a compaction without a name'}" if self._ids else ""

    def item(self, ref: str, noun: str) -> str:
        """Name another item within a sentence; `noun` replaces a missing title."""
        if self._ids:
            return ref
        title = self._title(ref)
        return f"“{preview(title, _MAX_TITLE_CELLS)}”" if title else noun

    def summary(self, ref: str) -> str:
        """Name a summary at the beginning of a sentence."""
        if self._ids:
            return f"summary {ref}"
        title = self._title(ref)
        return f"summary “{preview(title, _MAX_TITLE_CELLS)}”" if title else "the summary"


class StepEvidence:
    """One step's records about one item. Each method returns sentences, none if the records say nothing."""

    def __init__(
        self, reader: StepReader, ordinal: int, named: ItemRefs, target: str, called: Called
    ) -> None:
        self.ordinal = ordinal
        self.events = reader.of(ordinal)
        self.moment: Moment = reader.moment(ordinal)
        self._reader = reader
        self._named = named
        self._target = target
        self._called = called

    def about(self, *, kept: bool) -> Iterator[Link]:
        """Yield all decisions about the item at this step, in the order of the stages."""
        yield from self.surface()
        yield from self.selection()
        yield from self.budget()
        if kept:
            yield from self.assembly()
            yield from self.injection()

    def item_events(self) -> list[Event]:
        """Return the step's events that add or update the item."""
        return [
            event
            for event in self.events
            if isinstance(event.record, Item)
            and event.event_type != vocab.ITEM_REMOVED
            and self._named.in_item(event.record)
        ]

    def surface(self) -> Iterator[Link]:
        """Yield the surface that listed it."""
        for event, record in self._records(Surface):
            at = self._first(ref.ref for ref in record.available_item_refs)
            if at is not None:
                yield self._link(
                    event, "surface", "listed",
                    f"was listed on {self._called.record('surface', record.surface_id)}, "
                    f"one of {plural(len(record.available_item_refs), 'item')}",
                    items=len(record.available_item_refs),
                )  # fmt: skip

    def selection(self) -> Iterator[Link]:
        """Yield its rank, and whether it was kept, by the last completed selection."""
        found = [pair for pair in self._records(Selection) if pair[0].event_type == vocab.SELECTION_COMPLETED]
        if not found:
            return
        event, record = found[-1]
        groups: tuple[tuple[str, tuple[Ref, ...]], ...] = (
            ("omitted", record.omitted), ("kept", record.selected), ("ranked", record.candidates)
        )  # fmt: skip
        for verdict, refs in groups:
            at = self._first(ref.ref for ref in refs)
            if at is not None:
                yield self._chosen(event, record, verdict, refs[at], at)
                return

    def _chosen(self, event: Event, record: Selection, verdict: str, ref: Ref, at: int) -> Link:
        score = ref.score if ref.score is not None else self._score(record)
        rank = ref.rank
        among = len(record.candidates) or len(record.selected) + len(record.omitted)
        numbers: dict[str, Any] = {"rank": rank, "score": score, "candidates": among}
        ranking = []
        if rank is not None:
            ranking.append(f"rank {rank}")
        if score is not None:
            ranking.append(f"score {_figure(score)}")
        ranking.append(f"among {plural(among, 'candidate')}")
        selection = self._called.record("selection", record.selection_id)
        if verdict == "kept":
            text = f"was kept by {selection} ({', '.join(ranking)})"
        elif verdict == "ranked":
            text = f"was a candidate of {selection} ({', '.join(ranking)}), neither kept nor omitted by it"
        elif ref.reason == UNCHANGED:
            return self._link(
                event, "selection", "unchanged",
                f"was not sent again by {selection}: the model has this version already ({UNCHANGED})",
                reason=ref.reason, **numbers,
            )  # fmt: skip
        else:
            why = f": {ref.reason}" if ref.reason else ", no reason recorded"
            native = f" (in its own words: {_quote(ref.native_reason)})" if ref.native_reason else ""
            text = f"was left out by {selection}{why}{native} ({', '.join(ranking)})"
            lowest = self._lowest(record)
            if lowest is not None:
                numbers["lowest_kept_score"] = lowest
                text += f"; the lowest score kept was {_figure(lowest)}"
            numbers["reason"] = ref.reason
            if ref.native_reason is not None:
                numbers["native_reason"] = ref.native_reason
        return self._link(event, "selection", verdict, text, **numbers)

    def _score(self, record: Selection) -> float | None:
        return next((score for ref, score in record.scores.items() if self._named.by(ref)), None)

    def _lowest(self, record: Selection) -> float | None:
        scores = [r.score if r.score is not None else record.scores.get(r.ref) for r in record.selected]
        known = [score for score in scores if score is not None]
        return min(known) if known and len(known) == len(scores) else None

    def budget(self) -> Iterator[Link]:
        """Yield what budget records did to it, and their limits."""
        for event, record in self._records(Budget):
            if record.target != self._target:
                continue
            at = self._first(t.ref for t in record.truncations)
            if at is None:
                continue
            truncation = record.truncations[at]
            against, numbers = _limits(record)
            why = f": {truncation.reason}" if truncation.reason else ", no reason recorded"
            if truncation.dropped:
                verdict, text = (
                    "dropped",
                    f"was dropped by {self._called.record('budget', record.budget_id)}{why}",
                )
            else:
                verdict, text = (
                    "cut",
                    f"was cut to fit by {self._called.record('budget', record.budget_id)}{why}",
                )
                if truncation.tokens is not None:
                    text += f"; {plural(truncation.tokens, 'token')} of it were left"
                    numbers["tokens_left"] = truncation.tokens
            if record.overflow_strategy:
                numbers["overflow_strategy"] = record.overflow_strategy
            yield self._link(event, "budget", verdict, text + against, reason=truncation.reason, **numbers)

    def limits(self) -> tuple[Event, str, dict[str, Any]] | None:
        """Return the limits of the step's last budget record, in words."""
        found = [pair for pair in self._records(Budget) if pair[1].target == self._target]
        if not found:
            return None
        event, record = found[-1]
        text, numbers = _limits(record)
        return (event, text, numbers) if text else None

    def assembly(self) -> Iterator[Link]:
        """Yield its place in the assembly."""
        found = [pair for pair in self._records(Assembly) if pair[1].target == self._target]
        if not found:
            return
        event, record = found[-1]
        at = self._first(block.refs[0] for block in record.blocks if block.refs)
        blocks = [block for block in record.blocks if any(self._named.by(ref) for ref in block.refs)]
        if not blocks:
            if record.base is not None:
                yield self._link(event, "assembly", "carried", self._called.carried(record))
            return
        block = blocks[0]
        at = next(n for n, one in enumerate(record.blocks) if one is block)
        where = f", in segment {block.segment}" if block.segment else ""
        text = f"{self._called.assembled(record, at + 1)}{where}"
        if len(blocks) > 1:
            text += f"; {len(blocks)} blocks hold it"
        yield self._link(event, "assembly", "assembled", text, blocks=len(blocks))

    def injection(self) -> Iterator[Link]:
        """Yield its place in what was sent."""
        found = [pair for pair in self._records(Injection) if pair[1].target == self._target]
        if not found:
            return
        event, record = found[-1]
        text = self._called.sent(record)
        yield self._link(event, "injection", "injected", text, injection_point=record.injection_point)

    def left(self, cause: str | None) -> Iterator[Link]:
        """Yield why it left: the records that removed it, first the one that the engine's cause relies on."""
        order: dict[str, Callable[[], Iterable[Link]]] = {
            "compacted": self.compacted,
            "omitted": self.selection,
            "truncated": self.budget,
            "redacted": self.redacted,
        }
        said = [link for name, say in order.items() if name == cause for link in say()]
        said += list(self.removed())
        said += [link for name, say in order.items() if name != cause for link in say() if _takes_out(link)]
        yield from said

    def removed(self) -> Iterator[Link]:
        """Yield an event that removes it, with its cause."""
        for event in self.events:
            record = event.record
            if event.event_type != vocab.ITEM_REMOVED or not isinstance(record, Item):
                continue
            if self._named.by(record.item_id):
                why = f": {record.cause}" if record.cause else ", without a cause"
                yield self._link(
                    event, "surface", "removed", f"was removed by the runtime{why}", cause=record.cause
                )

    def compacted(self) -> Iterator[Link]:
        """Yield the compactions that took it."""
        for event, record in self._records(Compaction):
            if event.event_type != vocab.COMPACTION_COMPLETED:
                continue
            if self._first(record.sources) is None:
                continue
            into = (
                f" into {self._called.item(record.summary, 'a summary')}"
                if record.summary
                else ", into nothing that is named"
            )
            how = ", ".join(word for word in (record.method, record.trigger) if word)
            view = _view(record)
            if view is not None:
                yield self._perhaps(event, record, view, how)
                continue
            text = (
                f"was compacted{into}{self._called.by(record.compaction_id)}{f' ({how})' if how else ''} "
                f"with {plural(len(record.sources) - 1, 'other item')}"
            )
            if record.loss_notes:
                text += f"; noted as lost: {_quote(record.loss_notes[0])}"
            yield self._link(
                event, "compaction", "compacted", text, into=record.summary, sources=len(record.sources)
            )

    def _perhaps(self, event: Event, record: Compaction, seen: str, how: str) -> Link:
        """Return a compaction that does not record what it removed: one item represents the rest."""
        by = f"{self._called.record('compaction', record.compaction_id)}{f' ({how})' if how else ''}"
        view = self._called.item(seen, "one item")
        spared = _marks(record).get("spares")
        if (
            isinstance(spared, list)
            and self._first(ref for ref in spared if isinstance(ref, str)) is not None
        ):
            text = (
                f"is, as the prompt to be answered, part of {view}, which represents what {by} left; "
                "in which form is not recorded"
            )
        else:
            text = (
                f"may have been taken out by {by}: {view} represents what that left of it and of "
                f"{plural(len(record.sources) - 1, 'other item')}; which ones are left is not recorded"
            )
        if record.loss_notes:
            text += f"; noted as lost: {_quote(record.loss_notes[0])}"
        return self._link(event, "compaction", "not-told", text, view=seen, sources=len(record.sources))

    def redacted(self) -> Iterator[Link]:
        """Yield its redactions, never its text."""
        for event, record in self._records(Redaction):
            if self._named.by(record.item_id):
                how = f" by {record.redaction_method}" if record.redaction_method else ""
                state = record.redaction_state or "redacted"
                text = f"was redacted ({state}){how}"
                if record.replacement is not None:
                    text += f"; {self._called.item(record.replacement, 'another item')} replaces it"
                yield self._link(event, "redaction", "redacted", text, state=state)

    def came(self) -> Link | None:
        """Return the event of this step that adds or updates it, or the summary that it is."""
        events = self.item_events()
        if not events:
            return None
        event = events[-1]
        assert isinstance(event.record, Item)
        return self._link(
            event, "surface", "available", self._called.came(event.record), **came_numbers(event.record)
        )

    def window(self) -> Event | None:
        """Return the event that made the frame: the step's last assembly, else its selection; or None."""
        for kind in (Assembly, Selection):
            found = [e for e, r in self._records(kind) if getattr(r, "target", self._target) == self._target]
            if found:
                return found[-1]
        return None

    def _records(self, kind: type[R]) -> list[tuple[Event, R]]:
        return [(event, event.record) for event in self.events if isinstance(event.record, kind)]

    def _first(self, refs: Iterable[str]) -> int | None:
        return next((at for at, ref in enumerate(refs) if self._named.by(ref)), None)

    def _link(self, event: Event, stage: str, verdict: str, text: str, **numbers: Any) -> Link:
        known = {name: value for name, value in numbers.items() if value is not None}
        return Link(stage, verdict, text, self.moment, self._reader.rest(event), known)


def came_text(record: Item, *, version: bool) -> str:
    """Say that an item became available, with its record's details; with its version if requested."""
    parts = []
    if version:
        known = version_of(record)
        parts.append(f"version {known}" if known is not None else "no version")
    if record.source:
        parts.append(f"from {record.source}")
    if record.priority is not None:
        parts.append(f"priority {_figure(record.priority)}")
    said = ", ".join(parts)
    return f"became available ({said})" if said else "became available"


def came_numbers(record: Item) -> dict[str, Any]:
    """Return the figures in `came_text`, by name."""
    return {"version": version_of(record), "source": record.source, "priority": record.priority}


def _takes_out(link: Link) -> bool:
    return link.verdict in ("omitted", "dropped", "compacted", "not-told", "redacted")


def _marks(record: Compaction) -> dict[str, Any]:
    ours = record.metadata.get("ctxctl")
    return ours if isinstance(ours, dict) else {}


def _view(record: Compaction) -> str | None:
    """Return the item that represents what a compaction left, if the messages are not recorded."""
    view = _marks(record).get("remains_in")
    return view if isinstance(view, str) and view else None


def _limits(record: Budget) -> tuple[str, dict[str, Any]]:
    """Return the limits of a budget record and what was used of them."""
    used_of_limits, numbers = [], dict[str, Any]()
    tokens = record.max_tokens if record.max_tokens is not None else record.max_input
    if tokens is not None:
        used = "?" if record.actual_tokens is None else f"{record.actual_tokens:,}"
        kept = f", {record.reserved_tokens:,} of them reserved" if record.reserved_tokens else ""
        used_of_limits.append(f"{used} of {tokens:,} tokens used{kept}")
        numbers.update(max_tokens=record.max_tokens, actual_tokens=record.actual_tokens)
        numbers.update(reserved_tokens=record.reserved_tokens, max_input=record.max_input)
    for name in ("chars", "items", "bytes"):
        limit, used_of = getattr(record, f"max_{name}"), getattr(record, f"actual_{name}")
        if limit is not None:
            by = f" ({record.chars_by})" if record.chars_by else ""
            noun = f"characters{by} used" if name == "chars" else name
            used_of_limits.append(f"{'?' if used_of is None else f'{used_of:,}'} of {limit:,} {noun}")
            numbers[f"max_{name}"], numbers[f"actual_{name}"] = limit, used_of
    return (f"; {', '.join(used_of_limits)}" if used_of_limits else ""), numbers


def _figure(value: float) -> str:
    return f"{value:g}" if abs(value) < 1e6 else f"{value:,.0f}"


def _quote(text: str) -> str:
    text = " ".join(text.split())
    return f'"{text if len(text) <= _MAX_QUOTE else text[: _MAX_QUOTE - 1] + "…"}"'
