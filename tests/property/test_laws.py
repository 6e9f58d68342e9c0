"""The laws of DESIGN section 3 over random traces, and the engine held against the plain reference."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from tests.oracle import real, reference
from tests.oracle.build import Event
from tests.oracle.case import Replayed, address
from tests.oracle.counting import count
from tests.oracle.random_traces import traces

EXAMPLES = settings.default.max_examples if settings.default else 100
FEWER = settings(max_examples=EXAMPLES // 2)
"""For what opens a trace several times."""

LEDGER = ("window_before", "new", "freed", "window_after", "saved", "stale", "uncounted")
WINDOW = (
    "limit", "limit_source", "reserved", "cap", "used", "used_method", "used_error", "recorded", "unrecorded",
    "counted", "free", "over", "uncounted",
)  # fmt: skip
USAGE = (
    "reported_input",
    "reported_cached",
    "reported_output",
    "counted_input",
    "difference",
    "provenance",
    "provider",
)
CHANGE = ("status", "cause", "reason", "into", "new", "freed", "in_window", "previous_version")


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("laws") / "trace.jsonl"


def by_thread(said: Replayed) -> dict[tuple[Any, Any], list[dict[str, Any]]]:
    threads: dict[tuple[Any, Any], list[dict[str, Any]]] = {}
    for step in said.steps:
        threads.setdefault((step["session"], step["thread"]), []).append(step)
    return threads


def sizes(step: dict[str, Any], before: dict[str, Any] | None) -> None:
    """The laws of one step's three sizes (DESIGN section 3, the true window), and of two that were billed."""
    window, ledger, segments = step["window"], step["ledger"], step["segments"]
    recorded, unrecorded, used = window["recorded"], window["unrecorded"], window["used"]
    assert recorded == ledger["window_after"] == sum(window["by_method"].values())
    assert recorded == window["counted"], "nothing is calibrated"
    assert used == recorded + (unrecorded or 0)
    assert (window["used_method"] == "recorded") == (unrecorded is None)
    assert window["used_error"] is None
    assert sum(segments.values()) == used
    assert list(segments)[:1] == ["unrecorded"] if unrecorded else "unrecorded" not in segments
    if window["used_method"] == "reported":
        assert used == step["usage"]["reported_input"] > 0
    cap = window["cap"]
    assert (window["free"], window["over"]) == (
        (None, None) if cap is None else (max(0, cap - used), max(0, used - cap))
    )
    assert (window["limit_source"] is None) == (cap is None)
    if before is not None and None not in (unrecorded, before["window"]["unrecorded"]):
        moved = ledger["new"] - ledger["freed"] + unrecorded - before["window"]["unrecorded"]
        assert used == before["window"]["used"] + moved


def hold(said: Replayed) -> None:
    """Every law that needs no second engine."""
    for steps in by_thread(said).values():
        last, before = 0, None
        for step in steps:
            ledger = step["ledger"]
            sizes(step, before)
            before = step
            assert ledger["window_before"] == last
            assert ledger["window_after"] == ledger["window_before"] + ledger["new"] - ledger["freed"]
            assert ledger["new"] >= 0
            assert ledger["freed"] >= 0
            assert 0 <= ledger["stale"] <= ledger["window_after"]
            assert ledger["uncounted"] == step["window"]["uncounted"]
            assert (ledger["saved"] is None) == (step["mode"] == "window")
            last = ledger["window_after"]
            items = [change["item"] for change in step["changes"]]
            assert len(items) == len(set(items))
            statuses = Counter(change["status"] for change in step["changes"])
            assert statuses == Counter({k: v for k, v in step["counts"].items() if v})
            # What is freed of copies that were stale before belongs to no change.
            assert sum(change["new"] for change in step["changes"]) == ledger["new"]
            assert sum(change["freed"] for change in step["changes"]) <= ledger["freed"]
            assert sum(change["in_window"] for change in step["changes"]) <= ledger["window_after"]
        assert steps[0]["cache"]["possible_prefix"] is None
    for turn in said.turns:
        own = [s for s in said.steps if all(s[k] == turn[k] for k in ("session", "thread", "turn"))]
        assert turn["steps"] == len(own)
        assert turn["ledger"]["new"] == sum(step["ledger"]["new"] for step in own)
        assert turn["ledger"]["freed"] == sum(step["ledger"]["freed"] for step in own)
        assert turn["ledger"]["window_before"] == own[0]["ledger"]["window_before"]
        assert turn["ledger"]["window_after"] == own[-1]["ledger"]["window_after"]


