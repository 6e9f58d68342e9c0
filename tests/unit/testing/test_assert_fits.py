"""assert_fits: a plan keeps its limits; a recorded session fits at every request."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ctxctl.budget.baseline import write_baseline
from ctxctl.budget.estimate import Estimate
from ctxctl.errors import UnreadableError, UsageError
from ctxctl.session import Inspector
from ctxctl.testing import Fits, assert_fits
from ctxctl.testing.fits import estimate_plan
from tests.oracle.build import lines
from tests.unit.engine.billed_help import catalogue, expecting, three_steps
from tests.unit.testing.sessions_help import events, item, written_trace

TRACE = Path(__file__).parents[3] / "traces" / "coding-agent.jsonl"
PLAN = """
version = 1
[model]
window = 1000
[[part]]
name = "rules"
tokens = 100
[conversation]
turns = 2
user = 200
answer = 100
[limits]
total = TOTAL
"""


def plan(folder: Path, total: int) -> Path:
    """Write a plan of one part of 100 tokens with a limit on the whole."""
    path = folder / "budget.toml"
    path.write_text(PLAN.replace("TOTAL", str(total)))
    return path


def test_a_plan_that_fits_gives_its_estimate(tmp_path: Path) -> None:
    found = assert_fits(plan(tmp_path, 100))
    assert isinstance(found, Estimate)
    assert (found.cap, found.total("p95")) == (1000, 100)


def test_a_plan_over_its_limit_says_which_and_by_how_much(tmp_path: Path) -> None:
    with pytest.raises(
        AssertionError, match="total-limit: all parts have 100 tokens at p95, 1 over the limit of 99"
    ):
        assert_fits(plan(tmp_path, 99))


def test_a_plan_is_held_against_its_baseline(tmp_path: Path) -> None:
    path, baseline = plan(tmp_path, 500), tmp_path / "budget.json"
    write_baseline(estimate_plan(path), baseline)
    assert_fits(path, baseline=baseline)
    path.write_text(path.read_text().replace("tokens = 100", "tokens = 300"))
    with pytest.raises(AssertionError, match="tokens:total was 100 and is 300"):
        assert_fits(path, baseline=baseline)


@pytest.mark.parametrize("given", [{"window": 9}, {"model": "gpt-5"}, {"headroom": 1}, {"uncounted": True}])
def test_limits_of_a_plan_are_in_the_plan(tmp_path: Path, given: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="limits in itself"):
        assert_fits(plan(tmp_path, 100), **given)  # type: ignore[arg-type]


def test_a_session_fits_as_the_replay_says() -> None:
    found = assert_fits(TRACE)
    with Inspector.open(TRACE) as inspector:
        rows = inspector.outline().rows
        windows = [inspector.step(n).window for n in range(len(rows))]
    assert found == Fits(
        len(rows),
        max(w.used for w in windows),
        min(w.cap - w.used for w in windows if w.cap is not None),
        sum(w.uncounted for w in windows),
    )


def test_a_session_that_does_not_fit_names_the_requests() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_fits(TRACE, window=3000, reserve=500)
    with Inspector.open(TRACE) as inspector:
        used = [row.used for row in inspector.outline().rows]
    over = [tokens for tokens in used if tokens > 2500]
    head, first, *_, last = str(caught.value).splitlines()
    assert head.endswith(f"does not fit at {len(over)} of {len(used)} requests")
    assert f": {over[0]:,} billed, {over[0] - 2500:,} over 2,500; largest: " in first
    assert last == f"  and at {len(over) - 5} more"


def test_headroom_is_part_of_the_bound() -> None:
    largest = assert_fits(TRACE, window=100_000).largest  # type: ignore[union-attr]
    assert_fits(TRACE, window=largest)
    assert_fits(TRACE, window=largest + 10, headroom=10)
    with pytest.raises(AssertionError, match=re.escape(f"1 over {largest + 10:,} less 11 of headroom")):
        assert_fits(TRACE, window=largest + 10, headroom=11)


def test_one_frame_of_a_session() -> None:
    found = assert_fits(f"{TRACE}@2.1", window=100_000)
    with Inspector.open(TRACE) as inspector:
        used = inspector.step(inspector.resolve("2.1")).window.used
    assert found == Fits(1, used, 100_000 - used, 0)


def test_limits_that_nobody_knows_are_no_pass(tmp_path: Path) -> None:
    path = written_trace(tmp_path, events([item("a", "hello")]))
    with pytest.raises(UsageError) as caught:
        assert_fits(path)
    assert caught.value.slug == "unknown-window"
    assert_fits(path, window=100)


def test_what_nobody_counted_is_no_pass(tmp_path: Path) -> None:
    path = written_trace(tmp_path, events([item("a", None)]))
    with pytest.raises(AssertionError, match="it is not known whether it fits"):
        assert_fits(path, window=100)
    assert assert_fits(path, window=100, uncounted=True) == Fits(1, 0, 100, 1, 1)


def test_a_request_is_as_large_as_its_bill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """13 tokens are recorded of the largest billed request, and 115 were billed."""
    monkeypatch.setenv("CTXCTL_CALIBRATION", "none")
    path = tmp_path / "billed.jsonl"
    path.write_bytes(lines(three_steps()))
    found = assert_fits(path, window=115)
    assert found == Fits(3, 115, 0, 0, 1)  # the third is not billed, and without a calibration not expected
    with pytest.raises(
        AssertionError, match=r"@2\.1: 115 billed, 1 over 114; largest: what is not recorded 102"
    ):
        assert_fits(path, window=114)
    expecting(monkeypatch)
    with pytest.raises(AssertionError, match=r"@3\.1: about 119 expected \(±7\), 4 over 115; "):
        assert_fits(path, window=115)


def test_the_model_table_is_asked_where_nothing_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CTXCTL_CALIBRATION", "none")
    path = tmp_path / "billed.jsonl"
    path.write_bytes(lines(three_steps()))
    catalogue(monkeypatch, 120)
    assert assert_fits(path) == Fits(3, 115, 5, 0, 1)
    with pytest.raises(AssertionError, match=r"5 over 120 \(from the model table\) less 10 of headroom"):
        assert_fits(path, headroom=10)


def test_a_trace_without_requests_is_no_pass(tmp_path: Path) -> None:
    path = written_trace(tmp_path, [{"event_type": "example.started", "turn_id": "t", "data": {}}])
    with pytest.raises(AssertionError, match="nothing was looked at"):
        assert_fits(path, window=100)


def test_hostile_titles_are_shown_as_text(tmp_path: Path) -> None:
    path = written_trace(tmp_path, events([item("a", "hello there", title="\x1b]0;x\x07\u202e")]))
    with pytest.raises(AssertionError) as caught:
        assert_fits(path, window=1)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", str(caught.value))


def test_wrong_use() -> None:
    with pytest.raises(UnreadableError):
        assert_fits("no-such-file.jsonl")
    with pytest.raises(UsageError, match="cannot be"):
        assert_fits(TRACE, window=-1)
    with pytest.raises(UsageError, match="for a plan"):
        assert_fits(TRACE, baseline="x.json")
