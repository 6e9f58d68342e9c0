"""Searching whole traces: what is a hit, what is read for it, and what is never shown."""

from __future__ import annotations

from typing import Any

import pytest

from ctxctl.analysis import search as module
from ctxctl.analysis.search import excerpt, search_trace
from ctxctl.engine.query import Word, parse_query
from ctxctl.model.hits import Excerpt, Found, Hit
from ctxctl.session import Inspector
from tests.unit.engine.making import Json, add, assembly, event, inspect, remove


def nothing() -> None:
    """Go on."""


def found(inspector: Inspector | list[Json], query: str) -> Found:
    """All that a search says, put together."""
    inspector = inspector if isinstance(inspector, Inspector) else inspect(inspector)
    told = list(search_trace(inspector, parse_query(query), nothing))
    assert [one.done for one in told] == [False] * (len(told) - 1) + [True]
    return told[-1]._replace(hits=tuple(hit for one in told for hit in one.hits))


def hits(inspector: Inspector | list[Json], query: str) -> list[tuple[int, str | None, str | None]]:
    return [(hit.ordinal, hit.status, hit.item) for hit in found(inspector, query).hits]


def omitting(item: str, reason: str, **ids: Any) -> Json:
    selected = {"selected_item_refs": [], "omitted_item_refs": [{"ref": item, "reason": reason}]}
    return event("selection.completed", {"selection_id": "sel", **selected}, **ids)


STORY: list[Json] = [
    add("a", "the apple text", turn="t1", step="s1", title="first"),
    add("b", "a pear", turn="t1", step="s1", kind="tool_result"),
    assembly("w1", "a", "b", turn="t1", step="s1"),
    add("a", "the apple and a plum", update=True, turn="t1", step="s2", title="first"),
    assembly("w2", "a", "b", turn="t1", step="s2"),
    remove("b", "expired", turn="t2", step="s3"),
    add("c", None, turn="t2", step="s3", title="textless"),
    assembly("w3", "a", "c", turn="t2", step="s3"),
]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("apple", [(0, "added", "a"), (1, "updated", "a")]),
        ("plum", [(1, "updated", "a")]),
        ("pear", [(0, "added", "b"), (2, "removed", "b")]),
        ("first -plum", [(0, "added", "a")]),
        ("status:removed cause:expired", [(2, "removed", "b")]),
        ("apple or pear turn:2", [(0, "added", "a"), (1, "updated", "a"), (2, "removed", "b")]),
        ("turn:2", [(2, None, None)]),
        ("turn:1 kind:tool", [(0, "added", "b")]),
        ("status:skipped", [(1, "skipped", "b"), (2, "skipped", "a")]),
        ("status:skipped plum", [(2, "skipped", "a")]),
        ("xyzzy", []),
    ],
)
def test_hits(query: str, expected: list[tuple[int, str | None, str | None]]) -> None:
    assert hits(STORY, query) == expected


def test_a_text_that_is_not_recorded_is_told() -> None:
    assert found(STORY, "apple").textless == 1
    assert found(STORY, "textless").textless == 0
    assert found(STORY, "apple turn:1").textless == 0
    assert found(STORY, "status:added").textless == 0
    assert found(STORY, "-apple").hits[-1].item == "b"


def test_what_was_omitted_is_searched_too() -> None:
    story = [
        add("a", "the apple text", turn="t1", step="s1"),
        add("b", "a pear", turn="t1", step="s1"),
        omitting("b", "budget_limit", turn="t1", step="s1"),
        assembly("w1", "a", turn="t1", step="s1"),
    ]
    (hit,) = found(story, "pear").hits
    assert (hit.status, hit.reason) == ("omitted", "budget_limit")
    assert hits(story, "reason:budget") == [(0, "omitted", "b")]


def test_segments_are_those_of_the_window() -> None:
    story = [
        add("a", "x", turn="t1", step="s1"),
        assembly("w1", {"block_id": "1", "item_refs": ["a"], "metadata": {"ctxctl": {"segment": "user"}}},
                 turn="t1", step="s1"),
        assembly("w2", turn="t1", step="s2"),
    ]  # fmt: skip
    segment = inspect(story).frame(0).placements[0].segment
    assert hits(story, f"segment:={segment}") == [(0, "added", "a"), (1, "removed", "a")]
    assert hits(story, "-segment:" + segment) == []


def redacting(item: str, **ids: Any) -> Json:
    data = {"redaction_id": "r1", "item_id": item, "redaction_state": "removed", "redaction_method": "mask"}
    return event("redaction.applied", data, **ids)


def test_what_was_redacted_is_not_searched_not_even_before_it_was() -> None:
    story = [
        add("a", "token SECRET-123 here", turn="t1", step="s1", title="key"),
        assembly("w1", "a", turn="t1", step="s1"),
        redacting("a", turn="t2", step="s2"),
        remove("a", "redacted", turn="t2", step="s2"),
        add("b", "else", turn="t2", step="s2"),
        assembly("w2", "b", turn="t2", step="s2"),
    ]
    inspector = inspect(story)
    assert "a" in inspector.step(1).annotations.withheld
    result = found(inspector, "SECRET-123")
    assert list(result.hits) == []
    assert result.withheld == 1
    (said,) = found(inspector, "status:added key").hits
    assert said.title == "key"
    assert "SECRET" not in repr(said)
    (gone,) = found(inspector, "status:removed").hits
    assert "SECRET" not in repr(gone)
    (gone,) = found(inspector, "status:removed key").hits
    assert gone.excerpt is None
    assert "SECRET" not in repr(gone)
    assert hits(inspector, "status:removed -SECRET-123") == []


