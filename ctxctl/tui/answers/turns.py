"""Answers for the main screen, the reader, the line of commands and the search.

Most of it is a frame's changes, with all that the list of them shows, or only those that a query holds of.
Runs in a thread: no widget, no view state.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import msgspec

from ctxctl.analysis.compacting import Compacting, compacting
from ctxctl.analysis.query_context import QueryContexts
from ctxctl.engine.query import Query, Word, contained_text
from ctxctl.engine.query import facts as facts_of_queries
from ctxctl.errors import UsageError
from ctxctl.item_names import Named, NameList, local
from ctxctl.model.addresses import escaped
from ctxctl.model.hits import Hit
from ctxctl.model.missed import unrecorded_cut
from ctxctl.model.outline import Row
from ctxctl.model.results import Change, Frame, Placement, Step, Turn
from ctxctl.model.vocab import WARNINGS
from ctxctl.report.bill_notes import miss_text
from ctxctl.report.compaction_words import kinds_text
from ctxctl.report.step import annotation_facts, derived_basis
from ctxctl.session.item_words import directory_of
from ctxctl.tui import scheduling
from ctxctl.tui.answers import trace_facts
from ctxctl.tui.answers.context import AnswerContext
from ctxctl.tui.changes import (
    AS_IT_IS,
    Arrangement,
    ChangeTable,
    Facts,
    Holding,
    Note,
    arranged_groups,
    place_notes,
)
from ctxctl.tui.document import Reading
from ctxctl.tui.requests import Placed, PlaceRequest
from ctxctl.tui.screens.search.requests import Hits, SearchRequest
from ctxctl.tui.screens.turns.requests import DetailRequest, ReadingRequest
from ctxctl.tui.screens.turns.state import Detail, Target
from ctxctl.tui.sizes import amount, method_of
from ctxctl.wording import COMPACTION, number, plural, signed, unshown

if TYPE_CHECKING:
    from ctxctl.session import Inspector
    from ctxctl.trace.index import Span
    from ctxctl.tui.answers.context import Answer
    from ctxctl.tui.requests import Request


def _detail(context: AnswerContext, request: DetailRequest) -> Detail | None:
    try:
        return _detailed(context, request)
    except UsageError as error:
        if error.slug == "no-such-frame" and not getattr(context.inspector, "over", True):
            return None  # a step that was being written is another one now: the next growth asks again
        raise


def _detailed(context: AnswerContext, request: DetailRequest) -> Detail:
    key, arrangement = (request.target, request.with_skipped), request.arrangement
    gathered = context.kept(key, lambda: gather_facts(context.inspector, *key))
    if arrangement.only is not None:
        return filtered_detail(context.inspector, gathered, arrangement)
    detail: Detail = context.kept((*key, arrangement), lambda: arranged_detail(gathered, arrangement))
    return detail


def _reading(context: AnswerContext, request: ReadingRequest) -> Reading:
    inspector = context.inspector
    if request.kind == "stages":
        document = trace_facts.stages(inspector, request.ordinal)
    elif request.kind == "problems":
        document = trace_facts.problems(inspector.problems, inspector.problem_count)
    else:
        document = trace_facts.about(inspector.format, inspector.summary)
    return Reading(request.title, document)


def _place(context: AnswerContext, request: PlaceRequest) -> Placed:
    context.check()
    try:
        ordinal = _ordinal(context.inspector, request.address)
    except UsageError as error:
        if error.slug != "ambiguous-session" or request.session is None:
            raise UsageError(error.slug, f"{error}{f'; {error.hint}' if error.hint else ''}") from None
        ordinal = _ordinal(context.inspector, f"{escaped(request.session)}/{request.address}")
    return Placed(request.address, ordinal)


def _ordinal(inspector: Inspector, address: str) -> int:
    """The step, looked for among those that are known before the whole trace is asked.

    Only from the whole is it known what stands at its end.
    """
    from ctxctl.session.addresses import address_id, step_ordinal

    known = cast("Sequence[Span]", list(inspector.known))
    whole = inspector.summary is not None
    if known and address_id(address, known) is None and (whole or "-" not in address):
        try:
            return step_ordinal(address, known)
        except UsageError as error:
            if whole or error.slug == "ambiguous-session":
                raise
    return inspector.resolve(address)


def _search(context: AnswerContext, request: SearchRequest) -> Hits | None:
    from ctxctl.analysis.search import search_trace

    directory = directory_of(context.inspector)
    with scheduling.short_waits():
        for found in search_trace(context.inspector, request.query, context.check):
            found = found._replace(hits=tuple(_local(hit, directory) for hit in found.hits))
            hits = Hits(request.serial, found)
            if found.done:
                return hits
            context.tell(hits)
    return None


def _local(hit: Hit, directory: str | None) -> Hit:
    """A hit with its item called from the session's directory."""
    if directory is None or not hit.title:
        return hit
    return msgspec.structs.replace(hit, title=local(hit.title, directory))


