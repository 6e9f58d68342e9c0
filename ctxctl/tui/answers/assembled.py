"""The assembled text with its blocks, asked of an inspector.  Runs in a thread; no widget, no state."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ctxctl.model.results import Frame, Placement
from ctxctl.model.vocab import MODEL
from ctxctl.report.bill_notes import miss_text
from ctxctl.session.item_words import ItemWords
from ctxctl.tui.answers.context import AnswerContext
from ctxctl.tui.screens.assembled import requests
from ctxctl.tui.screens.assembled.values import Assembled, Block, BlockDocument
from ctxctl.tui.sizes import method_of
from ctxctl.tui.spans import Spans
from ctxctl.tui.thread_names import named_by
from ctxctl.wording import SIGNS, number

if TYPE_CHECKING:
    from ctxctl.session import Inspector
    from ctxctl.session.assembly import Joints
    from ctxctl.tui.answers.context import Answer
    from ctxctl.tui.requests import Request

Check = Callable[[], None]

_STATUS: Final = {**SIGNS, "moved": "↕"}


class Prefix(NamedTuple):
    """The possible prefix of a frame, by its blocks."""

    cached: frozenset[int]
    """Indices of the placements in it."""
    block: int | None
    """The one in front of which it ended."""
    broken: str
    again: int


def assembled(inspector: Inspector, ordinal: int, check: Check) -> Assembled:
    """The text of a frame exactly as `Inspector.assembled` gives it, and what each stretch of it is."""
    from ctxctl.analysis.frame_pair import address, several_sessions
    from ctxctl.session.assembly import joints_of

    frame = inspector.frame(ordinal)
    step = frame.step
    prefix = _prefix(inspector, ordinal, frame, check)
    stands = joints_of(step, frame.placements)
    between = stands.between
    document = _document(inspector, frame, prefix, stands, check)
    trace = os.path.basename(inspector.name) or inspector.name
    return Assembled(
        ordinal=ordinal,
        document=document,
        trace=trace,
        address=address(frame, several_sessions(inspector)),
        thread=named_by(inspector.known).of(step.session, step.thread),
        model=step.model,
        layer=step.layer,
        basis=step.basis,
        recorded=step.window.recorded,
        sent=step.window.used,
        method=method_of(step.window),
        uncounted=step.window.uncounted,
        prefix=step.cache.possible_prefix,
        first=inspector.previous(ordinal) is None,
        broken=prefix.broken,
        break_block=prefix.block,
        again=prefix.again,
        reported=step.cache.reported_cached,
        missed="" if step.cache.miss is None else miss_text(step.cache.miss),
        target=step.target,
        joint_known=between.known or len(frame.placements) < 2,
        joint_name=between.name,
        remarks=tuple(_remarks(frame)),
    )


def _remarks(frame: Frame) -> list[str]:
    """Reasons why the model may have got another text than this one."""
    step = frame.step
    found = []
    if step.basis == "policy":
        found.append("simulated: this is what the policy would have sent")
    elif step.layer != "injected":
        found.append("not known to have been sent: no injection is recorded")
    if step.basis == "repeat":
        found.append("nothing was recorded for this step: it repeats the previous frame")
    if step.target != MODEL:
        found.append(f"as {step.target} sees it")
    return found


# The possible prefix ----------------------------------------------------------------------------------------


def _prefix(inspector: Inspector, ordinal: int, frame: Frame, check: Check) -> Prefix:
    """Which placements a prompt cache could give, and what the first of the others cost.

    The engine says how far the previous request was kept, in the provider's order; here that is brought back
    into the order of the text.
    """
    before = inspector.previous(ordinal)
    cache = frame.step.cache
    if before is None or cache.possible_prefix is None:
        return Prefix(frozenset(), None, "", 0)
    old = inspector.frame(before).placements
    by = cache.broken_by
    length = len(old) if by is None else by.position
    order = sorted(range(len(frame.placements)), key=lambda n: frame.placements[n].rank)
    cached = frozenset(order[:length])
    if by is None:
        return Prefix(cached, None, "", 0)
    kept = Counter(p.key for p in sorted(old, key=lambda p: p.rank)[length:])
    again = 0
    for n in order[length:]:
        placement = frame.placements[n]
        if kept[placement.key] > 0:
            kept[placement.key] -= 1
            again += placement.tokens
    check()
    name = by.name if by.item is None else _name_of(by.item, frame, old)
    broken = f"{_STATUS.get(by.status, '')} {name} {by.status}"
    reason = by.change or by.cause
    if reason and reason != by.status:
        broken += f" ({reason})"
    return Prefix(cached, order[length] if length < len(order) else None, broken.strip(), again)


def _name_of(item: str, frame: Frame, old: tuple[Placement, ...]) -> str:
    for placement in (*frame.placements, *old):
        if placement.item == item and placement.title:
            return placement.title
    return item


# The text ---------------------------------------------------------------------------------------------------


def _document(
    inspector: Inspector, frame: Frame, prefix: Prefix, stands: Joints, check: Check
) -> BlockDocument:
    from ctxctl.session.assembly import text_of

    texts: list[str] = []
    blocks: list[Block] = []
    spans = Spans()
    at = 0
    last = len(frame.placements) - 1
    named = _names(inspector, frame)
    for n, placement in enumerate(frame.placements):
        if not n & 63:
            check()
        text = text_of(inspector.text, placement)
        tail = stands.between.text if n < last else ""
        start = at
        body = start + len(placement.opens)
        stop = body + len(text)
        end = stop + len(stands.closes[n]) + len(tail)
        spans.add(start, body, "wrapper")
        if placement.content is None:
            spans.add(body, stop, "remark")
        spans.add(stop, end, "wrapper")
        loose = bool(start) and not texts[-1].endswith("\n")
        texts.append(placement.opens + text + stands.closes[n] + tail)
        blocks.append(
            _block(placement, named[n], (start, end), n in prefix.cached, loose, _breaks(n, prefix))
        )
        at = end
    return BlockDocument("".join(texts), blocks, spans)


def _names(inspector: Inspector, frame: Frame) -> list[str]:
    """What the blocks are called, in their order."""
    words = ItemWords(inspector)
    words.see_frame(frame.step, frame.placements)
    called = words.names()
    return called.listed([called.row(p.item, p.title, p.kind) for p in frame.placements])


def _breaks(n: int, prefix: Prefix) -> str:
    if n != prefix.block:
        return ""
    cost = "nothing unchanged comes after it"
    if prefix.again:
        cost = f"{number(prefix.again)} unchanged tokens after it are read again"
    return f"the cache prefix ends here, {prefix.broken}: {cost}"


def _block(
    p: Placement, name: str, stretch: tuple[int, int], cached: bool, loose: bool, breaks: str
) -> Block:
    return Block(
        *stretch,
        item=p.item,
        kind=p.kind,
        title=name,
        segment=p.segment,
        tokens=p.tokens,
        counted=p.method != "uncounted",
        cached=cached,
        notes=tuple(_notes(p, loose)),
        breaks=breaks,
    )


def _notes(p: Placement, loose: bool) -> list[str]:
    found = []
    if p.content is None:
        found.append("text withheld" if p.redaction else "text not recorded")
    if p.stale:
        found.append("stale copy")
    if p.simulated:
        found.append("simulated")
    elif p.derived:
        found.append("derived")
    if p.redaction:
        found.append(f"redacted ({p.redaction})")
    if p.truncated:
        found.append("truncated")
    if p.carried:
        found.append("carried in")
    if p.method in ("estimated", "declared", "uncounted"):
        found.append(p.method)
    if loose:
        found.append("on the same line as the block before")
    return found


def _text(context: AnswerContext, request: requests.AssembledRequest) -> Assembled:
    return assembled(context.inspector, request.ordinal, context.check)


ANSWERS: Final[dict[type[Request], Answer[Any]]] = {requests.AssembledRequest: _text}
