"""Transcripts whose parents cannot be right: said, and read in the order of the file."""

from __future__ import annotations

from typing import Any

from tests.unit.importers.claude_code_help import call, events, frames, result, said, text, user

Json = dict[str, Any]


def flat(parent: str | None) -> list[Json]:
    """A session that names the prompt, or nothing, as every answer's parent."""
    return [
        user("u", None, "go"),
        said("a", parent, "m1", call("t1")),
        result("r", "a", "t1", "one"),
        said("b", parent, "m2", call("t2")),
        result("q", "b", "t2", "two"),
        said("c", parent, "m3", text("done")),
    ]


def test_parents_that_are_none_are_said_and_the_order_of_the_file_holds() -> None:
    for parent in ("u", None):
        found, problems = events(*flat(parent))
        assert [(p.slug, p.line) for p in problems] == [("impossible-parents", 4)]
        windows = frames(found)
        assert windows["main", "m3"] == ["u", "t1", "t1/result", "t2", "t2/result"]


def test_one_prompt_tried_again_behind_a_result_is_a_branch() -> None:
    found, problems = events(*flat("u")[:4])
    assert problems == []
    assert frames(found)["main", "m2"] == ["u"]


def test_a_later_prompt_may_follow_a_result() -> None:
    lines = [
        user("u", None, "go"),
        said("a", "u", "m1", call("t1")),
        result("r", "a", "t1", "one"),
        user("v", "r", "stop"),
        said("b", "v", "m2", text("yes")),
        user("w", "b", "more"),
        said("c", "w", "m3", text("no")),
    ]
    found, problems = events(*lines)
    assert problems == []
    assert frames(found)["main", "m3"] == ["u", "t1", "t1/result", "v", "b", "w"]


def test_answers_of_several_lines_have_parents() -> None:
    lines = flat("u")
    lines[3:3] = [said("a2", "a", "m1", text("and"))]
    assert events(*lines)[1] == []


def test_only_the_main_conversation_is_looked_at() -> None:
    side = [dict(one, isSidechain=True, uuid=f"s{one['uuid']}") for one in flat("u")]
    assert not [p for p in events(user("u", None, "go"), *side)[1] if p.slug == "impossible-parents"]


def test_a_parent_that_is_no_name_is_none() -> None:
    lines = [*flat("u")[:-1], {**flat("u")[-1], "parentUuid": [{"a": "x"}]}]
    assert [(p.slug, p.line) for p in events(*lines)[1]] == [("impossible-parents", 4)]
