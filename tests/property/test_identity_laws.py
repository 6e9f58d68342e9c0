"""What a compaction leaves standing stays the item that it was, and nothing else is taken for it."""

from __future__ import annotations

import io
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ctxctl.ingest.build import Maker
from ctxctl.ingest.conversation import Conversation
from ctxctl.ingest.item_identity import PlacedItem, aligned_identities
from ctxctl.ingest.parts import Part
from ctxctl.model import vocab
from ctxctl.model.results import Step
from ctxctl.session import Inspector
from ctxctl.session.opening import Opened
from ctxctl.session.params import resolve_params
from ctxctl.tokens import ranks
from ctxctl.trace.reader import Trace
from ctxctl.trace.source import Source
from ctxctl.trace.writer import TraceWriter
from tests.oracle.ref_identity import Piece, alike, standing

EXAMPLES = settings.default.max_examples if settings.default else 100
FEWER = settings(max_examples=max(EXAMPLES // 2, 1))
TEXTS = ("go on", "boats", "gulls", "the harbour", "a pier", "tide")
PIECES = st.builds(
    Piece,
    st.sampled_from(("user", "assistant")),
    st.sampled_from(TEXTS),
    st.sampled_from(("", "", "", "k1", "k2", "k3")),
)
WINDOWS = st.lists(PIECES, max_size=14)


def unique(pieces: list[Piece]) -> list[Piece]:
    """Ids name one piece of a request each."""
    seen: set[str] = set()
    made = []
    for piece in pieces:
        name = "" if piece.name in seen else piece.name
        seen.add(name)
        made.append(piece._replace(name=name))
    return made


def parts(pieces: list[Piece]) -> list[Part]:
    kinds = {"user": "user_message", "assistant": "assistant_message"}
    return [Part(kinds[p.role], p.text, p.role, key=p.name or None) for p in pieces]


def steps(out: list[dict[str, Any]]) -> list[Step]:
    file = io.BytesIO()
    with TraceWriter(file) as writer:
        for event in out:
            writer.write(event)
    opened = Opened(Trace(Source.from_bytes("t", file.getvalue())), "native", "recorded", ())
    params, policy = resolve_params(opened, vocab.MODEL, None, "o200k_base", None)
    inspector = Inspector(opened, params, policy)
    found = [result for result in inspector.replay(skipped=True) if isinstance(result, Step)]
    assert inspector.problem_count == 0
    return found


def tokens(pieces: list[Piece]) -> int:
    return sum(len(ranks.get_encoding("o200k_base").encode_ordinary(piece.text)) for piece in pieces)


def longest_rise(rows: list[int]) -> int:
    best: list[int] = []
    for at, row in enumerate(rows):
        best.append(1 + max((best[i] for i in range(at) if rows[i] < row), default=0))
    return max(best, default=0)


@given(WINDOWS, WINDOWS)
def test_what_stands_in_order_keeps_its_identity(first: list[Piece], second: list[Piece]) -> None:
    before, after = unique(first), unique(second)
    out: list[dict[str, Any]] = []
    conversation = Conversation(Maker("test", "t-"), out, session="S")
    conversation.replace(parts(before))
    conversation.request()
    old = [row[0].item for row in conversation.rows]
    conversation.compact(parts(after))
    new = [row[0].item for row in conversation.rows]
    assert len(set(new)) == len(new)
    named = {piece.name for piece in before} & {piece.name for piece in after} - {""}
    kept = [(old.index(item), at) for at, item in enumerate(new) if item in old]
    for a, b in kept:
        # An id stays, whatever its text is now; all else only where it stands verbatim.
        assert alike(before[a], after[b], named) or before[a].name == after[b].name != ""
    verbatim = [a for a, b in kept if alike(before[a], after[b], named)]
    assert longest_rise(verbatim) == standing(before, after)
    derived = [a for a, b in kept if alike(before[a], after[b], named) and not after[b].name]
    assert derived == sorted(derived)


@FEWER
@given(WINDOWS, WINDOWS)
def test_only_what_changed_enters_and_leaves(first: list[Piece], second: list[Piece]) -> None:
    before, after = unique(first), unique(second)
    out: list[dict[str, Any]] = []
    conversation = Conversation(Maker("test", "t-"), out, session="S")
    conversation.replace(parts(before))
    conversation.request()
    old = [row[0] for row in conversation.rows]
    summary = Part("thread_summary", "In short.", "user")
    conversation.compact([summary, *parts(after)], summary=summary)
    conversation.request()
    new = [row[0] for row in conversation.rows]
    held, holds = {block.ref for block in old}, {block.ref for block in new}
    last = steps(out)[-1]
    gone = [piece for piece, block in zip(before, old, strict=True) if block.ref not in holds]
    come = [piece for piece, block in zip(after, new[1:], strict=True) if block.ref not in held]
    assert last.ledger.freed == tokens(gone)
    assert last.ledger.new == tokens([*come, Piece("user", "In short.")])
    statuses = {change.item: change for change in last.changes}
    for block in new:
        change = statuses[block.item]
        if block.ref in held:
            assert (change.status, change.new, change.freed) == ("skipped", 0, 0)
    removed = [change for change in last.changes if change.status == "removed"]
    assert {change.cause for change in removed} <= {"compacted"}
    assert {change.item for change in removed} == {b.item for b in old} - {b.item for b in new}
    (record,) = [e["data"] for e in out if e["event_type"] == vocab.COMPACTION_COMPLETED]
    assert {ref.rpartition("@")[0] for ref in record["source_item_refs"]} == {c.item for c in removed}


def test_a_huge_history_costs_bounded_work_and_keeps_its_ends() -> None:
    before = [PlacedItem("user", "user_message", f"{n % 7}", f"i{n}", f"i{n}") for n in range(60_000)]
    after = [one._replace(name="", item="") for one in before[:2_000] + before[-30_000:]]
    found = aligned_identities(before, after, afresh=True)
    assert [found[at] for at in range(2_000)] == [one.item for one in before[:2_000]]
    assert len(set(found.values())) == len(found) >= 30_000
    rows = [int(found[at][1:]) for at in sorted(found)]
    assert rows == sorted(rows)
