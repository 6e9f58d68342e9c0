"""Sibyl's and Luminarys' rules worked by hand."""

from __future__ import annotations

from typing import Any

import pytest

from ctxctl.model.fitting import Room
from ctxctl.model.recompute import Part, Piece, Recorded
from ctxctl.plugins.luminarys.policy import Luminarys
from ctxctl.plugins.sibyl.policy.markdown import Pack, compact, rendered, sizes
from ctxctl.plugins.sibyl.policy.packs import Sibyl
from tests.unit.policies.fitting_help import candidate

NOTHING = Recorded((), (), None, None, None, None, (), (), (), None)


def part(item: str, text: str, facet: str = "decisions", score: float = 1.0, **native: Any) -> Part:
    told = {"facet": facet, "score": score, "type": "decision", **native}
    return Part(item, item.title(), "durable_memory", lambda: text, told)


def looked_up(item: str, text: str) -> Part:
    meta = {"active_lookup": True, "status": "doing"}
    return part(item, text, "active_work", 0.0, type="task", metadata=meta)


def pack(*parts: Part, intent: str = "build") -> Pack:
    sections: dict[str, list[Part]] = {}
    for one in parts:
        sections.setdefault(one.native["facet"], []).append(one)
    held = tuple((facet, tuple(items)) for facet, items in sections.items())
    return Pack("tides", intent, "recall", "tides", None, "proj", held, {}, len(parts))


# -- Sibyl -------------------------------------------------------------------------------------------------


def test_what_a_budget_allows() -> None:
    assert sizes(None, 20, 5) == (None, 8, 3, 280)
    # 1,200 characters; 8 items at least; a section its share of them; 85 % over nine items are 113 each.
    assert sizes(300, 9, 8) == (1200, 9, 3, 280)
    assert sizes(4000, 9, 8) == (16_000, 9, 3, 1200)
    assert sizes(4000, 30, 3) == (16_000, 30, 10, 453)
    assert sizes(10, 80, 1).chars == 400
    assert sizes(10, 80, 1).items == 50


def test_an_item_as_it_is_written() -> None:
    related = [
        {"relationship": "BELONGS_TO", "name": "Proj", "type": "project"},
        {"relationship": "REFERENCES", "name": "Width", "type": "decision"},
    ]
    quality = {"origin": "graph", "source": "d", "project_id": "proj", "updated_at": "2026-03-02T10:00:00Z"}
    shown = rendered(pack(part("d", "Nine\n wide.", related=related, quality=quality)), None)
    assert [name for name, _ in shown.pieces] == ["pack/header", "pack/section/decisions", "d"]
    assert shown.pieces[0][1] == (
        "# Sibyl Context Pack: tides\nIntent: build\nLayer: recall\nQuery: tides\nProject: proj"
    )
    assert shown.pieces[1][1] == "\n## Decisions"
    assert shown.pieces[2][1] == (
        "- **D** (decision) `d` _updated=2026-03-02_\n"
        "  - Memory: Nine wide.\n"
        "  - Related: REFERENCES Width (decision)"
    )


def test_content_that_is_the_name_is_not_repeated() -> None:
    assert "Memory" not in rendered(pack(part("d", "D")), None).pieces[2][1]


def test_sections_come_by_score_and_work_in_progress_first_when_building() -> None:
    parts = [part("low", "a", "gotchas", 0.9), part("mem", "b", "recent_memory", 0.8), looked_up("t", "c")]
    assert order(pack(*parts)) == ["t", "mem", "low"]  # 0.8 and the 0.25 of recent memory beat 0.9
    assert order(pack(*parts, intent="learn")) == ["mem", "low", "t"]  # 1.05, 0.9, 0.75


def order(made: Pack) -> list[str]:
    return [name for name, _ in rendered(made, None).pieces if not name.startswith("pack/")]


def test_the_first_item_without_room_ends_the_markdown() -> None:
    parts = [part(f"d{n}", "x" * 250, f"f{n}", 9.0 - n) for n in range(4)]
    shown = rendered(pack(*parts), 150)  # 600 characters, of which an item with its heading takes some 300
    assert shown.trimmed
    assert [name for name, _ in shown.pieces] == ["pack/header", "pack/section/f0", "d0", "pack/trailer"]
    assert shown.pieces[-1][1] == "\n_Trimmed to ~150 tokens; raise --budget for more._"
    assert rendered(pack(part("d", "x " * 900)), 1).pieces[2][0] == "d", "one item is always in it"


def test_long_content_is_cut_at_a_word() -> None:
    assert compact("one two three", 9) == ("one two...", True)
    assert compact("one\n two", 9) == ("one two", False)
    assert compact("abcdefghijkl", 5) == ("abcde...", True)


