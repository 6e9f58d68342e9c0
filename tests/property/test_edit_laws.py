"""Dropping and setting over random traces: against the plain definition, the ledger, and each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ctxctl.analysis.whatif import WhatIfs, whatif_side
from ctxctl.engine.replay.cursor import StepAt
from ctxctl.errors import UsageError
from ctxctl.model.whatif import Limits, Replacement, Supposition
from ctxctl.session import Inspector
from tests.oracle import real
from tests.oracle.build import Event
from tests.oracle.random_traces import KINDS, NAMES, traces

EXAMPLES = settings.default.max_examples if settings.default else 100
FEWER = settings(max_examples=max(EXAMPLES // 8, 1))
POLICIES = st.sampled_from([None, "fifo", "truncate_middle", "sanqian"])
LETTERS = st.sampled_from(NAMES)


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("edits") / "trace.jsonl"


def walked(trace: Path, events: list[Event], **given_: Any) -> list[StepAt]:
    with real.opened(trace, events, **given_) as inspector:
        return [at for at, _ in inspector.walk()]


def described(events: list[Event]) -> set[str]:
    return {str(e["data"]["item_id"]).partition("@")[0] for e in events if "item_id" in e.get("data", {})}


def shown(at: StepAt, but: set[str] = frozenset()) -> list[tuple[Any, ...]]:  # type: ignore[assignment]
    return [(p.item, p.version, p.digest, p.tokens, p.stale) for p in at.placements if p.item not in but]


def figures(at: StepAt) -> tuple[Any, ...]:
    step = at.step
    return (step.window, step.ledger, step.counts, step.changes, step.cache, shown(at))


@FEWER
@given(events=traces(), gone=st.sets(LETTERS, min_size=1, max_size=3))
def test_what_is_dropped_was_never_in_a_frame_and_all_else_is(
    trace: Path, events: list[Event], gone: set[str]
) -> None:
    assume(gone <= described(events))
    plain = walked(trace, events)
    edited = walked(trace, events, drop=[f"item:{name}" for name in sorted(gone)])
    summaries = {p.item for at in plain for p in at.placements if p.kind == "thread_summary"}
    last: dict[tuple[str | None, str], int] = {}
    for a, b in zip(plain, edited, strict=True):
        # A summary of nothing else goes with what it stands for.
        left = {p.item for p in b.placements}
        assert shown(b) == shown(a, gone | (summaries - left))
        key, ledger = (b.step.session, b.step.thread), b.step.ledger
        assert ledger.window_before == last.get(key, 0)
        assert ledger.window_after == ledger.window_before + ledger.reweighed + ledger.new - ledger.freed
        assert ledger.window_after == sum(p.tokens for p in b.placements)
        assert not gone & {change.item for change in b.step.changes}
        assert "simulated" in b.step.flags
        last[key] = ledger.window_after


@FEWER
@given(events=traces(), one=LETTERS, other=LETTERS, policy=POLICIES, window=st.none() | st.integers(5, 60))
def test_the_order_of_selectors_is_all_one(
    trace: Path, events: list[Event], one: str, other: str, policy: str | None, window: int | None
) -> None:
    assume(one != other and {one, other} <= described(events))
    kinds = {KINDS.get(name) for name in (one, other)}
    selectors = [f"item:{one}", f"kind:{KINDS[other]}" if other in KINDS and kinds else f"item:{other}"]
    forth = walked(trace, events, drop=selectors, policy=policy)
    back = walked(trace, events, drop=selectors[::-1] + selectors, policy=policy)
    assert [figures(at) for at in forth] == [figures(at) for at in back]


@FEWER
@given(events=traces(), policy=POLICIES)
def test_nothing_that_is_not_there_can_be_dropped(
    trace: Path, events: list[Event], policy: str | None
) -> None:
    with pytest.raises(UsageError) as caught:
        walked(trace, events, drop=["item:no such item"], policy=policy)
    assert caught.value.slug == "nothing-dropped"


@FEWER
@given(events=traces(), item=LETTERS, policy=POLICIES)
def test_an_item_s_own_texts_change_nothing(
    trace: Path, events: list[Event], item: str, policy: str | None
) -> None:
    assume(item in described(events))
    stated: dict[str, set[str | None]] = {}
    for data in (event["data"] for event in events):
        version = data.get("metadata", {}).get("version")
        if data.get("item_id") == item and "context_kind" in data and version is not None:
            stated.setdefault(f"{item}@{version}", set()).add(data.get("content"))
    own = {ref: text for ref, (text, *more) in stated.items() if isinstance(text, str) and not more}
    assume(own)
    plain = walked(trace, events, policy=policy)
    edited = walked(trace, events, policy=policy, set=own)
    assert [figures(at) for at in plain] == [figures(at) for at in edited]


@FEWER
@given(events=traces(), item=LETTERS)
def test_one_text_in_every_version_is_never_an_update(trace: Path, events: list[Event], item: str) -> None:
    assume(item in described(events))
    text = "another text altogether"
    before: dict[tuple[str | None, str], set[str | None]] = {}
    with real.opened(trace, events, set={item: text}) as inspector:
        for at, _ in inspector.walk():
            ledger = at.step.ledger
            assert ledger.window_after == ledger.window_before + ledger.reweighed + ledger.new - ledger.freed
            key = (at.step.session, at.step.thread)
            now = {p.digest for p in at.placements if p.item == item and not p.stale}
            updated = any(c.item == item and c.status == "updated" for c in at.step.changes)
            # Another rendering (a wrapper, a redaction) is an update all the same.
            assert not updated or now != before.get(key, set())
            before[key] = now
            for p in at.placements:
                if p.item == item and p.content is not None:
                    assert text in inspector.text(p.content)
                    assert p.simulated


@FEWER
@given(events=traces(), item=LETTERS, set_=LETTERS, policy=POLICIES, window=st.none() | st.integers(5, 60))
def test_each_side_beside_the_other_is_what_it_is_alone(
    trace: Path, events: list[Event], item: str, set_: str, policy: str | None, window: int | None
) -> None:
    assume(item != set_ and {item, set_} <= described(events))
    asked: dict[str, Any] = {"drop": (f"item:{item}",), "set": (Replacement(set_, "one two three"),)}
    # A summary of one of them alone goes with it, and cannot be set then.
    assume(not any(set_ in str(e["data"].get("summary_ref", "")) for e in events if "data" in e))
    alone = walked(trace, events, policy=policy, limits=Limits(window=window), **asked)
    plain = walked(trace, events)
    with real.opened(trace, events) as inspector:
        comparison = both(inspector, policy=policy, window=window, **asked)
        pairs = list(comparison.pairs())
        turns = list(both(inspector, policy=policy, window=window, **asked).turns())
    assert [pair.recorded for pair in pairs] == [whatif_side(at.step) for at in plain]
    assert [pair.simulated for pair in pairs] == [whatif_side(at.step) for at in alone]
    for which in ("recorded", "simulated"):
        sides = [getattr(turn, which) for turn in turns]
        total = getattr(comparison, which)
        for name in ("sent", "omitted", "truncated", "compactions", "breaks", "lost", "cost", "unpriced"):
            assert sum(getattr(one, name) for one in sides) == getattr(total, name), name
    assert sum(turn.steps for turn in turns) == len(pairs)
    differing = [
        n for n, (a, b) in enumerate(zip(plain, alone, strict=True))
        if [(p.item, p.digest) for p in a.placements] != [(p.item, p.digest) for p in b.placements]
        or a.step.ledger != b.step.ledger
    ]  # fmt: skip
    first = comparison.first_differing
    assert (None if first is None else first.ordinal) == (differing[0] if differing else None)


def both(inspector: Inspector, **given_: Any) -> Any:
    whatifs = WhatIfs(inspector)
    return whatifs.compare(whatifs.resolve(Supposition(**given_)))
