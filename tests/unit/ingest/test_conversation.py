from __future__ import annotations

import io
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ctxctl.ingest.build import Maker
from ctxctl.ingest.conversation import Conversation
from ctxctl.ingest.parts import Part
from ctxctl.model import vocab
from ctxctl.model.results import Step
from ctxctl.session import Inspector
from ctxctl.session.opening import Opened
from ctxctl.session.params import resolve_params
from ctxctl.trace.reader import Trace
from ctxctl.trace.source import Source
from ctxctl.trace.writer import TraceWriter


def made(conversation: Conversation, out: list[dict[str, Any]]) -> Inspector:
    """Return what the conversation's events add up to; none of them may be refused."""
    conversation.finish()
    file = io.BytesIO()
    with TraceWriter(file) as writer:
        for event in out:
            writer.write(event)
    opened = Opened(Trace(Source.from_bytes("t", file.getvalue())), "native", "recorded", ())
    params, policy = resolve_params(opened, vocab.MODEL, None, None, None)
    return Inspector(opened, params, policy)


def new(**options: Any) -> tuple[Conversation, list[dict[str, Any]]]:
    out: list[dict[str, Any]] = []
    return Conversation(Maker("test", "t-"), out, session="S", **options), out


def texts(inspector: Inspector, ordinal: int) -> list[str]:
    frame = inspector.frame(ordinal)
    return [inspector.text(p.content) if p.content is not None else "?" for p in frame.placements]


def steps(inspector: Inspector) -> list[Step]:
    return [result for result in inspector.replay() if isinstance(result, Step)]


def said(text: str, key: str | None = None) -> Part:
    return Part("user_message", text, "user", key=key)


def test_the_window_at_a_request_is_what_was_there_before_its_answer() -> None:
    conversation, out = new()
    conversation.turn = "u1"
    conversation.append(Part("system_prompt", "S", "system", key="system"), said("one"))
    conversation.request("r1", model="m", native_id="n1")
    conversation.append(Part("assistant_message", "answer", "assistant"))
    conversation.append(said("two"))
    conversation.request("r2")
    conversation.append(Part("assistant_message", "last", "assistant"))
    inspector = made(conversation, out)
    assert [texts(inspector, n) for n in (0, 1)] == [["S", "one"], ["S", "one", "answer", "two"]]
    assert [step.step_id for step in steps(inspector)] == ["r1", "r2"]
    assert inspector.problem_count == 0


def test_usage_belongs_to_the_request_before_it() -> None:
    conversation, out = new()
    conversation.append(said("a"))
    first = conversation.request()
    conversation.usage({"input_tokens": 5})
    conversation.append(said("b"))
    conversation.request()
    conversation.usage({"input_tokens": 9})
    conversation.usage({"input_tokens": 7}, place=first)
    usage = [e["step_id"] for e in out if e["event_type"] == vocab.USAGE_REPORTED]
    assert usage == ["step-1", "step-2", "step-1"]


def test_equal_step_names_are_told_apart() -> None:
    conversation, out = new()
    for text in "abc":
        conversation.append(said(text))
        conversation.request("same")
    assert [s.step_id for s in steps(made(conversation, out))] == ["same", "same~2", "same~3"]


def test_whole_requests_keep_identity_by_key_then_source_then_digest() -> None:
    conversation, out = new()
    file = Part("external_resource", "v1", "user", source="a.md")
    conversation.replace([Part("system_prompt", "S", "system", key="system"), file, said("hi"), said("hi")])
    conversation.request()
    again = Part("external_resource", "v2", "user", source="a.md")
    conversation.replace(
        [Part("system_prompt", "S2", "system", key="system"), said("hi"), again, said("hi"), said("new")]
    )
    conversation.request()
    second = steps(made(conversation, out))[1]
    assert (second.counts.added, second.counts.updated, second.counts.skipped) == (1, 2, 2)
    updated = [c for c in second.changes if c.status == "updated"]
    assert [c.item for c in updated] == ["system", "a.md"]
    assert "derived-identity" in updated[1].flags
    assert "derived-identity" not in updated[0].flags


def test_derived_identity_starts_afresh_after_a_compaction_for_what_is_gone() -> None:
    conversation, out = new()
    conversation.append(*map(said, "abcde"), said("kept", "k"))
    conversation.request()
    summary = Part("thread_summary", "sum", "user")
    # `a`, `d` and `e` stand in order; `b` stands elsewhere, so it was written anew.
    parts = [said("a"), summary, said("d"), said("e"), said("b")]
    conversation.compact(parts, summary=summary, keep=lambda item: item == "k")
    conversation.request()
    inspector = made(conversation, out)
    assert texts(inspector, 1) == ["a", "sum", "d", "e", "b", "kept"]
    second = steps(inspector)[1]
    assert "compacted" in second.flags
    gone = [c for c in second.changes if c.status == "removed"]
    assert [(c.item, c.cause, c.into) for c in gone] == [
        ("user_message-2", "compacted", summary.item),
        ("user_message-3", "compacted", summary.item),
    ]
    kept = [placement.item for placement in inspector.frame(1).placements]
    assert kept == ["user_message-1", summary.item, "user_message-4", "user_message-5", "user_message-7", "k"]
    assert (second.counts.added, second.counts.skipped) == (2, 4)