def recorded(*parts: Part, limit: int = 24, layer: str = "recall", tokens: int | None = 4000) -> Recorded:
    """The records of a pack that kept the rules."""
    shown = rendered(pack(*parts)._replace(layer=layer), tokens)
    names = {name for name, _ in shown.pieces}
    return NOTHING._replace(
        selected=parts,
        query="tides",
        selection={"intent": "build", "layer": layer, "query": "tides", "project": "proj"},
        budget={"limit": limit, "layer": layer, "markdown_token_budget": tokens},
        max_items=min(limit, {"wake": 8, "recall": 24, "deep_search": 50}[layer]),
        dropped=tuple(p.item for p in parts if p.item not in names),
        cut=shown.cut,
        pieces=tuple(Piece(name, lambda text=text: text) for name, text in shown.pieces),  # type: ignore[misc]
    )


PARTS = (looked_up("t1", "now"), part("a", "first", score=2.0), part("b", "second", score=1.0))


def verdicts(told: Recorded) -> dict[str, bool]:
    return {stage: one.expected == one.recorded for stage, one in Sibyl().recompute(told).items()}


def test_a_pack_that_kept_the_rules() -> None:
    assert verdicts(recorded(*PARTS)) == {"selection": True, "budget": True, "assembly": True}
    assert verdicts(recorded(*PARTS, limit=40)) == {"selection": True, "budget": True, "assembly": True}
    assert Sibyl().recompute(NOTHING) == {}


@pytest.mark.parametrize(
    ("told", "stage"),
    [
        (recorded(PARTS[0], PARTS[2], PARTS[1]), "selection"),
        (recorded(*(part(f"i{n}", "x") for n in range(9)), layer="wake"), "selection"),
        (recorded(*PARTS, limit=12, layer="wake")._replace(max_items=12), "budget"),
        (recorded(*PARTS)._replace(dropped=("a",)), "budget"),
        (recorded(*PARTS)._replace(pieces=recorded(*PARTS).pieces[:-1]), "assembly"),
    ],
)
def test_a_pack_that_broke_one(told: Recorded, stage: str) -> None:
    assert verdicts(told)[stage] is False


def test_a_smaller_budget_leaves_the_last_items_out_with_their_heading() -> None:
    def piece(item: str, kind: str, text: str, segment: str = "context") -> Any:
        made = candidate(item, len(text) // 4, kind, chars=len(text), read=lambda: text)
        return made._replace(segment=segment)

    memory = "  - Memory: " + "tide " * 100
    window = [
        piece("pack/header", "marker", "# Sibyl Context Pack: tides"),
        piece("pack/section/a", "marker", "\n## A"),
        piece("one", "durable_memory", f"- **One** `one`\n{memory}", "a"),
        piece("pack/section/b", "marker", "\n## B"),
        piece("two", "durable_memory", f"- **Two** `two`\n{memory}", "b"),
        piece("pack/trailer", "marker", "\n_Hint: use it._"),
    ]
    fit = Sibyl().fit(window, Room(110), None)  # 440 characters: one of the two, cut to its share of 280
    assert [drop.at for drop in fit.drops] == [3, 4]
    assert [swap.at for swap in fit.swaps] == [2, 5]
    assert fit.swaps[0].text.endswith("tide...")
    assert len(fit.swaps[0].text.split("Memory: ")[1]) <= 283
    assert fit.swaps[1].text == "\n_Trimmed to ~110 tokens; raise --budget for more._"
    assert Sibyl().fit(window, Room(400), None).verdict == "fits"


# -- Luminarys ---------------------------------------------------------------------------------------------


def given(order: list[str], separator: str | None, *also: str) -> Recorded:
    texts = {"llmctx-1": "hint", "res-1": "result"}
    entered = tuple(
        Part(name, None, "tool_result", lambda text=text: text, {}) for name, text in texts.items()
    )  # type: ignore[misc]
    pieces = [Piece(name, lambda name=name: texts.get(name)) for name in (*order, *also)]  # type: ignore[misc]
    return NOTHING._replace(entered=entered, pieces=tuple(pieces), separator=separator)


def holds(told: Recorded) -> bool:
    made = Luminarys().recompute(told)["assembly"]
    return bool(made.expected == made.recorded)


def test_context_before_the_result_with_a_line_between() -> None:
    made = Luminarys().recompute(given(["llmctx-1", "res-1"], "\n---\n"))["assembly"]
    assert made.expected == made.recorded
    assert made.expected["content"] == ["hint\n---\nresult"]


@pytest.mark.parametrize(
    "told",
    [
        given(["res-1", "llmctx-1"], "\n---\n"),
        given(["llmctx-1", "res-1"], None),
        given(["llmctx-1", "res-1"], "\n\n"),
        given(["res-1"], "none"),
        given(["llmctx-1", "res-1"], "\n---\n", "state:s"),
    ],
)
def test_other_placements_differ(told: Recorded) -> None:
    assert not holds(told)


def test_a_result_alone_has_no_separator() -> None:
    told = given(["res-1"], "none")
    assert holds(told._replace(entered=told.entered[1:]))
    assert Luminarys().recompute(NOTHING) == {}
