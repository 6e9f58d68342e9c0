"""Attribute a frame's assembled text: each part's item, since when it is there, and what it repeats."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ctxctl.analysis.frame_pair import fidelity_of, several_sessions
from ctxctl.engine.query.facts import tool_server_of
from ctxctl.engine.replay.cursor import StepAt
from ctxctl.engine.replay.entry_log import EntryLog, PresentSince
from ctxctl.engine.replay.frames import FrameDelta, delta_of
from ctxctl.engine.replay.step_tracker import ThreadKey
from ctxctl.engine.textdiff.near_duplicates import NearDuplicate, SeenTexts
from ctxctl.errors import UsageError
from ctxctl.model.blame import AGES, BEFORE, OLDER, Blame, Block, Moment, Total, Totals, Twin, age_class
from ctxctl.model.results import Placement
from ctxctl.session.assembly import joints_of, text_of
from ctxctl.session.walked import walked
from ctxctl.trace.cache_files import DamagedError

if TYPE_CHECKING:
    from ctxctl.session.facade import Inspector
    from ctxctl.store.file import SessionStore

Check = Callable[[], None]
"""Called from time to time; may raise to cancel."""


def blame_frame(
    inspector: Inspector,
    ordinal: int,
    check: Check | None = None,
    progress: Callable[[float], None] | None = None,
    *,
    canonical: bool = False,
) -> Blame:
    """Return the blocks of a step's assembled text. Raises UsageError("no-such-frame").

    The texts are as sent; with `canonical`, JSON is in its canonical form. After an `outline` (or during one,
    for its steps so far), the age of each copy is read from its log, and only what `at` needs is replayed.
    Otherwise one walk goes from the trace's start to the step; `progress` is called during it.
    """
    known = _surveyed(inspector, ordinal) or _walked(inspector, ordinal, progress)
    at = known.at
    glue, closes = joints_of(at.step, at.placements)
    texts = [text_of(inspector.text, p, canonical=canonical) for p in at.placements]
    if check is not None:
        check()
    twins = _twins(at.placements, texts, check)
    blocks = _blocks(inspector, ordinal, known, texts, twins, closes, len(glue.text))
    parts = zip(at.placements, texts, closes, strict=True)
    pieces = (f"{p.opens}{text}{behind}" for p, text, behind in parts)
    return Blame(
        ordinal=ordinal,
        step=at.step,
        several=several_sessions(inspector),
        text=glue.text.join(pieces),
        joint=glue.text,
        joint_known=glue.known or len(blocks) < 2,
        joint_name=glue.name,
        blocks=blocks,
        totals=totals(blocks),
        fidelity=fidelity_of(inspector),
    )


class _Known(NamedTuple):
    """A step, and since when each of its placements is there."""

    at: StepAt
    since: list[PresentSince]


def _surveyed(inspector: Inspector, ordinal: int) -> _Known | None:
    """Return since when each placement is there, by an outline's log; None if its thread has no log."""
    survey = inspector.surveyed
    if not survey.entries or not 0 <= ordinal < len(inspector.known):
        return None
    row = inspector.known[ordinal]
    log = survey.entries.get(ThreadKey(row.session, row.thread), EntryLog())
    at = inspector.at(ordinal)
    return _Known(at, log.since(ordinal, at.placements, list(_behind(inspector, ordinal, at, log))))


def _behind(
    inspector: Inspector, ordinal: int, at: StepAt, log: EntryLog
) -> Iterator[tuple[int, FrameDelta]]:
    """Yield the steps after the log's end, which are not over, the last one first."""
    number: int | None = ordinal
    while number is not None and number >= log.steps:
        before = inspector.previous(number)
        earlier = inspector.at(before) if before is not None else None
        yield number, delta_of(earlier.placements if earlier is not None else [], at.placements)
        if earlier is None:
            break
        number, at = before, earlier


def _walked(inspector: Inspector, ordinal: int, progress: Callable[[float], None] | None) -> _Known:
    """Return since when each placement is there, by the cached replay or by a walk from the start.

    The walk ends at the step, unless it is to be cached. With a cached or complete walk, the inspector knows
    all problems of the trace.
    """
    kept = inspector.kept_replay()
    if kept is not None:
        try:
            known = _kept(inspector, kept, ordinal)
        except DamagedError:
            inspector.forget_replay()
        else:
            inspector.take_over(kept)
            return known
    to_the_end = inspector.keeps_replay()
    logs: dict[ThreadKey, EntryLog] = {}
    found: _Known | None = None
    for number, one in enumerate(walked(inspector, progress, settle=to_the_end, whole=to_the_end)):
        if found is not None:
            continue
        log = logs.setdefault(one.key, EntryLog())
        log.note(number, one.delta)
        if number == ordinal:
            found = _Known(one.at, log.since(ordinal, one.at.placements))
            if not to_the_end:
                break
    if found is None:
        raise UsageError("no-such-frame", f"the trace has no step {ordinal}")
    return found