def essence(said: Replayed) -> dict[str, Any]:
    """What both engines must agree on, by address."""
    found: dict[str, Any] = {}
    for step in said.steps:
        found[address(step)] = {
            **{name: step[name] for name in ("turn_id", "step_id", "mode", "mode_declared", "counts")},
            "usage": step["usage"] and {name: step["usage"][name] for name in USAGE},
            "ledger": {name: step["ledger"][name] for name in LEDGER},
            "by_method": {name: tokens for name, tokens in step["window"]["by_method"].items() if tokens},
            "window": {name: step["window"][name] for name in WINDOW},
            "segments": list(step["segments"].items()),
            "prefix": step["cache"]["possible_prefix"],
            "broken": step["cache"]["broken_by"] is not None,
            "injected": "injection_not_recorded" not in step["flags"],
            "cut": "unrecorded_cut" in step["flags"],
            "full": sorted({"over_budget", "still_over_budget"}.intersection(step["flags"])),
            "order": [c["item"] for c in step["changes"] if c["status"] in ("added", "updated", "skipped")],
            "changes": {c["item"]: {name: c[name] for name in CHANGE} for c in step["changes"]},
        }
        for change in found[address(step)]["changes"].values():
            if change["status"] != "updated":
                del change["previous_version"]
    for turn in said.turns:
        found[f"turn {address(turn)}"] = {
            "changes": {c["item"]: c["status"] for c in turn["changes"] if c["status"] != "omitted"},
            "ledger": {name: turn["ledger"][name] for name in LEDGER[:4]},
        }
    return found


@FEWER
@given(events=traces())
def test_the_reference_keeps_the_laws(events: list[Event]) -> None:
    hold(reference.replay(events, count))


@given(events=traces())
def test_the_engine_keeps_the_laws(trace: Path, events: list[Event]) -> None:
    hold(real.replay(trace, events))


@given(events=traces())
def test_the_engine_says_what_the_reference_says(trace: Path, events: list[Event]) -> None:
    assert essence(real.replay(trace, events)) == essence(reference.replay(events, count))


@FEWER
@given(events=traces(styles=("assemblies", "unselected"), tardy=False))
def test_another_target_has_frames_of_its_own(trace: Path, events: list[Event]) -> None:
    # A selection names no target, so what it means to another target than the model is open.
    said = real.replay(trace, events, target="tool")
    hold(said)
    assert essence(said) == essence(reference.replay(events, count, target="tool"))


@FEWER
@given(events=traces(styles=("assemblies",), named=False))
def test_steps_without_ids(trace: Path, events: list[Event]) -> None:
    said = real.replay(trace, events)
    hold(said)
    assert essence(said) == essence(reference.replay(events, count))


@FEWER
@given(events=traces(styles=("assemblies", "unselected")))
def test_moved_is_outside_a_longest_common_subsequence(trace: Path, events: list[Event]) -> None:
    """Which of several equally long ones is kept is open."""
    said, expected = real.replay(trace, events), reference.replay(events, count)
    plain = {address(step): step for step in expected.steps}
    for step in said.steps:
        moved = frozenset(c["item"] for c in step["changes"] if "moved" in c["flags"])
        assert moved in plain[address(step)]["moves"]


@FEWER
@given(events=traces())
def test_a_step_opened_by_itself_is_the_step_that_passed_by(trace: Path, events: list[Event]) -> None:
    assert real.seek(trace, events) == real.replay(trace, events, skipped=False).steps
    with real.opened(trace, events) as inspector:
        for ordinal in reversed(range(len(inspector.outline().rows))):
            at = inspector.at(ordinal)
            assert sum(p.tokens for p in at.placements) == at.step.window.recorded


@FEWER
@given(events=traces())
def test_listing_the_skipped_changes_nothing_else(trace: Path, events: list[Event]) -> None:
    whole, short = real.replay(trace, events), real.replay(trace, events, skipped=False)
    for long, brief in zip(whole.steps + whole.turns, short.steps + short.turns, strict=True):
        assert {**long, "changes": [c for c in long["changes"] if c["status"] != "skipped"]} == {
            **brief,
            "changes": [c for c in brief["changes"] if c["status"] != "skipped"],
        }