def test_equal_texts_keep_their_order_after_a_compaction() -> None:
    conversation, out = new()
    conversation.append(*map(said, ["go on", "x", "go on", "y", "go on"]))
    conversation.request()
    summary = Part("thread_summary", "sum", "user")
    conversation.compact([summary, *map(said, ["go on", "y", "go on"])], summary=summary)
    conversation.request()
    inspector = made(conversation, out)
    kept = [placement.item for placement in inspector.frame(1).placements]
    assert kept == [summary.item, "user_message-3", "user_message-4", "user_message-5"]


def test_pieces_of_one_source_stay_themselves_when_the_first_of_them_goes() -> None:
    def file(text: str) -> Part:
        return Part("external_resource", text, "user", source="a.md")

    conversation, out = new()
    conversation.replace([said("hi"), file("one"), file("two"), file("three")])
    conversation.request()
    conversation.replace([said("sum"), file("two"), file("three")], fresh=True)
    conversation.request()
    conversation.replace([said("sum"), file("two"), file("four")])
    conversation.request()
    inspector = made(conversation, out)
    frames = [[placement.item for placement in inspector.frame(n).placements] for n in range(3)]
    assert frames[0][1:] == ["a.md", "a.md~2", "a.md~3"]
    assert frames[1][1:] == frames[2][1:] == ["a.md~2", "a.md~3"]
    _, second, third = steps(inspector)
    assert (second.counts.updated, second.counts.skipped) == (0, 2)
    assert (third.counts.updated, third.counts.skipped) == (1, 2)


def test_a_place_in_a_history_that_was_rewritten_is_nobodys() -> None:
    def placed(text: str, at: int) -> Part:
        part = said(text)
        part.place = f"message-{at}"
        return part

    conversation, out = new()
    conversation.append(*(placed(text, at) for at, text in enumerate("abcd")))
    conversation.request()
    conversation.replace([placed(text, at) for at, text in enumerate(["a", "sum", "d", "e"])], fresh=True)
    conversation.request()
    kept = [placement.item for placement in made(conversation, out).frame(1).placements]
    assert kept == ["message-0", "message-1~2", "message-3", "message-3~2"]


def test_a_drop_names_its_cause_and_a_branch_does_too() -> None:
    conversation, out = new()
    conversation.append(said("a", "a"), said("b", "b"))
    conversation.request()
    assert conversation.drop(lambda item: item == "b", cause="branched") == 1
    conversation.append(said("c", "c"))
    conversation.request()
    second = steps(made(conversation, out))[1]
    assert [(c.item, c.cause) for c in second.changes if c.status == "removed"] == [("b", "branched")]


def test_what_is_told_comes_before_the_assembly_of_the_next_request() -> None:
    conversation, out = new()
    conversation.append(said("a"))
    conversation.tell(vocab.BUDGET_APPLIED, {"budget_id": "b", "target": "model", "max_tokens": 10})
    conversation.request()
    assert steps(made(conversation, out))[0].window.limit == 10


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("append"), st.lists(st.integers(0, 5), max_size=3)),
            st.tuples(st.just("splice"), st.integers(0, 9), st.integers(0, 4), st.lists(st.integers(0, 5))),
            st.tuples(st.just("replace"), st.lists(st.integers(0, 5), max_size=6)),
            st.tuples(st.just("drop"), st.integers(0, 5)),
            st.tuples(st.just("request")),
        ),
        max_size=14,
    )
)
def test_frames_are_the_windows_whatever_was_done_to_them(operations: list[tuple[Any, ...]]) -> None:
    conversation, out = new()
    window: list[str] = []
    expected: list[list[str]] = []
    for name, *rest in [*operations, ("request",)]:
        if name == "append":
            conversation.append(*(said(f"t{n}") for n in rest[0]))
            window += [f"t{n}" for n in rest[0]]
        elif name == "splice":
            at, removed, fresh = min(rest[0], len(window)), rest[1], rest[2]
            removed = min(removed, len(window) - at)
            conversation.splice(at, removed, [said(f"t{n}") for n in fresh])
            window[at : at + removed] = [f"t{n}" for n in fresh]
        elif name == "replace":
            conversation.replace([said(f"t{n}") for n in rest[0]])
            window = [f"t{n}" for n in rest[0]]
        elif name == "drop" and window:
            at = rest[0] % len(window)
            item = conversation.rows[at][0].item
            conversation.drop(lambda other, item=item: other == item)
            del window[at]
        elif name == "request":
            conversation.request()
            expected.append(list(window))
    inspector = made(conversation, out)
    found = steps(inspector)
    assert [texts(inspector, n) for n in range(len(found))] == expected
    assert inspector.problem_count == 0