_LABELS: Final = 300
_WORDS: Final = 200
"""Items whose first words are read for the list, and characters of each."""

_NOTES: Final = {
    "still_over_budget": "still over budget after everything that was cut",
    "over_budget": "over the budget",
    "unknown_base": "it builds on an assembly that is not known in full: the frame may lack items",
    "missing_context": "the runtime found context missing",
    "redacted": "something was redacted",
    "branched": "the conversation went on from an earlier point",
    "cleared": "content was cleared from the window, by the user or by the provider",
    "injection_not_recorded": "injection not recorded: what was selected may not have been sent",
    "simulated": "simulated: rebuilt from rules, not recorded",
}
_WARNED: Final = frozenset({"lacking"})
_PASSING: Final = 10
"""What came and went within a turn is noted where it is at least a tenth of what entered in it."""
_BESIDE: Final = 20
"""What is not recorded is noted where it changed by at least a twentieth of the request."""
_BASIS: Final = {
    "repeat": "nothing was recorded for this step: it repeats the previous frame",
    "policy": "simulated: this is what the policy would have sent",
    "none": "nothing was recorded for this step",
}


class Gathered(NamedTuple):
    """A frame's facts before its changes are arranged."""

    target: Target
    step: Step
    turn: Turn | None
    facts: Facts
    names: NameList
    written: bool = False
    """Whether the step is still being written."""
    before: Row | None = None
    """The step before in its thread, or before the turn."""
    places: tuple[str, ...] = ()
    """Where such captures come from, where this one holds no text of anything that was sent."""


def gather_facts(inspector: Inspector, target: Target, with_skipped: bool) -> Gathered:
    """What is known of a frame; a whole turn's changes are from the previous turn's last frame to its own."""
    step = inspector.step(target.ordinal)
    turn = inspector.turn(target.ordinal) if target.whole_turn else None
    changes = step.changes if turn is None else turn.changes
    counts = step.counts if turn is None else turn.counts
    frame = inspector.frame(target.ordinal)
    skipped = _skipped(frame, changes) if with_skipped else None
    found = Facts(
        changes,
        skipped,
        counts.skipped,
        step.window.recorded,
        step.ledger.saved,
        step.ledger.stale,
        _holdings(inspector, target, frame, skipped or ()),
        server_of,
    )
    names = _names(inspector, target, [*changes, *(skipped or ())])
    settled = getattr(getattr(inspector, "rows", None), "settled", target.ordinal + 1)
    before = inspector.previous(target.first)
    known = inspector.known
    row = known[before] if before is not None and before < len(known) else None
    places = trace_facts.places_of(inspector.format) if _is_without_texts(step) else ()
    return Gathered(target, step, turn, found, names, target.ordinal >= settled, row, places)


def detail(
    inspector: Inspector,
    target: Target,
    with_skipped: bool,
    arrangement: Arrangement = AS_IT_IS,
) -> Detail:
    """A frame's facts and changes."""
    return arranged_detail(gather_facts(inspector, target, with_skipped), arrangement)


def arranged_detail(found: Gathered, arrangement: Arrangement) -> Detail:
    """The same facts, with the changes listed as `arrangement` says."""
    groups = arranged_groups(found.facts, arrangement)
    written = [Note("still being written: shown as if nothing more came")] if found.written else []
    said = [
        *written,
        *content_notes(found),
        *passing_notes(found.turn),
        *unrecorded_notes(found.before, found.step),
        *frame_notes(found.step),
    ]
    table = ChangeTable.of(groups, said, found.names, found.facts.holdings, arrangement)
    stale: dict[str, int] = {}
    for held in found.facts.holdings.values():
        if held.stale:
            stale[held.segment] = stale.get(held.segment, 0) + held.stale
    listed = found.facts.skipped is not None
    return Detail(found.target, found.step, found.turn, table, listed, stale=stale)


def _holdings(
    inspector: Inspector, target: Target, frame: Frame, skipped: Sequence[Change]
) -> dict[str, Holding]:
    """What is known of items besides their changes: segment, stale copies, and what was saved of them.

    What was saved of single items is not recorded; it is known where everything that was skipped was saved.
    """
    saved = frame.step.ledger.saved
    all_saved = saved is not None and saved == sum(change.tokens for change in skipped)
    stale: dict[str, int] = {}
    segments: dict[str, str] = {}
    unsized: set[str] = set()
    before = inspector.previous(target.first)
    for ordinal in (before, None):
        placements = frame.placements if ordinal is None else inspector.frame(ordinal).placements
        for placement in placements:
            segments[placement.item] = placement.segment
            if placement.method == "uncounted":
                unsized.add(placement.item)
            if placement.stale and placements is frame.placements:
                stale[placement.item] = stale.get(placement.item, 0) + placement.tokens
    known = {change.item: change.tokens for change in skipped} if all_saved else {}
    return {
        item: Holding(stale.get(item, 0), known.get(item), segment, item in unsized)
        for item, segment in segments.items()
    }