def test_each_text_is_read_once_and_none_where_none_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    story: list[Json] = []
    for turn in range(12):
        story.append(
            add("a", f"the text number {turn % 3}", turn=f"t{turn}", step=f"s{turn}", update=turn > 0)
        )
        story.append(assembly(f"w{turn}", "a", turn=f"t{turn}", step=f"s{turn}"))
    inspector = inspect(story)
    list(inspector.replay())
    read: list[str] = []
    text = inspector.text
    monkeypatch.setattr(inspector, "text", lambda content: read.append(content.digest) or text(content))
    assert len(found(inspector, "number -7").hits) == 12
    assert len(read) == len(set(read)) == 3
    read.clear()
    assert found(inspector, "kind:retrieval tokens>100000").total == 0
    assert found(inspector, "turn:1..5").total == 5
    assert not read


def test_there_is_one_pass_over_the_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    inspector = inspect(STORY)
    passes = []
    batches = inspector.trace.batches
    monkeypatch.setattr(inspector.trace, "batches", lambda *a: passes.append(a) or batches(*a))
    found(inspector, "apple or pear status:removed")
    assert passes == [(0, 1)]


def test_hits_are_bounded_and_the_rest_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT", 5)
    story = [add(f"i{n}", f"some text {n}", turn="t1", step="s1") for n in range(9)]
    result = found([*story, assembly("w", *(f"i{n}" for n in range(9)), turn="t1", step="s1")], "text")
    assert (len(result.hits), result.total) == (5, 9)


def test_the_first_hit_is_told_before_the_trace_is_through() -> None:
    story = []
    for turn in range(50):
        story.append(add(f"i{turn}", f"text {turn}", turn=f"t{turn}", step=f"s{turn}"))
        story.append(assembly(f"w{turn}", f"i{turn}", turn=f"t{turn}", step=f"s{turn}"))
    for one in search_trace(inspect(story), parse_query("text"), nothing):
        if one.hits:
            assert one.steps == 1
            break
    else:
        pytest.fail("no hit")


def test_a_search_can_be_stopped() -> None:
    class EnoughError(Exception):
        """Stop."""

    calls = 0

    def pause() -> None:
        nonlocal calls
        calls += 1
        if calls > 3:
            raise EnoughError

    with pytest.raises(EnoughError):
        list(search_trace(inspect(STORY), parse_query("apple"), pause))


def test_a_search_changes_nothing_for_others() -> None:
    inspector = inspect(STORY)
    outline = inspector.outline()
    summary, problems = inspector.summary, inspector.problems
    before = [inspector.step(n) for n in range(3)]
    found(inspector, "apple")
    assert inspector.outline() is outline
    assert (inspector.summary, inspector.problems) == (summary, problems)
    assert [inspector.step(n) for n in range(3)] == before


# Excerpts ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "word", "expected"),
    [
        ("a NEEDLE here", "needle", Excerpt("a ", "NEEDLE", " here", True)),
        ("a NEEDLE, a Needle", "Needle", Excerpt("a NEEDLE, a ", "Needle", "", True)),
        ("Größe: NEEDLE", "needle", Excerpt("Größe: ", "NEEDLE", "", True)),
        ("x" * 100 + "needle" + "y" * 500, "needle", Excerpt("x" * 60, "needle", "y" * 240, False)),
    ],
)
def test_excerpts(text: str, word: str, expected: Excerpt) -> None:
    assert excerpt(text, Word(word)) == expected


def test_an_excerpt_is_near_the_match_where_folding_moves_places() -> None:
    text = "ß" * 50 + " STRASSE Straße end"
    got = excerpt(text, Word("straße"))
    assert len(got.before) <= 60
    assert "e" in got.match.casefold() or got.match


def test_hits_of_items_without_titles_have_their_first_words() -> None:
    by_item: dict[str | None, Hit] = {hit.item: hit for hit in found(STORY, "status:added").hits}
    assert by_item["b"].words == "a pear"
    assert by_item["a"].words == ""
    assert by_item["c"].words == ""


def test_the_limit_of_a_step_is_its_window_or_else_that_on_its_input() -> None:
    def limits(turn: str, **said: Any) -> list[Json]:
        budget = {"budget_id": "b", "target": "model", **said}
        return [event("budget.applied", budget, turn=turn), assembly(f"w{turn}", "a", turn=turn)]

    story = [
        add("a", "apple", turn="1"),
        *limits("1", max_tokens=100),
        *limits("2", metadata={"ctxctl": {"max_input": 50}}),
    ]
    story += [assembly("w3", "a", turn="3")]
    assert [ordinal for ordinal, _, _ in hits(story, "limit>=100")] == [0]
    assert [ordinal for ordinal, _, _ in hits(story, "limit<100")] == [1]
