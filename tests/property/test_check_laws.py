"""Laws of ``ctxctl check``: a looser bound never does worse; its conditions agree with queries."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxctl.analysis.check import check_trace
from ctxctl.model.checks import CheckRules, ConditionResult
from ctxctl.session import Inspector
from tests.oracle.build import Event, lines
from tests.oracle.random_traces import traces

TRACES = sorted(Path("traces").glob("*.jsonl"))
EXAMPLES = settings.default.max_examples if settings.default else 100
FEWER = settings(max_examples=EXAMPLES // 2)
RANK: Final = {"fails": 0, "unknown": 1, "holds": 2}
SAME: Final = {"stable_prefix": "cache:broken", "no_misses": "miss", "no_compaction": "compacted"}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("laws") / "trace.jsonl"


def asked(path: Path, **rules: Any) -> list[ConditionResult]:
    with Inspector.open(path) as inspector:
        return check_trace(inspector, CheckRules(**rules), {})


def looser_is_no_worse(path: Path, low: int, high: int) -> None:
    pairs = {
        "max": (str(low), str(high)), "max_growth": (low, high), "max_tool_result": (low, high),
        "max_cost": (f"0.{low:09}", f"0.{high:09}"),
    }  # fmt: skip
    tight = asked(path, **{name: pair[0] for name, pair in pairs.items()})
    loose = asked(path, **{name: pair[1] for name, pair in pairs.items()})
    tight += asked(path, max=f"{low}%")
    loose += asked(path, max=f"{high}%")
    for one, other in zip(tight, loose, strict=True):
        assert RANK[one.outcome] <= RANK[other.outcome], one.condition
        assert one.failed >= other.failed
        assert one.steps == other.steps >= one.failed + one.unknown


@FEWER
@given(traces(), st.lists(st.integers(0, 60), min_size=2, max_size=2).map(sorted))
def test_a_looser_bound_never_does_worse(path: Path, events: list[Event], bounds: list[int]) -> None:
    path.write_bytes(lines(events))
    looser_is_no_worse(path, *bounds)


@pytest.mark.parametrize("trace", TRACES, ids=lambda trace: trace.stem)
@pytest.mark.parametrize("low", [0, 70, 600, 3_000])
def test_nor_does_it_of_a_session(trace: Path, low: int) -> None:
    looser_is_no_worse(trace, low, low * 2 + 1)


def conditions_are_queries(path: Path) -> None:
    for name, query in SAME.items():
        own, same = asked(path, **{name: True}, never=(query,))
        assert own.failed == same.failed, name
        if own.failed:
            assert own.outcome == same.outcome == "fails"
    never, always = asked(path, never=("sent>20% or compacted",), always=("sent>20% or compacted",))
    assert never.unknown == always.unknown
    assert never.failed + always.failed + never.unknown == never.steps == always.steps


@FEWER
@given(traces())
def test_conditions_fail_where_their_queries_match(path: Path, events: list[Event]) -> None:
    path.write_bytes(lines(events))
    conditions_are_queries(path)


@pytest.mark.parametrize("trace", TRACES, ids=lambda trace: trace.stem)
def test_and_so_they_do_of_a_session(trace: Path) -> None:
    conditions_are_queries(trace)


@FEWER
@given(traces(), st.integers(0, 60))
def test_what_may_be_sent_is_a_query_too(path: Path, events: list[Event], most: int) -> None:
    """A size that is only expected counts by its error, so the query finds as much or more."""
    path.write_bytes(lines(events))
    own, same = asked(path, max=str(most), never=(f"sent>{most}",))
    assert own.failed <= same.failed
    if not own.unknown:
        assert own.failed == same.failed
