"""What leaves a request of Claude Code: by a compaction, and by an edit of the provider's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxctl.analysis.compacting import compacting
from ctxctl.model.results import Step
from ctxctl.session import Inspector
from ctxctl.wording import unshown
from tests.unit.importers.claude_code_help import (
    call,
    events,
    frames,
    line,
    of_type,
    result,
    said,
    text,
    user,
)  # fmt: skip

Json = dict[str, Any]
COMPACTION = "context.compaction.completed"
SEGMENT = {"headUuid": "a2", "anchorUuid": "c1", "tailUuid": "s1"}


def usage(read: int, output: int) -> Json:
    return {"input_tokens": 1, "cache_read_input_tokens": read, "output_tokens": output}


@pytest.mark.parametrize(
    ("meta", "follows", "kept"),
    [
        ({"preservedSegment": SEGMENT}, "c1", ["a2"]),
        ({"preservedMessages": {"anchorUuid": "c1", "uuids": ["a2", "s1"]}}, "c1", ["a2"]),
        ({"preservedMessages": {"anchorUuid": "c1", "uuids": ["a2", "s1"]}}, "s1", ["a2"]),
        ({"preservedMessages": {"anchorUuid": "c1", "uuids": ["a2"]}}, "s1", ["a2"]),
        ({"preservedSegment": SEGMENT}, "s1", ["a2"]),
        ({}, "s1", []),
    ],
)
def test_what_follows_a_compaction_stands_behind_its_summary(
    meta: Json, follows: str, kept: list[str]
) -> None:
    """The last line before a boundary is one of the system, of which requests carry nothing."""
    found, _ = events(
        user("u1", None, "first"),
        said("a1", "u1", "m1", text("one")),
        user("u2", "a1", "second"),
        said("a2", "u2", "m2", text("two")),
        line("system", "s1", "a2", subtype="stop_hook_summary"),
        line("system", "b1", None, subtype="compact_boundary", logicalParentUuid="s1", compactMetadata=meta),
        user("c1", "b1", "Summary", isCompactSummary=True),
        user("u3", follows, "third"),
        said("a3", "u3", "m3", text("three")),
        user("u4", "a3", "fourth"),
        said("a4", "u4", "m4", text("four")),
    )
    assert frames(found)["main", "m3"] == ["c1", *kept, "u3"]
    assert frames(found)["main", "m4"] == ["c1", *kept, "u3", "a3", "u4"]
    (compaction,) = of_type(found, COMPACTION)
    left = [ref.partition("@")[0] for ref in compaction["data"]["source_item_refs"]]
    assert left == [item for item in ("u1", "a1", "u2", "a2") if item not in kept]


def test_a_compaction_that_ends_a_session_is_told_and_the_answer_before_it_counted(tmp_path: Path) -> None:
    lines = [
        user("u1", None, "go"),
        said("a1", "u1", "m1", text("done and dusted"), usage=usage(50, 4)),
        line("system", "b1", None, subtype="compact_boundary", compactMetadata={"preTokens": 60}),
        user("c1", "b1", "Summary", isCompactSummary=True),
    ]
    found, _ = events(*lines)
    (compaction,) = of_type(found, COMPACTION)
    assert [ref.partition("@")[0] for ref in compaction["data"]["source_item_refs"]] == ["u1", "a1"]
    path = tmp_path / "s.jsonl"
    path.write_text("".join(f"{json.dumps(one)}\n" for one in lines))
    with Inspector.open(path) as opened:
        (step,) = (one for one in opened.replay() if isinstance(one, Step))
    assert step.usage is not None
    assert step.usage.counted_output
    assert unshown(compacting(step).named) == "2 items went; no later request shows it"
    assert [one.request.input_tokens for one in step.annotations.compactions if one.request] == [60]


def test_messages_preserved_by_two_compactions_are_followed_to_the_last_of_them() -> None:
    kept = {"preservedMessages": {"anchorUuid": "c1", "uuids": ["a1", "s1"]}}
    again = {"preservedMessages": {"anchorUuid": "c2", "uuids": ["a1", "s1"]}}
    found, _ = events(
        user("u1", None, "first"),
        said("a1", "u1", "m1", text("one")),
        line("system", "s1", "a1", subtype="stop_hook_summary"),
        line("system", "b1", None, subtype="compact_boundary", compactMetadata=kept),
        user("c1", "b1", "Summary", isCompactSummary=True),
        line("system", "b2", None, subtype="compact_boundary", compactMetadata=again),
        user("c2", "b2", "Shorter", isCompactSummary=True),
        user("u2", "s1", "second"),
        said("a2", "u2", "m2", text("two")),
    )
    assert frames(found)["main", "m2"] == ["c2", "a1", "u2"]


@pytest.mark.parametrize("meta", [{}, {"preservedMessages": {"anchorUuid": "c1", "uuids": ["a1"]}}])
def test_the_agent_that_writes_a_summary_has_read_what_the_compaction_took(
    tmp_path: Path, meta: Json
) -> None:
    """2.1.39: its file is read last, and each of its lines names a line before the boundary."""
    session = tmp_path / "s.jsonl"
    agent = tmp_path / "s" / "subagents" / "agent-acompact-9.jsonl"
    agent.parent.mkdir(parents=True)
    own = {"agentId": "acompact-9", "isSidechain": True}
    for path, lines in {
        session: [
            user("u1", None, "first"),
            said("a1", "u1", "m1", text("one"), usage=usage(50, 4)),
            line(
                "system", "b1", None, subtype="compact_boundary", logicalParentUuid="a1", compactMetadata=meta
            ),
            user("c1", "b1", "Summary", isCompactSummary=True),
            user("u2", "a1", "second"),
            said("a2", "u2", "m2", text("two"), usage=usage(40, 4)),
        ],
        agent: [
            user("k1", "u1", "a note", **own),
            user("k2", "a1", "Summarise", **own),
            said("k3", "k2", "m9", text("Summary"), usage=usage(60, 4), **own),
        ],
    }.items():
        path.write_text("".join(f"{json.dumps(one)}\n" for one in lines))
    with Inspector.open(session) as opened:
        steps = {one.thread: one for one in opened.replay() if isinstance(one, Step)}
    assert [change.item for change in steps["agent-acompact-9"].changes] == ["u1", "a1", "k2"]
    kept = ["a1"] if meta else []
    assert [change.item for change in steps["main"].changes if change.status == "added"] == [
        "c1",
        *kept,
        "u2",
    ]


def test_an_answer_among_the_lines_of_another_is_billed_by_its_last_usage() -> None:
    found, _ = events(
        user("u1", None, "go"),
        said("a1", "u1", "m1", text("one"), usage=usage(100, 1)),
        said("a2", "a1", "m2", call("t2"), usage=usage(130, 40)),
        result("r2", "a2", "t2"),
        said("a3", "a1", "m1", call("t1"), usage=usage(100, 528)),
    )
    bills = [event["data"] for event in of_type(found, "ctxctl.usage.reported")]
    assert [bill["output_tokens"] for bill in bills] == [528, 40]
    assert [bill["cached_tokens"] for bill in bills] == [100, 130]


def cleared(line: Json, *edits: Json) -> Json:
    return {**line, "message": {**line["message"], "context_management": {"applied_edits": list(edits)}}}


TOOLS = {"type": "clear_tool_uses_20250919", "cleared_tool_uses": 1, "cleared_input_tokens": 5}
THINKING = {"type": "clear_thinking_20251015", "cleared_thinking_turns": 1, "cleared_input_tokens": 5}


@pytest.mark.parametrize(
    ("edits", "gone"),
    [([TOOLS], {"t1/result"}), ([THINKING], {"a1"}), ([TOOLS, THINKING], {"a1", "t1/result"}), ([], set())],
)
@pytest.mark.parametrize("last", [False, True], ids=["on the first line", "on the last line"])
def test_what_the_provider_cleared_leaves_the_window(edits: list[Json], gone: set[str], last: bool) -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    answer = said("a5", "r2", "m3", text("three"), usage=usage(9, 1))
    end = said("a6", "a5", "m3", text("and four"), usage=usage(9, 9))
    answer, end = (answer, cleared(end, *edits)) if last else (cleared(answer, *edits), end)
    found, _ = events(
        user("u1", None, "go"),
        said("a1", "u1", "m1", thought),
        said("a2", "a1", "m1", call("t1")),
        result("r1", "a2", "t1"),
        said("a3", "r1", "m2", thought),
        said("a4", "a3", "m2", call("t2")),
        result("r2", "a4", "t2"),
        answer,
        end,
    )
    whole = ["u1", "a1", "t1", "t1/result", "a3", "t2", "t2/result"]
    assert frames(found)["main", "m3"] == [item for item in whole if item not in gone]
    removed = of_type(found, "context.item.removed")
    assert {event["data"]["item_id"] for event in removed} == gone
    assert {event["data"]["metadata"]["cause"] for event in removed} <= {"cleared"}


@pytest.mark.parametrize(
    ("trigger", "tokens", "largest", "limit", "source"),
    [
        ("auto", 167_400, 150_000, 200_000, "client"),
        ("auto", 967_100, 150_000, 1_000_000, "catalogue"),
        ("auto", 120_000, 110_000, 1_000_000, "catalogue"),  # at no line: a setting of the user's
        ("auto", 167_400, 250_000, 1_000_000, "catalogue"),  # a larger prompt was taken before
        ("manual", 167_400, 150_000, 1_000_000, "catalogue"),
    ],
)
def test_where_the_client_compacts_by_itself_is_evidence_for_its_window(
    tmp_path: Path, trigger: str, tokens: int, largest: int, limit: int, source: str
) -> None:
    def asked(uuid: str, parent: str, message: str, sent: int) -> Json:
        made = said(uuid, parent, message, text("done"), usage=usage(sent, 9), version="2.1.150")
        return {**made, "message": {**made["message"], "model": "claude-opus-4-8"}}

    meta = {"trigger": trigger, "preTokens": tokens}
    lines = [
        user("u1", None, "go"),
        asked("a1", "u1", "m1", largest),
        line("system", "b1", None, subtype="compact_boundary", compactMetadata=meta),
        user("c1", "b1", "Summary", isCompactSummary=True),
        asked("a2", "c1", "m2", 9000),
    ]
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    with Inspector.open(path, calibration="none") as inspector:
        found = [one.window for one in inspector.replay() if isinstance(one, Step)]
    assert [(one.limit, one.limit_source) for one in found][-1] == (limit, source)
    if source == "client":
        assert [one.limit for one in found] == [limit, limit]
        assert found[-1].threshold == 167_000