def server_of(change: Change) -> str:
    """The MCP server of an item, as queries know it; empty where its names tell none."""
    return facts_of_queries.tool_server_of(change) or ""


def _names(inspector: Inspector, target: Target, changes: list[Change]) -> NameList:
    labels = _labels(inspector, target, changes)
    rows = (
        Named(change.item, change.title, labels.get(change.item, ""), f"{change.status} {change.kind}")
        for change in changes
    )
    return NameList(rows, directory_of(inspector))


def _labels(inspector: Inspector, target: Target, changes: list[Change]) -> dict[str, str]:
    """The first words of items without a title; of the first few hundred, whose texts are read for it."""
    nameless = {change.item for change in changes if not change.title}
    if not nameless:
        return {}
    nameless -= inspector.step(target.ordinal).annotations.withheld
    labels: dict[str, str] = {}
    before = inspector.previous(target.first)
    for ordinal in (target.ordinal, before):
        if ordinal is None or len(labels) == len(nameless):
            continue
        for placement in inspector.frame(ordinal).placements:
            if len(labels) >= _LABELS:
                return labels
            if placement.item not in nameless or not placement.content or placement.item in labels:
                continue
            if not inspector.redactor.touches(placement.content):
                labels[placement.item] = inspector.text(placement.content)[:_WORDS]
    return labels


def _is_without_texts(step: Step) -> bool:
    return step.window.recorded == 0 and step.window.uncounted > 0


def content_notes(found: Gathered) -> list[Note]:
    """Where the capture holds no text of a frame: that, and where captures come from that do."""
    if not _is_without_texts(found.step):
        return []
    items = plural(found.step.window.uncounted, "item")
    said = [Note(f"the capture holds no text of {items}, so that no size is known", warning=True)]
    said += place_notes(found.places)
    return said


def passing_notes(turn: Turn | None) -> list[Note]:
    """A turn's changes are from its beginning to its end: what many tokens did in between."""
    if turn is None or turn.steps < 2:
        return []
    passed = turn.ledger.new - sum(change.new for change in turn.changes)
    if passed * _PASSING < turn.ledger.new or passed <= 0:
        return []
    return [Note(f"{number(passed)} more tokens entered and left again within the turn: see its steps")]


def unrecorded_notes(before: Row | None, step: Step) -> list[Note]:
    """What the changes do not say: how much of the request that is not recorded came or left."""
    window = step.window
    if before is None or before.unrecorded is None or window.unrecorded is None:
        return []
    moved = window.unrecorded - before.unrecorded
    if abs(moved) * _BESIDE < window.used:
        return []
    was, now = amount(before.used, before.method), amount(window.used, method_of(window))
    return [Note(f"{signed(moved)} tokens that are not recorded: {was} → {now} sent")]


def frame_notes(step: Step) -> list[Note]:
    """What a reader of the frame should know before its changes."""
    basis = _BASIS.get(step.basis) or derived_basis(step)
    found = [Note(basis)] if basis is not None else []
    flags = [flag for flag in step.flags if not (flag == "simulated" and step.basis == "policy")]
    found += [Note(_NOTES[flag], warning=flag in WARNINGS) for flag in flags if flag in _NOTES]
    if "compacted" in step.flags or step.annotations.compactions:
        found.append(Note(_taken(compacting(step))))
    if step.cut is not None:
        found.append(Note(unrecorded_cut(step.cut), warning=True))
    if step.cache.miss is not None:
        found.append(Note(f"cache: {miss_text(step.cache.miss)}", warning=True))
    # Ids are the same in step after step: they stand with the stages.  What a compaction took stands above.
    said = [(label, text) for label, text in annotation_facts(step) if label not in ("for", "took")]
    found += [Note(f"{label}: {text}", warning=label in _WARNED) for label, text in said]
    differing = [name for name, stage in step.stages.items() if stage.verdict == "differs"]
    if differing:
        found.append(Note(f"not what was recorded: {', '.join(differing)}", warning=True))
    return sorted(found, key=lambda note: not note.warning)


def _taken(taken: Compacting) -> str:
    if not taken.items:
        return f"{COMPACTION} a compaction: {unshown(taken.named)}"
    went = f"{plural(taken.items, 'item')}, {plural(taken.tokens, 'token')} went"
    return f"{COMPACTION} {went}: {kinds_text(taken)}"


