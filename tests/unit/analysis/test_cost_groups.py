"""In which capture a request counts that several hold, and what belongs to one group."""

from __future__ import annotations

from array import array
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.analysis.cost_groups import CostGroups, CostPart, SessionCosts
from ctxctl.analysis.shared_requests import owned_requests
from ctxctl.model.cost_sums import CostSums
from ctxctl.model.money import Money


def held(**requests: int) -> bytes:
    """Requests by a letter's key, each with its time."""
    keys, times = array("Q", [ord(name) for name in requests]), array("Q", requests.values())
    return keys.tobytes() + times.tobytes()


def letters(without: dict[str, list[int]]) -> dict[str, str]:
    return {name: "".join(map(chr, keys)) for name, keys in without.items()}


def test_a_resumed_sessions_copies_count_in_its_parent() -> None:
    """The copy keeps the times: whoever goes on first was there first."""
    found = owned_requests({"z-parent": held(a=1, b=2, c=3), "a-resumed": held(a=1, b=2, d=9)})
    assert letters(found.without) == {"a-resumed": "ab"}
    assert found.requests == 2
    assert found.owners == {"a-resumed": {"z-parent": 2}}


def test_copies_written_with_later_times_count_where_they_are_earliest() -> None:
    found = owned_requests({"a": held(a=50, b=51), "b": held(a=1, b=2, c=60)})
    assert letters(found.without) == {"a": "ab"}


def test_of_equal_files_the_first_by_name_counts() -> None:
    found = owned_requests({"copy": held(a=1, b=2), "again": held(a=1, b=2), "other": held(c=3)})
    assert letters(found.without) == {"copy": "ab"}


@given(
    st.dictionaries(
        st.sampled_from(["p", "q", "r", "s"]),
        st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 4), max_size=6),
        max_size=4,
    ),
    st.randoms(),
)
def test_each_request_counts_once_whatever_the_order(
    files: dict[str, dict[str, int]], random: object
) -> None:
    data = {name: held(**requests) for name, requests in files.items()}
    found = owned_requests(data)
    counted = [
        key
        for name, requests in files.items()
        for key in requests
        if ord(key) not in found.without.get(name, [])
    ]
    assert sorted(counted) == sorted({key for requests in files.values() for key in requests})
    shuffled = list(data.items())
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert owned_requests(dict(shuffled)) == found


def costs(directory: str | None, *parts: tuple[str | None, str | None, str | None, int]) -> SessionCosts:
    """A capture whose parts are given by day, branch, model and dollars."""
    made = [
        CostPart(
            "s", day, branch, model, None if day is None else f"{day}T10:00:00Z", None,
            CostSums(steps=1, sent=Money(input=Decimal(usd)), sources={"list": 1}),
        )
        for day, branch, model, usd in parts
    ]  # fmt: skip
    return SessionCosts("codex", directory, None, "2026-11-12", ("2026-11-12", []), made, b"", [], 0, 0)


FIRST = costs("/home/p", ("2026-01-02", "main", "m", 1), ("2026-01-03", "main", "n", 2))
SECOND = costs(None, ("2026-01-03", None, "m", 4), (None, None, None, 8))


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("session", [("sub/b.jsonl", 1, 12), ("a.jsonl", 1, 3)]),
        ("day", [("(no time is recorded)", 1, 8), ("2026-01-02", 1, 1), ("2026-01-03", 2, 6)]),
        ("project", [("sub", 1, 12), ("/home/p", 1, 3)]),
        ("branch", [("(no branch is recorded)", 1, 12), ("main", 1, 3)]),
        ("model", [("(no model is named)", 1, 8), ("m", 2, 5), ("n", 1, 2)]),
    ],
)
def test_groups(by: str, expected: list[tuple[str, int, int]]) -> None:
    groups = CostGroups(by)
    groups.add("a.jsonl", FIRST)
    groups.add("sub/b.jsonl", SECOND)
    found = [(group.name, group.captures, int(group.sums.sent.total)) for group in groups.ordered()]
    assert found == expected
    assert groups.whole.sums.sent.total == 15
    assert (groups.whole.captures, groups.whole.sums.steps) == (2, 4)
    assert (groups.whole.first, groups.whole.last) == ("2026-01-02T10:00:00Z", "2026-01-03T10:00:00Z")


def test_a_capture_without_requests_is_a_session_that_cost_nothing() -> None:
    groups = CostGroups("session")
    groups.add("empty.jsonl", costs(None))
    assert [(group.name, group.captures, group.sums.steps) for group in groups.ordered()] == [
        ("empty.jsonl", 1, 0)
    ]
