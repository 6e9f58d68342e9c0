"""What a trace holds of the answer to a sealed step, and the doubts that it raises of the step's bill."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ctxctl.engine.doubts import Answer, Before, Billed, doubts
from ctxctl.model import vocab
from ctxctl.model.results import Doubt

if TYPE_CHECKING:
    from ctxctl.engine.thread import ThreadState
    from ctxctl.model.records import Usage


class Looked(NamedTuple):
    """What was found of one step."""

    counted_output: int | None = None
    doubts: tuple[Doubt, ...] = ()


def answered(thread: ThreadState) -> Answer | None:
    """What came in between the step's seal and the next step that a model answers; None: not known.

    Importers and the recorder write an answer there; where only the next request's window brings it, it comes
    too late to be held against the bill.
    """
    if thread.later is None:
        return None
    said = thought = 0
    known = False
    for item in thread.later.entered:
        version = thread.book.live.get(item)
        # A new version of what was said before is no answer.
        if version is None or version.older is not None or not version.visible:
            continue
        kind = version.record.context_kind
        if kind not in vocab.ANSWERS:
            continue
        placement = thread.placer.plain(version)
        known = known or placement.method != "uncounted"
        if kind == "reasoning":
            thought += placement.tokens
        else:
            said += placement.tokens
    return Answer(said, thought) if known else None


def look(thread: ThreadState, usage: Usage, recorded: int) -> Looked:
    """Hold a sealed step's bill against its answer and its content, and remember it for the next one's.

    Nothing is said of a frame that was supposed: what was billed is not the bill of that.

    Args:
        thread: Its step is sealed.
        usage: The bill.
        recorded: Tokens of the frame's recorded content.
    """
    if thread.editing is not None:
        return Looked()
    answer = answered(thread)
    counted_output = None if answer is None else answer.tokens
    bill = Billed(usage.input_tokens, usage.cached_tokens, usage.cache_write_tokens, usage.output_tokens)
    # What the provider compacted inside of the request was sent, but is billed apart.
    other = thread.sent is not None or thread.altered or bool(usage.terms.further)
    found = doubts(bill, None if other else recorded, answer, thread.last_bill)
    thread.last_bill = Before(bill, recorded)
    return Looked(counted_output, found)
