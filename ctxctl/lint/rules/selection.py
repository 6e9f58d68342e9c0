"""Selections and frames that contradict each other, and missing context that nobody took care of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ctxctl.engine.replay.step_facts import UNCHANGED
from ctxctl.lint.rule import Hit, Rule
from ctxctl.model import vocab
from ctxctl.model.records import Item, Missing, Selection, Surface

if TYPE_CHECKING:
    from ctxctl.engine.replay.step_tracker import ThreadKey
    from ctxctl.lint.context import SeenRecord, StepContext
    from ctxctl.model.records import Ref


def _ids(refs: list[str]) -> str:
    more = f" and {len(refs) - 3} more" if len(refs) > 3 else ""
    return ", ".join(refs[:3]) + more


class SelectedNotInjected(Rule):
    """The selection names an item, and the assembly of the same request does not hold it.

    Nothing says that it was dropped: no budget record, compaction, removal or redaction.  Whoever reads the
    selection believes that the model knew it.
    """

    code = "CTX012"
    name = "selected-not-injected"
    severity = "error"
    needs = "selections and assemblies"
    fix = "Assemble what was selected, or record why it was left out (truncation_records, omitted_item_refs)."

    def step(self, look: StepContext) -> Iterator[Hit]:
        """Selected items that are not in the frame, without a word why."""
        sealed = look.sealed
        if sealed.facts.selection is None or sealed.basis != "assembly" or sealed.facts.rerooted:
            return
        there = {p.item for p in look.placements}
        excused = {*sealed.reading.dropped(), *sealed.reading.compacted(), *sealed.facts.removed}
        excused |= sealed.facts.redacted | look.thread.annotations.withheld
        for placement in sealed.reading.selected():
            item = placement.item
            if item not in there and item not in excused:
                message = f"{placement.title or item} was selected and is not in the assembly"
                tokens = placement.tokens or None
                yield Hit(item, message, look.place(), item, tokens)


class InjectedNotSelected(Rule):
    """An item is in the window although the selection of that very request omitted it, or never chose it.

    Only candidates are looked at; what is always there (system prompt, tools, messages) is no selection's
    business.  Either the record is wrong or the window is.
    """

    code = "CTX013"
    name = "injected-not-selected"
    severity = "error"
    needs = "selections with candidates or omissions, and assemblies"
    fix = "Assemble from the selection, or record the selection after the last change to it."

    def step(self, look: StepContext) -> Iterator[Hit]:
        """Candidates in the frame that were not selected."""
        sealed = look.sealed
        selection = sealed.facts.selection
        if selection is None or sealed.basis != "assembly":
            return
        item_of = sealed.reading.item_of
        chosen = {item_of(ref.ref) for ref in selection.selected}
        refused = {item_of(r.ref): r for r in (*selection.candidates, *selection.omitted)}
        refused.update({item_of(r.ref): r for r in selection.omitted})
        refused = {i: r for i, r in refused.items() if i not in chosen and r.reason != UNCHANGED}
        if not refused:
            return
        # A history that grows holds what was chosen at an earlier step: only what came now contradicts.
        frame = look.came if look.step.mode == "append" else look.placements
        for placement in frame:
            ref = refused.pop(placement.item, None)
            if ref is not None and not placement.stale:
                yield self._hit(look, placement.item, placement.title, placement.tokens, ref)

    @staticmethod
    def _hit(look: StepContext, item: str, title: str | None, tokens: int, ref: Ref) -> Hit:
        why = f"omitted it ({ref.reason})" if ref.reason else "did not choose it"
        message = f"{title or item} is in the window and the selection {why}"
        return Hit(item, message, look.place(), item, tokens, look.money(tokens))


class OmittedWithoutReason(Rule):
    """Something was left out and nothing says why.

    Silent omission is what users of every runtime complain of: a rule, skill or memory that is configured and
    not there.  Agent Context has `omission_reason` for it.
    """

    code = "CTX014"
    name = "omitted-without-reason"
    needs = "selections or budget records"
    fix = "Give each omitted ref and each truncation record a reason."

    def step(self, look: StepContext) -> Iterator[Hit]:
        """Omissions, drops and candidates that nobody accounts for."""
        sealed = look.sealed
        item_of = sealed.reading.item_of
        selection = sealed.facts.selection
        if selection is not None:
            decided = {item_of(r.ref) for r in (*selection.selected, *selection.omitted)}
            silent = [item_of(r.ref) for r in selection.omitted if not r.reason and not r.native_reason]
            yield from self._hits(look, "omitted", silent, "the selection omits {} and gives no reason")
            lost = [i for r in selection.candidates if (i := item_of(r.ref)) not in decided]
            dropped = sealed.reading.dropped()
            lost = [item for item in lost if item not in dropped]
            text = "{}: a candidate that was neither selected nor omitted"
            yield from self._hits(look, "unaccounted", lost, text)
        drops = [
            item_of(t.ref)
            for budget in sealed.facts.budgets
            for t in budget.truncations
            if t.dropped and not t.reason
        ]
        yield from self._hits(look, "dropped", drops, "the budget drops {} and gives no reason")

    @staticmethod
    def _hits(look: StepContext, subject: str, items: list[str], text: str) -> Iterator[Hit]:
        if items:
            items = list(dict.fromkeys(items))
            yield Hit(subject, text.format(_ids(items)), look.place(), items[0])


class SecondSelection(Rule):
    """A second selection in one step chooses something else, and nothing says that it replaces the first.

    The window follows the last one; a reader of the first is misled.
    """

    code = "CTX024"
    name = "second-selection"
    needs = "selections"
    fix = "Record the selection once, or begin the second with selection.started or say why in its rationale."

    def __init__(self) -> None:
        self._first: dict[ThreadKey, tuple[tuple[int, int], Selection]] = {}

    def seen(self, seen: SeenRecord) -> Iterator[Hit]:
        """A completed selection after another one of the step."""
        record, ids, key = seen.record, seen.thread.ids, seen.thread.key
        if seen.event.event_type == vocab.SELECTION_STARTED or isinstance(record, Surface):
            self._first.pop(key, None)
            return
        if not isinstance(record, Selection) or seen.event.event_type != vocab.SELECTION_COMPLETED:
            return
        at = (ids.turn, ids.step) if ids is not None else (0, 0)
        before = self._first.get(key)
        self._first[key] = (at, record)
        if before is None or before[0] != at or record.rationale or seen.event.attempt_id:
            return
        first = before[1]
        if first.surface_id != record.surface_id:
            return  # of something else
        old, new = {r.ref for r in first.selected}, {r.ref for r in record.selected}
        if old != new:
            gone, came = sorted(old - new), sorted(new - old)
            parts = [f"{word} {_ids(refs)}" for word, refs in (("without", gone), ("with", came)) if refs]
            what = "; ".join(parts)
            message = f"a second selection in the step, {what}, and nothing says that it replaces the first"
            yield Hit("", message, seen.place)


_OVER: Final = frozenset({"resolved", "declined", "expired"})
_MOST: Final = 4096
_NULL: Final = frozenset({"", "null", "None", "undefined", "{}", "[]"})


class MissingUnresolved(Rule):
    """A gap was recorded and never closed, and the session went on.

    What was asked for never came, and nobody said that it is not needed any more.
    """

    code = "CTX021"
    name = "missing-unresolved"
    needs = "records of missing context"
    fix = "Close the gap with missing.resolved, or record that it was declined or has expired."

    def __init__(self) -> None:
        self._open: dict[ThreadKey, dict[str, Hit]] = {}
        self._passed: dict[ThreadKey, set[str]] = {}

    def seen(self, seen: SeenRecord) -> Iterator[Hit]:
        """A record of missing context opens a gap or closes it."""
        record = seen.record
        if not isinstance(record, Missing) or record.missing_id is None:
            return
        gaps = self._open.setdefault(seen.thread.key, {})
        over = record.status in _OVER or seen.event.event_type == vocab.MISSING_RESOLVED
        if over or record.scope == "turn" or record.severity == "info":
            gaps.pop(record.missing_id, None)
            self._passed.get(seen.thread.key, set()).discard(record.missing_id)
        elif record.missing_id not in gaps and len(gaps) < _MOST:
            what = record.question or record.missing_id
            blocks = ", ".join(record.blocked_actions[:3])
            message = f"missing context was never resolved: {what}" + (
                f" (blocks {blocks})" if blocks else ""
            )
            gaps[record.missing_id] = Hit(record.missing_id, message, seen.place)
        return
        yield

    def step(self, look: StepContext) -> Iterator[Hit]:
        """The session goes on."""
        gaps = self._open.get(look.key)
        if gaps:
            now = (look.step.turn, look.step.step)
            passed = self._passed.setdefault(look.key, set())
            passed.update(n for n, hit in gaps.items() if (hit.place.turn, hit.place.step) != now)
        return iter(())

    def end(self) -> Iterator[Hit]:
        """Gaps that are open and that some later step passed over."""
        for key, gaps in self._open.items():
            passed = self._passed.get(key, set())
            yield from (hit for name, hit in gaps.items() if name in passed)


class NullWhileAttached(Rule):
    """A provider gave nothing while it was attached: null, an empty text, or a failure.

    The model goes on with the last thing that it was told, or with a gap that it does not know of.  Sanqian's
    diff does not say what `getCurrent() → null` means for a context that is still attached.
    """

    code = "CTX025"
    name = "null-while-attached"
    needs = "items of context providers, or records of missing context that name them"
    fix = "Say that it is empty (with a marker, or an item that says so), or remove the context."

    def seen(self, seen: SeenRecord) -> Iterator[Hit]:
        """A live item without content, or a gap that names a live item."""
        record = seen.record
        if isinstance(record, Missing):
            yield from self._gap(seen, record)
        elif isinstance(record, Item) and seen.event.event_type == vocab.ITEM_UPDATED:
            content = record.content
            if content is None or content.size > 9 or record.redaction is not None:
                return
            name = seen.thread.book.item_of(record.item_id)
            if vocab.segment_of(record.context_kind) == "context":
                text = seen.around.text(content)
                version = seen.thread.book.known.get(record)
                older = version.older if version is not None else None
                had = older is not None and older.content is not None and older.content.size > content.size
                if text.strip() in _NULL and had:
                    message = f"{record.title or name} became empty ({text!r}) while it is attached"
                    yield Hit(name, message, seen.place, name)

    @staticmethod
    def _gap(seen: SeenRecord, record: Missing) -> Iterator[Hit]:
        if seen.event.event_type != vocab.MISSING_DETECTED or record.status in _OVER:
            return
        live = seen.thread.book.live
        named = [*record.candidate_sources, record.needed_for or ""]
        for name, version in live.items():
            stated = version.record
            if name in named or (stated.title in named and stated.title) or (stated.source in named):
                if vocab.segment_of(stated.context_kind) != "context":
                    continue
                message = (
                    f"{stated.title or name} gave nothing while it is attached: {record.question or 'null'}"
                )
                yield Hit(name, message, seen.place, name)
                return
