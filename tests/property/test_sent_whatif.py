"""What a what-if makes of the part that was sent and not recorded: it stays, and takes its room."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from ctxctl.engine.replay.cursor import StepAt
from ctxctl.model.results import Placement
from ctxctl.model.whatif import Limits
from tests.oracle import real, scales
from tests.oracle.build import Event
from tests.oracle.random_traces import NAMES, traces
from tests.property.test_edit_laws import described

EXAMPLES = settings.default.max_examples if settings.default else 100
FEW = settings(max_examples=max(EXAMPLES // 10, 1), phases=[Phase.explicit, Phase.reuse, Phase.generate])
LETTERS = st.sampled_from(NAMES)
POLICIES = st.sampled_from(["fifo", "fifo:target=0.5", "priority", "truncate_tail", "reject"])
LONG = {"threads": 2, "steps": 11}


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sent") / "trace.jsonl"


def walked(trace: Path, events: list[Event], weighs: bool, **how: Any) -> list[StepAt]:
    """Under a calibration that never changes its mind (so both sides weigh alike), or none."""
    opened = scales.opened(trace, events, Steady(), **how) if weighs else real.opened(trace, events, **how)
    with opened as inspector:
        return [at for at, _ in inspector.walk()]


class Steady(scales.Restless):
    """The same scale from the first step on."""

    def scale(self, model: str | None, thread: object) -> Any:
        """What a thread with one bill has."""
        return super().scale(model, scales.Known(1))


def named(at: StepAt) -> list[tuple[str, str | None, str | None]]:
    return [(p.item, p.version, p.digest) for p in at.placements]


def tokens(placements: Iterable[Placement]) -> int:
    return sum(p.tokens for p in placements)


@FEW
@given(events=traces(**LONG), gone=st.sets(LETTERS, min_size=1, max_size=3), weighs=st.booleans())
def test_what_is_dropped_is_what_less_is_sent(
    trace: Path, events: list[Event], gone: set[str], weighs: bool
) -> None:
    assume(gone <= described(events))
    plain = walked(trace, events, weighs)
    edited = walked(trace, events, weighs, drop=[f"item:{name}" for name in sorted(gone)])
    for a, b in zip(plain, edited, strict=True):
        was, now = a.step.window, b.step.window
        dropped = tokens(a.placements) - tokens(b.placements)
        assert was.recorded - now.recorded == dropped >= 0
        assert now.used == max(0, was.used - dropped), (was, now, b.step.flags)
        # What nobody recorded is what it was; less than nothing cannot be sent.
        assert (now.unrecorded is None) == (was.unrecorded is None)
        if was.used >= dropped:
            assert now.unrecorded == was.unrecorded
        altered = dropped or named(a) != named(b)
        if was.used_method == "reported" and altered:
            assert now.used_method == "expected", "nobody was billed for it"


@FEW
@given(events=traces(**LONG), item=LETTERS, text=st.sampled_from(["x", "another text altogether"]))
def test_another_text_leaves_what_was_not_recorded(
    trace: Path, events: list[Event], item: str, text: str
) -> None:
    assume(item in described(events))
    for weighs in (False, True):
        plain = walked(trace, events, weighs)
        edited = walked(trace, events, weighs, set={item: text})
        for a, b in zip(plain, edited, strict=True):
            was, now = a.step.window, b.step.window
            assert now.recorded == tokens(b.placements)
            assert now.used == max(0, was.used + now.recorded - was.recorded), (weighs, was, now)
            if now.used:
                assert now.unrecorded == was.unrecorded
            own = [p.tokens if p.instead_of is None else p.instead_of for p in b.placements]
            assert sum(own) == was.recorded


@FEW
@given(events=traces(**LONG), policy=POLICIES, window=st.integers(1, 120), weighs=st.booleans())
def test_what_is_sent_beside_the_content_takes_room(
    trace: Path, events: list[Event], policy: str, window: int, weighs: bool
) -> None:
    plain = walked(trace, events, weighs)
    fitted = walked(trace, events, weighs, policy=policy, limits=Limits(window=window))
    beside: dict[tuple[str | None, str], int] = {}
    for a, b in zip(plain, fitted, strict=True):
        key = (b.step.session, b.step.thread)
        told = b.step.stages["budget"].facts["simulated"]
        room = max(0, beside.get(key, 0))
        assert told["wanted"] == room + a.step.window.recorded or "restored" in told
        if told["verdict"] in ("fits", "fitted"):
            assert b.step.window.recorded + room <= window
        if told["verdict"] == "fits" and told["wanted"] <= window and "restored" not in told:
            assert named(b) == named(a)
            assert b.step.window.used == a.step.window.used
        if a.step.window.used_method == "reported":
            assert a.step.window.unrecorded is not None
            beside[key] = a.step.window.unrecorded