def _kept(inspector: Inspector, kept: SessionStore, ordinal: int) -> _Known:
    """Return `_walked` from the cached replay of the step's thread. Raises DamagedError."""
    at, places, log = inspector.at(ordinal), inspector.places(), EntryLog()
    mine = places.by_thread[ThreadKey(at.step.session, at.step.thread)]
    for number, delta in kept.deltas(mine[: bisect_right(mine, ordinal)]):
        log.note(number, delta)
    return _Known(at, log.since(ordinal, at.placements))


# The blocks -------------------------------------------------------------------------------------------------


def _twins(
    frame: Sequence[Placement], texts: Sequence[str], check: Check | None
) -> list[NearDuplicate | None]:
    """Return the earlier placement that each placement repeats; None without a text."""
    known = SeenTexts()
    found: list[NearDuplicate | None] = []
    for number, (placement, text) in enumerate(zip(frame, texts, strict=True)):
        if check is not None and not number & 63:
            check()
        content = placement.content
        found.append(known.add(number, content.digest, text) if content is not None and text else None)
    return found


def _blocks(
    inspector: Inspector,
    ordinal: int,
    known: _Known,
    texts: Sequence[str],
    twins: Sequence[NearDuplicate | None],
    closes: Sequence[str],
    glue: int,
) -> tuple[Block, ...]:
    moment = _Moments(inspector, ordinal, known.at)
    repeated = [0] * len(twins)
    for twin in twins:
        if twin is not None:
            repeated[twin.number] += 1
    found = []
    start = 0
    for n, (placement, text) in enumerate(zip(known.at.placements, texts, strict=True)):
        body = start + len(placement.opens)
        stop = body + len(text)
        end = stop + len(closes[n])
        since = known.since[n]
        came = None if placement.carried else moment.of(since.copy)
        twin = twins[n]
        found.append(
            Block(
                position=n,
                placement=placement,
                start=start,
                body=body,
                stop=stop,
                end=end,
                since=came,
                entered=None if placement.carried else moment.of(since.item),
                age=None if came is None else known.at.step.turn - came.turn,
                server=tool_server_of(placement),
                twin=None if twin is None else Twin(twin.number, twin.share),
                repeated=repeated[n],
            )
        )
        start = end + glue
    return tuple(found)


class _Moments:
    """Steps by ordinal, each made once."""

    def __init__(self, inspector: Inspector, ordinal: int, at: StepAt) -> None:
        known = inspector.known
        self._places = known if ordinal < len(known) else inspector.places().spans
        self._made = {ordinal: Moment(ordinal, at.step.turn, at.step.step)}

    def of(self, ordinal: int) -> Moment:
        found = self._made.get(ordinal)
        if found is None:
            place = self._places[ordinal]
            found = self._made[ordinal] = Moment(ordinal, place.turn, place.step)
        return found


# The sums ---------------------------------------------------------------------------------------------------


def totals(blocks: Iterable[Block]) -> Totals:
    """Return the blocks and tokens by kind, source, tool server and age."""
    blocks = list(blocks)
    ages = {total.name: total for total in _sums(blocks, lambda block: age_class(block.age))}
    order = [name for _, name in AGES] + [OLDER, BEFORE]
    return Totals(
        kinds=_sums(blocks, lambda block: block.placement.kind),
        sources=_sums(blocks, lambda block: block.placement.source),
        servers=_sums((b for b in blocks if b.server is not None), lambda block: block.server),
        ages=tuple(ages[name] for name in order if name in ages),
        stale=total_of("stale", (b for b in blocks if b.placement.stale)),
        duplicate=total_of("duplicate", (b for b in blocks if b.twin is not None)),
    )


def total_of(name: str | None, blocks: Iterable[Block]) -> Total:
    """Return the total of some blocks."""
    blocks = list(blocks)
    uncounted = sum(block.placement.method == "uncounted" for block in blocks)
    return Total(name, len(blocks), sum(block.placement.tokens for block in blocks), uncounted)


def _sums(blocks: Iterable[Block], of: Callable[[Block], str | None]) -> tuple[Total, ...]:
    groups: dict[str | None, list[Block]] = {}
    for block in blocks:
        groups.setdefault(of(block), []).append(block)
    found = [total_of(name, group) for name, group in groups.items()]
    return tuple(sorted(found, key=lambda total: -total.tokens))


def shown_blocks(
    found: Blame, *, stale: bool = False, duplicate: bool = False, item: str | None = None,
    version: str | None = None,
) -> tuple[Block, ...]:  # fmt: skip
    """Return the requested blocks: all, or those that are stale, or repeat others, or belong to one item.

    With both `stale` and `duplicate`, either suffices. `item` is an id (`by_name.copies_by_name` finds it by
    other names). `version` selects its copies by version or by the start of their digest.
    """
    blocks: Iterable[Block] = found.blocks
    if stale or duplicate:
        blocks = [b for b in blocks if (stale and b.placement.stale) or (duplicate and b.twin is not None)]
    if item is not None:
        blocks = [b for b in blocks if b.placement.item == item and _is_version(b.placement, version)]
    return tuple(blocks)


def _is_version(placement: Placement, version: str | None) -> bool:
    return version in (None, placement.version) or (placement.digest or "").startswith(version or " ")
