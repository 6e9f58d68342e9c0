"""What a trace says that cannot be: told with its line, and read as docs/format.md has it."""

from __future__ import annotations

from typing import Any

from tests.unit.engine.making import Json, add, assembly, event, inject, inspect, remove


def _spliced(name: str, base: str, *blocks: str, **ids: Any) -> Json:
    return assembly(name, *blocks, ours={"base": base, "splices": [[0, 0, len(blocks)]]}, **ids)


def _read(*events: Json) -> tuple[list[tuple[str, int, str]], list[list[str]]]:
    """The problems by slug, line and message, and the items of each frame."""
    inspector = inspect(events)
    list(inspector.replay())
    frames = [[p.item for p in at.placements] for at in inspector.steps()]
    return [(p.slug, p.line, p.message) for p in inspector.problems], frames


def test_an_assembly_spliced_onto_itself_stands_behind_the_last_window() -> None:
    problems, frames = _read(
        add("a", "one", turn="1"), assembly("A1", "a", turn="1"), inject("A1", turn="1"),
        add("b", "two", turn="2"), _spliced("A2", "A2", "b", turn="2"), inject("A2", turn="2"),
    )  # fmt: skip
    assert [(slug, line) for slug, line, _ in problems] == [("unknown-base", 5)]
    assert "onto itself" in problems[0][2]
    assert frames == [["a"], ["a", "b"]]


def test_two_assemblies_spliced_onto_each_other_are_told_once() -> None:
    """The first has a base that comes later; the second has one that was shown."""
    problems, frames = _read(
        add("a", "one", turn="1"), add("b", "two", turn="1"),
        _spliced("A1", "A2", "a", turn="1"), inject("A1", turn="1"),
        _spliced("A2", "A1", "b", turn="2"), inject("A2", turn="2"),
    )  # fmt: skip
    assert [(slug, line) for slug, line, _ in problems] == [("unknown-base", 3)]
    assert frames == [["a"], ["b", "a"]]


def test_a_base_of_another_thread_is_none() -> None:
    problems, frames = _read(
        add("a", "one", turn="1"), assembly("A1", "a", turn="1"), inject("A1", turn="1"),
        add("b", "two", turn="1", thread="other"), _spliced("B1", "A1", "b", turn="1", thread="other"),
        inject("B1", turn="1", thread="other"),
    )  # fmt: skip
    assert [(slug, line) for slug, line, _ in problems] == [("unknown-base", 5)]
    assert frames == [["a"], ["b"]]


def test_of_several_assemblies_of_one_id_the_last_before_the_line_is_the_base() -> None:
    first: Json = {"turn": "1", "step": "1"}
    second: Json = {"turn": "2", "step": "1"}
    problems, frames = _read(
        add("a", "one", **first), add("b", "two", **first), add("c", "three", **first),
        assembly("A", "a", **first), assembly("A", "b", **first), inject("A", **first),
        _spliced("A", "A", "c", **second), inject("A", **second),
    )  # fmt: skip
    assert problems == []
    assert frames == [["b"], ["c", "b"]]


def test_the_removal_of_what_was_never_there_is_told_and_removes_nothing() -> None:
    problems, frames = _read(
        add("a", "one", turn="1"), remove("b", turn="1"), remove("a", turn="1"), remove("a", turn="1"),
        add("c", "three", turn="1"),
    )  # fmt: skip
    assert [(slug, line) for slug, line, _ in problems] == [("unknown-item", 2)]
    assert frames == [["c"]]


def test_a_summary_is_none_of_its_own_sources() -> None:
    told = {"compaction_id": "C", "source_item_refs": ["a", "s"], "summary_ref": "s"}
    problems, frames = _read(
        add("a", "one", turn="1"), event("compaction.completed", told, turn="1"),
        add("s", "the sum", kind="thread_summary", turn="1"),
    )  # fmt: skip
    assert [(slug, line) for slug, line, _ in problems] == [("bad-field", 2)]
    assert frames == [["s"]]


def test_of_two_contents_of_one_item_at_one_step_the_later_line_counts() -> None:
    inspector = inspect(
        [
            add("a", "one", turn="1"),
            add("a", "two", turn="1"),
            assembly("A", "a", turn="1"),
            inject("A", turn="1"),
        ]
    )
    [at] = inspector.steps()
    assert [inspector.text(p.content) for p in at.placements if p.content is not None] == ["two"]


def test_two_redactions_that_lead_to_each_other_end() -> None:
    def redact(item: str, instead: str) -> Json:
        return event(
            "redaction.applied",
            {"item_id": item, "redaction_state": "redacted", "replacement_ref": instead},
            turn="1",
        )

    problems, frames = _read(
        add("a", "the first secret", turn="1"), add("b", "the second secret", turn="1"),
        redact("a", "b"), redact("b", "a"), assembly("A", "a", "b", turn="1"), inject("A", turn="1"),
    )  # fmt: skip
    assert problems == []
    assert frames == [["a", "b"]]
