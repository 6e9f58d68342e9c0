"""Records are grouped in time linear in the capture, however they refer to each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from ctxctl.plugins.agent_context import reach, records
from ctxctl.plugins.agent_context.grouping import Capture
from ctxctl.plugins.agent_context.loose import Group, LooseRecord, names
from ctxctl.plugins.agent_context.reach import Reach
from ctxctl.plugins.agent_context.records import Json, Kind

SELECTION = records.BY_NAME["context_selection"]


def item(number: int, *refs: int, **more: Any) -> tuple[Kind, Json]:
    return records.ITEM, {"item_id": f"r{number}", "source_refs": [f"r{ref}" for ref in refs], **more}


def envelope(number: int, *refs: int) -> tuple[Kind, Json]:
    return records.ENVELOPE, {"context_id": f"e{number}", "item_refs": [f"r{ref}" for ref in refs]}


def grouped(rows: list[tuple[Kind, Json]]) -> tuple[list[Group], Capture]:
    capture = Capture()
    for line, (kind, data) in enumerate(rows):
        capture.add(LooseRecord(kind, data, line, None, line))
    return capture.groups(), capture


def lines(groups: list[Group]) -> list[list[int]]:
    return [[record.line for record in (*group.envelopes, *group.records)] for group in groups]


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often a record's refs were followed."""
    times: Counter[str] = Counter()
    follow = Reach._next

    def counted(self: Reach, record: LooseRecord, ids: set[str]) -> Iterator[LooseRecord]:
        times["followed"] += 1
        return follow(self, record, ids)

    monkeypatch.setattr(Reach, "_next", counted)
    return times


def predecessors(n: int) -> list[tuple[Kind, Json]]:
    return [item(i, i - 1) for i in range(n)]


def successors(n: int) -> list[tuple[Kind, Json]]:
    return [item(i, i + 1) for i in range(n)]


def enveloped(n: int) -> list[tuple[Kind, Json]]:
    return [row for i in range(n) for row in (item(i, i - 1), envelope(i, i))]


def behind_a_shape(n: int) -> list[tuple[Kind, Json]]:
    first = (SELECTION, {"selection_id": "r0", "surface_id": "s"})
    return [first, *(item(i, i - 1) for i in range(1, n)), *(envelope(i, n - 1) for i in range(n))]


@pytest.mark.parametrize("rows", [predecessors, successors, enveloped, behind_a_shape])
def test_a_chain_of_records_is_followed_a_few_times_each(rows: Any, looked: Counter[str]) -> None:
    groups, capture = grouped(rows(100))
    assert (len(groups), capture.cut) == (1, None)
    assert looked["followed"] <= 3 * len(rows(100))


def test_the_walks_of_records_whose_ids_differ_are_bounded(
    looked: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reach, "_WALKED", 500)
    monkeypatch.setattr(reach, "_NEAR", 5)
    groups, capture = grouped([item(i, i - 1, turn_id=f"t{i}") for i in range(300)])
    assert len(groups) == 300
    assert capture.cut is not None
    assert 50 < capture.cut.line < 150
    assert looked["followed"] < 500 + 300 * 2 * 8 + 300 * 8


def test_an_envelope_that_binds_nothing_new_joins_the_nearest_shape_before_an_item() -> None:
    rows = [
        item(1), envelope(1, 1),
        (SELECTION, {"selection_id": "r2", "surface_id": "s"}), envelope(2, 2),
        item(3, 2), envelope(3, 1, 3),
        envelope(4, 1, 3),
    ]  # fmt: skip
    assert lines(grouped(rows)[0]) == [[1, 0], [3, 5, 6, 2, 4]]


def test_a_version_behind_an_id_is_left_out_where_no_record_has_it() -> None:
    assert lines(grouped([item(1), (records.ENVELOPE, {"context_id": "e", "item_refs": ["r1@3"]})])[0]) == [
        [1, 0]
    ]


def test_names_of_nested_lists_come_in_order() -> None:
    assert list(names(["a", ["b", [{"item_id": "c"}], "d"], 1, "e"])) == ["a", "b", "c", "d", "e"]


def test_refs_nested_deep_are_followed_without_recursion() -> None:
    value: Any = ["a"]
    for _ in range(5000):
        value = [value]
    assert list(names(value)) == ["a"]