def _skipped(frame: Frame, changes: Sequence[Change]) -> list[Change]:
    """The items of a frame that did not change, in its order, with the tokens of all their copies.

    What `changes` says of some of them is kept.
    """
    noted = {change.item: change for change in changes if change.status == "skipped"}
    changed = {change.item for change in changes if change.status not in ("skipped", "omitted")}
    held: dict[str, int] = {}
    current: dict[str, Placement] = {}
    for placement in frame.placements:
        held[placement.item] = held.get(placement.item, 0) + placement.tokens
        if not placement.stale and placement.item not in changed:
            current.setdefault(placement.item, placement)
    return [
        noted[item] if item in noted else _unchanged(placement, held[item])
        for item, placement in current.items()
    ]


def _unchanged(placement: Placement, in_window: int) -> Change:
    return Change(
        status="skipped",
        item=placement.item,
        kind=placement.kind,
        title=placement.title,
        version=placement.version,
        previous_version=placement.version,
        tokens=placement.tokens,
        in_window=in_window,
        new=0,
        freed=0,
        cause=None,
        reason=None,
        into=None,
        flags=("carried-in",) if placement.carried else (),
        source=placement.source,
        provenance="simulated" if placement.simulated else "derived" if placement.derived else "native",
        line=placement.line,
        unsized=placement.method == "uncounted",
    )


def filtered_detail(inspector: Inspector, found: Gathered, arrangement: Arrangement) -> Detail:
    """The changes of a frame that fit `arrangement.only`, listed as `arrangement` says."""

    assert arrangement.only is not None
    detail = arranged_detail(facts_that_fit(inspector, found, arrangement.only), arrangement)
    table = detail.table
    if not table.groups:
        changed = [change for change in found.facts.changes if change.status != "skipped"]
        listed = [*changed, *(found.facts.skipped or ())]
        note = Note(f"none of {plural(len(listed), 'change')} fits: Esc lists all")
        table = replace(table, notes=(*table.notes, note))
    return replace(detail, table=table, with_skipped=found.facts.skipped is not None)


def facts_that_fit(inspector: Inspector, found: Gathered, query: Query) -> Gathered:
    """The same facts without the changes of which the query does not hold.

    Of skipped items that are not listed only those are looked at to which something happened.
    """
    frame = inspector.frame(found.target.ordinal)
    before = inspector.previous(found.target.first)
    placed = _current(frame.placements)
    were = {} if before is None else _current(inspector.frame(before).placements)
    withheld = frame.step.annotations.withheld
    around = QueryContexts(query, inspector.text).alone(frame.step, frame.placements)

    def text_of(change: Change) -> str | None:
        if change.item in withheld and change.status in ("removed", "omitted"):
            return None
        if change.status == "omitted":
            return _recorded(inspector, change.line)
        placement = (were if change.status == "removed" else placed).get(change.item)
        return inspector.text(placement.content) if placement is not None and placement.content else None

    def fits(change: Change) -> bool:
        holding = found.facts.holdings.get(change.item)
        segment = holding.segment if holding is not None else None
        contains = _text_search(lambda: text_of(change))
        return query.matches_change(found.step, change, contains, segment or None, around)

    facts = found.facts
    kept = [change for change in facts.changes if fits(change)]
    noted = [change for change in kept if change.status == "skipped"]
    skipped = noted if facts.skipped is None else [change for change in facts.skipped if fits(change)]
    made = Facts(
        kept, skipped, len(skipped), facts.used, facts.saved, facts.stale, facts.holdings, facts.servers
    )
    return found._replace(facts=made)


def _text_search(text: Callable[[], str | None]) -> Callable[[Word], bool | None]:
    """Looks for words in a text that is fetched when the first is looked for."""
    known: list[Callable[[Word], bool | None]] = []

    def contains(word: Word) -> bool | None:
        if not known:
            known.append(contained_text(text()))
        return known[0](word)

    return contains


def _current(placements: tuple[Placement, ...]) -> dict[str, Placement]:
    return {placement.item: placement for placement in placements if not placement.stale}


def _recorded(inspector: Inspector, line: int) -> str | None:
    """The text of an item that no frame holds, from its line of the trace."""
    data = inspector.native(line).get("data") if line else None
    content = data.get("content") if isinstance(data, dict) else None
    return content if content is None or isinstance(content, str) else json.dumps(content, ensure_ascii=False)


ANSWERS: Final[dict[type[Request], Answer[Any]]] = {
    DetailRequest: _detail,
    ReadingRequest: _reading,
    PlaceRequest: _place,
    SearchRequest: _search,
}
"""By kind of request, what computes the answer."""
